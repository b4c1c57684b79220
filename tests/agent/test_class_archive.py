"""The class archive is created on a busy machine too."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.agent.class_archive import await_end
from console.errors import RegionError

pytestmark = pytest.mark.slow

SLOWLY = "import sys, time\nfor n in range(8):\n open(sys.argv[1], 'ab').write(b'x'); time.sleep(0.25)"
HANGS = "import sys, time; open(sys.argv[1], 'wb'); time.sleep(60)"
BUSY = "import sys, time\nuntil = time.time() + 1.5\nwhile time.time() < until: pass\nopen(sys.argv[1], 'wb')"


def child(program: str, fresh: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", program, str(fresh)])


@pytest.mark.parametrize("program", [SLOWLY, BUSY], ids=["writes", "computes"])
def test_a_jvm_that_works_is_waited_for_longer_than_one_that_stands_still_may_take(
    program: str, tmp_path: Path
) -> None:
    fresh = tmp_path / "classes.new"
    process = child(program, fresh)
    await_end(process, fresh, still=0.8)
    assert process.returncode == 0
    assert fresh.is_file()


def test_a_jvm_that_stands_still_is_ended_and_told(tmp_path: Path) -> None:
    fresh = tmp_path / "classes.new"
    process, begun = child(HANGS, fresh), time.monotonic()
    with pytest.raises(RegionError, match="stood still"):
        await_end(process, fresh, still=1.0)
    assert process.returncode is not None
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "pass"])
def test_a_jvm_that_ends_without_an_archive_is_an_error(program: str, tmp_path: Path) -> None:
    fresh = tmp_path / "classes.new"
    with pytest.raises(RegionError, match="no class archive"):
        await_end(child(program, fresh), fresh)
