"""One survey of a table of so many data files, in a fresh process: `FOLDER FILES`. Prints a `SurveyRun` as JSON.

The files exist in the table's log alone, in one commit with a checkpoint.
"""

import json
import sys
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from deltalake import write_deltalake

from console.agent.store.table_stats import table_stats
from tests.bench.scale.costs import SurveyRun
from tests.bench.test_large_region import BEGAN, SCHEMA, add, append

DAYS = 365
HOUR = timedelta(hours=1)
TIME = "%Y-%m-%dT%H:%M:%S.000Z"
KIB = 1024  # of VmHWM


def table(path: str, files: int) -> None:
    write_deltalake(path, SCHEMA.empty_table())
    adds = []
    for number in range(files):
        day = BEGAN + timedelta(days=number % DAYS)
        lowest, highest = {"id": "a", "ts": day.strftime(TIME)}, {"id": "z", "ts": (day + HOUR).strftime(TIME)}
        adds.append(add(f"{number}.parquet", 1 << 20, 1_000, lowest, highest))
    append(path, adds)


def main(folder: str, files: int) -> None:
    path = str(Path(folder) / "t")
    if not Path(path).is_dir():  # its own process makes it: what that takes must not count
        table(path, files)
        return
    before = time.process_time()
    stats = table_stats("t", path, "ts")
    seconds = time.process_time() - before
    assert stats is not None
    assert stats.files == files
    print(json.dumps(asdict(SurveyRun(files=files, seconds=seconds, memory=peak()))))


def peak() -> int:
    """This process's largest memory so far, in bytes. `ru_maxrss` begins with what the parent had when it forked."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * KIB


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
