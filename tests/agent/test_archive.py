"""The class archive comes about on a busy machine, and what did not come about is not taken for done."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from console.agent.class_archive import await_end
from console.errors import RegionError

SETUP = Path(__file__).parents[2] / "tools" / "setup.py"
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


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/setup.py of another checkout, whose Python does what `work.sh` says."""
    spec = importlib.util.spec_from_file_location("set_up", SETUP)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv, jars = tmp_path / ".venv", tmp_path / ".console" / "jars"
    (venv / "bin").mkdir(parents=True)
    jars.mkdir(parents=True)
    (venv / ".console-setup").write_text("made")
    python = venv / "bin" / "python"
    python.write_text(f"#!/bin/sh\necho tried >> '{tmp_path}/tries'\n. '{tmp_path}/work.sh'\n")
    python.chmod(0o755)
    for name, value in {
        "ROOT": tmp_path, "VENV": venv, "PYTHON": python, "JARS": jars, "LOG": tmp_path / ".console" / "setup.log",
    }.items():  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.parametrize("work", ["exit 1", "exit 0"])
def test_an_archive_that_did_not_come_about_is_tried_for_again_and_one_that_did_is_not(
    work: str, setup: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    does, tries, archive = tmp_path / "work.sh", tmp_path / "tries", setup.JARS / "classes.jsa"
    does.write_text(work)
    setup.set_up_archive()
    assert "the next set-up tries again" in capfd.readouterr().err
    does.write_text(f"echo classes > '{archive}'")
    setup.set_up_archive()
    setup.set_up_archive()
    assert archive.is_file()
    assert tries.read_text().splitlines() == ["tried", "tried"]
