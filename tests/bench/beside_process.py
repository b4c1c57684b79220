"""Lags of live rows while a rollout rebuilds their tables: `FOLDER ROWS RATE`. Prints one JSON object.

The agent is this process. Live is a chain of two tables, to which so many requests a second land, once a second; beside it both are
built anew, with all rows of history.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.bench import demo_rows
from tests.bench.follow_process import lags
from tests.bench.measured_region import MeasuredRegion
from tests.bench.size import sized

DAYS = 30
LAG = 3.0  # `follow.lag`, seconds
WARM_SECONDS, LEAST_SECONDS = sized(20, 40), 20
TAIL_SECONDS = 60.0


def main(place: Path, rows: int, rate: int) -> dict[str, Any]:
    region = MeasuredRegion(place, tick_seconds=0.5, follow_lag_seconds=LAG)
    demo_rows.land(region.landing, rows, DAYS)
    region.start()
    landed = rows
    try:
        region.carry(region.plan(demo_rows.files() | demo_rows.below()))
        region.promote()
        for _ in range(WARM_SECONDS):
            landed = second(region, landed, rate)
        first = DeltaTable(str(region.landing)).version() + 1
        began = time.monotonic()
        carrying = region.accept(region.plan(demo_rows.files(1) | demo_rows.below(1)))
        while carrying.is_alive() or time.monotonic() - began < LEAST_SECONDS:
            landed = second(region, landed, rate)
        seconds, last = time.monotonic() - began, DeltaTable(str(region.landing)).version()
        region.at_gate()
        until_there(region.live("visits"), landed)
        found = lags(region.landing, Path(region.live("requests")), Path(region.live("visits")), (first, last))
    finally:
        region.close()
    return {"lags": found, "seconds": seconds}


def second(region: MeasuredRegion, landed: int, rate: int) -> int:
    """Land one second's rows, and rest for what is left of it; returns the number of rows that have landed."""
    began = time.monotonic()
    demo_rows.land(region.landing, rate, 1, first=landed)
    time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
    return landed + rate


def until_there(table: str, rows: int) -> None:
    end = time.monotonic() + TAIL_SECONDS
    while DeltaTable(table).count() < rows and time.monotonic() < end:
        threading.Event().wait(0.2)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
