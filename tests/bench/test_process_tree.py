"""The costs of a command include those of whatever it leaves behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.bench.process_tree import CommandFailed, cost_of

BURN = "import time\nwhile time.process_time() < 0.4: pass\n"
# the first child ends at once; its own child goes on as an orphan in a session of its own, as an agent does
DETACHED = f"""import subprocess, sys
burn = {BURN!r}
subprocess.Popen([sys.executable, "-c", f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {{burn!r}}], start_new_session=True)"])
"""


@pytest.mark.slow
def test_an_orphan_that_burns_is_counted(tmp_path: Path) -> None:
    began = time.monotonic()
    cost = cost_of([sys.executable, "-c", DETACHED], cwd=tmp_path, env=os.environ)
    assert cost.processor >= 0.4
    assert cost.seconds <= time.monotonic() - began


@pytest.mark.slow
def test_the_command_itself_is_counted(tmp_path: Path) -> None:
    cost = cost_of([sys.executable, "-c", BURN], cwd=tmp_path, env=os.environ)
    assert cost.processor >= 0.4
    assert cost.seconds >= 0.39


@pytest.mark.slow
def test_a_command_that_fails_is_no_cost(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"exit 3[\s\S]*for want of luck"):
        cost_of(
            [sys.executable, "-c", "import sys; print('for want of luck'); sys.exit(3)"], cwd=tmp_path, env=os.environ
        )
