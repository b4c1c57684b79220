"""A landing table in another layout, previewed beside the one to which senders write; its rollout continues from that version."""

import asyncio
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.model.step import AddColumns
from tests.life.region import ME, LiveRegion
from tests.life.test_history import written
from tests.life.test_landing_versions import BEFORE
from tests.life.test_preview import built, slices, versions

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio]
DAYS = ("2026-11-05", "2026-11-06", "2026-11-07")
AFTER = {
    **BEFORE,
    "tables/landing.yaml": f"{BEFORE['tables/landing.yaml']}partition_by: [day]\n",
    "tables/requests.yaml": BEFORE["tables/requests.yaml"].replace("code: int", "code: int, net: string"),
    "materializations/parse.sql": BEFORE["materializations/parse.sql"].replace(" FROM", ", concat(ip, '/24') AS net FROM"),
}  # fmt: skip
# a column that senders will give; until then it has its default, and a table has a column of it
WIDER = {
    **BEFORE,
    "tables/landing.yaml": BEFORE["tables/landing.yaml"].replace("code: string}", "code: string, zone: string}"),
    "tables/requests.yaml": BEFORE["tables/requests.yaml"].replace("code: int", "code: int, zone: string"),
    "materializations/parse.sql": BEFORE["materializations/parse.sql"].replace(
        " FROM", ", coalesce(zone, 'none') AS zone FROM"
    ),
}
Ids = Counter[str]


async def sent(region: LiveRegion, batch: str, *days: str) -> Ids:
    rows: list[dict[str, Any]] = [
        {"id": f"{batch}-{day}-{n}", "ts": f"{day}T0{n % 10}:00:00Z", "day": day, "ip": "c1", "n": n, "code": "7"}
        for day in days
        for n in range(20)
    ]
    await region.driver.ingest("web", "landing", batch, [json.dumps(row) for row in rows])
    return Ids(row["id"] for row in rows)


async def ids(region: LiveRegion, table: str, release: str = "") -> Ids:
    answer = await region.driver.query("web", f"SELECT id FROM {table}", [table], {}, 100_000, release=release)
    return Ids(id for (id,) in answer.rows)


async def shows(region: LiveRegion, table: str, wanted: Ids, seconds: float = 120) -> None:
    """Wait until all rows are there; then each must be there once."""
    until, shown = asyncio.get_running_loop().time() + seconds, Ids()
    while wanted - shown and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(1)
        shown = await ids(region, table, "laid")
    assert shown == wanted, table


async def test_another_layout_is_previewed_and_its_rollout_goes_on_from_there(tmp_path: Path) -> None:
    region = LiveRegion(tmp_path / "region", rows=0)
    shutil.rmtree(region.warehouse / "landing")
    try:
        region.install("web", written(tmp_path / "before", BEFORE))
        await region.roll_out("web")
        all_rows = await sent(region, "first", *DAYS)
        await region.quiet(["web"])
        landing, before = DeltaTable(str(region.warehouse / "landing")).version(), versions(region)

        region.install("web", written(tmp_path / "after", AFTER))
        plan = await region.plan("web")
        assert {change.name: change.action for change in plan.changes} == {
            "landing": "forward", "requests": "replay", "visits": "rebind",
        }  # fmt: skip
        await region.driver.preview(plan, ME, name="laid", days=1, hours=1, live=True)
        sandbox = await built(region, "laid")
        assert sandbox.tables == ("landing", "requests")
        assert DeltaTable(str(region.warehouse / "landing")).version() == landing
        newest = Ids(id for id in all_rows if DAYS[-1] in id)
        await shows(region, "requests", newest)
        later = await sent(region, "later", DAYS[0], DAYS[-1])
        all_rows += later
        for table in ("landing", "requests"):
            await shows(region, table, newest + later)
        await shows(region, "visits", all_rows)  # live's own
        release = await region.driver.preview_release("web", "laid")
        paths = {state.table.name: state.version.path for state in release.tables}
        assert DeltaTable(str(region.warehouse / paths["landing"])).metadata().partition_columns == ["day"]

        status = await region.roll_out("web")
        live = (await region.driver.survey("web", [])).release
        assert live is not None
        assert {state.table.name: state.version.path for state in live.tables} == paths
        assert set(slices(region, paths["landing"]).values()) == {1}
        assert [each for each in await region.driver.verify("web", status.rollout) if each.ok is not True] == []
        await region.driver.drop_preview("web", "laid", ME)
        all_rows += await sent(region, "last", DAYS[1])
        await region.quiet(["web"])
        for table in ("landing", "requests", "visits"):
            assert await ids(region, table) == all_rows, table
        assert len(versions(region) - before) == 2
    finally:
        await region.close()


