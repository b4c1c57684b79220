"""A second console at a running rollout: it watches, or takes it over, and then the first one is notified and only watches."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.drivers.fake import stored_events
from console.errors import Conflict
from console.model.event import Promoted, TakenOver
from console.runner.exit_codes import exit_code
from tests.cli.conftest import World as CommandLine
from tests.cli.conftest import deployed, world
from tests.runner.worlds import ADA, BOB, Brake, World, at_event, fake, refreshed, until

pytestmark = pytest.mark.slow

__all__ = ["deployed", "world"]  # fixtures of the command line's tests
FIRST, SECOND = replace(ADA, console="console-of-ada"), replace(BOB, console="console-of-bob")


@pytest.mark.parametrize("lead", range(1, 26, 6))
async def test_a_run_that_was_taken_over_ends_with_4_and_the_name_and_promotes_nothing(
    lead: int, tmp_path: Path
) -> None:
    """At every state of the rollout, and however the two interleave: the take-over falls between two of its events."""
    brake = Brake()
    eu = fake("eu", brake=brake)
    consoles = World(tmp_path, eu)
    one, two = await refreshed(consoles, who=FIRST), await refreshed(consoles, who=SECOND)
    moment = asyncio.Event()
    at_event(eu, lead, lambda: moment.set() or brake.hold())
    first = asyncio.create_task(one.run(yes=True))
    await asyncio.wait_for(moment.wait(), 60)
    await two.driver("eu").take_over("web", SECOND)
    brake.release()
    outcomes = await first
    assert exit_code(outcomes) == 4
    assert "bob@tower on tower took web-2 over at 20" in str(outcomes[0].error)
    assert stored_events(eu, Promoted) == []
    assert len(stored_events(eu, TakenOver)) == 1
    with pytest.raises(Conflict, match="took it over"):
        await one.control("eu", "cancel")
    await until(lambda: eu.agent.disk.status.shown == "awaiting-confirmation")
    await two.refresh()
    assert (await two.promote("eu")).by == SECOND.name
    await one.close()
    await two.close()


def test_attach_follows_and_changes_nothing(deployed: CommandLine) -> None:
    assert deployed.call("apply", "--region", "us", "--quiet").exit_code == 3
    region = deployed.regions["us"]
    before = len(region.agent.disk.stored)
    done = deployed.call("attach", "--region", "us", "--readonly")
    assert done.exit_code == 3
    assert "awaiting-confirmation" in done.stdout
    assert stored_events(region, TakenOver) == []
    assert len(region.agent.disk.stored) == before
    assert deployed.call("attach", "--region", "us", "--take-over", "--readonly").exit_code == 64


def test_attach_with_take_over_says_whose_it_was_and_carries_it_through_the_gate(deployed: CommandLine) -> None:
    assert deployed.call("apply", "--region", "us", "--quiet").exit_code == 3
    region = deployed.regions["us"]
    done = deployed.call("attach", "--region", "us", "--take-over", "--yes", "--output", "json")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["type"] == "outcome"
    assert len(stored_events(region, TakenOver)) == 1
    assert len(stored_events(region, Promoted)) >= 1
    nothing: Any = deployed.call("attach", "--region", "us")
    assert (nothing.exit_code, "nothing is under way" in nothing.stderr) == (4, True)


def test_status_says_who_took_it_over(deployed: CommandLine) -> None:
    assert deployed.call("apply", "--region", "us", "--quiet").exit_code == 3
    assert deployed.call("attach", "--region", "us", "--take-over", "--quiet").exit_code == 3
    shown = deployed.call("status", "--region", "us").stdout
    assert "taken over by " in shown
