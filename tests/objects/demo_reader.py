"""The demo's reader beside a region in a bucket: before each read its copy of the bucket is brought up to date.

    python -m tests.objects.demo_reader --mirrored URI --copy DIR --results FILE     until SIGTERM

The bucket's account comes from the environment.
"""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from deltalake import DeltaTable

from console.demo import reader
from tests.faults.mirror import Mirror

REGION, PIPELINE = "us", "web"
PAUSE_SECONDS = 3.0  # a look lists every object of the region


def main() -> int:
    arguments = argparse.ArgumentParser(description="read through the live release until SIGTERM")
    arguments.add_argument("--mirrored", required=True, metavar="URI")
    arguments.add_argument("--copy", type=Path, required=True)
    arguments.add_argument("--results", type=Path, required=True)
    asked = arguments.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    mirror = Mirror(asked.mirrored, asked.copy, os.environ)
    log, tables = reader.ReadLog(), dict[str, DeltaTable]()
    while not ended.is_set():
        mirror.sync()
        reader.read(log, tables, asked.copy, PIPELINE)
        reader.write(asked.results, {REGION: log})
        ended.wait(PAUSE_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
