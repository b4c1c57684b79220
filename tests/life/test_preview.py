"""A pending change as a sandbox: its newest day beside live, by the steps with which its rollout then goes on.

A wrong cast is planted, and seen in the sandbox alone. What the rollout carried, and where, is judged by the tables' logs;
rows by DuckDB over the landing table.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.agent.sandboxes.store import SandboxStore
from console.errors import DataError, Unreachable
from console.model.event import Fenced
from console.model.live import Release
from console.model.sandbox import Sandbox
from tests.life.region import ME, LiveRegion, multiset
from tests.life.test_history import LANDING, written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
ROWS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date"
BYTES = "get_json_object(payload, '$.bytes')"
TRUTH = "SELECT id, CAST(json_extract_string(payload, '$.bytes') AS BIGINT) FROM landing"
NEWEST = "CAST(ts AS DATE) >= DATE '2026-11-04'"  # the region's last day, and what is dated after it


def files(bytes_as: str = "") -> dict[str, str]:
    """bytes_as: the type of the column that is added, "" for none"""
    column, value = (f", bytes: {bytes_as}", f", try_cast({BYTES} AS {bytes_as}) AS bytes") if bytes_as else ("", "")
    return {
        "pipeline.yaml": "description: a column, looked at before it is rolled out\n",
        "tables/landing.yaml": LANDING,
        "tables/requests.yaml": f"{ROWS}{column}}}\n",
        "materializations/parse.sql": f"/* into: requests */\nSELECT id, ts, to_date(ts) AS day{value} FROM landing\n",
        "tables/seen.yaml": f"time: ts\ncolumns: {{id: string, ts: timestamp{column}}}\n",
        "materializations/see.sql": f"/* into: seen */\nSELECT id, ts{', bytes' if bytes_as else ''} FROM requests\n",
    }


@dataclass(frozen=True, slots=True)
class FirstPreview:
    """The sandbox of the first release, before anything was live. release: of which its rollout then made r1"""

    sandbox: Sandbox
    release: Release
    ids: frozenset[object]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def empty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    """Files, and nothing is live."""
    live = LiveRegion(tmp_path_factory.mktemp("preview"), rows=300)
    live.install("web", written(tmp_path_factory.mktemp("before"), files()))
    with pytest.MonkeyPatch.context() as patch:
        crashes = live.root / "crashes"
        (crashes / "fired").mkdir(parents=True)
        patch.setenv("CONSOLE_CRASH_DIR", str(crashes))
        try:
            yield live
        finally:
            await live.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def first(empty: LiveRegion) -> FirstPreview:
    await empty.driver.preview(await empty.plan("web"), ME, name="first", days=1, hours=1)
    sandbox = await built(empty, "first")
    assert (await empty.driver.survey("web", [])).release is None
    answer = await empty.driver.query("web", "SELECT id FROM seen", ["seen"], {}, 100_000, release="first")
    release = await empty.driver.preview_release("web", "first")
    return FirstPreview(sandbox, release, frozenset(id for (id,) in answer.rows))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(empty: LiveRegion, first: FirstPreview) -> LiveRegion:
    await empty.roll_out("web")
    return empty


async def built(region: LiveRegion, name: str, seconds: float = 300) -> Sandbox:
    """The sandbox as soon as it is ready. An agent that was killed is started again."""
    until = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < until:
        with suppress(Unreachable):
            await region.driver.start_agent()
            shown = {each.name: each for each in (await region.driver.state("web")).status.sandboxes}
            assert shown[name].state != "failed", shown[name]
            if shown[name].state == "ready":
                return shown[name]
        await asyncio.sleep(0.5)
    raise AssertionError(f"{name} is not ready after {seconds:g} s")


def slices(region: LiveRegion, version: str) -> Counter[int]:
    """How often each slice was committed to a version, by the notes in its log."""
    notes = [line.get("userMetadata") for line in DeltaTable(str(region.warehouse / version)).history()]
    histories = [note for text in notes if text and (note := json.loads(text)).get("kind") == "history"]
    return Counter(n for note in histories for n in range(note["slices"][0], note["slices"][1] + 1))


def versions(region: LiveRegion) -> set[str]:
    return {str(log.parent.relative_to(region.warehouse)) for log in region.warehouse.glob("*/*/_delta_log")} - {
        str(log.parent.relative_to(region.warehouse)) for log in region.warehouse.glob("_console/*/_delta_log")
    }


async def asked(region: LiveRegion, name: str, table: str) -> list[tuple[object, ...]]:
    answer = await region.driver.query("web", f"SELECT id, bytes FROM {table}", [table], {}, 100_000, release=name)
    assert answer.release == name
    return list(answer.rows)


async def test_the_first_release_is_previewed_and_goes_on_from_there(region: LiveRegion, first: FirstPreview) -> None:
    assert 0 < first.sandbox.slices < first.sandbox.of
    assert first.ids == {id for (id,) in region.truth(f"SELECT id FROM landing WHERE {NEWEST}")}
    live = (await region.driver.survey("web", [])).release
    assert live is not None
    paths = {state.table.name: state.version.path for state in live.tables}
    assert paths == {state.table.name: state.version.path for state in first.release.tables}
    assert slices(region, paths["requests"]) == Counter(range(1, first.sandbox.of + 1))
    before = versions(region)
    await region.driver.drop_preview("web", "first", ME)
    assert versions(region) == before
    for table in ("requests", "seen"):
        assert multiset(await region.table("web", "id", table)) == multiset(region.truth("SELECT id FROM landing"))


async def test_a_sandbox_holds_its_newest_day_and_shows_a_wrong_cast_that_live_never_sees(
    region: LiveRegion, tmp_path: Path
) -> None:
    before = versions(region)
    region.install("web", written(tmp_path, files("tinyint")))  # wrong: bytes are up to 9,999
    await region.driver.preview(await region.plan("web"), ME, name="wrong", days=1, hours=1)
    sandbox = await built(region, "wrong")
    assert 0 < sandbox.slices < sandbox.of
    truth = dict(region.truth(f"{TRUTH} WHERE {NEWEST}"))
    for table in ("requests", "seen"):
        shown = dict(await asked(region, "wrong", table))
        assert shown.keys() == truth.keys()
        assert any(shown[id] is None and truth[id] is not None for id in truth)
    live = await region.driver.query("web", "SELECT * FROM requests", ["requests"], {}, 1)
    assert "bytes" not in dict(live.columns)
    assert len(versions(region) - before) == 2

    await region.driver.drop_preview("web", "wrong", ME)
    assert versions(region) == before
    assert not list((region.warehouse / "_console" / "web" / "previews").iterdir())
    with pytest.raises(DataError, match="no preview 'wrong'"):
        await asked(region, "wrong", "requests")


def fence(region: LiveRegion, name: str) -> int:
    """The version of the landing table at which a sandbox's history ends."""
    log = SandboxStore(region.warehouse, "web").log(name)
    (fenced,) = (each.event for each in log.events(log.latest()) if isinstance(each.event, Fenced))
    return fenced.version


