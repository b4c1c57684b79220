"""Aggregates that change while their source has lost days: read anew, regrouped and completed from the states that are kept.
And an adapter is put in front of a landing table that a stranger keeps writing, rolled back, forward again, and then changed:
no row below it is written, lost or doubled. One region for both.

The judge is DuckDB over the landing rows, those that are gone among them; nothing of the product takes part.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.model.plan import Plan
from console.model.step import Backfill
from tests.doubts import accept_doubts
from tests.life.adapter import AdaptedPipeline, Stranger
from tests.life.region import LANDING, ME, LiveRegion, multiset
from tests.life.test_lost_days import by_day, written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
HELD_SINCE = datetime(2026, 11, 3, tzinfo=UTC)
BOUNDARY = "2026-11-04"
SOURCE = "kind: landing\nmanaged: true\ntime: ts\non_rewrite: ignore\ncolumns: {id: string, ts: timestamp, payload: string}\n"
KEYS = "hour: timestamp, day: date, ip: string"
STATES = "hits: int, worst: int, mean: double, last: string, spread: double, agents: array<string>"
HOUR, DAY = "date_trunc('HOUR', ts) AS hour", "to_date(ts) AS day"
IP = "get_json_object(payload, '$.ip')"
STATUS = "CAST(get_json_object(payload, '$.status') AS {})"
MS = "CAST(get_json_object(payload, '$.ms') AS DOUBLE)"
AGENT = "get_json_object(payload, '$.ua')"
COUNTED = (
    f"CAST(count(*) AS INT) AS hits, max({STATUS.format('INT')}) AS worst, avg({MS}) AS mean, max_by(id, ts) AS last,"
    f" stddev({MS}) AS spread, collect_set({AGENT}) AS agents"
)


def files(columns: str, sql: str, time: str = "hour") -> dict[str, str]:
    return {
        "pipeline.yaml": "description: states\n",
        "tables/landing.yaml": SOURCE,
        "tables/TABLE.yaml": f"kind: aggregate\ntime: {time}\npartition_by: [day]\ncolumns: {{{columns}}}\n",
        "materializations/count.sql": f"/* into: TABLE */\n{sql}\n",
    }


def named(files: dict[str, str], table: str) -> dict[str, str]:
    """Two pipelines of one region have no table in common."""
    return {place.replace("TABLE", table): text.replace("TABLE", table) for place, text in files.items()}


BEFORE = files(f"{KEYS}, {STATES}", f"SELECT {HOUR}, {DAY}, {IP} AS ip, {COUNTED} FROM landing GROUP BY ALL")
# only what is read of the states
FINAL = files(
    f"{KEYS}, hits: bigint, worst: int, mean: double, last: string, spread: double, agents: array<string>, many: int",
    f"""SELECT {HOUR}, {DAY}, {IP} AS ip, count(*) AS hits, max({STATUS.format("INT")}) AS worst,
      sum({MS}) / nullif(count({MS}), 0) AS mean, max_by(id, ts) AS last, var_pop({MS}) AS spread,
      collect_set({AGENT}) AS agents, size(collect_set({AGENT})) AS many FROM landing GROUP BY ALL""",
)
# an hour becomes its day, a key goes, another is filtered, a status has room
COARSER = files(
    "day: date, hits: int, worst: bigint, mean: double, last: string, spread: double, agents: array<string>",
    f"SELECT {DAY}, {COUNTED.replace(STATUS.format('INT'), STATUS.format('BIGINT'))} FROM landing"
    f" WHERE {IP} <> '192.0.2.7' GROUP BY ALL",
    time="day",
)
# a new key, a new state with a default and one without
MORE = files(
    f"{KEYS}, ua: {{type: string, default: unknown}}, {STATES}, served: {{type: bigint, default: 0}}, low: double",
    f"""SELECT {HOUR}, {DAY}, {IP} AS ip, {AGENT} AS ua, {COUNTED},
      sum(CAST(get_json_object(payload, '$.bytes') AS BIGINT)) AS served, min({MS}) AS low FROM landing GROUP BY ALL""",
)
CASES = {"final": FINAL, "coarser": COARSER, "more": MORE}
BESIDE_A_WRITER = ("final", "coarser")
ROUTES = {"final": "metadata", "coarser": "forward", "more": "hybrid"}
# the same in DuckDB, over rows that are parsed
ROWS = """CREATE VIEW rows AS SELECT id, ts, date_trunc('hour', ts) AS hour, CAST(ts AS DATE) AS day,
  payload->>'$.ip' AS ip, CAST(payload->>'$.status' AS INT) AS status, CAST(payload->>'$.ms' AS DOUBLE) AS ms,
  payload->>'$.ua' AS ua, CAST(payload->>'$.bytes' AS BIGINT) AS bytes FROM landing"""
TRUTH = """count(*), max(status), avg(ms), max(struct_pack(o := ts, v := id)) FILTER (WHERE ts IS NOT NULL) AS newest,
  {spread}(ms), coalesce(list_sort(list_distinct(list(ua) FILTER (WHERE ua IS NOT NULL))), [])"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("states"), rows=600, most=400)
    by_day(live.warehouse / "landing")
    try:
        yield live
    finally:
        await live.close()


