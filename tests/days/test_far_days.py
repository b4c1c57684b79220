"""Rows of the year 58851 and of the years 9999, 1000, 0999, 0001, 0000 and -1 through a real region: each is processed once,
or quarantined by its key. The truth is a list of integers."""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from console.model.created import changed
from console.model.event import Ailing
from console.model.status import Status
from tests.days import draw
from tests.life.region import ME, LiveRegion
from tests.life.test_lost_days import written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
ROWS = 90
KEPT_SINCE = (
    draw.USUAL // draw.A_DAY - 36_500
) * draw.A_DAY  # give or take the days of the test itself, which hold no row
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("payload", pa.string())])
COLUMNS = "columns: {id: string, ts: timestamp, day: date, ip: string}\n"
BEFORE = {
    "pipeline.yaml": "description: clocks that are wrong\n",
    "tables/landing.yaml": "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n",
    "tables/whole.yaml": f"time: ts\nretention: 36500d\n{COLUMNS}",
    "tables/by_day.yaml": f"time: ts\npartition_by: [day]\n{COLUMNS}",
    "materializations/wholly.sql": (
        "/* into: whole */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip FROM landing\n"
    ),
    "materializations/daily.sql": (
        "/* into: by_day */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip FROM landing\n"
    ),
}
AFTER = {
    **BEFORE,
    "tables/whole.yaml": f"time: ts\nretention: 36500d\n{COLUMNS.replace('ip: string', 'ip: string, ua: string')}",
    "materializations/wholly.sql": BEFORE["materializations/wholly.sql"].replace(
        "AS ip FROM", "AS ip, get_json_object(payload, '$.ua') AS ua FROM"
    ),
}
Rows = list[tuple[str, int | None]]


