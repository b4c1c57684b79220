"""One command given until it succeeds, while processes die at the points that were armed."""

import os
from dataclasses import dataclass, field
from typing import Any

from tests.faults import outside
from tests.faults.world import PIPELINE, Operator, World


@dataclass
class Act:
    """One rollout under fire: which points were armed and never reached, who died at the others, how it ended."""

    armed: tuple[str, ...]
    left: set[str] = field(default_factory=set)
    died: dict[str, int] = field(default_factory=dict)  # point → the process that it ended
    consoles: dict[str, int] = field(default_factory=dict)  # state → the console that was killed in it
    live: str = ""
    judgement: dict[str, Any] = field(default_factory=dict)


def died_once(act: Act, point: str) -> bool:
    """A process that reached a point reached no other one after it."""
    return list(act.died.values()).count(act.died[point]) == 1


async def play(world: World, ada: Operator, armed: tuple[str, ...], *words: str) -> Act:
    """Give one command until it succeeds, while the agent dies at every armed point."""
    if only := os.environ.get("FAULTS_ONLY"):  # what a planted bug needs, and nothing else
        armed = tuple(point for point in armed if point in only.split(","))
    world.arm(armed)
    await ada.until_done(*words)
    if any("landing" in point for point in world.armed()):
        await outside.arrived(world)  # a command may be quicker than the producer's next batch
    act = Act(armed, world.armed(), world.died())
    world.hurt += sorted(set(armed) - act.left)
    act.live = (await world.until_answered(lambda: world.driver.state(PIPELINE))).live
    act.judgement = await world.judged()
    return act