def landed(region: LiveRegion) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(str(region.warehouse / "landing")).to_pyarrow_table().to_pylist()
    return rows


def truth(rows: list[dict[str, Any]], sql: str) -> list[tuple[Any, ...]]:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.register("landing", pa.Table.from_pylist(rows, LANDING))
    db.execute(ROWS)
    return [tuple(v["v"] if isinstance(v, dict) else v for v in row) for row in db.execute(sql).fetchall()]


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sets as text, and what a `max_by` of nothing shows."""
    return [tuple(json.dumps(v) if isinstance(v, list) else v for v in row) for row in rows]


def same(shown: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    counted, right = multiset(plain(shown)), multiset(plain(wanted))
    assert right.total() > 0
    assert (counted - right, right - counted) == ({}, {})


async def to_the_gate(region: LiveRegion, name: str, plan: Plan) -> None:
    await region.driver.accept(plan, ME)
    status = await region.until(name, "awaiting-confirmation")
    inconclusive = [check for check in status.checks if check.ok is not True]
    assert all(check.ok is None and check.detail.startswith("other rows are wanted") for check in inconclusive)
    await accept_doubts(region.driver, name, status, ME)
    await region.driver.promote(name, status.rollout, status.was, ME)


async def test_an_aggregate_changes_although_its_source_has_lost_days(region: LiveRegion, tmp_path: Path) -> None:
    for name in CASES:
        region.install(name, written(tmp_path / name / "before", named(BEFORE, name)))
    await asyncio.gather(*(region.roll_out(name) for name in CASES))
    first = landed(region)
    gone = f"ts < arrow_cast('{HELD_SINCE:%Y-%m-%dT%H:%M:%SZ}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    DeltaTable(str(region.warehouse / "landing")).delete(gone)
    plans = {}
    for name, after in CASES.items():
        region.install(name, written(tmp_path / name / "after", named(after, name)))
        plans[name] = await region.plan(name)
        assert plans[name].refusals == ()
        assert {node.name: node.action for node in plans[name].nodes} == {"landing": "keep", name: ROUTES[name]}
    assert [step for step in plans["final"].steps if isinstance(step, Backfill)] == []
    assert plans["final"].price.bytes == 0
    assert f"served and low are counted from {BOUNDARY} on" in plans["more"].changes[0].why
    region.write("final")
    await asyncio.gather(*(to_the_gate(region, name, plans[name]) for name in BESIDE_A_WRITER))
    for _ in ("back", "and forward again, from the way back"):
        await asyncio.gather(*(region.roll_back(name) for name in BESIDE_A_WRITER))
    await region.quiet(list(CASES))
    known = list({row["id"]: row for row in [*first, *landed(region)]}.values())
    await judge_final(region, known)
    await judge_coarser(region, known)
    await judge_live(region, known)
    await older_days_show_what_is_declared_for_them(region)
    await region.roll_back("more")
    await judge_live(region, known)


async def judge_final(region: LiveRegion, known: list[dict[str, Any]]) -> None:
    shown = await region.table("final", "hour, day, ip, hits, worst, mean, last, spread, agents, many", "final")
    wanted = truth(
        known,
        f"SELECT hour, day, ip, {TRUTH.format(spread='var_pop')}, count(DISTINCT ua) FROM rows GROUP BY hour, day, ip",
    )
    same(shown, wanted)


async def judge_coarser(region: LiveRegion, known: list[dict[str, Any]]) -> None:
    shown = await region.table("coarser", "day, hits, worst, mean, last, spread, agents", "coarser")
    where = "WHERE ip <> '192.0.2.7' GROUP BY day"
    same(shown, truth(known, f"SELECT day, {TRUTH.format(spread='stddev_samp')} FROM rows {where}"))


async def judge_live(region: LiveRegion, known: list[dict[str, Any]]) -> None:
    """Of the third, under the release that it had at first."""
    shown = await region.table("more", "hour, day, ip, hits, worst, mean, last, spread, agents", "more")
    wanted = truth(
        known, f"SELECT hour, day, ip, {TRUTH.format(spread='stddev_samp')} FROM rows GROUP BY hour, day, ip"
    )
    same(shown, wanted)


async def older_days_show_what_is_declared_for_them(region: LiveRegion) -> None:
    """Rolled out once nobody writes, so that each row is known to be of the one half or of the other."""
    rows = landed(region)
    old = f"ts < arrow_cast('{HELD_SINCE:%Y-%m-%dT%H:%M:%SZ}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    DeltaTable(str(region.warehouse / "landing")).delete(old)  # what came late meanwhile has expired, too
    before = await region.table("more", "hour, day, ip, hits, worst, last, agents", "more")
    plan = await region.plan("more")
    assert plan.changes[0].action == "hybrid"
    await to_the_gate(region, "more", plan)
    older = f"(hour IS NULL OR hour < TIMESTAMP '{BOUNDARY}')"
    columns = "hour, day, ip, ua, hits, worst, last, agents, served, low"
    shown = await region.driver.query("more", f"SELECT {columns} FROM more WHERE {older}", ["more"], {}, 100_000)
    cut = datetime.fromisoformat(BOUNDARY)
    kept = [r for r in before if r[0] is None or datetime.fromisoformat(r[0]).replace(tzinfo=None) < cut]
    same(list(shown.rows), [(*r[:3], "unknown", *r[3:], 0, None) for r in kept])
    shown = await region.driver.query("more", f"SELECT {columns} FROM more WHERE NOT {older}", ["more"], {}, 100_000)
    counted = "count(*), max(status), max(struct_pack(o := ts, v := id)), coalesce(list_sort(list_distinct(list(ua) FILTER (WHERE ua IS NOT NULL))), [])"
    wanted = truth(
        rows,
        f"SELECT hour, day, ip, ua, {counted}, sum(bytes), min(ms) FROM rows WHERE hour >= TIMESTAMP '{BOUNDARY}' GROUP BY ALL",
    )
    same(list(shown.rows), wanted)


# changed: what becomes of the adapter once it is there for good
@pytest.mark.parametrize(
    ("suffix", "forward_again", "changed"),
    [
        ("_again", LiveRegion.roll_back, (AdaptedPipeline.laid,)),
        pytest.param(
            "_anew", LiveRegion.roll_out, (AdaptedPipeline.laid, AdaptedPipeline.renamed), marks=pytest.mark.soak
        ),
    ],
)
async def test_an_adapter_enters_leaves_enters_and_changes_under_a_stranger_who_never_stops(
    region: LiveRegion,
    tmp_path: Path,
    suffix: str,
    forward_again: Callable[[LiveRegion, str], Awaitable[object]],
    changed: tuple[Callable[[AdaptedPipeline], Awaitable[None]], ...],
) -> None:
    below = AdaptedPipeline(region=region, place=tmp_path / "before", suffix=suffix)
    stranger = Stranger(below.outside)
    try:
        await below.begins()
        only = below.version()
        await below.adapt()
        await region.roll_out(below.name)
        await stranger.more()
        await region.roll_back(below.name)
        await stranger.more()
        await forward_again(region, below.name)
        await stranger.more()
        assert below.version() == only
        for change in changed:
            await change(below)
            await region.roll_out(below.name)
            await stranger.more()
    finally:
        await stranger.end()
    await below.same()
    assert below.version() == only