def newest_and_later(region: LiveRegion, version: int) -> list[tuple[object, ...]]:
    """Rows of the newest two days as of a version of the landing table, and all that arrived after it."""
    later = "id NOT IN (SELECT id FROM past)"
    past = DeltaTable(str(region.warehouse / "landing"), version=version).to_pyarrow_table()
    return region.truth(f"{TRUTH} WHERE {later} OR CAST(ts AS DATE) >= DATE '2026-11-03'", past=past)


async def shows(region: LiveRegion, name: str, version: int, seconds: float = 120) -> None:
    """Wait until every row that arrived later is in the sandbox; then each has to be there once."""
    until = asyncio.get_running_loop().time() + seconds
    for table in ("requests", "seen"):
        wanted, shown = multiset(newest_and_later(region, version)), Counter[tuple[object, ...]]()
        while asyncio.get_running_loop().time() < until and (not shown or wanted - shown):
            await asyncio.sleep(1)
            with suppress(Unreachable):
                await region.driver.start_agent()
                shown = multiset(await asked(region, name, table))
        assert shown == wanted, table


async def test_later_rows_flow_into_a_sandbox_and_its_rollout_repeats_neither_these_nor_a_slice(
    region: LiveRegion, tmp_path: Path
) -> None:
    """Agents are killed behind a batch of its build, and while it is fed."""
    region.install("web", written(tmp_path, files("bigint")))
    region.write("web")
    (region.root / "crashes" / "after-commit-history").touch()
    await region.driver.preview(await region.plan("web"), ME, name="right", days=2, hours=1, live=True)
    sandbox = await built(region, "right")
    (region.root / "crashes" / "after-commit-live").touch()
    while (region.root / "crashes" / "after-commit-live").exists():
        await asyncio.sleep(0.2)
    await region.end_writing()
    fired = {each.name.partition(".")[0] for each in (region.root / "crashes" / "fired").iterdir()}
    assert fired == {"after-commit-history", "after-commit-live"}
    assert sandbox.follows
    await shows(region, "right", fence(region, "right"))
    region.write("web")
    release = await region.driver.preview_release("web", "right")
    paths = {state.table.name: state.version.path for state in release.tables}
    carried = slices(region, paths["requests"])
    assert sandbox.slices == len(carried) < sandbox.of
    assert set(carried.values()) == {1}

    status = await region.roll_out("web")
    live = (await region.driver.survey("web", [])).release
    assert live is not None
    assert {state.table.name: state.version.path for state in live.tables} == paths
    assert slices(region, paths["requests"]) == Counter(range(1, sandbox.of + 1))
    assert any("continues from preview right: requests, seen" in line for line in status.log)
    assert [each for each in await region.driver.verify("web", status.rollout) if each.ok is not True] == []

    await region.quiet(["web"])
    await region.driver.drop_preview("web", "right", ME)
    for table in ("requests", "seen"):
        counted = multiset(await region.table("web", "id, bytes", table))
        assert counted == multiset(region.truth(TRUTH)), table
