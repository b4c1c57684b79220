"""SIGKILL of the agent, its JVM and the console at every state: the same command again, the same end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
import pytest_asyncio

from console.errors import ConsoleError
from tests.life.region import LiveRegion
from tests.life.test_life import CASES, compare

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="module")]
CASE = next(case for case in CASES if case.name == "column")
STATES = ("preparing", "backfilling", "catching-up", "validating", "awaiting-confirmation", "promoting")
AGENT_POINTS = (
    *(f"after-entered-{state}" for state in STATES),
    "after-commit-history",  # committed, its receipt not yet stored
    "after-swap",  # promoted, not yet recorded
)
CONSOLE_POINTS = (
    "console-intent-accept",
    *(f"console-saw-entered-{state}" for state in STATES[:-1]),
    "console-intent-promote",
)


class Operator:
    """One person's console: commands of the real command line, with a journal of its own."""

    def __init__(self, region: LiveRegion, name: str, crashes: Path) -> None:
        self._region = region
        self._env = {**os.environ, "CONSOLE_HOME": str(region.root / name), "CONSOLE_CRASH_DIR": str(crashes)}

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "console.main",
            *words,
            "--project",
            str(self._region.root),
            "--pipeline",
            CASE.name,
        ]
        return subprocess.Popen(command, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    async def run(self, *words: str) -> tuple[int, str]:
        """Exit code and what was said on stderr; -9 for a console that was killed."""
        process = self.start(*words)
        _, said = await asyncio.to_thread(process.communicate)
        return process.returncode, said.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    """A region whose agent and consoles can be armed to die: live is the case as before, rows keep arriving."""
    root = tmp_path_factory.mktemp("kills")
    (root / "crashes").mkdir()
    os.environ["CONSOLE_CRASH_DIR"] = str(root / "crashes")  # inherited by every agent that is started from here
    live = LiveRegion(root / "region", rows=2400)
    live.install(CASE.name, CASE / "before")
    try:
        await live.roll_out(CASE.name)
        live.write(CASE.name)
        live.install(CASE.name, CASE / "after")
        yield live
    finally:
        del os.environ["CONSOLE_CRASH_DIR"]
        await live.close()


def arm(region: LiveRegion, points: Iterable[str]) -> Path:
    crashes = region.root.parent / "crashes"
    for point in points:
        (crashes / point).touch()
    return crashes


async def again_until_done(operator: Operator, *words: str, tries: int = 20) -> int:
    """The same command again and again until it succeeds; returns how often it was run."""
    for attempt in range(1, tries + 1):
        code, said = await operator.run(*words)
        if code == 0:
            return attempt
        assert code in (-signal.SIGKILL, 1, 5), f"exit {code}: {said[-2000:]}"
    raise AssertionError(f"not done after {tries} tries: {said[-2000:]}")


async def whole(region: LiveRegion) -> None:
    """Nothing missing, nothing twice, against a computation that knows nothing of rollouts."""
    await region.quiet([CASE.name])
    await compare(region, CASE)
    region.write(CASE.name)


async def test_an_agent_killed_in_every_state_is_resumed_to_the_same_end(region: LiveRegion) -> None:
    crashes = arm(region, AGENT_POINTS)
    ada = Operator(region, "ada", crashes)
    await again_until_done(ada, "apply", "--regions", "eu", "--yes")
    assert list(crashes.iterdir()) == [], "some points were never reached"
    assert (await region.driver.state(CASE.name)).live == "r2"
    await whole(region)


@pytest.mark.soak
async def test_a_console_killed_in_every_state_and_batches_killed_midway_end_the_same(region: LiveRegion) -> None:
    await region.roll_back(CASE.name)
    crashes = arm(region, CONSOLE_POINTS)
    ada = Operator(region, "ada", crashes)
    batches = asyncio.create_task(kill_in_batches(region, 3))
    runs = await again_until_done(ada, "apply", "--regions", "eu", "--yes")
    assert await batches == 3
    assert list(crashes.iterdir()) == [], "some points were never reached"
    assert runs > len(CONSOLE_POINTS)
    assert (await region.driver.state(CASE.name)).live == "r3"
    await whole(region)


async def kill_in_batches(region: LiveRegion, times: int) -> int:
    """SIGKILL the agent, then its JVM, then the agent again, each in the middle of a batch of its own."""
    killed = 0
    seen: set[str] = set()
    while killed < times:
        try:
            state = await region.driver.state(CASE.name)
        except ConsoleError:  # just killed: it is being started again
            await asyncio.sleep(0.1)
            continue
        running = [step.batch for step in state.status.steps if step.batch]
        holder = json.loads((region.warehouse / "_console" / "agent.lock").read_text())
        if state.status.state == "backfilling" and running and running[0] not in seen:
            seen.add(running[0])
            await asyncio.sleep(0.15 * killed)
            victim = jvm_of(holder["pid"]) if killed == 1 else holder["pid"]
            if victim:
                os.kill(victim, signal.SIGKILL)
                killed += 1
        if state.status.state in ("awaiting-confirmation", "live") and killed:
            break
        await asyncio.sleep(0.02)
    return killed


def jvm_of(agent: int) -> int:
    """The pid of the JVM that an agent started, 0 where there is none."""
    found = subprocess.run(["pgrep", "-P", str(agent), "java"], capture_output=True, text=True, check=False).stdout
    return int(found.split()[0]) if found.split() else 0


@pytest.mark.soak
async def test_of_two_consoles_that_promote_at_once_one_wins_and_the_other_learns_who(region: LiveRegion) -> None:
    await region.roll_back(CASE.name)
    crashes = arm(region, ())
    ada, eve = Operator(region, "ada", crashes), Operator(region, "eve", crashes)
    assert (await ada.run("apply", "--regions", "eu"))[0] == 3
    ends = await asyncio.gather(*(each.run("promote", "--regions", "eu", "--yes") for each in (ada, eve)))
    codes = sorted(code for code, _ in ends)
    assert codes == [0, 4], ends
    loser = next(said for code, said in ends if code == 4)
    assert "promoted by" in loser
    await whole(region)
