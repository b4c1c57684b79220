"""An adapter is put in front of a landing table that a stranger keeps writing, rolled back, forward again, and then changed:
no row below it is written, lost or doubled. Judged by DuckDB over the stranger's own table.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pyarrow as pa
import pytest
import pytest_asyncio
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring, real_drivers
from tests.life.region import LANDING, LiveRegion, event, multiset
from tests.life.test_landing_changes import reached
from tests.life.test_lost_days import written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
EVERY = 1.0  # seconds between two of the stranger's commits
BEFORE = {
    "pipeline.yaml": "description: a table of others\n",
    "tables/landing.yaml": "kind: landing\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n",
    "tables/requests.yaml": "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string}\n",
    "materializations/parse.sql": "/* into: requests */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip FROM landing\n",
    "tables/daily.yaml": "kind: aggregate\ntime: day\npartition_by: [day]\ncolumns: {day: date, hits: bigint}\n",
    "materializations/count.sql": "/* into: daily */\nSELECT day, count(*) AS hits FROM requests GROUP BY day\n",
}
LAID = (
    "kind: landing\nsource: landing\ntime: ts\npartition_by: [arrived]\n"
    'select: "id, ts, payload, to_date(ts) AS arrived"\n'
    "columns: {id: string, ts: timestamp, payload: string, arrived: date}\n"
)
RENAMED = (
    LAID.replace("time: ts", "time: at")
    .replace("id, ts, payload", "id, ts AS at, payload")
    .replace("ts: time", "at: time")
)


class Stranger:
    """Appends to the table by itself, and asks nobody."""

    def __init__(self, table: Path) -> None:
        self._table, self._rng, self._rows = str(table), random.Random(3), 100_000
        self._commits, self._enough = 0, asyncio.Event()
        self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while not self._enough.is_set():
            rows = [event(self._rows + at, self._rng) for at in range(self._rng.randrange(1, 12))]
            self._rows += len(rows)
            batch = pa.Table.from_pylist(rows, LANDING)
            await asyncio.to_thread(write_deltalake, self._table, batch, mode="append")
            self._commits += 1
            await asyncio.sleep(EVERY)

    async def more(self) -> None:
        """Returns once two commits are there that began after this call."""
        await reached(self._task, lambda: self._commits, self._commits + 3)  # one may be on its way

    async def end(self) -> None:
        self._enough.set()
        await self._task


@pytest_asyncio.fixture(loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("adapter"), rows=300)
    try:
        yield live
    finally:
        await live.close()


async def actions(region: LiveRegion) -> dict[str, tuple[str, int]]:
    plan = await region.plan("web")
    return {node.name: (node.action, node.price.written) for node in plan.nodes if node.action != "keep"}


async def same(region: LiveRegion) -> None:
    """What the pipeline answers is what the stranger's table gives."""
    await region.followed("web")
    requests = "SELECT id, ts, json_extract_string(payload, '$.ip') FROM landing"
    assert multiset(await region.table("web", "id, ts, ip", "requests")) == multiset(region.truth(requests))
    daily = "SELECT CAST(ts AS DATE), count(*) FROM landing GROUP BY 1"
    assert multiset(await region.table("web", "day, hits", "daily")) == multiset(region.truth(daily))


def versions(region: LiveRegion) -> dict[str, int]:
    """The versions of a table, each with the number of its rows."""
    return {
        path.name: DeltaTable(str(path)).to_pyarrow_dataset().count_rows()
        for path in (region.warehouse / "requests").iterdir()
    }


async def laid(region: LiveRegion) -> None:
    """In another layout, in a version of its own."""
    (region.root / "plans" / "web" / "tables" / "events.yaml").write_text(LAID)
    result = await actions(region)
    assert {name: action for name, (action, _) in result.items()} == {"events": "forward", "requests": "rebind"}


async def renamed(region: LiveRegion) -> None:
    """A column that is read gets another name."""
    plans = region.root / "plans" / "web"
    (plans / "tables" / "events.yaml").write_text(RENAMED)
    parse = plans / "materializations" / "parse.sql"
    parse.write_text(parse.read_text().replace("id, ts, to_date(ts) AS day", "id, at AS ts, to_date(at) AS day"))
    assert await actions(region) == {"events": ("metadata", 0)}


# changed: what becomes of the adapter once it is there for good
@pytest.mark.parametrize(
    ("forward_again", "changed"),
    [
        (LiveRegion.roll_back, (laid,)),
        pytest.param(LiveRegion.roll_out, (laid, renamed), marks=pytest.mark.soak),
    ],
)
async def test_an_adapter_enters_leaves_enters_and_changes_under_a_stranger_who_never_stops(
    region: LiveRegion,
    tmp_path: Path,
    forward_again: Callable[[LiveRegion, str], Awaitable[object]],
    changed: tuple[Callable[[LiveRegion], Awaitable[None]], ...],
) -> None:
    region.install("web", written(tmp_path / "before", BEFORE))
    await region.roll_out("web")
    (only,) = versions(region)
    stranger = Stranger(region.warehouse / "landing")
    try:
        context = CliContext(Wiring(real_drivers))
        line = ["adapt", "landing", "--as", "events", "--project", str(region.root)]
        done = CliRunner().invoke(cli, line, obj=context, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        result = await actions(region)
        assert {name: action for name, (action, _) in result.items()} == {"events": "create", "requests": "rebind"}
        assert result["requests"][1] == 0
        await region.roll_out("web")
        await stranger.more()
        await region.roll_back("web")
        await stranger.more()
        await forward_again(region, "web")
        await stranger.more()
        assert list(versions(region)) == [only]
        for change in changed:
            await change(region)
            await region.roll_out("web")
            await stranger.more()
    finally:
        await stranger.end()
    await same(region)
    assert list(versions(region)) == [only]
    (events,) = await region.table("web", "count(*), count(DISTINCT id)", "events")
    assert events == region.truth("SELECT count(*), count(DISTINCT id) FROM landing")[0]
