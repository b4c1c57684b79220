"""Regions that 0.1.0 left in the middle of something: this version continues and rolls back, and 0.1.0 reads the region afterwards."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.life.region import ME
from tests.versions.build import checked_out
from tests.versions.judge import faults, release
from tests.versions.stored import PIPELINE, VERSIONS, Stored, noted, own_place, region

pytestmark = pytest.mark.spark
versions = pytest.mark.parametrize("version", VERSIONS)


async def at_the_gate(stored: Stored) -> str:
    """The rollout, every check of which has passed."""
    status = await stored.until(PIPELINE, "awaiting-confirmation")
    assert [check for check in status.checks if check.ok is not True] == []
    return status.rollout


async def promoted(stored: Stored) -> None:
    """Promoted, with every row where it belongs."""
    rollout = await at_the_gate(stored)
    await stored.driver.promote(PIPELINE, rollout, "r1", ME)
    await stored.followed(PIPELINE)
    assert release(stored.warehouse, "live")["id"] == "r2"
    assert faults(stored.warehouse) == {}


async def returned(stored: Stored) -> None:
    """Rolled back, with every row where it belongs."""
    await stored.roll_back(PIPELINE)
    await stored.followed(PIPELINE)
    assert release(stored.warehouse, "live")["id"] == "r1"
    assert faults(stored.warehouse) == {}
    assert faults(stored.warehouse, "previous") == {}


@versions
async def test_the_one_at_the_gate_is_promoted_and_its_own_version_reads_that_follows_and_goes_back(
    version: str, tmp_path: Path
) -> None:
    """At the place that it was left at: the manifests of 0.1.0 hold it, and 0.1.0 looks for its tables there."""
    checkout = checked_out(noted(version, "gate").commit, tmp_path / "checkout")
    row = {"id": "new", "ts": "2026-11-02T10:00:00Z", "payload": '{"ip": "192.0.2.1", "status": 500}'}
    (tmp_path / "new.ndjson").write_text(json.dumps(row) + "\n")
    with own_place() as place:
        async with region(place, version, "gate") as stored:
            await stored.driver.start_agent()
            await stored.driver.control(PIPELINE, "retry", ME)  # checked anew, in words of this version
            await promoted(stored)
            await stored.driver.stop()

            async def older(*words: str) -> str:
                return await asyncio.to_thread(stored.older, checkout, *words)

            try:
                for words in (("history",), ("show", f"{PIPELINE}-2"), ("plan",)):
                    await older(*words)
                await older("ingest", str(tmp_path / "new.ndjson"), "--region", "eu", "--pipeline", PIPELINE)
                await followed_by(older)
                assert (release(stored.warehouse, "live")["id"], faults(stored.warehouse)) == ("r2", {})
                await older("rollback", "--regions", "eu", "--yes")
                await followed_by(older)
                assert (release(stored.warehouse, "live")["id"], faults(stored.warehouse)) == ("r1", {})
            finally:
                await older("follow", "--region", "eu", "--stop")


async def followed_by(older: Callable[..., Awaitable[str]], seconds: float = 120) -> None:
    """Until the other version says three times that nothing waits in front of its feeds."""
    limit, still = time.monotonic() + seconds, 0
    while still < 3:
        assert time.monotonic() < limit, "its feeds do not come to the end of their source"
        (eu,) = json.loads(await older("status", "--output", "json"))["regions"]
        still = still + 1 if eu["status"]["lag_commits"] == 0 else 0


@versions
async def test_the_paused_one_goes_on_to_its_end(version: str, tmp_path: Path) -> None:
    checkout = checked_out(noted(version, "paused").commit, tmp_path / "checkout")
    async with region(tmp_path / "region", version, "paused") as stored:
        await stored.driver.start_agent()
        await stored.driver.control(PIPELINE, "resume", ME)
        await at_the_gate(stored)
        # this version's agent answers: the state, and a survey
        messages, _ = [
            await asyncio.to_thread(stored.older, checkout, *words)
            for words in (("status", "--output", "json"), ("plan",))
        ]
        assert json.loads(messages)["regions"][0]["state"] == "awaiting-confirmation"
        await promoted(stored)


@pytest.mark.soak  # what it carries on is what the paused one does
@versions
async def test_the_failed_one_is_kept_and_tried_again(version: str, tmp_path: Path) -> None:
    async with region(tmp_path / "region", version, "failed") as stored:
        await stored.driver.start_agent()
        await stored.driver.control(PIPELINE, "retry", ME)
        await promoted(stored)


@versions
async def test_the_live_one_takes_rows_and_goes_back(version: str, tmp_path: Path) -> None:
    async with region(tmp_path / "region", version, "live") as stored:
        await stored.driver.start_agent()
        line = json.dumps({"id": "new", "ts": "2026-11-02T10:00:00Z", "payload": '{"ip": "192.0.2.1", "status": 500}'})
        await stored.driver.ingest(PIPELINE, "landing", "one", [line])
        async with asyncio.timeout(120):  # a lag that is shown may be older than the row, on a busy machine by seconds
            while faults(stored.warehouse):
                await stored.followed(PIPELINE)
        await returned(stored)
