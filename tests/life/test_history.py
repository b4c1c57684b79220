"""`since` and `carry` with rows that go on arriving, promoted and rolled back; judged from the landing rows alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from tests.doubts import accept_doubts
from tests.life.region import ME, LiveRegion, multiset

# in every run, `from now` is part of test_from_now.py, `carry` and two halves of tests/closure/test_carried.py, and what two versions of linked files do to each other of tests/agent/test_linked_history.py
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
BOUNDARY = datetime(2026, 11, 3, tzinfo=UTC)
LANDING = "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
REQUESTS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string"
TABLES = ("requests", "visits")
PARSE = "SELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip"


def files(words: Mapping[str, str]) -> dict[str, str]:
    """words: for each table that gets a column, the choice for the rows that it holds"""
    made = {
        "pipeline.yaml": "description: changes whose older rows are the operator's choice\n",
        "tables/landing.yaml": LANDING,
    }
    for table in TABLES:
        word = words.get(table, "")
        agent = "ua: {type: string, default: unknown}" if "as null" in word else "ua: string"
        made[f"tables/{table}.yaml"] = f"{REQUESTS}{f', {agent}' if word else ''}}}\n" + (
            f"history: {word}\n" if word else ""
        )
        more = ", get_json_object(payload, '$.ua') AS ua" if word else ""
        made[f"materializations/parse_{table}.sql"] = f"/* into: {table} */\n{PARSE}{more} FROM landing\n"
    return made


def written(root: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("history"), rows=300)
    live.install("web", written(tmp_path_factory.mktemp("before"), files({})))
    try:
        await live.roll_out("web")
        yield live
    finally:
        await live.close()


def landed(region: LiveRegion) -> dict[str, dict[str, Any]]:
    rows = DeltaTable(str(region.warehouse / "landing")).to_pyarrow_table().to_pylist()
    return {row["id"]: {**row, **json.loads(row["payload"])} for row in rows}


async def kept_apart(region: LiveRegion, rollout: str) -> None:
    """Both versions hold every older file under a name of their own, and neither loses it to what is done to the other."""
    release = (await region.driver.survey("web", [])).release
    state = release.table("requests") if release else None
    assert state is not None
    new = region.warehouse / state.version.path
    names = [name for name in DeltaTable(str(new)).file_uris() if "/linked/" in name]
    assert names
    assert all(Path(name).stat().st_nlink == 2 for name in names)
    notes = [json.loads(text) for text in (line.get("userMetadata") for line in DeltaTable(str(new)).history()) if text]
    (history,) = [note for note in notes if note.get("linked")]
    assert history["linked"]["files"] == len(list((new / "linked").iterdir()))
    done = await region.driver.maintain("web", ME, {"dry_run": False, "expire": False, "many": 2})
    assert {each["what"] for each in done} >= {"compacted", "vacuumed"}
    findings = [item for item in await region.driver.verify("web", rollout) if item.ok is not True]
    assert findings == []


async def carried_through(region: LiveRegion, root: Path, words: Mapping[str, str]) -> tuple[str, set[str], set[str]]:
    """To live, with rows arriving all the while. returns  the rollout, ids landed before it began, and ids landed at the gate"""
    region.install("web", written(root, files(words)))
    plan = await region.plan("web")
    assert plan.refusals == ()
    assert {node.name: node.history for node in plan.nodes if node.history} == words
    before = {*landed(region)}
    region.write("web")
    await region.driver.accept(plan, ME)
    status = await region.until("web", "awaiting-confirmation", seconds=500)
    assert [check for check in status.checks if check.ok is not True] == []
    at_gate = {*landed(region)}
    while {*landed(region)} == at_gate:  # the writer goes on, and some rows are to be live ones of the new release
        await asyncio.sleep(0.2)
    await accept_doubts(region.driver, "web", status, ME)
    await region.driver.promote("web", status.rollout, status.was, ME)
    await region.until("web", "live")
    await region.quiet(["web"])
    return status.rollout, before, at_gate


def same_rows(result: list[tuple[Any, ...]], truth: dict[str, dict[str, Any]]) -> None:
    assert multiset([row[:3] for row in result]) == multiset(
        [(row["id"], row["ts"], row["ip"]) for row in truth.values()]
    )


def as_chosen(
    rows: list[tuple[Any, ...]], truth: dict[str, dict[str, Any]], word: str, before: set[str], at_gate: set[str]
) -> None:
    """The new column: computed for later rows and, with `since`, for recent ones; else NULL."""
    for id, _, _, ua in rows:
        own, ts = truth[id].get("ua"), truth[id]["ts"]
        recent = word.startswith("since") and ts is not None and ts >= BOUNDARY
        if recent or id not in at_gate:
            assert ua == own
        elif id in before:
            assert ua is None
        else:
            assert ua in (None, own)


@pytest.mark.parametrize(
    "words",
    [{"requests": "since 2026-11-03", "visits": "carry as null"}, {"requests": "from now"}],
    ids=["since and carry", "from now"],
)
async def test_older_rows_are_as_chosen_and_later_ones_as_computed(
    region: LiveRegion, tmp_path: Path, words: dict[str, str]
) -> None:
    rollout, before, at_gate = await carried_through(region, tmp_path / "after", words)
    truth = landed(region)
    assert {*truth} > at_gate
    for table, word in words.items():
        rows = await region.table("web", "id, ts, ip, ua", table)
        same_rows(rows, truth)
        as_chosen(rows, truth, word, before, at_gate)

    if "from now" in words.values():
        await kept_apart(region, rollout)
    await region.roll_back("web")
    await region.until("web", "rolled-back")
    region.write("web")
    await region.quiet(["web"])
    for table in TABLES:
        same_rows(await region.table("web", "id, ts, ip", table), landed(region))
