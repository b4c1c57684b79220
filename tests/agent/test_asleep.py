"""A region's Spark sleeps and wakes, for real: a landing commit, a query and a rollout start the next JVM."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from console import paths
from console.agent.settings import Settings
from console.model import codec
from tests.agent.asleep import IDLE_SECONDS, pss, until
from tests.agent.test_status_without_agent import UnattendedSetup
from tests.faults.rules.tables import column_values
from tests.life.region import SHORT_LIVED

pytestmark = pytest.mark.spark
MIB = 1 << 20


def cycles(place: Path, number: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.agent.asleep", str(place), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900 + 60 * number)
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(report))
    return report


def well(report: dict[str, Any]) -> None:
    assert (report["spark_at_start"], report["lost"]) == (False, False)
    each = report["cycles"]
    assert all(cycle["gone"] and cycle["late"] for cycle in each), each
    # numbers of processes come round again after some two hundred JVMs
    assert all(one["jvm"] != following["jvm"] for one, following in pairwise(each))
    landed = len(each) + 2
    assert report["rows"] == [100 + n for n in range(landed)], "every row once"
    told = report["while_ending"]
    assert (told["answered_early"], told["query"], told["kept_at_gate"]) == (False, told["query"], True)
    assert told["apply"].startswith("web-")


def test_spark_is_ended_at_rest_and_woken_by_a_row_a_query_and_a_rollout(tmp_path: Path) -> None:
    report = cycles(tmp_path, 1)  # and once more while it is ended
    well(report)
    (first,) = report["cycles"]
    assert report["descriptors"] <= first["descriptors"] + 2
    assert report["threads"] <= first["threads"] + 1


@dataclass(kw_only=True)
class Agent:
    """A process of its own that serves a region.

    log  its file;  starts: how often it began to serve, with another process image each time
    """

    process: "subprocess.Popen[str]"
    log: Path

    @property
    def starts(self) -> int:
        return self.log.read_text().count(" serves ")

    @property
    def pss(self) -> int:
        return pss(self.process.pid)

    @property
    def has_arrow(self) -> bool:
        return "pyarrow" in Path(f"/proc/{self.process.pid}/maps").read_text()


@contextmanager
def serving(warehouse: Path, tick_seconds: float = 0.2) -> Iterator[Agent]:
    settings = Settings(
        region="eu", master="local[2]", conf=SHORT_LIVED, tick_seconds=tick_seconds, follow_idle_seconds=IDLE_SECONDS
    )
    text = json.dumps({name: value for name, value in codec.encode(settings).items() if name != codec.TAG})
    command = [sys.executable, "-m", "console.agent", "serve", "--warehouse", str(warehouse), "--config", "-"]
    log = warehouse.parent / "agent.log"
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        agent = Agent(process=process, log=log)
        try:
            until(lambda: agent.starts == 1)
            yield agent
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()


def test_an_agent_whose_spark_was_ended_is_as_small_as_before_once_no_console_is_connected(tmp_path: Path) -> None:
    """pyspark cannot be unloaded, so the process replaces itself: the same process id, and every row once."""
    setup = UnattendedSetup(tmp_path)
    (setup.warehouse / "_console" / "web" / "rollouts").mkdir(
        parents=True, exist_ok=True
    )  # by which its pipeline is found
    with serving(setup.warehouse) as agent:
        until(lambda: paths.socket_path(str(setup.warehouse)).exists())
        with socket.socket(socket.AF_UNIX) as console:
            console.connect(str(paths.socket_path(str(setup.warehouse))))
            setup.lands(100)
            until(lambda: 100 in column_values(str(setup.warehouse / "below")))
            until(lambda: "Spark sleeps" in agent.log.read_text())
            assert agent.starts == 1, "a console is connected"
            awake = agent.pss
            assert agent.has_arrow
        until(lambda: agent.starts == 2)
        until(lambda: agent.pss < 0.8 * awake)
        assert not agent.has_arrow, "at rest it reads logs and nothing else"
        print(json.dumps({"after_spark": awake, "at_rest": agent.pss}))
        setup.lands(101)
        until(lambda: 101 in column_values(str(setup.warehouse / "below")))
    assert column_values(str(setup.warehouse / "below")) == [100, 101]


@pytest.mark.soak
def test_a_spark_that_was_ended_and_woken_two_hundred_times_leaves_nothing_behind(tmp_path: Path) -> None:
    report = cycles(tmp_path, 200)
    well(report)
    early, last = report["cycles"][9], report["cycles"][-1]
    assert last["descriptors"] <= early["descriptors"] + 2
    assert last["threads"] <= early["threads"] + 1
    assert last["pss"] < early["pss"] + 32 * MIB
