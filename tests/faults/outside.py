"""Faults injected into a region from outside: signals at chosen moments, disks that fill, a log that others maintain."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from console.errors import ConsoleError, Unreachable
from tests.faults.points import STATES
from tests.faults.world import PIPELINE, EndedEarly, Operator, World, before_long
from tests.life.region import ME

LOOK_SECONDS = 0.2  # an answer holds plan and releases, and a JVM is looked for among all processes


async def when(world: World, true: Callable[[Any], bool], seconds: float = 600) -> Any:
    """The rollout's status as soon as it is so; a region that is away just now is asked again."""
    loop = asyncio.get_running_loop()
    until, last = loop.time() + seconds, "nothing yet"
    while loop.time() < until:
        try:
            status = (await world.driver.state(PIPELINE)).status
        except ConsoleError as error:
            last = str(error)
        else:
            if true(status):
                return status
            last = f"{status.shown}: {status.why}"
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError(f"not so after {seconds:g} s: {last}")


def past(state: str) -> Callable[[Any], bool]:
    """The rollout has come as far as this state, or further."""
    order = ("preparing", "backfilling", "catching-up", "validating", "awaiting-confirmation", "promoting", "live")
    return lambda status: status.state in order[order.index(state) :]


async def kill_in_a_batch(world: World, pid: Callable[[], int]) -> str:
    """SIGKILL whoever this names in the middle of a batch; returns which, "" where all had been carried already."""

    def in_one_or_past(status: Any) -> bool:
        return (status.state == "backfilling" and _batch(status) != "") or past("catching-up")(status)

    status = await when(world, in_one_or_past)
    batch = _batch(status) if status.state == "backfilling" else ""
    await kill(world, pid)
    return batch


def _batch(status: Any) -> str:
    return next((str(step.batch) for step in status.steps if step.batch), "")


async def kill(world: World, pid: Callable[[], int]) -> int:
    """SIGKILL whoever this names, as soon as it is there; returns once another stands in its place."""
    while not (victim := pid()):
        await asyncio.sleep(0.05)
    os.kill(victim, signal.SIGKILL)
    while pid() in (victim, 0):
        await asyncio.sleep(LOOK_SECONDS)
    return victim


async def kill_in_each_state(world: World, operator: Operator, killed: dict[str, int]) -> None:
    """SIGKILL the operator's console whenever the agent has died of entering a state: the region stands in it until
    another agent has started. `killed` gets state → the console's pid.
    """
    while True:
        entered = {point.removeprefix("after-entered-") for point in world.died()}
        for state in set(STATES) & entered - killed.keys():
            console = operator.console
            if console is not None and console.poll() is None:
                console.kill()
                killed[state] = console.pid
        await asyncio.sleep(0.02)


async def going_on(world: World) -> str:
    """Wait until the rollout stands at its gate, retrying what failed meanwhile; returns why it failed last."""
    why = ""
    while True:
        status = await when(world, lambda s: s.held or past("awaiting-confirmation")(s))
        if not status.held:
            return why
        why = status.why
        with suppress(ConsoleError):
            await world.driver.control(PIPELINE, "retry" if status.held == "failed" else "resume", ME)


async def running_again(world: World) -> None:
    """Let a rollout go on that was paused, or that failed."""
    while (status := await when(world, lambda s: True)).held:
        with suppress(ConsoleError):
            await world.driver.control(PIPELINE, "retry" if status.held == "failed" else "resume", ME)


async def carried_on(world: World, operator: Operator) -> subprocess.Popen[str]:
    """A console that carries the rollout on; a failure that could be stored only now is retried first."""
    while True:
        await running_again(world)
        with suppress(EndedEarly):
            return await operator.carrying("apply", "--regions", "eu", "--yes")


async def let_go(console: subprocess.Popen[str], number: int) -> int:
    """Send a console a signal; returns its exit code."""
    console.send_signal(number)
    await before_long(console, console.communicate)
    return console.returncode


async def refused(world: World) -> str:
    """Pause and resume the rollout until the region cannot store it; returns with what words it says so."""
    while True:
        try:
            await world.driver.control(PIPELINE, "pause", ME)
            await world.driver.control(PIPELINE, "resume", ME)
        except Unreachable:
            await asyncio.sleep(0.2)
        except ConsoleError as error:
            return str(error)


async def arrived(world: World) -> None:
    """Wait until the reader sees rows that landed after this call: the region lives, from intake to release."""
    landing = DeltaTable(str(world.warehouse / "landing")).version() + 1
    for _ in range(6000):
        if any(read.get("position", -1) >= landing for read in world.seen()[-3:]):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"no read has reached landing version {landing}: {world.seen()[-1:]}")


def maintain(path: Path | str, *, delete: str = "", store: dict[str, str] | None = None) -> None:
    """What a foreign job does to a table: a retention delete, OPTIMIZE, and VACUUM within the table's retention.

    path, store  a folder, or a URI with deltalake's storage options
    """
    while delete:
        try:
            DeltaTable(str(path), storage_options=store).delete(delete)
            break
        except CommitFailedError:  # rows arrived meanwhile
            continue
    table = DeltaTable(str(path), storage_options=store)
    table.optimize.compact()
    table.vacuum(dry_run=False)
