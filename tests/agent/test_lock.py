"""One agent a region: the lock, held by whoever inherited its descriptor. No Java."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.agent.lock import RegionLock, holder
from console.errors import Conflict

pytestmark = pytest.mark.slow

HOLD = """
import subprocess, sys, time
from pathlib import Path
from console.agent.lock import RegionLock
import os
lock = RegionLock(Path(sys.argv[1])); lock.take({"tool": "test"})
os.set_inheritable(lock.fd, True)
heir = subprocess.Popen(["sleep", "60"], pass_fds=(lock.fd,))
print(heir.pid, flush=True); time.sleep(60)
"""


def test_a_second_agent_is_refused_and_told_who_holds_the_region(tmp_path: Path) -> None:
    RegionLock(tmp_path).take({"tool": "1"})
    with pytest.raises(Conflict, match=f"held by another agent: pid {os.getpid()} on "):
        RegionLock(tmp_path).take({"tool": "2"})
    assert (holder(tmp_path / "_console" / "agent.lock") or {})["tool"] == "1"


def test_the_lock_outlives_a_killed_agent_until_the_heir_of_its_descriptor_is_gone(tmp_path: Path) -> None:
    agent = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    heir = int(agent.stdout.readline())
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    agent.stdout.close()
    with pytest.raises(Conflict):
        RegionLock(tmp_path).take({}, timeout=0.3)
    os.kill(heir, signal.SIGKILL)
    RegionLock(tmp_path).take({}, timeout=5)
