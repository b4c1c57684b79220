"""An aggregate that gains states: the existing ones are copied, only the new ones are computed from the source."""

from dataclasses import replace

import duckdb
import pytest
import sqlglot

from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.step import Backfill, CatchUp, Validate
from console.planning import build
from console.planning.cache.planner_cache import PlannerCache
from console.planning.reuse.states import kept_states
from tests.planning.world import (
    COUNT,
    HOURLY,
    actions,
    columns,
    live,
    node,
    pipeline,
    planned,
    promoted,
    with_sql,
    with_table,
)  # fmt: skip


def counting(more: str = "", without: str = "", **types: str) -> Pipeline:
    """The hourly table with other aggregates."""
    kept = tuple(column for column in HOURLY.columns if column.name != without)
    table = replace(HOURLY, columns=(*kept, *columns(**types)))
    sql = COUNT.replace("\nFROM", f"{more}\nFROM")
    if without:
        sql = sql.replace(f", count_if(status >= 500) AS {without}", "")
    return with_sql(with_table(_no_ends(), table), "count_hours", sql)


def _no_ends() -> Pipeline:
    return replace(pipeline(), copies=(), sinks=(), endpoints=())


def small(was: Live) -> Live:
    """The region as it is in life: an hourly table is far smaller than what it counts."""
    tables = tuple(replace(s, bytes=s.bytes // 50) if s.name == "requests_by_hour" else s for s in was.stats)
    return replace(was, stats=tables)


def backfills(desired: Pipeline, region: Live | None = None) -> list[Backfill]:
    return [step for step in planned(desired, small(region or live())).steps if isinstance(step, Backfill)]


def test_an_added_aggregate_is_replayed_alone_and_the_other_states_are_copied() -> None:
    done = planned(counting(", sum(bytes) AS bytes", bytes="bigint"), small(live()))
    assert actions(done)["requests_by_hour"] == "replay"
    assert "bytes is new and computed from requests.bytes" in node(done, "requests_by_hour").why
    copied, replayed = backfills(counting(", sum(bytes) AS bytes", bytes="bigint"))
    assert (copied.route, copied.stored, copied.source) == ("forward", True, "requests_by_hour")
    assert (replayed.route, replayed.states, replayed.source) == ("replay", True, "requests")
    assert set(replayed.columns) == {"ts", "day", "bytes"}
    started = [step.start for step in done.steps if isinstance(step, CatchUp)]
    assert started == ["fence"]
    compared = next(step for step in done.steps if isinstance(step, Validate)).comparisons[0]
    assert {pair.new for pair in compared.pairs} == {column.name for column in HOURLY.columns}


@pytest.mark.slow
def test_where_the_table_is_as_large_as_its_source_every_state_is_computed_anew() -> None:
    wider = counting(", sum(bytes) AS bytes", bytes="bigint")
    large = planned(wider, live())
    assert [step.states for step in large.steps if isinstance(step, Backfill)] == [False]
    spared = node(planned(wider, small(live())), "requests_by_hour").price
    assert spared.bytes < node(large, "requests_by_hour").price.bytes


@pytest.mark.slow
def test_an_aggregate_computed_otherwise_is_replayed_and_a_dropped_one_not_copied() -> None:
    changed = counting(", max(bytes) AS bytes", bytes="bigint")
    was = live(counting(", sum(bytes) AS bytes", bytes="bigint"))
    copied, replayed = backfills(changed, was)
    assert "CAST(NULL AS BIGINT) AS `bytes`" in copied.sql
    assert "MAX(" in replayed.sql
    assert "COUNT(" not in replayed.sql
    gone = backfills(counting(", max(ms) AS worst", without="errors", worst="double"))
    assert all("errors" not in step.sql for step in gone)


@pytest.mark.slow
def test_other_keys_are_computed_from_the_source_as_a_whole() -> None:
    table = replace(HOURLY, columns=(*HOURLY.columns, *columns(host="string")))
    sql = COUNT.replace("\nFROM", ", host\nFROM").replace("GROUP BY 1, day", "GROUP BY 1, day, host")
    steps = backfills(with_sql(with_table(_no_ends(), table), "count_hours", sql))
    assert [(step.route, step.states) for step in steps] == [("replay", False)]


def test_below_a_rebuilt_source_every_state_is_computed_anew() -> None:
    changed = counting(", sum(bytes) AS bytes", bytes="bigint")
    parse = next(m.sql for m in changed.materializations if m.name == "parse")
    steps = backfills(with_sql(changed, "parse", parse.replace("AS INT) AS status", "AS INT) + 1 AS status")))
    assert not [step for step in steps if step.target == "requests_by_hour"]


@pytest.mark.slow
def test_a_state_kept_under_another_name_is_not_taken_for_the_one_it_is_named_like() -> None:
    """hits → total at read, then errors → hits at read: the stored `hits` counts all rows, the wanted one errors."""
    names = ("hits", "errors")
    was = live(counting())
    for old, new in (("hits", "total"), ("errors", "hits")):
        names = tuple(new if name == old else name for name in names)
        was = promoted(planned(renamed(names), was), was)
    wanted = build.desired(renamed(names), PlannerCache()).tables["requests_by_hour"]
    assert was.release is not None
    state = was.release.table("requests_by_hour")
    assert state is not None
    assert {column.name for column in state.version.columns} >= {"hits", "errors"}
    kept = kept_states(wanted, state, [column.name for column in wanted.table.columns])
    assert not kept & {"hits", "total", "errors"}
    assert kept >= {"hour", "day", "visitors__hll"}
    was = small(was)
    laid = replace(wanted.table, partition_by=("day", "hour"))
    (step,) = backfills(with_table(renamed(names), laid), was)
    assert (step.route, step.stored) == ("forward", True)
    assert "CAST(SUM(`hits`) AS BIGINT) AS `total`, CAST(SUM(`errors`) AS BIGINT) AS `hits`" in step.sql


def renamed(names: tuple[str, ...]) -> Pipeline:
    """The hourly table with its two exact counts called so."""
    first, second = names
    given = {"hits": first, "errors": second}
    table = replace(HOURLY, columns=tuple(replace(c, name=given.get(c.name, c.name)) for c in HOURLY.columns))
    sql = COUNT.replace("AS hits", f"AS {first}").replace("AS errors", f"AS {second}")
    return with_sql(with_table(_no_ends(), table), "count_hours", sql)


@pytest.mark.slow
def test_the_two_halves_merge_to_what_the_query_gives_at_once() -> None:
    """Run as they are, only translated: exact states, a NULL key, a group of which nothing is counted."""
    types = {"hour": "timestamp", "day": "date", "hits": "bigint", "low": "double", "seen": "bigint", "bytes": "bigint"}
    before = (
        "SELECT date_trunc('HOUR', ts) AS hour, day, count(*) AS hits, min(ms) AS low FROM requests GROUP BY 1, day"
    )
    after = before.replace("\n", " ").replace(" FROM", ", count(ip) AS seen, sum(bytes) AS bytes FROM")
    was = live(_as(before, {k: types[k] for k in ("hour", "day", "hits", "low")}))
    copied, replayed = backfills(_as(after, types), was)
    state = was.release and was.release.table("requests_by_hour")
    assert state
    new = planned(_as(after, types), was).release.table("requests_by_hour")
    assert new is not None
    base = duckdb.connect()
    base.execute("SET TimeZone = 'UTC'")
    base.execute("CREATE TABLE requests (ts TIMESTAMPTZ, day DATE, ms DOUBLE, ip VARCHAR, bytes BIGINT)")
    base.execute("""INSERT INTO requests VALUES (TIMESTAMPTZ '2026-11-01 10:00', DATE '2026-11-01', 3, 'a', 5),
      (TIMESTAMPTZ '2026-11-01 10:30', DATE '2026-11-01', 2, NULL, NULL), (NULL, NULL, 7, 'b', 1), (NULL, NULL, NULL, 'b', 1),
      (TIMESTAMPTZ '2026-11-02 10:30', DATE '2026-11-02', NULL, NULL, NULL)""")
    feed = was.release.feeds_into("requests_by_hour")[0] if was.release else None
    assert feed
    base.execute(f"CREATE TABLE requests_by_hour AS {_duck(feed.sql)}")
    base.execute(f"CREATE TABLE stored AS {_duck(copied.sql)} UNION ALL BY NAME {_duck(replayed.sql)}")
    merged = base.execute(f"SELECT * FROM ({_duck(new.read)}) ORDER BY ALL").fetchall()
    assert merged == base.execute(f"SELECT * FROM ({_duck(after)}) ORDER BY ALL").fetchall()
    assert len(merged) == 3


def _as(sql: str, types: dict[str, str]) -> Pipeline:
    return with_sql(with_table(_no_ends(), replace(HOURLY, columns=columns(**types))), "count_hours", sql)


def _duck(sql: str) -> str:
    return sqlglot.transpile(sql, "spark", "duckdb")[0]
