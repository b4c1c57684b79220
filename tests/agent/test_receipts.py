"""Receipts on real Spark: written once whichever process dies, equal to an independent count; the tampering that they detect."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.errors import ConsoleError
from console.model.receipt import AuditProgress, Finding
from console.planning import compile_query
from tests.life.region import ME, LiveRegion
from tests.life.test_life import CASES

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
CASE = next(case for case in CASES if case.name == "column")
NAME, ROLLOUT = CASE.name, f"{CASE.name}-1"
PARSE, HOURS = "backfill/requests/parse", "catch-up/by_hour/hours"
FOLLOWED = "catch-up/requests/parse"
POINTS = ("before-receipts", "after-receipts")
LATE, TAKEN = "2026-11-02", "2026-11-03"
ROWS = 900  # in fewer commits than a live feed may be behind: the log of such a history is read to its end all the same


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    """A region whose first rollout is live; its agent was killed right before and right after it wrote receipts."""
    root = tmp_path_factory.mktemp("receipts")
    crashes = root / "crashes"
    crashes.mkdir()
    for point in POINTS:
        (crashes / point).touch()
    os.environ["CONSOLE_CRASH_DIR"] = str(crashes)
    live = LiveRegion(root / "region", rows=ROWS)
    live.install(NAME, CASE / "before")
    try:
        await live.driver.accept(await live.plan(NAME), ME)
        await gate(live)
        assert list(crashes.iterdir()) == [], "some points were never reached"
        await live.driver.promote(NAME, ROLLOUT, "", ME)
        await live.quiet([NAME])
        yield live
    finally:
        del os.environ["CONSOLE_CRASH_DIR"]
        await live.close()


async def gate(region: LiveRegion) -> None:
    """Wait for the gate, and start the agent again whenever it was killed."""
    async with asyncio.timeout(900):
        while True:
            try:
                await region.driver.start_agent()
                status = (await region.driver.state(NAME)).status
                if status.shown == "awaiting-confirmation":
                    return
                assert status.held != "failed", status.why
            except ConsoleError:  # killed while it was asked
                pass
            await asyncio.sleep(0.2)


def table(region: LiveRegion, name: str) -> DeltaTable:
    """The one version of a table."""
    (version,) = (region.warehouse / name).iterdir()
    return DeltaTable(str(version))


async def program(region: LiveRegion, *words: str) -> int:
    """The exit code of the command line, as a process of its own."""
    command = [sys.executable, "-m", "console.main", *words, "--project", str(region.root), "--output", "json"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    return await process.wait()


async def verified(region: LiveRegion) -> dict[tuple[str, str], Finding]:
    """Step and subject → what was found."""
    result = await region.driver.verify(NAME, ROLLOUT)
    assert len({(f.step, f.what) for f in result}) == len(result)
    return {(f.step, f.what): f for f in result}


def other_than_equal(
    result: dict[tuple[str, str], Finding],
) -> dict[tuple[str, str], tuple[bool | None, tuple[str, ...]]]:
    return {place: (finding.ok, finding.days) for place, finding in result.items() if finding.ok is not True}


async def test_each_day_has_one_receipt_and_it_says_what_an_independent_count_says(region: LiveRegion) -> None:
    receipts = (await region.driver.history(NAME, ROLLOUT)).receipts
    assert set(Counter((r.step, r.day) for r in receipts).values()) == {1}
    counted = region.truth("SELECT CAST(ts AS DATE), count(*) FROM landing GROUP BY 1")
    days = {str(day or ""): rows for day, rows in counted}
    parsed = [r for r in receipts if r.step == PARSE]
    assert {r.day: r.rows_in for r in parsed} == {r.day: r.rows_out for r in parsed} == days
    assert {(r.fence, r.position, r.days) for r in parsed} == {(2, 7, len(days))}
    assert len({r.checksum_in for r in parsed} | {r.checksum_out for r in parsed}) == 2 * len(days)
    hours = {r.day: (r.rows_in, r.rows_out) for r in receipts if r.step == HOURS}
    assert {day: came for day, (came, _) in hours.items()} == days
    stored = Counter(str(row["day"] or "") for row in table(region, "by_hour").to_pyarrow_table().to_pylist())
    assert {day: out for day, (_, out) in hours.items()} == stored


async def test_an_untouched_rollout_is_equal_in_all_that_is_checked_and_told_check_by_check(region: LiveRegion) -> None:
    heard: list[AuditProgress] = []
    result = await region.driver.verify(NAME, ROLLOUT, heard.append)
    checked = {(step, what) for step in (PARSE, HOURS) for what in ("receipts", "source", "target", "since")}
    by_place = {(finding.step, finding.what): finding for finding in result}
    assert len(by_place) == len(result)
    assert set(by_place) == checked | {(PARSE, "batches"), ("", "decisions"), (FOLLOWED, "live"), (HOURS, "live")}
    assert other_than_equal(by_place) == {}
    begun = dict.fromkeys(report.number for report in heard)  # a slow check is reported again
    assert list(begun) == list(range(1, heard[0].of + 1))
    messages = tuple(finding for report in heard for finding in report.found)
    assert messages == result[: len(messages)]
    assert len(messages) == len(result) - 1, "the last check's result is in the answer"


async def test_verify_is_cancelled_within_one_check(region: LiveRegion) -> None:
    """The tests after this one show that it leaves nothing behind."""
    second = asyncio.Event()
    leaving = asyncio.create_task(
        region.driver.verify(NAME, ROLLOUT, lambda report: second.set() if report.number == 2 else None)
    )
    await asyncio.wait_for(second.wait(), 120)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_the_ledger_is_readable_by_a_query(region: LiveRegion) -> None:
    release = (await region.driver.survey(NAME, ["landing"])).release
    assert release is not None
    sql = """SELECT o.kind, o.who, o.identity, sum(o.rows_in) AS rows, count(DISTINCT e.seq) AS events
        FROM _console.ops o LEFT JOIN _console.events e ON o.rollout = e.rollout AND o.seq = e.seq
        JOIN _console.releases ON releases.rollout = o.rollout AND releases.state = 'live'
        WHERE o.step <> 'catch-up/by_hour/hours' GROUP BY ALL ORDER BY 1"""
    compiled = compile_query(sql, release)
    answer = await region.driver.query(NAME, compiled.sql, compiled.tables, {}, 100)
    assert answer.rows == (
        ("accepted", "ada", "OS user", 0, 1),
        ("promoted", "ada", "OS user", 0, 1),
        ("receipt", "", "", ROWS, 0),
    )


async def test_a_receipt_changed_by_hand_is_found_by_its_seal_and_by_the_tables(region: LiveRegion) -> None:
    ops = DeltaTable(str(region.warehouse / "_console" / NAME / "ops"))
    before = ops.version()
    ops.update(updates={"rows_out": "rows_out - 1"}, predicate=f"step = '{PARSE}' AND day = '{TAKEN}'")
    differences = other_than_equal(await verified(region))
    ops.restore(before)
    assert differences == {
        (PARSE, "receipts"): (False, (TAKEN,)),
        (PARSE, "batches"): (False, ()),
        (PARSE, "target"): (False, (TAKEN,)),
    }


async def test_where_the_fence_can_no_longer_be_read_today_is_taken_as_far_as_it_tells(region: LiveRegion) -> None:
    landing = DeltaTable(str(region.warehouse / "landing"))
    landing.optimize.compact()
    landing.vacuum(0, enforce_retention_duration=False, dry_run=False)
    result = await verified(region)
    assert other_than_equal(result) == {}
    assert "as of today" in result[(PARSE, "source")].detail
    late = json.dumps({"id": "late", "ts": f"{LATE}T12:00:00+00:00", "payload": "{}"})
    await region.driver.ingest(NAME, "landing", "late", [late])
    await region.quiet([NAME])
    result = await verified(region)
    assert other_than_equal(result) == {(PARSE, "source"): (None, (LATE,))}
    assert "1 have got more rows since" in result[(PARSE, "source")].detail


async def test_a_row_taken_out_by_hand_is_found_and_named_by_its_day_and_the_program_exits_1(
    region: LiveRegion,
) -> None:
    rows = table(region, "requests").to_pyarrow_table().to_pylist()
    victim = next(row["event_id"] for row in rows if str(row["day"]) == TAKEN)
    table(region, "requests").delete(f"event_id = '{victim}'")
    result = await verified(region)
    assert result[(PARSE, "since")].ok is False
    assert result[(PARSE, "since")].days == (TAKEN,)
    assert "(DELETE, " in result[(PARSE, "since")].detail
    assert {place for place, finding in result.items() if finding.ok is False} == {(PARSE, "since")}
    assert await program(region, "verify", "--rollout", ROLLOUT) == 1


async def test_a_file_that_can_no_longer_be_read_is_a_difference_and_no_error(region: LiveRegion) -> None:
    path = str(region.warehouse / "requests")
    receipt = next(r for r in (await region.driver.history(NAME, ROLLOUT)).receipts if r.step == PARSE)
    files = DeltaTable(table(region, "requests").table_uri, version=receipt.version).file_uris()
    file = next(Path(uri.removeprefix("file://")) for uri in files if f"day={LATE}" in uri)
    assert file.is_relative_to(path)
    file.write_bytes(file.read_bytes()[:100])
    result = await verified(region)
    assert {
        place for place, finding in result.items() if finding.ok is False and "cannot be read" in finding.detail
    } == {
        (PARSE, "target"),
        (PARSE, "since"),
        (HOURS, "source"),
    }


# last, since the next agent starts no JVM for it
async def test_a_note_outlives_its_agent_and_the_account_is_the_same(region: LiveRegion) -> None:
    before = (await region.driver.history(NAME, ROLLOUT)).rollouts[-1]
    for _ in range(2):  # an answer that was lost: the same note again
        status = await region.driver.note(NAME, "waits for \x1b[31mAna", ME)
    assert [note.text for note in status.notes] == ["waits for \\x1b[31mAna"]
    await region.driver.stop()
    after = (await region.driver.history(NAME, ROLLOUT)).rollouts[-1]
    assert (after.notes, after.seq) == (status.notes, before.seq + 1)
    assert (after.state, after.changed) == (before.state, before.changed)
    await region.driver.start_agent()
    assert (await region.driver.state(NAME)).status.notes == status.notes
