"""Signals, full disks, a stopped agent and foreign maintenance in the middle of a rollout, beside a writer and a reader.

`stories` does it; the fixtures are in conftest.
"""

import os
from functools import partial
from pathlib import Path

import pytest

from tests.faults.acts import Act
from tests.faults.clock import DAY
from tests.faults.stories import IN_A_BATCH, LETS_GO, NOW, Story
from tests.faults.world import PIPELINE, World, verdict

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="session")]
MIDWAY = (
    *LETS_GO,
    *IN_A_BATCH,
    "delete and OPTIMIZE",
    "warehouse full",
    "agent stopped",
    "console stopped",
)
AFTER = ("targets OPTIMIZEd", "a day ahead", "a day behind", "journal's disk full", "log folder read-only")


@pytest.mark.parametrize("fault", MIDWAY)
async def test_a_rollout_under_this_ends_whole(midway: Story, back: Act, world: World, fault: str) -> None:
    assert fault in midway.done
    assert midway.live != back.live
    assert verdict(midway.judgement, world.bad_reads()) == {}
    assert midway.reads > 0
    match fault, midway.done[fault]:
        case ("SIGINT" | "SIGTERM" | "SIGHUP", code):
            assert code == LETS_GO[fault]
        case ("jvm killed" | "agent killed" | "agent killed again", batch):
            assert batch, "no batch was under way any more"
        case ("warehouse full", why):
            assert "space" in why
        case ("agent stopped", (code, output)):
            assert (code, "no answer" in output) == (5, True), output
        case ("console stopped", code):
            assert code == 0


async def test_the_jvm_holds_the_region_as_its_agent_does(midway: Story, after: Story, world: World) -> None:
    """So that no other agent begins while the JVM of one that died still commits."""
    assert midway.live
    assert after.live
    stored = os.stat(world.warehouse / "_console" / "agent.lock")
    # an agent that began in a region at rest has no JVM yet
    await world.until_answered(partial(world.driver.query, PIPELINE, NOW, ["requests"], {}, 1))
    assert world.jvm()
    for pid in (world.agent(), world.jvm()):
        files = [os.stat(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.exists()]
        assert (stored.st_dev, stored.st_ino) in {(file.st_dev, file.st_ino) for file in files}


@pytest.mark.parametrize("fault", AFTER)
async def test_a_region_that_follows_stays_whole_under_this(
    midway: Story, after: Story, world: World, fault: str
) -> None:
    assert fault in after.done
    assert after.live == midway.live  # there and back again; what was refused moved nothing
    assert verdict(after.judgement, world.bad_reads()) == {}
    match fault, after.done[fault]:
        case ("a day ahead", (promoted, jvm)):
            assert promoted > DAY / 2
            assert jvm > DAY / 2
        case ("a day behind", (promoted, jvm)):
            assert promoted < -DAY / 2
            assert jvm < -DAY / 2
        case ("journal's disk full", (code, output, before)):
            assert (code, "nothing was done" in output) == (1, True), output
            assert before == world.promoted_at()
        case ("log folder read-only", (code, output)):
            assert code == 0, output
