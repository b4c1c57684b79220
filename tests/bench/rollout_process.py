"""Rollouts that rebuild tables, in one warm JVM: `WHAT FOLDER ROWS DAYS ROUNDS`. Prints one JSON list, an object a round, in processor
seconds of the process tree.

    whole  of one table, beside one INSERT of all its rows
    daily  of one table, beside one INSERT a day
    chain  of three tables, each below the one before

And `backlog`: so many rows that wait in a landing table of a tenth of them, followed beside one INSERT of these.
"""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.bench import demo_rows
from tests.bench.measured_region import MeasuredRegion, Phase
from tests.bench.processor_time import of_tree

FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
FIRST, BELOW = "requests", ("visits", "sizes")
HELD_SECONDS, DRAINED_SECONDS = 60.0, 900.0


def main(what: str, place: Path, rows: int, days: int, rounds: int) -> list[dict[str, float]]:
    region = MeasuredRegion(place)
    demo_rows.land(region.landing, rows // 10 if what == "backlog" else rows, days)
    region.start()
    try:
        # warms the JVM up, and makes live tables to compare with
        region.carry(region.plan(demo_rows.files() | (demo_rows.below() if what == "chain" else {})))
        region.promote()
        match what:
            case "whole":
                return list(whole(region, rounds))
            case "daily":
                return [daily(region, days)]
            case "chain":
                return list(chain(region, rounds))
            case "backlog":
                return list(backlog(region, rows, rounds))
            case _:
                raise SystemExit(f"whole, daily, chain or backlog, not {what}")
    finally:
        region.close()


def whole(region: MeasuredRegion, rounds: int) -> Iterator[dict[str, float]]:
    region.bare(region.plan(demo_rows.files(1)), region.root / "warm")
    for number in range(1, rounds + 1):
        plan, path = region.plan(demo_rows.files(number)), region.root / f"bare{number}"
        bare = region.bare(plan, path)
        figures = carried(region, plan)
        region.same_rows(str(path), region.built("requests"))
        region.discard()
        yield {"bare": bare, **figures}


def daily(region: MeasuredRegion, days: int) -> dict[str, float]:
    plan, path = region.plan(demo_rows.files(1)), region.root / "daily"
    taken = [partial(of_day, day=FIRST_DAY + timedelta(days=number)) for number in range(days)]
    region.bare(plan, region.root / "warm", taken[0])
    region.bare(plan, region.root / "warm", taken[1])
    began = of_tree()
    for day in taken:
        region.bare(plan, path, day)
    bare = of_tree() - began
    figures = carried(region, plan)
    region.same_rows(str(path), region.built("requests"))
    return {"bare": bare, **figures}


def chain(region: MeasuredRegion, rounds: int) -> Iterator[dict[str, float]]:
    for number in range(1, rounds + 2):
        costs = region.carry(region.plan(demo_rows.files(number) | demo_rows.below(number)))
        for table in BELOW:
            region.same_rows(region.built(table), region.built(FIRST), "NOT is_bot")
        region.discard()
        if number > 1:  # the queries of the lower tables are new to the JVM in the first
            tables = {table: costs.table(table) for table in (FIRST, *BELOW)}
            yield {
                **tables,
                "receipts": costs.phase(Phase.RECEIPTS),
                "checks": costs.phase(Phase.CHECKS),
                "total": costs.total,
            }


def backlog(region: MeasuredRegion, rows: int, rounds: int) -> Iterator[dict[str, float]]:
    """After a round that warms up."""
    follower = region.agent.follower
    for number in range(1 + rounds):
        first, other = (1 + number) * rows, region.root / f"backlog{number}"
        demo_rows.land(other, rows, 1, first=first)
        with follower.hold("web", HELD_SECONDS, aligned=False):
            demo_rows.land(region.landing, rows, 1, first=first)
            there = DeltaTable(region.live(FIRST)).count()
            began = of_tree()
        follower.align("web").result(DRAINED_SECONDS)
        drained = of_tree() - began
        assert DeltaTable(region.live(FIRST)).count() == there + rows
        plan, path = region.plan(demo_rows.files(1)), region.root / f"bare{number}"
        bare = region.bare(plan, path, of=other)
        if number:
            yield {"bare": bare, "drained": drained}


def of_day(rows: Any, day: datetime) -> Any:
    return rows.where(f"ts >= '{day.isoformat()}' AND ts < '{(day + timedelta(days=1)).isoformat()}'")


def carried(region: MeasuredRegion, plan: Any) -> dict[str, float]:
    costs = region.carry(plan)
    return {**{phase.value: costs.phase(phase) for phase in Phase}, "total": costs.total}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6]))))
