"""Defects of a release that show only after its promotion.

Every one leaves the version before as it was: only the new one lacks something, or only its definition breaks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable, write_deltalake

from tests.agent.watched_pipeline import CALLED, MOST_FILES, NEWEST, WatchedPipeline, expression

DAY = f"{NEWEST:%Y-%m-%d}"
LONG = "a" * 76


@dataclass(frozen=True, slots=True)
class Finder:
    """A check that finds a defect. kind: of those that ask Spark, "" for those of logs"""

    check: str
    kind: str


QUERY_IS_FALSE = Finder("policy: watch_query", "policy's query")
CLEAN_COSTS = Finder("clean: recorded calls: cost", "recorded calls")
OF_DAY_COSTS = Finder("of_day: recorded calls: cost", "recorded calls")
OTHER_VALUES = Finder("requests: unchanged columns, newest days", "newest rows")
OTHER_LIVE_ROWS = Finder("requests: feed parse: live rows", "live rows")
OTHER_NUMBERS = Finder("requests: rows per day, by the logs", "")
FOREIGN_COMMIT = Finder("requests: feed parse", "")
FEED_STOPS = Finder("requests: feed parse goes on", "")


def expects(rule: str) -> Finder:
    return Finder(f"requests: expects {rule}", "expectations")


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of the new version. finders: the checks that may be the first to find it; where all are run, the first one does"""

    name: str
    plant: Callable[[WatchedPipeline], None]
    finders: tuple[Finder, ...]


def turns_false(line: WatchedPipeline) -> None:
    line.arrive({"ip": "evil"})
    line.follow()


def another_unit(line: WatchedPipeline) -> None:
    """A producer that counts in other units than before: a sum that the policy knows is far beyond what it was."""
    line.arrive({"bytes": 10**12})
    line.follow()


def slow_on_new_traffic(line: WatchedPipeline) -> None:
    line.arrive({"ip": LONG})
    line.follow()


def unexpected(line: WatchedPipeline) -> None:
    line.arrive({}, {"status": "boom"})
    line.follow()


def out_of_range(line: WatchedPipeline) -> None:
    line.arrive({}, {"ms": 1e9})
    line.follow()


def left_out(line: WatchedPipeline) -> None:
    """A producer that leaves out what the new version alone reads."""
    line.arrive({}, {"status": None})
    line.follow()


def many_files(line: WatchedPipeline) -> None:
    line.rewrite(CALLED, files=2 * MOST_FILES)


def another_value(line: WatchedPipeline) -> None:
    one = line.arrive({})[0]
    line.follow()
    line.rewrite(DAY, "ip", f"CASE WHEN id = '{one}' THEN '0.0.0.0' ELSE ip END")


def another_old_value(line: WatchedPipeline) -> None:
    """On a day of which nothing arrives any more."""
    line.rewrite(CALLED, "bytes", "bytes + 1")


def lost_and_doubled(line: WatchedPipeline) -> None:
    """One row of a live commit for another: the number of rows stays."""
    line.meets(lambda rows: _but_last(rows).unionAll(_first(rows)), {}, {"ip": "192.0.2.77"}, {"ip": "192.0.2.78"})


def row_lost(line: WatchedPipeline) -> None:
    line.meets(_but_last, {}, {"ip": "192.0.2.77"})


def row_doubled(line: WatchedPipeline) -> None:
    line.meets(lambda rows: rows.unionAll(_first(rows)), {}, {"ip": "192.0.2.77"})


def _first(rows: Any) -> Any:
    return rows.where(rows.id == rows.orderBy(rows.id).first().id)


def _but_last(rows: Any) -> Any:
    return rows.where(rows.id != rows.orderBy(rows.id.desc()).first().id)


def sum_drifts(line: WatchedPipeline) -> None:
    """Each live row adds one too many."""
    for _ in range(3):
        line.meets(lambda rows: rows.withColumn("bytes", expression("bytes + 1")), {}, {"bytes": 60})


def value_lost(line: WatchedPipeline) -> None:
    line.meets(lambda rows: rows.withColumn("ip", expression("CAST(NULL AS STRING)")), {}, {})


def another_hour(line: WatchedPipeline) -> None:
    line.meets(lambda rows: rows.withColumn("ts", expression("ts + INTERVAL 1 HOUR")), {}, {})


def another_day(line: WatchedPipeline) -> None:
    line.meets(lambda rows: rows.withColumn("day", expression("date_add(day, 1)")), {}, {})


def added_by_somebody(line: WatchedPipeline) -> None:
    write_deltalake(line.new, DeltaTable(line.new).to_pyarrow_table().slice(0, 1), mode="append")


def deleted_by_somebody(line: WatchedPipeline) -> None:
    (one,) = line.arrive({})
    line.follow()
    DeltaTable(line.new).delete(f"id = '{one}'")


def taken_back_by_somebody(line: WatchedPipeline) -> None:
    """The whole version, to where it was before its last live rows."""
    line.arrive({})
    line.follow()
    table = DeltaTable(line.new)
    table.restore(table.version() - 1)


def new_shape(line: WatchedPipeline) -> None:
    """A producer's new shape, which only the new version's query does not convert."""
    line.arrive({"ms": "fast"})


# in this order they can be planted under one watch: none hides the next one
DEFECTS = (
    Defect("a query turns false", turns_false, (QUERY_IS_FALSE,)),
    Defect("slow on new traffic", slow_on_new_traffic, (CLEAN_COSTS,)),
    Defect("a row not as expected", unexpected, (expects("status <> 'boom'"),)),
    Defect("more files to read", many_files, (OF_DAY_COSTS,)),
    Defect("another value", another_value, (OTHER_VALUES,)),
    Defect("lost and doubled", lost_and_doubled, (OTHER_LIVE_ROWS, OTHER_VALUES)),
    Defect("its feed stops", new_shape, (FEED_STOPS,)),
)
# each under a watch of its own
FURTHER = (
    Defect("a sum far beyond what it was", another_unit, (QUERY_IS_FALSE,)),
    Defect("a value out of its range", out_of_range, (expects("ms to 1000000"),)),
    Defect("a value left out", left_out, (expects("status is not null"), expects("status <> 'boom'"))),
    Defect("another value of an old day", another_old_value, (OTHER_VALUES,)),
    Defect("a row lost", row_lost, (OTHER_NUMBERS,)),
    Defect("a row doubled", row_doubled, (OTHER_NUMBERS,)),
    Defect("a sum that drifts", sum_drifts, (OTHER_LIVE_ROWS, OTHER_VALUES)),
    Defect("a value lost", value_lost, (OTHER_LIVE_ROWS, OTHER_VALUES)),
    Defect("another hour", another_hour, (OTHER_LIVE_ROWS, OTHER_VALUES)),
    # the logs count by a row's time, which is as before
    Defect("another day", another_day, (OTHER_LIVE_ROWS, OTHER_VALUES)),
    Defect("a row of another program", added_by_somebody, (FOREIGN_COMMIT, OTHER_NUMBERS)),
    Defect("a row deleted by another program", deleted_by_somebody, (FOREIGN_COMMIT, OTHER_NUMBERS, FEED_STOPS)),
    Defect("taken back by another program", taken_back_by_somebody, (FOREIGN_COMMIT, OTHER_NUMBERS, FEED_STOPS)),
)
