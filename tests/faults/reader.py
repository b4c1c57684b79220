"""Reads a region through its live release, again and again: every read is wholly one release at one landing position.

    python reader.py --warehouse DIR [--mirrored URI] --reads FILE [--every SECONDS]     until SIGTERM; one JSON line a read

A line has the release, its landing position and rows, or `torn` or `failed` with what was seen. Imports nothing of
the program whose release it reads.
"""

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from judge import Region, Torn  # both beside this file
from mirror import Mirror


class Reader:
    """Remembers what it has seen: within a release nothing ever goes back."""

    def __init__(self, warehouse: Path, mirror: Mirror | None = None) -> None:
        """mirror: of a warehouse in a bucket, whose copy is `warehouse`"""
        self.warehouse = warehouse
        self._mirror = mirror
        self._region: Region | None = None
        self._reached: dict[str, int] = {}

    def read(self) -> dict[str, Any]:
        try:
            if self._mirror:
                self._mirror.sync()
            self._region = self._region or Region(self.warehouse)
            live = self._region.stored_releases().get("live", [])
            if len(live) != 1:
                raise Torn(f"{len(live)} live releases")
            seen = self._seen(self._region, live[0])
            name = str(live[0]["id"])
            if seen["position"] < self._reached.get(name, 0):
                raise Torn(f"{name}: at {seen['position']} after {self._reached[name]}")
            self._reached[name] = seen["position"]
            return {"release": name, **seen}
        except Torn as torn:
            return {"torn": str(torn)}
        except Exception as error:
            self._region = None
            return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}

    def _seen(self, region: Region, live: dict[str, Any]) -> dict[str, Any]:
        """The release that was live when the read began. A table that it shares with the one promoted meanwhile is fed
        by that one from then on, which knows how far it has come.
        """
        try:
            return region.read(live)
        except Torn:
            now = region.stored_releases().get("live", [])
            if len(now) != 1 or now[0]["id"] == live["id"]:
                raise
            return {**region.read(live, now[0]), "promoted": now[0]["id"]}


def main() -> int:
    parser = argparse.ArgumentParser(description="read through the live release until SIGTERM")
    parser.add_argument("--warehouse", type=Path, required=True)
    parser.add_argument("--reads", type=Path, required=True)
    parser.add_argument("--every", type=float, default=0.5)
    parser.add_argument(
        "--mirrored", metavar="URI", help="the warehouse's own place, a bucket; --warehouse is its copy"
    )
    asked = parser.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    mirror = Mirror(asked.mirrored, asked.warehouse, os.environ) if asked.mirrored else None
    reader = Reader(asked.warehouse, mirror)
    with asked.reads.open("a") as out:
        while not ended.is_set():
            out.write(json.dumps(reader.read(), default=str) + "\n")
            out.flush()
            ended.wait(asked.every)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a worker thread of the Delta reader aborts an ordinary exit now and then
