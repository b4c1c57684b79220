"""A source that has lost its older days: what it still holds is replayed, the rest is carried over, no row is lost."""

import json
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from console.model.step import Backfill
from tests.life.region import ME, LiveRegion, multiset

# in every run, tables with two halves are among those of tests/closure/test_carried.py
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
HELD_SINCE = datetime(2026, 11, 3, tzinfo=UTC)
BOUNDARY = datetime(2026, 11, 4, tzinfo=UTC)
LANDING = "kind: landing\nmanaged: true\ntime: ts\non_rewrite: ignore\ncolumns: {id: string, ts: timestamp, payload: string}\n"
BEFORE = {
    "pipeline.yaml": "description: a source that forgets\n",
    "tables/landing.yaml": LANDING,
    "tables/requests.yaml": "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string}\n",
    "materializations/parse.sql": "/* into: requests */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip FROM landing\n",
}
AFTER = {
    **BEFORE,
    "tables/requests.yaml": "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string, ua: {type: string, default: unknown}}\n",
    "materializations/parse.sql": (
        "/* into: requests */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip,"
        " get_json_object(payload, '$.ua') AS ua FROM landing\n"
    ),
}


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def by_day(landing: Path) -> None:
    """The same rows, one file a day, so that the log tells the rows of each."""
    rows = DeltaTable(str(landing)).to_pyarrow_table()
    shutil.rmtree(landing)
    days: dict[object, list[dict[str, object]]] = {}
    for row in rows.to_pylist():
        days.setdefault(row["ts"] and row["ts"].date(), []).append(row)
    for value in days.values():
        write_deltalake(str(landing), pa.Table.from_pylist(value, rows.schema), mode="append")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("lost"), rows=600)
    by_day(live.warehouse / "landing")
    try:
        yield live
    finally:
        await live.close()


async def test_halves_meet_without_a_gap_or_a_row_twice(region: LiveRegion, tmp_path: Path) -> None:
    region.install("web", written(tmp_path / "before", BEFORE))
    await region.roll_out("web")
    landing = str(region.warehouse / "landing")
    first = DeltaTable(landing).to_pyarrow_table().to_pylist()
    gone = f"ts < arrow_cast('{HELD_SINCE:%Y-%m-%dT%H:%M:%SZ}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    DeltaTable(landing).delete(gone)

    region.install("web", written(tmp_path / "after", AFTER))
    plan = await region.plan("web")
    assert {node.name: node.action for node in plan.nodes} == {"landing": "keep", "requests": "hybrid"}
    halves = [step for step in plan.steps if isinstance(step, Backfill)]
    assert [(step.route, step.until or step.since) for step in halves] == [
        ("forward", "2026-11-04"),
        ("replay", "2026-11-04"),
    ]
    rollout = await region.driver.accept(plan, ME)
    region.write("web")
    status = await region.until("web", "awaiting-confirmation", seconds=500)
    assert [check for check in status.checks if check.ok is not True] == []
    await region.driver.promote("web", rollout, status.was, ME)
    await region.quiet(["web"])

    stored = DeltaTable(landing).to_pyarrow_table().to_pylist()
    known = {row["id"]: row for row in [*first, *stored]}
    rows = await region.table("web", "id, ts, ip, ua", "requests")
    wanted = [(row["id"], row["ts"], json.loads(row["payload"])["ip"]) for row in known.values()]
    counted, truth = multiset([row[:3] for row in rows]), multiset(wanted)
    assert (counted - truth, truth - counted) == ({}, {})
    old = {row["id"] for row in first}
    for id, _, _, ua in rows:
        row = known[id]
        own = json.loads(row["payload"]).get("ua")
        if row["ts"] is not None and row["ts"] >= BOUNDARY:
            assert ua == own
        elif id in old:
            assert ua == "unknown"
        else:
            assert ua in ("unknown", own)
