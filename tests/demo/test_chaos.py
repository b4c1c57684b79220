"""`console demo --chaos`: one agent is killed in the middle of a backfill, and the check reports the effect."""

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console.demo import chaos
from console.demo.chaos import Chaos
from console.demo.judging import Judgement
from console.demo.prepare import Demo, demo_home
from console.errors import UsageError
from console.model.status import Status
from console.model.step_status import StepStatus
from console.project import load
from console.runner.watch import RegionBoard

IDLE = "import time; time.sleep(600)"
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def running(done: int) -> Status:
    batch = StepStatus(
        id="backfill/requests/parse", state="running", batch="2026-11-17", rows_done=done, rows_total=9, slices=3
    )
    return Status(rollout="web-2", release="r2", was="r1", state="backfilling", steps=(batch,))


class Agents:
    """Processes that look like the agent of a warehouse."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self.every: list[subprocess.Popen[bytes]] = []
        (warehouse / "_console").mkdir(parents=True)

    def begin(self) -> subprocess.Popen[bytes]:
        agent = subprocess.Popen([sys.executable, "-c", IDLE, "console.agent", str(self._warehouse)])
        self.every.append(agent)
        (self._warehouse / "_console" / "agent.lock").write_text(json.dumps({"pid": agent.pid}))
        return agent

    def end(self) -> None:
        for agent in self.every:
            agent.kill()
            agent.wait()


async def test_the_agent_is_killed_between_two_batches_and_the_guide_says_who_goes_on(tmp_path: Path) -> None:
    project = load(ROOT)
    regions = tuple(replace(r, warehouse=str(demo_home(tmp_path) / r.name)) for r in project.regions)
    demo = Demo(tmp_path, replace(project, regions=regions))
    board, report = RegionBoard("web", demo.regions), list[tuple[str, ...]]()
    strike = Chaos(demo, board, None, lambda region, lines: report.append((region, *lines)))
    agents = Agents(demo_home(tmp_path) / "eu")
    try:
        first = agents.begin()
        task = asyncio.create_task(strike.strike())
        board.set("eu", status=running(0))
        await asyncio.sleep(0.1)
        assert first.poll() is None  # nothing is committed yet
        board.set("eu", status=running(4))
        assert await asyncio.to_thread(first.wait, 30) == -signal.SIGKILL
        await asyncio.sleep(0.1)
        second = agents.begin()
        await asyncio.wait_for(task, 30)
    finally:
        agents.end()
    assert report[0] == (
        "eu",
        f"chaos              agent of eu, process {first.pid}, killed in batch 2026-11-17 after 4 rows",
    )
    assert report[-1][2].strip().startswith(f"process {second.pid} took over ")
    assert report[-1][2].endswith("continues from the last commit: 4 rows")


def test_the_result_counts_gaps_over_all_regions_and_names_what_is_wrong() -> None:
    good = {"region": "eu", "gaps": 0, "duplicates": 0, "changed": 0, "compared": 1_500, "faults": []}
    bad = {"region": "us", "gaps": 2, "duplicates": 0, "changed": 1, "compared": 500, "faults": ["gaps 2", "changed 1"]}
    assert chaos.lines(Judgement(0, "", (good,)), 7) == (
        "gaps 0, duplicates 0, changed rows 0 in 1,500 rows of 1 region, although process 7 was killed",
    )
    assert chaos.lines(Judgement(1, "", (good, bad)), 7) == (
        "gaps 2, duplicates 0, changed rows 1 in 2,000 rows of 2 regions, although process 7 was killed",
        "WRONG in us: gaps 2, changed 1",
    )
    assert chaos.lines(Judgement(1, "", ()), 7)[0].startswith("the check did not run")


@pytest.mark.parametrize(("prepare", "stop"), [(True, False), (False, True)])
def test_chaos_needs_a_rollout(prepare: bool, stop: bool) -> None:
    from console.demo import command

    with pytest.raises(UsageError, match="only during a rollout"):
        command(ROOT, chaos=True, prepare=prepare, stop=stop)
