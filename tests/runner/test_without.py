"""A wave that is completed without an unreachable region, and the command's policy for a failure."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from console.drivers.fake import Scenario, stored_events
from console.errors import RegionError, Unreachable
from console.model.event import Ended
from console.model.region import Policy
from console.runner import region_run
from console.runner.exit_codes import exit_code
from tests.runner.worlds import World, ends, fake, refreshed, until


@pytest.mark.slow
async def test_a_wave_is_finished_without_a_region_that_is_away_and_the_next_begins(folder: Path) -> None:
    us, tr, eu = fake("us"), fake("tr"), fake("eu", wave=2)
    tr.drop_link()
    fleet = await refreshed(World(folder, us, tr, eu), without=("tr",))
    outcomes = await fleet.run(yes=True)
    assert ends(outcomes) == {"us": ("live", None), "tr": ("behind", None), "eu": ("live", None)}
    assert exit_code(outcomes) == 0
    assert not tr.disk.stored
    tr.heal()
    await fleet.refresh()
    again = ends(await fleet.run(yes=True))
    assert again == {"us": ("unchanged", None), "tr": ("live", None), "eu": ("unchanged", None)}
    await fleet.close()


async def test_without_being_named_an_absent_region_still_stops_the_next_wave(folder: Path) -> None:
    tr, ap, eu = fake("tr"), fake("ap"), fake("eu", wave=2)
    tr.drop_link()
    fleet = await refreshed(World(folder, tr, ap, eu), without=("ap",))
    outcomes = await fleet.run(yes=True)
    assert ends(outcomes) == {"tr": ("none", Unreachable), "ap": ("live", None), "eu": ("skipped", None)}
    assert exit_code(outcomes) == 5
    await fleet.close()


@pytest.mark.slow
async def test_lost_in_the_middle_it_stays_behind_with_its_rollout_and_is_picked_up_where_it_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_run, "AWAY_SECONDS", 0.05)
    tr, eu = fake("tr"), fake("eu", wave=2)
    fleet = await refreshed(World(folder, tr, eu), without=("tr",))
    tr.drop_link(after=12)
    assert ends(await fleet.run(yes=True)) == {"tr": ("behind", None), "eu": ("live", None)}
    await until(lambda: tr.disk.status.state == "awaiting-confirmation")  # its agent went on, up to the gate
    batches = [write for write in tr.disk.writes if write.last]
    tr.heal()
    await fleet.refresh()
    assert ends(await fleet.run(yes=True)) == {"tr": ("live", None), "eu": ("unchanged", None)}
    assert [write for write in tr.disk.writes if write.last] == batches
    await fleet.close()


async def test_a_region_that_is_there_and_fails_is_not_gone_on_without(folder: Path) -> None:
    tr, eu = fake("tr", Scenario(failures={"validate": 1})), fake("eu", wave=2)
    fleet = await refreshed(World(folder, tr, eu), without=("tr",))
    assert ends(await fleet.run(yes=True)) == {"tr": ("failed", RegionError), "eu": ("skipped", None)}
    await fleet.close()


@pytest.mark.parametrize(
    ("policy", "asked", "end"),
    [("keep", None, "failed"), ("discard", None, "discarded"), ("keep", "discard", "discarded"), ("discard", "keep", "failed")],
)  # fmt: skip
async def test_what_becomes_of_a_failure_the_command_decides_and_else_the_policy(
    policy: Literal["keep", "discard"], asked: str | None, end: str, folder: Path
) -> None:
    eu = fake("eu", Scenario(failures={"validate": 1}), policy=Policy(on_failure=policy))
    fleet = await refreshed(World(folder, eu), on_failure=asked)
    (outcome,) = await fleet.run(yes=True)
    assert exit_code([outcome]) == 1
    assert eu.disk.status.shown == end
    assert len(stored_events(eu, Ended)) == (end == "discarded")
    assert outcome.error is not None
    assert ("--on-failure" in outcome.error.hint) == (asked == "discard")
    await fleet.close()


async def test_no_region_begins_while_this_machines_pause_file_is_there_and_the_views_say_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "pause"
    file.write_text("freeze until Monday\n")
    monkeypatch.setenv("CONSOLE_PAUSE", str(file))
    eu = fake("eu")
    fleet = await refreshed(World(folder, eu))
    run = asyncio.create_task(fleet.run(yes=True))
    await until(lambda: fleet.views["eu"].waits)
    for _ in range(200):
        await asyncio.sleep(0)
    assert fleet.views["eu"].note == f"waits: all regions are paused by {file}: freeze until Monday"
    assert not eu.disk.stored
    file.unlink()
    assert ends(await run) == {"eu": ("live", None)}
    assert fleet.views["eu"].note == ""
    await fleet.close()
