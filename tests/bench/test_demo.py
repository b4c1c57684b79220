"""The demo: the processor time of its own process, over its three real regions with traffic, and how long it takes without a screen."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check
from tests.bench.terminal import in_terminal

pytestmark = [pytest.mark.bench, pytest.mark.spark]
ROOT = Path(__file__).resolve().parents[2]
CONSOLE = Path(sys.executable).with_name("console")
BUILDING_SECONDS, WARM_SECONDS, MEASURED_SECONDS = 1_500, 60, 60
SHARE = 0.05
HEADLESS_SECONDS = 210  # 3 min 30 s


def processor_seconds(pid: int) -> float:
    """Of one process since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def demo(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [CONSOLE, "demo", *words], cwd=folder, capture_output=True, text=True, timeout=BUILDING_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def files(folder: Path) -> None:
    for name in ("regions", "plans"):
        shutil.copytree(ROOT / name, folder / name)


def test_the_demo_without_a_screen_takes_three_and_a_half_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path)
    began = time.monotonic()
    try:
        demo(tmp_path, "--reset", "--headless")
        seconds = time.monotonic() - began
    finally:
        demo(tmp_path, "--stop")
    what = "`console demo --headless`, to its end"
    text = f"{seconds // 60:.0f} min {seconds % 60:.0f} s, by the clock"
    with capsys.disabled():
        check(Measurement(what=what, figure=seconds, limit=HEADLESS_SECONDS, text=text))


def test_the_demo_s_own_process_takes_less_than_a_twentieth_of_a_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path)
    demo(tmp_path, "--prepare")
    try:
        with in_terminal([str(CONSOLE), "demo"], tmp_path, os.environ) as (process, drawn):
            time.sleep(WARM_SECONDS)
            began, spent, seen = time.monotonic(), processor_seconds(process.pid), len(drawn)
            time.sleep(MEASURED_SECONDS)
            share = (processor_seconds(process.pid) - spent) / (time.monotonic() - began)
            assert process.poll() is None, b"".join(drawn)[-3000:].decode(errors="replace")
            assert len(drawn) > seen, "a screen with live regions is drawn at least once a second"
    finally:
        demo(tmp_path, "--stop")
    what = "`console demo`, its own process, over three regions with traffic"
    with capsys.disabled():
        check(Measurement(what=what, figure=share, limit=SHARE, text=f"{share:.1%} of a core"))
