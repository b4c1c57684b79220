"""`console lock`: a live holder is named and ended with its JVM, a dead one needs no force, nobody else is touched."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console.agent.lock import RegionLock
from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring

pytestmark = pytest.mark.faults
# An agent as far as its lock is concerned: the descriptor is inherited by a child, as the JVM does, that outlives it.
HOLD = """
import os, signal, subprocess, sys
from pathlib import Path
from console.agent.lock import RegionLock
lock = RegionLock(Path(sys.argv[1])); lock.take({"tool": "1.2.3"})
os.set_inheritable(lock.fd, True)
heir = subprocess.Popen(["sleep", "600"], pass_fds=(lock.fd,))
signal.signal(signal.SIGTERM, lambda *_: heir.kill())
print(heir.pid, flush=True); heir.wait()
"""


class Agent:
    def __init__(self, warehouse: Path) -> None:
        command = [sys.executable, "-c", HOLD, str(warehouse)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self.jvm = int(output.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        with suppress(ProcessLookupError):
            os.kill(self.jvm, signal.SIGKILL)
        until(lambda: not alive(self.jvm))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    started = Agent(tmp_path)
    yield started
    started.close()


def console(*words: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(words), obj=CliContext(Wiring(lambda _: {})), input=input)


def until(test: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not test() and time.monotonic() < end:
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def shown(warehouse: Path) -> dict[str, Any]:
    done = console("lock", "show", "--warehouse", str(warehouse), "--output", "json")
    assert done.exit_code == 0, done.output
    output: dict[str, Any] = json.loads(done.stdout)["regions"][0]
    return output


def test_show_names_pid_host_and_since_when_and_both_who_keep_it(tmp_path: Path, agent: Agent) -> None:
    now = shown(tmp_path)
    assert (now["held"], now["pid"], now["host"], now["tool"]) == (
        True,
        agent.process.pid,
        os.uname().nodename,
        "1.2.3",
    )
    assert {each["pid"] for each in now["processes"]} == {agent.process.pid, agent.jvm}
    output = console("lock", "show", "--warehouse", str(tmp_path)).stdout
    assert f"held by pid {agent.process.pid} on {os.uname().nodename} since 20" in output


def test_a_region_that_nobody_holds_is_free_and_force_ends_nobody(tmp_path: Path) -> None:
    assert shown(tmp_path)["held"] is False
    agent = Agent(tmp_path)
    agent.close()
    assert (shown(tmp_path)["held"], shown(tmp_path)["pid"]) == (False, agent.process.pid)
    done = console("lock", "force", "--warehouse", str(tmp_path))
    assert (done.exit_code, "free already" in done.stdout) == (0, True)


@pytest.mark.parametrize("stopped", [False, True])
def test_force_ends_the_holder_and_its_jvm_before_anybody_can_take_the_lock(
    tmp_path: Path, agent: Agent, stopped: bool
) -> None:
    """A stopped agent keeps its lock for as long as it is stopped, and hears no request to end."""
    if stopped:
        os.kill(agent.process.pid, signal.SIGSTOP)
        os.waitpid(agent.process.pid, os.WUNTRACED)
        assert shown(tmp_path)["stopped"] is True
    done = console("lock", "force", "--warehouse", str(tmp_path), "--yes")
    assert done.exit_code == 0, done.output
    agent.process.wait(60)
    assert not alive(agent.jvm)
    RegionLock(tmp_path).take({"tool": "2"})
    assert f"ended pid {agent.process.pid} on" in done.stderr


def test_force_waits_for_a_person_and_nothing_is_ended_without_one(tmp_path: Path, agent: Agent) -> None:
    done = console("lock", "force", "--warehouse", str(tmp_path))
    assert done.exit_code == 3
    assert f"ending pid {agent.process.pid} on" in done.stderr
    assert console("lock", "force", "--warehouse", str(tmp_path), "--readonly").exit_code == 64
    assert agent.process.poll() is None
    assert alive(agent.jvm)


def test_a_pid_that_was_written_down_and_is_another_process_by_now_is_left_alone(tmp_path: Path, agent: Agent) -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        path = tmp_path / "_console" / "agent.lock"
        path.write_text(json.dumps({**json.loads(path.read_text()), "pid": bystander.pid}))
        assert console("lock", "force", "--warehouse", str(tmp_path), "--yes").exit_code == 0
        agent.process.wait(60)
        assert not alive(agent.jvm)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_holder_on_another_host_is_not_ended_from_here(
    tmp_path: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warehouse on a shared disk: the lock is seen, the process is not."""
    monkeypatch.setattr("console.drivers.lock_holder._processes_with", lambda _: [])
    done = console("lock", "force", "--warehouse", str(tmp_path), "--yes")
    assert (done.exit_code, "no process of this host" in done.stderr) == (4, True)
    assert agent.process.poll() is None
