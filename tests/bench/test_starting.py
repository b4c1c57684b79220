"""Commands from their start to their answer: the help, a plan of three regions, and a plan of 500 tables until it is accepted.

The figure is the time, or the processor seconds of all processes where these are fewer, as on a busy machine.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console import paths, project
from tests.bench import fleet
from tests.bench.large_project import KINDS, deploy, write_files
from tests.bench.report import Measurement, check
from tests.bench.test_large_region import BEGAN, add, append

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
RUNS = 7
HELP_SECONDS, PLAN_SECONDS, ACCEPTED_SECONDS = 0.3, 1.0, 2.0
DAYS = 30


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console whose modules are compiled, and with a home of its own."""
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "console.main", *words]


def measured(what: str, limit: float, root: Path, *words: str, cold: bool = False) -> Measurement:
    """The median of some runs, after one that compiles modules and fills the page cache. cold: each with a home in which nothing is kept"""
    processor, seconds = [], []
    for number in range(1 + RUNS):
        home = {"CONSOLE_HOME": str(root.with_name(f"home-{number}"))} if cold else {}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command(*words), cwd=root, env=os.environ | home, capture_output=True, check=True)
        seconds.append(time.monotonic() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    middle, busy = statistics.median(seconds[1:]), statistics.median(processor[1:])
    text = f"p50 {middle:.2f} s, the longest of {RUNS} {max(seconds[1:]):.2f} s; {busy:.2f} processor seconds"
    return Measurement(what=what, figure=min(middle, busy), limit=limit, text=text)


def three_regions(root: Path) -> None:
    """The demo's project, with a month in each landing table and no rollout."""
    for name in ("plans", "regions"):
        shutil.copytree(ROOT / name, root / name)
    loaded, text = project.load(root), "%Y-%m-%dT%H:%M:%S.000Z"
    for region in loaded.regions:
        (landing,) = [table for table in loaded.pipeline("web", region).tables if table.kind == "landing"]
        place = root / region.warehouse / landing.name
        schema = pa.schema([(column.name, KINDS[column.type]) for column in landing.columns])
        write_deltalake(str(place), schema.empty_table())
        days = [BEGAN + timedelta(days=number) for number in range(DAYS)]
        ends = [({"ts": day.strftime(text)}, {"ts": (day + timedelta(hours=23)).strftime(text)}) for day in days]
        append(str(place), [add(f"{number}.parquet", 1 << 20, 1_000, *each) for number, each in enumerate(ends)])


def test_the_help_and_a_plan_of_three_regions_are_there_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "project"
    three_regions(root)
    with capsys.disabled():
        check(measured("`console --help`", HELP_SECONDS, root, "--help"))
        check(measured("`console plan` of three regions without agents", PLAN_SECONDS, root, "plan"))
        check(measured("`console plan` of three regions, for the first time", PLAN_SECONDS, root, "plan", cold=True))


def spent(pid: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_five_edits_of_500_tables_are_planned_and_accepted_soon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "project"
    write_files(root, fleet.pipeline())
    warehouse = deploy(root)
    write_files(root, fleet.edited())
    subprocess.run(
        command("plan"), cwd=root, env=os.environ, capture_output=True, check=True
    )  # queries are compiled once
    agent = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.agent_process", str(warehouse)], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        while not paths.socket_path(str(warehouse)).exists():
            time.sleep(0.05)
        subprocess.run(
            command("plan"), cwd=root, env=os.environ, capture_output=True, check=True
        )  # its agent has the logs
        before, began = spent(agent.pid), time.monotonic()
        words = command("apply", "--region", "eu", "--yes", "--no-input")
        with subprocess.Popen(
            words, cwd=root, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as done:
            assert done.stdout is not None
            lines: list[str] = []
            for line in done.stdout:
                lines.append(line)
                if "planned by" in line:
                    break
            seconds, own, its = time.monotonic() - began, spent(done.pid), spent(agent.pid) - before
            done.kill()
        assert "web-2: r1 → r2, planned by" in lines[-1], "".join(lines[-20:])
    finally:
        agent.kill()
        agent.wait()
    text = f"{seconds:.2f} s; {own:.2f} processor seconds of the command and {its:.2f} of the agent"
    with capsys.disabled():
        check(
            Measurement(
                what="`console apply` of 500 tables, five edited, until it is accepted",
                figure=min(seconds, own + its),
                limit=ACCEPTED_SECONDS,
                text=text,
            )
        )
