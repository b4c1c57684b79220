"""A chain of three tables whose sizes stand in made-up Delta logs: the cost of a change at its end, and the rows that it spares."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from console.agent.store.table_stats import table_stats
from console.cli.plan.text import plan_text
from console.model.live import Live
from console.model.pipeline import Materialization, Pipeline
from console.model.region import Limits, Prices, Region
from console.model.schema import Column, Table
from console.model.step import Backfill
from console.planning import plan
from tests.planning.world import actions, columns, promoted

GB, TB = 10**9, 10**12
SIZES = {"landing": 14 * TB, "processed": TB, "sessions": 100 * GB}
ROWS = {"landing": 28 * 10**9, "processed": 28 * 10**9, "sessions": 2 * 10**9}
FIRST, DAYS = date(2026, 10, 1), 50
REGION = Region(
    name="eu", warehouse="/warehouse", limits=Limits(rows=10**9), prices=Prices(tb_read=5.0, core_hour=0.05)
)

EVENT = columns(id="string", ts="timestamp", payload="string")
SEEN = columns(
    id="string",
    ts="timestamp",
    session="string",
    path="string",
    agent="string",
    referrer="string",
    status="int",
    ms="double",
)
KEYS = columns(day="date", session="string", hits="bigint")
LANDING = Table(name="landing", kind="landing", columns=EVENT, time="ts", managed=False)
PROCESSED = Table(name="processed", kind="append", columns=SEEN, time="ts")
SESSIONS = Table(name="sessions", kind="aggregate", columns=KEYS, time="day", partition_by=("day",))
READ = ", ".join(f"get_json_object(payload, '$.{n}') AS {n}" for n in ("session", "path", "agent", "referrer"))
PROCESS = f"SELECT id, ts, {READ}, CAST(get_json_object(payload, '$.status') AS INT) AS status, CAST(get_json_object(payload, '$.ms') AS DOUBLE) AS ms FROM landing"
COUNT = "SELECT to_date(ts) AS day, session, count(*) AS hits FROM processed GROUP BY to_date(ts), session"


def chain(sessions: Table = SESSIONS, count: str = COUNT) -> Pipeline:
    feeds = (
        Materialization(name="count", into="sessions", sql=count),
        Materialization(name="process", into="processed", sql=PROCESS),
    )
    return Pipeline(name="web", tables=(LANDING, PROCESSED, sessions), materializations=feeds)


def made_up(root: Path, table: str, stored: tuple[Column, ...], time: str) -> None:
    """A Delta log of one file a day; no file is there."""
    kinds = {"int": "integer", "bigint": "long"}
    fields = [{"name": c.name, "type": kinds.get(c.type, c.type), "nullable": True, "metadata": {}} for c in stored]
    schema = json.dumps({"type": "struct", "fields": fields})
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": table,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    for n in range(DAYS):
        day = (FIRST + timedelta(n)).isoformat()
        ends = [f"{day}T00:00:01.000Z", f"{day}T23:00:00.000Z"] if time == "ts" else [day, day]
        stats = {
            "numRecords": ROWS[table] // DAYS,
            "minValues": {time: ends[0]},
            "maxValues": {time: ends[1]},
            "nullCount": {time: 0},
        }
        actions.append(
            {
                "add": {
                    "path": f"{n}.parquet",
                    "partitionValues": {},
                    "size": SIZES[table] // DAYS,
                    "modificationTime": 0,
                    "dataChange": True,
                    "stats": json.dumps(stats),
                }
            }
        )
    log = root / table / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


@pytest.fixture
def region(tmp_path: Path) -> Live:
    stored = {"landing": EVENT, "processed": SEEN, "sessions": KEYS}
    times = {"landing": "ts", "processed": "ts", "sessions": "day"}
    for table, item in stored.items():
        made_up(tmp_path, table, item, times[table])
    read = [table_stats(table, str(tmp_path / table), times[table]) for table in stored]
    stats = tuple(one for one in read if one is not None)
    assert {one.name: one.bytes for one in stats} == SIZES
    start = Live(region="eu", pipeline="web", release=None, releases=(), stats=stats[:1], rows_per_second=2_000_000.0)
    was = promoted(plan(chain(), start, REGION, "test"), start)
    return Live(
        region="eu",
        pipeline="web",
        release=was.release,
        releases=was.releases,
        stats=stats,
        rows_per_second=2_000_000.0,
    )


def wider() -> Pipeline:
    slow = Table(
        name="sessions",
        kind="aggregate",
        columns=(*KEYS, Column(name="slowest", type="double")),
        time="day",
        partition_by=("day",),
    )
    return chain(slow, COUNT.replace("count(*) AS hits", "count(*) AS hits, max(ms) AS slowest"))


def test_a_column_more_in_the_last_table_reads_three_columns_of_the_one_above_and_nothing_of_landing(
    region: Live,
) -> None:
    done = plan(wider(), region, REGION, "test")
    assert actions(done) == {"sessions": "replay"}
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert (backfill.source, backfill.columns) == ("processed", ("ts", "session", "ms"))
    assert backfill.rows == ROWS["processed"]
    assert backfill.bytes < SIZES["processed"] / 2
    assert {step.source for step in done.steps if isinstance(step, Backfill)} == {"processed"}
    assert all("landing" not in step.id for step in done.steps)


@pytest.mark.slow
def test_the_price_stands_beside_that_of_migrating_everything(region: Live) -> None:
    done = plan(wider(), region, REGION, "test")
    assert done.price.bytes < SIZES["processed"]
    assert done.everything.bytes >= SIZES["landing"] + SIZES["processed"]
    text = plan_text([done], explain=True)
    assert "reading ts, session, ms" in text
    assert "28,000,000,000 rows" in text
    assert "migrate everything" in text
