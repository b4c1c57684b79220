"""Ten previews built at once in one region: they write what they rebuild, live is untouched, and ten drops leave nothing. A table of
two materializations, of which only days of each half were there, is continued by its rollout.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from tests.life.region import ME, LiveRegion, multiset
from tests.life.test_history import written
from tests.life.test_preview import BYTES, built, files, slices, versions
from tests.life.test_preview_bytes import landing, size

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
DAYS, TEN = 10, 10
ODD = '{"bytes": "many"}'  # does not convert
LATER = [f'{{"id": "later-{n}", "ts": "2026-11-10T12:00:00Z", "payload": "{{\\"bytes\\": {n}}}"}}' for n in range(50)]


def branch(number: int) -> dict[str, str]:
    """A change of one branch: a column of its own values, which a few rows do not have."""
    changed = files("bigint")
    parse = changed["materializations/parse.sql"].replace(
        f"try_cast({BYTES} AS bigint)", f"CAST({BYTES} AS bigint) + {number}"
    )
    return {**changed, "materializations/parse.sql": parse}


def two_feeds(add: str = "") -> dict[str, str]:
    """Rows of even and of odd length of their id by two queries, of which both change."""
    parse = files("bigint")["materializations/parse.sql"].replace(
        f"try_cast({BYTES} AS bigint)", f"try_cast({BYTES} AS bigint){add}"
    )
    return {
        **files("bigint"),
        "materializations/parse.sql": f"{parse.rstrip()} WHERE length(id) % 2 = 0\n",
        "materializations/parse_odd.sql": f"{parse.rstrip()} WHERE length(id) % 2 = 1\n",
    }


def stored(region: LiveRegion) -> dict[str, int]:
    """Version → bytes, of the landing table and of all versions."""
    return {each: size(region.warehouse / each) for each in ("landing", *versions(region))}


def quarantined(region: LiveRegion) -> Counter[str]:
    table = DeltaTable(str(region.warehouse / "_console" / "web" / "quarantine")).to_pyarrow_table()
    return Counter(table.column("rollout").to_pylist())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("many"), rows=3, most=20_000)
    place = live.root / "regions" / "eu.yaml"
    place.write_text(f"{place.read_text()}policy: {{quarantine_rows: 10}}\n")
    for day in range(DAYS):
        rows = landing(day, random.Random(day)).slice(0, 5_000)
        write_deltalake(str(live.warehouse / "landing"), rows, mode="append")
    odd = rows.slice(0, 3).set_column(0, "id", pa.array(["odd-1", "odd-2", "odd-3"]))
    odd = odd.set_column(2, "payload", pa.array([ODD] * 3))
    write_deltalake(str(live.warehouse / "landing"), odd, mode="append")
    live.install("web", written(tmp_path_factory.mktemp("before"), files()))
    try:
        await live.roll_out("web")
        yield live
    finally:
        await live.close()


async def begun(region: LiveRegion, place: Path, change: Mapping[str, str], name: str, *, live: bool = False) -> None:
    region.install("web", written(place / name, dict(change)))
    plan = await region.plan("web")
    assert not plan.refusals
    await region.driver.preview(plan, ME, name=name, days=1, hours=1, live=live)


async def test_ten_at_once_write_what_they_rebuild_and_ten_drops_leave_nothing(
    region: LiveRegion, tmp_path: Path
) -> None:
    before = stored(region)
    await begun(region, tmp_path, branch(99), "alone")
    await built(region, "alone")
    of_one = sum(bytes for version, bytes in stored(region).items() if version not in before)
    await region.driver.drop_preview("web", "alone", ME)
    assert stored(region) == before

    names = [f"b{number}" for number in range(TEN)]
    for number, name in enumerate(names):
        await begun(region, tmp_path, branch(number), name, live=number % 2 == 0)
    sandboxes = [await built(region, name) for name in names]
    after = stored(region)
    assert {version: after[version] for version in before} == before
    added = {version: bytes for version, bytes in after.items() if version not in before}
    assert len(added) == 2 * TEN
    assert sum(added.values()) == pytest.approx(TEN * of_one, rel=0.1)
    assert all(each.rows == sandboxes[0].rows and each.bytes < before["landing"] / DAYS * 2 for each in sandboxes)
    assert quarantined(region) == {f"web-{name}-0": 3 for name in names}

    await region.driver.ingest("web", "landing", "later", LATER)
    await region.quiet(["web"])
    await all_shown(region, names)
    for number, name in enumerate(names):
        answer = await region.driver.query(
            "web", "SELECT bytes FROM seen WHERE id LIKE 'later-%'", ["seen"], {}, 1000, release=name
        )
        expected = [number + n for n in range(len(LATER))] if number % 2 == 0 else []
        assert sorted(value for (value,) in answer.rows) == expected, name

    for name in names:
        assert len(await region.driver.drop_preview("web", name, ME)) == 2
    assert versions(region) == before.keys() - {"landing"}
    assert quarantined(region) == {}
    assert not list((region.warehouse / "_console" / "web" / "previews").iterdir())
    assert (await region.driver.state("web")).status.sandboxes == ()
    for table in ("requests", "seen"):
        answer = await region.driver.query("web", f"SELECT id FROM {table}", [table], {}, 100_000)
        assert multiset(list(answer.rows)) == multiset(region.truth("SELECT id FROM landing")), table


async def all_shown(region: LiveRegion, names: list[str], seconds: float = 180) -> None:
    """Wait until no fed sandbox is behind."""
    until, still = asyncio.get_running_loop().time() + seconds, 0
    while still < 3:
        assert asyncio.get_running_loop().time() < until
        await asyncio.sleep(1)
        fed = [each.feeding for each in (await region.driver.state("web")).status.sandboxes if each.feeding]
        assert len(fed) == len(names) / 2
        assert not any(each.stopped for each in fed), fed
        still = 0 if any(each.rows for each in fed) else still + 1


async def test_a_table_of_two_materializations_is_continued_and_its_receipts_count_each_apart(
    region: LiveRegion, tmp_path: Path
) -> None:
    await begun(region, tmp_path, two_feeds(), "two", live=True)
    sandbox = await built(region, "two")
    assert 0 < sandbox.slices < sandbox.of
    await region.driver.ingest("web", "landing", "meanwhile", [line.replace("later", "meanwhile") for line in LATER])
    await region.quiet(["web"])
    await all_shown(region, ["two", ""])
    status = await region.roll_out("web")
    assert any("continues from preview two" in line for line in status.log)
    live = (await region.driver.survey("web", [])).release
    assert live is not None
    requests = next(state.version.path for state in live.tables if state.table.name == "requests")
    assert set(slices(region, requests).values()) == {2}  # of two histories
    assert [each for each in await region.driver.verify("web", status.rollout) if each.ok is not True] == []
    for table in ("requests", "seen"):
        answer = await region.driver.query("web", f"SELECT id FROM {table}", [table], {}, 100_000)
        assert multiset(list(answer.rows)) == multiset(region.truth("SELECT id FROM landing")), table
