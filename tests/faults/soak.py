"""Random faults with seeds, for as long as asked: `make soak MINUTES=30`, or `python -m tests.faults.soak --minutes 30`.

`make soak STORE=s3`, or `--store s3`: of regions whose warehouse is a bucket. There the disk of the warehouse does not fill;
instead the bucket is away from agents and consoles, answers late, or carries commits out and never says so.

Each run is a region of its own: a change is rolled out and taken back while a nemesis kills, stops, fills disks and
maintains tables at random. The seed decides what happens, the machine when. A run ends in one line of
docs/reliability.jsonl; one that was broken off leaves none, and the next call begins with its seed again.
"""

import asyncio
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests import soak
from tests.faults import outside, points, report
from tests.faults.clock import DAY, Clock, read_from
from tests.faults.world import CASE, PIPELINE, Operator, World, before_long, full, mounted, summary
from tests.objects.proxy import Fate, Proxy, Rule, between
from tests.objects.server import BUCKET, options, running

TURNS, BUCKET_TURNS = 3, 2  # rollouts a run
PAUSE_SECONDS = (0.5, 6.0)  # between two faults
# of a region in a bucket: the lease of an agent that was killed runs for 30 s, what comes in that time hits nobody, and the next
# agent reads each log from its last checkpoint on
BUCKET_PAUSE_SECONDS = (10.0, 120.0)
STOPPED_SECONDS = (1.0, 40.0)  # a console waits 30 s for an answer to a question
LONG_SECONDS, LONG_SHARE = 130.0, 0.1  # and 120 s for one to a deed
FULL_SECONDS = (0.5, 4.0)
AWAY_SECONDS, LEASE_SECONDS = (0.5, 12.0), 40.0  # now and then for longer than a lease is held without its renewal
LATE_SECONDS = (0.05, 0.5)


