"""Twenty regions of one host in which nothing happens: the memory and the processor time of their agents."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from console import paths
from console.agent.settings import Settings
from tests.agent.asleep import until
from tests.agent.test_asleep import MIB, Agent, serving
from tests.agent.test_status_without_agent import UnattendedSetup
from tests.bench.report import Measurement, check
from tests.bench.size import sized

pytestmark = pytest.mark.bench
REGIONS = 20
MOST_BYTES = 3 << 30  # of all
MOST_MIB = 150  # of each
SHARE = 0.01  # of a core, of all together
PROCESS_CLOCK = 2  # CPUCLOCK_SCHED: precise, of all threads (clock_getcpuclockid(3))
SETTLED_SECONDS, SECONDS = sized(30, 60), sized(60, 120)


def processor_seconds(agents: list[Agent]) -> float:
    """Of these agents, by the clock of each process: its ticks are hundredths of a second, of which an agent at rest takes three a minute."""
    return sum(time.clock_gettime(~agent.process.pid << 3 | PROCESS_CLOCK) for agent in agents)


def below(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def test_twenty_idle_regions_take_little_memory_and_next_to_no_processor_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        agents = []
        for place in range(REGIONS):
            (tmp_path / str(place)).mkdir()
            setup = UnattendedSetup(tmp_path / str(place))
            rollouts = setup.warehouse / "_console" / "web" / "rollouts"  # by which its pipeline is found
            rollouts.mkdir(parents=True, exist_ok=True)
            agents.append(stack.enter_context(serving(setup.warehouse, Settings(region="eu").tick_seconds)))
            until(lambda at=str(setup.warehouse): paths.socket_path(at).exists())
        time.sleep(SETTLED_SECONDS)
        began, started = processor_seconds(agents), time.monotonic()
        time.sleep(SECONDS)
        share = (processor_seconds(agents) - began) / (time.monotonic() - started)
        assert not [child for agent in agents for child in below(agent.process.pid)], "an agent at rest has a JVM"
        held = [agent.pss for agent in agents]
    of = f"{REGIONS} idle regions"
    with capsys.disabled():
        check(
            Measurement(
                what=f"memory of {of}, after {SETTLED_SECONDS + SECONDS} s", figure=sum(held), limit=MOST_BYTES,
                text=f"{sum(held) / MIB:,.0f} MiB (proportional set size)",
            ),
            Measurement(
                what=f"memory of the largest of {of}, MiB", figure=max(held) / MIB, limit=MOST_MIB,
                text=f"{max(held) / MIB:.0f} MiB, the smallest {min(held) / MIB:.0f}",
            ),
            Measurement(
                what=f"processor time of {of}, over {SECONDS} s", figure=share, limit=SHARE, text=f"{share:.1%} of a core"
            ),
        )  # fmt: skip
