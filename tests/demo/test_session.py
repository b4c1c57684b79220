"""However a demo ends, none of its processes continues: a signal, a closed terminal, `--stop` with invalid files."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.demo.prepare import screen_processes
from console.demo.processes import Processes, birth
from console.demo.session import DemoOptions, run_command

pytestmark = pytest.mark.slow

IDLE = "import time; time.sleep(600)"
SECONDS = 60


@pytest.mark.parametrize("nohup", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_handled_after_the_cleanup(number: signal.Signals, nohup: bool) -> None:
    script = f"""
import asyncio
import signal
signal.signal(signal.SIGHUP, signal.SIG_IGN if {nohup} else signal.SIG_DFL)
from console.demo.session import _run_interruptible

async def work():
    try:
        print("begun", flush=True)
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0)
        print("ended")

_run_interruptible(work())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        if nohup and number == signal.SIGHUP:
            number = signal.SIGTERM  # the terminal's end was none of its business
            process.send_signal(number)
        out, _ = process.communicate(timeout=SECONDS)
        assert (out, process.returncode) == ("ended\n", 128 + number)


def test_stop_ends_all_processes_even_if_the_projects_files_are_invalid(tmp_path: Path) -> None:
    (tmp_path / "regions").mkdir()
    (tmp_path / "regions" / "eu.yaml").write_text("warehouse: [\n")
    home = tmp_path / ".console" / "demo"
    processes, warehouse = Processes(home / "run"), home / "eu"
    processes.start("producer-eu", "-c", IDLE)
    screen_processes(home).start("screen", "-c", IDLE)
    assert (producer := processes.alive("producer-eu"))
    assert (screen := screen_processes(home).alive("screen"))
    (warehouse / "_console").mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", IDLE, "console.agent", str(warehouse)]) as agent:
        (warehouse / "_console" / "agent.lock").write_text(json.dumps({"pid": agent.pid}))
        options = DemoOptions(prepare=False, live=False, stop=True, reset=False, log=None, plant="", chaos=False)
        try:
            assert run_command(tmp_path, options, None) == 0
            assert (birth(agent.pid), birth(producer), birth(screen)) == ("", "", "")
        finally:
            agent.kill()
            processes.stop("producer-eu")
            screen_processes(home).stop("screen")