async def test_a_column_that_is_added_is_empty_in_a_preview_and_its_rollout_goes_on_from_there(tmp_path: Path) -> None:
    region = LiveRegion(tmp_path / "region", rows=0)
    shutil.rmtree(region.warehouse / "landing")
    place = str(region.warehouse / "landing")
    try:
        region.install("web", written(tmp_path / "before", BEFORE))
        await region.roll_out("web")
        all_rows = await sent(region, "first", *DAYS)
        await region.quiet(["web"])
        before = DeltaTable(place).version()
        region.install("web", written(tmp_path / "after", WIDER))
        plan = await region.plan("web")
        assert [step.table for step in plan.steps if isinstance(step, AddColumns)] == ["landing"]
        await region.driver.preview(plan, ME, name="laid", days=1, hours=1, live=True)
        assert (await built(region, "laid")).tables == ("requests",)
        assert DeltaTable(place).version() == before
        later = await sent(region, "later", DAYS[0], DAYS[-1])
        all_rows += later
        await shows(region, "requests", later + Ids(id for id in all_rows if DAYS[-1] in id and id not in later))
        for table, zones in (("requests", [("none",)]), ("landing", [(None,)])):
            sql = f"SELECT DISTINCT zone FROM {table}"
            answer = await region.driver.query("web", sql, [table], {}, 10, release="laid")
            assert list(answer.rows) == zones
        assert "zone" not in DeltaTable(place).schema().to_arrow().names

        release = await region.driver.preview_release("web", "laid")
        status = await region.roll_out("web")
        live = (await region.driver.survey("web", [])).release
        assert live is not None
        assert [each.version.path for each in live.tables] == [each.version.path for each in release.tables]
        assert [each for each in await region.driver.verify("web", status.rollout) if each.ok is not True] == []
        last = {
            "id": "last",
            "ts": "2026-11-07T00:00:00Z",
            "day": DAYS[-1],
            "ip": "c1",
            "n": 1,
            "code": "7",
            "zone": "eu",
        }
        await region.driver.ingest("web", "landing", "last", [json.dumps(last)])
        await region.quiet(["web"])
        assert await ids(region, "requests") == all_rows + Ids(["last"])
        answer = await region.driver.query("web", "SELECT id FROM requests WHERE zone <> 'none'", ["requests"], {}, 10)
        assert list(answer.rows) == [("last",)]
    finally:
        await region.close()


async def test_one_that_is_dropped_leaves_the_landing_table_as_it_was(tmp_path: Path) -> None:
    region = LiveRegion(tmp_path / "region", rows=0)
    shutil.rmtree(region.warehouse / "landing")
    try:
        region.install("web", written(tmp_path / "before", BEFORE))
        await region.roll_out("web")
        all_rows = await sent(region, "first", *DAYS)
        await region.quiet(["web"])
        before = versions(region)
        region.install("web", written(tmp_path / "after", AFTER))
        await region.driver.preview(await region.plan("web"), ME, name="laid", days=1, hours=1, live=True)
        await built(region, "laid")
        assert len(await region.driver.drop_preview("web", "laid", ME)) == 2
        assert versions(region) == before
        all_rows += await sent(region, "later", *DAYS)
        await region.quiet(["web"])
        for table in ("landing", "requests", "visits"):
            assert await ids(region, table) == all_rows, table
    finally:
        await region.close()
