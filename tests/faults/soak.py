"""Random faults with seeds, for as long as asked: `make soak MINUTES=30`, or `python -m tests.faults.soak --minutes 30`.

Each run is a region of its own: a change is rolled out and taken back while a nemesis kills, stops, fills disks and
maintains tables at random. The seed decides what happens, the machine when. A run ends in one line of
docs/reliability.jsonl; one that was broken off leaves none, and the next call begins with its seed again.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from tests import soak
from tests.faults import outside, points, report
from tests.faults.clock import DAY, Clock, read_from
from tests.faults.world import CASE, PIPELINE, Operator, World, before_long, full, mounted, summary

TURNS = 3  # rollouts a run
PAUSE_SECONDS = (0.5, 6.0)  # between two faults
STOPPED_SECONDS = (1.0, 40.0)  # a console waits 30 s for an answer to a question
LONG_SECONDS, LONG_SHARE = 130.0, 0.1  # and 120 s for one to a deed
FULL_SECONDS = (0.5, 4.0)


class Nemesis:
    """Hurts one world at random until it is told to stop; `world.hurt` says what hit."""

    def __init__(self, world: World, chance: random.Random, clock: Clock) -> None:
        self.world, self.chance, self.clock = world, chance, clock
        self.console = 0  # pid of the operator's running command
        self.over = asyncio.Event()

    async def run(self) -> None:
        disturbances: tuple[Callable[[], Awaitable[str]], ...] = (
            self.kill_agent, self.kill_jvm, self.kill_console, self.stop_agent, self.stop_console, self.fill, self.maintain,
            self.step_clock,
        )  # fmt: skip
        while not self.over.is_set():
            await asyncio.sleep(self.chance.uniform(*PAUSE_SECONDS))
            with suppress(ProcessLookupError):
                if done := await self.chance.choice(disturbances)():
                    self.world.hurt.append(done)

    async def kill_agent(self) -> str:
        return self._signalled("agent killed", self.world.agent(), signal.SIGKILL)

    async def kill_jvm(self) -> str:
        return self._signalled("jvm killed", self.world.jvm(), signal.SIGKILL)

    async def kill_console(self) -> str:
        return self._signalled("console killed", self.console, signal.SIGKILL)

    async def stop_agent(self) -> str:
        return await self._stopped("agent stopped", self.world.agent())

    async def stop_console(self) -> str:
        return await self._stopped("console stopped", self.console)

    async def fill(self) -> str:
        disk = self.chance.choice(("disk", "scratch"))
        with full(self.world.base / disk):
            await asyncio.sleep(self.chance.uniform(*FULL_SECONDS))
        return f"{disk} full"

    async def maintain(self) -> str:
        with suppress(Exception):  # a foreign job may lose a race for a version, or find the disk full
            await asyncio.to_thread(outside.maintain, self.world.warehouse / "landing")
            return "landing OPTIMIZEd"
        return ""

    async def step_clock(self) -> str:
        off = self.chance.choice((-DAY, 0, DAY))
        self.clock.step(off)
        return f"clock stepped to {off / DAY:+.0f} d"

    async def _stopped(self, name: str, pid: int) -> str:
        if done := self._signalled(name, pid, signal.SIGSTOP):
            try:
                long = self.chance.random() < LONG_SHARE
                await asyncio.sleep(LONG_SECONDS if long else self.chance.uniform(*STOPPED_SECONDS))
            finally:
                os.kill(pid, signal.SIGCONT)
        return done

    def _signalled(self, name: str, pid: int, number: int) -> str:
        if pid:
            os.kill(pid, number)
        return name if pid else ""


async def rolled(world: World, operator: Operator, nemesis: Nemesis, *words: str) -> None:
    """The same command until it is done; what failed meanwhile is retried."""
    for _ in range(200):
        process = operator.start(*words)
        nemesis.console = process.pid
        outcome, _ = await before_long(process, process.communicate)
        nemesis.console = 0
        if process.returncode == 0:
            return
        await operator.run("retry", "--regions", "eu")
        await operator.run("resume", "--regions", "eu")
        if "nothing to go back to" in outcome:
            return
    raise AssertionError(f"{words}: {outcome[-1000:]}")


async def one_run(seed: int, root: Path) -> dict[str, object]:
    """One region's life under the faults of one seed."""
    clock = Clock(root / "clock")
    with read_from(clock):
        return await lived(seed, root, clock)


async def lived(seed: int, root: Path, clock: Clock) -> dict[str, object]:
    chance = random.Random(seed)
    world = World(root, seed=seed)
    world.install(PIPELINE, CASE / "before")
    operator = Operator(world, "ada")
    nemesis = Nemesis(world, chance, clock)
    hurting = None
    try:
        world.nurse()
        await rolled(world, operator, nemesis, "apply", "--regions", "eu", "--yes")
        world.read()
        world.write()
        world.install(PIPELINE, CASE / "after")
        hurting = asyncio.create_task(nemesis.run())
        for turn in range(TURNS):
            words = ("rollback",) if turn % 2 else ("apply",)
            armed = chance.sample(points.AGENT, 4) + chance.sample(points.CONSOLE, 2)
            world.arm(armed)
            await rolled(world, operator, nemesis, *words, "--regions", "eu", "--yes")
            world.hurt += sorted(set(armed) - world.armed())
        armed = chance.sample((*points.TIDYING, *points.REST_TIDYING), 2)
        world.arm(armed)
        await rolled(world, operator, nemesis, "cleanup", "--previous", "--regions", "eu", "--yes")
        world.hurt += sorted(set(armed) - world.armed())
        nemesis.over.set()
        await hurting
        for point in world.armed():
            (world.crashes / point).unlink()
        figures = summary(await world.judged(whole=True), world.seen())
        return {"seed": seed, "faults": world.hurt, "seconds": round(world.age()), **figures}
    finally:
        if hurting is not None:
            hurting.cancel()
            await asyncio.gather(hurting, return_exceptions=True)
        await world.ended()


def main() -> int:
    asked = soak.arguments(__doc__).parse_args()
    run = soak.Soak(asked, report.RUNS, max((line["seed"] for line in soak.lines(report.RUNS)), default=0) + 1)
    for seed in run.seeds():
        with tempfile.TemporaryDirectory(prefix="console-soak-") as place:
            root = Path(place)
            os.environ["CONSOLE_CRASH_DIR"], os.environ["CONSOLE_HOME"] = str(root / "crashes"), str(root / "service")
            with mounted(root / "disk", 300), mounted(root / "scratch", 150):
                output = asyncio.run(one_run(seed, root))
        if output["result"] != "whole":
            run.differs(f"seed {seed}: {output['result']}")
        run.keep(output)
        if asked.seed is None:
            report.main()
    return run.code()


if __name__ == "__main__":
    sys.exit(main())