class Nemesis:
    """Hurts one world at random until it is told to stop; `world.hurt` says what hit."""

    def __init__(self, world: World, chance: random.Random, clock: Clock, proxy: Proxy | None) -> None:
        """proxy: between agents and consoles and the bucket; None of a warehouse on a disk"""
        self.world, self.chance, self.clock = world, chance, clock
        self.proxy = proxy
        self.console = 0  # pid of the operator's running command
        self.over = asyncio.Event()

    async def run(self) -> None:
        disturbances: tuple[Callable[[], Awaitable[str]], ...] = (
            self.kill_agent, self.kill_jvm, self.kill_console, self.stop_agent, self.stop_console, self.fill, self.maintain,
            self.step_clock,
        )  # fmt: skip
        if self.proxy is not None:
            disturbances += (self.cut, self.delay, self.lose)
        while not self.over.is_set():
            await asyncio.sleep(self.chance.uniform(*(BUCKET_PAUSE_SECONDS if self.proxy else PAUSE_SECONDS)))
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
        disk = self.chance.choice(("disk", "scratch")) if self.proxy is None else "scratch"
        with full(self.world.base / disk):
            await asyncio.sleep(self.chance.uniform(*FULL_SECONDS))
        return f"{disk} full"

    async def maintain(self) -> str:
        with suppress(Exception):  # a foreign job may lose a race for a version, or find the disk full
            await asyncio.to_thread(partial(outside.maintain, f"{self.world.address}/landing", store=self.world.store))
            return "landing OPTIMIZEd"
        return ""

    async def step_clock(self) -> str:
        off = self.chance.choice((-DAY, 0, DAY))
        self.clock.step(off)
        return f"clock stepped to {off / DAY:+.0f} d"

    async def cut(self) -> str:
        return await self._answered("bucket away", lambda method, path: "drop", self._seconds())

    async def delay(self) -> str:
        late = self.chance.uniform(*LATE_SECONDS)

        def rule(method: str, path: str) -> Fate:
            time.sleep(late)
            return "pass"

        return await self._answered("bucket slow", rule, self._seconds())

    async def lose(self) -> str:
        """Each third put of a commit is carried out and never answered."""
        puts = itertools.count()

        def rule(method: str, path: str) -> Fate:
            commit = method == "PUT" and "/_delta_log/" in path
            return "lose answer" if commit and next(puts) % 3 == 0 else "pass"

        return await self._answered("answers lost", rule, self._seconds())

    def _seconds(self) -> float:
        long = self.chance.random() < LONG_SHARE
        return LEASE_SECONDS if long else self.chance.uniform(*AWAY_SECONDS)

    async def _answered(self, name: str, rule: Rule, seconds: float) -> str:
        """The bucket is under a rule for some seconds."""
        assert self.proxy is not None
        self.proxy.rule = rule
        try:
            await asyncio.sleep(seconds)
        finally:
            self.proxy.heal()
        return name

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
        if "nothing to go back to" in outcome or "is live already" in outcome:
            return
    raise AssertionError(f"{words}: {outcome[-1000:]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """address: of one warehouse in it;  server: what the judge reads through;  proxy: what agents and consoles do"""

    address: str
    server: str
    proxy: Proxy


@contextmanager
def bucket(seed: int) -> Iterator[Bucket]:
    """A bucket of one world. This process's environment, which agents and consoles inherit, leads to it through the proxy."""
    with running() as server, between(server) as proxy:
        os.environ |= {**options(proxy.address), "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
        yield Bucket(address=f"s3://{BUCKET}/world-{seed}", server=server, proxy=proxy)


async def one_run(seed: int, root: Path, where: Bucket | None = None) -> dict[str, object]:
    """One region's life under the faults of one seed."""
    clock = Clock(root / "clock")
    with read_from(clock):
        return await lived(seed, root, clock, where)


async def lived(seed: int, root: Path, clock: Clock, where: Bucket | None) -> dict[str, object]:
    chance = random.Random(seed)
    if where is None:
        world = World(root, seed=seed)
    else:
        world = World(root, seed=seed, address=where.address, store=options(where.server))
    world.install(PIPELINE, CASE / "before")
    operator = Operator(world, "ada")
    nemesis = Nemesis(world, chance, clock, where.proxy if where else None)
    hurting = None
    try:
        world.nurse()
        await rolled(world, operator, nemesis, "apply", "--regions", "eu", "--yes")
        world.read()
        world.write()
        world.install(PIPELINE, CASE / "after")
        hurting = asyncio.create_task(nemesis.run())
        for turn in range(BUCKET_TURNS if where else TURNS):
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
        store = {"store": "s3"} if where else {}
        return {"seed": seed, **store, "faults": world.hurt, "seconds": round(world.age()), **figures}
    finally:
        if hurting is not None:
            hurting.cancel()
            await asyncio.gather(hurting, return_exceptions=True)
        await world.ended()


def main() -> int:
    arguments = soak.arguments(__doc__)
    arguments.add_argument("--store", choices=("disk", "s3"), default="disk")
    asked = arguments.parse_args()
    run = soak.Soak(asked, report.RUNS, max((line["seed"] for line in soak.lines(report.RUNS)), default=0) + 1)
    for seed in run.seeds():
        with tempfile.TemporaryDirectory(prefix="console-soak-") as place:
            root = Path(place)
            os.environ["CONSOLE_CRASH_DIR"], os.environ["CONSOLE_HOME"] = str(root / "crashes"), str(root / "service")
            bucketed = bucket(seed) if asked.store == "s3" else nullcontext()
            with mounted(root / "disk", 300), mounted(root / "scratch", 150), bucketed as where:
                output = asyncio.run(one_run(seed, root, where))
        if output["result"] != "whole":
            run.differs(f"seed {seed}: {output['result']}")
        run.keep(output)
        if asked.seed is None:
            report.main()
    return run.code()


if __name__ == "__main__":
    sys.exit(main())