class World:
    """A region, and every row that was ever landed in it."""

    def __init__(self, root: Path) -> None:
        self.rng = random.Random(draw.SEED)
        self.landed: Rows = []
        self.region = LiveRegion(root, rows=0)
        inventory = root / "regions/eu.yaml"
        inventory.write_text(inventory.read_text() + "policy: {quarantine_rows: 1000}\n")
        DeltaTable(str(self.region.warehouse / "landing")).delete()
        drawn = draw.times(self.rng, ROWS)
        for part in (drawn[:40], drawn[40:60], drawn[60:]):
            self.land(part)
        for time in draw.NAMED.values():  # each in a file of its own as well
            self.land([time])
        for _ in range(10):  # the last commits, which the gate computes again as live ones
            self.land([draw.USUAL])

    def land(self, times: Sequence[int | None]) -> None:
        rows = [(f"e{len(self.landed) + i}", time) for i, time in enumerate(times)]
        self.landed += rows
        data = [
            pa.array([id for id, _ in rows], pa.string()),
            pa.array([time for _, time in rows], pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array([json.dumps({"ip": id, "ua": "x"}) for id, _ in rows], pa.string()),
        ]
        write_deltalake(
            str(self.region.warehouse / "landing"), pa.Table.from_arrays(data, schema=SCHEMA), mode="append"
        )

    async def rows_of(self, table: str) -> Counter[tuple[str, int | None]]:
        rows = await self.region.table("web", "id, unix_micros(ts) AS us", table)
        return Counter((id, us) for id, us in rows)

    @property
    def partitioned(self) -> Counter[tuple[str, int | None]]:
        return Counter(row for row in self.landed if draw.storable(row[1]))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    print(f"DAYS_SEED={draw.SEED}")
    made = World(tmp_path_factory.mktemp("days"))
    try:
        yield made
    finally:
        await made.region.close()


async def test_history_of_any_day_is_carried_once_or_set_aside_by_its_key(world: World, tmp_path: Path) -> None:
    region = world.region
    region.install("web", written(tmp_path / "before", BEFORE))
    await region.roll_out("web")
    assert await world.rows_of("whole") == Counter(world.landed)
    assert await world.rows_of("by_day") == world.partitioned
    moved = DeltaTable(str(region.warehouse / "_console/web/quarantine")).to_pyarrow_table().to_pylist()
    assert Counter(row["key"].partition(",")[0] for row in moved) == Counter(
        f"id={id}" for id, time in world.landed if not draw.storable(time)
    )


async def test_its_release_keeps_the_settings_that_its_tables_were_created_with(world: World) -> None:
    live = await world.region.driver.survey("web", ["landing"])
    assert live.release
    ours = [state for state in live.release.tables if state.table.kind != "landing"]
    kept = {state.table.name: state.version.settings for state in ours}
    assert {len(settings) for settings in kept.values()} == {3}
    for name, settings in kept.items():
        stats = live.table(name)
        assert stats
        assert changed(settings, stats.properties) == ()


async def test_receipts_name_the_ends_and_hold_when_checked_again(world: World) -> None:
    rollout = (await world.region.driver.state("web")).status.rollout
    receipts = [r for r in (await world.region.driver.history("web", rollout)).receipts if r.target == "whole"]
    ends = Counter(draw.name(time) for _, time in world.landed)
    for day in ("0000 and before", "after 9999"):
        assert [(r.rows_in, r.rows_out) for r in receipts if r.day == day] == [(ends[day], ends[day])]
    assert sum(r.rows_in for r in receipts) == len(world.landed)
    result = await world.region.driver.verify("web", rollout)
    assert [finding for finding in result if finding.ok is False and finding.table == "whole"] == []


async def test_a_second_rollout_compares_old_and_new_on_every_day(world: World, tmp_path: Path) -> None:
    region = world.region
    region.install("web", written(tmp_path / "after", AFTER))
    status = await region.roll_out("web")
    compared = [check for check in status.checks if check.table == "whole" and check.check == "rows per day"]
    assert [check.ok for check in compared] == [True]
    assert await world.rows_of("whole") == Counter(world.landed)


async def test_a_live_row_of_a_far_day_stops_the_feed_that_is_partitioned_by_it_by_name_and_no_other(
    world: World,
) -> None:
    world.land([draw.NAMED["the first"], draw.NAMED["the last"], None])
    await world.region.quiet(["web"])
    assert await world.rows_of("by_day") == world.partitioned
    assert await shown_by(world, "status") == (0, [])
    before = world.partitioned
    world.land([draw.USUAL, draw.NAMED["milliseconds for seconds"], draw.NAMED["the year -1"]])
    feed = await ailing(world, "daily", "C301")
    assert (feed.target, feed.standing) == ("by_day", True)
    assert "by_day.day of a row lies outside the years 0001 to 9999" in feed.why
    assert feed.hint.startswith("leave such rows out in the query that feeds by_day")
    assert await world.rows_of("by_day") == before
    async with asyncio.timeout(60):
        while await world.rows_of("whole") != Counter(world.landed):
            await asyncio.sleep(0.5)
    assert await shown_by(world, "status") == (1, ["daily"])
    assert await shown_by(world, "watch") == (1, ["daily"])


async def test_maintenance_passes_far_days(world: World) -> None:
    region = world.region
    early = Counter(row for row in world.landed if row[1] is not None and row[1] < KEPT_SINCE)
    done = await region.driver.maintain("web", ME, {"expire": True, "many": 10})
    kinds = {(entry["table"], entry["what"]) for entry in done}
    assert {("landing", "compacted"), ("whole", "expired")} <= kinds, done
    assert await world.rows_of("whole") == Counter(world.landed) - early


async def test_a_query_shows_far_times(world: World) -> None:
    rows = await world.region.table("web", "id, ts, day", "whole")
    far = next(id for id, time in world.landed if time == draw.NAMED["milliseconds for seconds"])
    assert [(ts, day) for id, ts, day in rows if id == far] == [("+58851-04-14T23:06:40", "+58851-04-14")]


# -- a stopped feed is shown by every command; in every run that of the far day above


@pytest.mark.soak
async def test_a_feed_that_keeps_failing_is_reported(world: World) -> None:
    known = set(files(world))
    world.land([draw.USUAL])
    (broken,) = set(files(world)) - known
    whole = broken.read_bytes()
    broken.write_bytes(whole[:50])
    feed = await ailing(world, "wholly", "E_FEED")
    assert (feed.target, feed.standing) == ("whole", True)
    assert feed.tries >= 5
    assert await shown_by(world, "status") == (1, ["daily", "wholly"])
    broken.write_bytes(whole)


@pytest.mark.soak
async def test_a_feed_that_stops_in_front_of_a_rewrite_is_reported(world: World) -> None:
    gone = world.landed[0][0]
    DeltaTable(str(world.region.warehouse / "landing")).delete(f"id = '{gone}'")
    feed = await ailing(world, "wholly", "E_REWRITE")
    assert (feed.target, feed.standing, feed.tries) == ("whole", True, 1)
    assert await shown_by(world, "status") == (1, ["daily", "wholly"])


async def state(world: World) -> Status:
    return (await world.region.driver.state("web")).status


async def ailing(world: World, name: str, code: str) -> Ailing:
    """A feed as soon as nobody should wait for it any more, for this reason."""
    async with asyncio.timeout(120):
        while not (
            results := tuple(feed for feed in (await state(world)).standing if (feed.feed, feed.code) == (name, code))
        ):
            await asyncio.sleep(0.5)
    return results[0]


async def shown_by(world: World, command: str) -> tuple[int | None, list[str]]:
    """The exit code of a command, and the feeds of which it says that they stand still."""
    words = [sys.executable, "-m", "console.main", command, "--project", str(world.region.root), "--output", "json"]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    (region,) = json.loads(out.splitlines()[-1] if command == "watch" else out)["regions"]
    feeds = [feed["feed"] for feed in region["feeds"] if feed["standing"]]
    assert region["feeds_stand_still"] == len(feeds)
    return process.returncode, sorted(set(feeds))  # one of each release that is kept current


def files(world: World) -> list[Path]:
    return list((world.region.warehouse / "landing").glob("*.parquet"))
