"""Faults injected into a region from outside, act by act, with the observations."""

import asyncio
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.faults import outside
from tests.faults.acts import Act
from tests.faults.clock import DAY, NOTICED, Clock, read_from
from tests.faults.world import CASE, PIPELINE, Operator, World, before_long, full, mounted

LETS_GO = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
IN_A_BATCH = {"jvm killed": "jvm", "agent killed": "agent", "agent killed again": "agent"}
NOW = "SELECT unix_timestamp() AS now FROM requests LIMIT 1"
OLDEST_DAY = "ts < arrow_cast('2026-11-02T00:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"


@dataclass
class Story:
    """What was done to the region, in order, with what was seen of it; how it ended."""

    done: dict[str, Any] = field(default_factory=dict)
    live: str = ""
    judgement: dict[str, Any] = field(default_factory=dict)
    reads: int = 0

    async def ends(self, world: World, *, whole: bool = False) -> "Story":
        self.live = (await world.until_answered(lambda: world.driver.state(PIPELINE))).live
        await outside.arrived(world)
        world.hurt += self.done
        self.judgement, self.reads = await world.judged(whole=whole), len(world.seen())
        return self


async def midway(world: World, back: Act) -> Story:
    """The column once more, with everything from outside that can hit a rollout on its way."""
    assert back.live, back.left
    story, eve = Story(), Operator(world, "eve")
    world.install(PIPELINE, CASE / "after")
    world.at_most(150)  # rows a batch: enough batches that three can be killed in the middle of one
    consoles = await asyncio.gather(*(eve.carrying("apply", "--regions", "eu") for _ in LETS_GO))
    for name, console in zip(LETS_GO, consoles, strict=True):
        story.done[name] = await outside.let_go(console, getattr(signal, name))
    for fault, victim in IN_A_BATCH.items():
        story.done[fault] = await outside.kill_in_a_batch(world, getattr(world, victim))
    with full(world.base / "disk"):
        story.done["warehouse full"] = await outside.refused(world)
    await outside.running_again(world)
    story.done["agent stopped"] = await stopped_agent(world, eve)
    console = await outside.carried_on(world, eve)
    console.send_signal(signal.SIGSTOP)
    await asyncio.to_thread(outside.maintain, world.warehouse / "landing", delete=OLDEST_DAY)
    story.done["delete and OPTIMIZE"] = True
    await outside.going_on(world)
    console.send_signal(signal.SIGCONT)
    await before_long(console, console.communicate)
    story.done["console stopped"] = console.returncode
    return await story.ends(world)


async def stopped_agent(world: World, eve: Operator) -> tuple[int, str]:
    """The agent is stopped for longer than a console waits for an answer; what a console says of it meanwhile."""
    agent = world.agent()
    os.kill(agent, signal.SIGSTOP)
    try:
        return await eve.run("pause", "--regions", "eu")
    finally:
        os.kill(agent, signal.SIGCONT)


async def after(world: World, midway: Story) -> Story:
    """A region that only follows, until nothing is on its way any more: its tables maintained, its clock that is stepped by days,
    its operators without a disk."""
    story, bob = Story(), Operator(world, "bob")
    for path in world.paths(midway.live):
        await asyncio.to_thread(outside.maintain, world.warehouse / path)
    story.done["targets OPTIMIZEd"] = True
    clock = Clock(world.base / "clock")
    with read_from(clock):
        await outside.kill(world, world.agent)
    for fault, seconds in (("a day ahead", DAY), ("a day behind", -DAY)):  # under one agent and one JVM
        clock.step(seconds)
        await asyncio.sleep(3 * NOTICED)
        to = (await world.until_answered(partial(world.driver.state, PIPELINE))).previous
        await bob.until_done("rollback", "--regions", "eu", "--to", to, "--yes")
        report = await world.until_answered(partial(world.driver.query, PIPELINE, NOW, ["requests"], {}, 1))
        story.done[fault] = [at - time.time() for at in (world.promoted_at(), report.rows[0][0])]
    with mounted(world.base / "tiny", 2) as home:
        eve = Operator(world, "eve", home)
        assert (await eve.run("status"))[0] == 0
        before, to = world.promoted_at(), (await world.until_answered(partial(world.driver.state, PIPELINE))).previous
        with full(home):
            story.done["journal's disk full"] = (
                *await eve.run("rollback", "--regions", "eu", "--to", to, "--yes"),
                before,
            )
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True, capture_output=True)
        story.done["log folder read-only"] = await eve.run("status")
    return await story.ends(world, whole=True)
