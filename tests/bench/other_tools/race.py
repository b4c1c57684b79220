"""Rounds of one task by our agent and by another tool, in turn and in both orders, and their ratios."""

import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from console import project
from console.agent import spark_process
from console.agent.settings import Settings
from tests.bench import demo_rows
from tests.bench.other_tools import ours
from tests.bench.other_tools.environments import ToolEnvironment, environment
from tests.bench.other_tools.rows import differences
from tests.bench.other_tools.task import BackfillTask
from tests.bench.process_tree import TreeCost, cost_of
from tests.bench.report import Measurement, check

OURS = "ours"
BEGIN = date(2026, 10, 1)  # all days have passed, or SQLMesh and dbt would leave some out
SECONDS = 3600.0  # of one run


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSize:
    """
    rows    a multiple of `days`
    rounds  each runs everything once
    judged  whether the goals are meant of this size
    """

    rows: int
    days: int
    rounds: int
    judged: bool

    @property
    def dates(self) -> list[date]:
        return [BEGIN + timedelta(days=day) for day in range(self.days)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """
    tool        whose `module` is run with a folder that has a task
    batch_days  as of `BackfillTask`
    goal        our cost as a share of its own, at most
    """

    name: str
    tool: ToolEnvironment
    module: str
    batch_days: int
    goal: float

    @property
    def folder(self) -> str:
        return f"{self.tool.name}-{self.batch_days}"


class DifferentRows(AssertionError):
    """A tool built other rows than our agent, so no cost of it counts."""


def task(folder: Path, landing: str, dates: Sequence[date], batch_days: int) -> BackfillTask:
    """folder: of our project, whose table and query it takes"""
    loaded = project.load(folder)
    pipeline = loaded.pipeline("web", loaded.regions[0])
    (table,) = (table for table in pipeline.tables if table.name == "requests")
    conf = dict(spark_process.configuration(Settings(region="bench"), 2).getAll())
    conf["spark.driver.extraJavaOptions"] = spark_process.GC  # the class archive is ours
    return BackfillTask(
        landing=landing,
        columns={column.name: column.type for column in table.columns},
        query=demo_rows.PARSE.partition("*/")[2].strip() + "\n",
        begin=dates[0].isoformat(),
        end=dates[-1].isoformat(),
        after=(dates[-1] + timedelta(days=1)).isoformat(),
        conf=conf,
        batch_days=batch_days,
    )  # fmt: skip


def race(folder: Path, size: RaceSize, rivals: Sequence[Rival]) -> None:
    """Run all rounds, and put one measurement for each rival on record. raises DifferentRows, CommandFailed, NotInstalled"""
    for tool in {rival.tool for rival in rivals}:
        tool.prepare()
    landing = str(folder / "landing")
    land(landing, size)
    rounds = [
        _round(folder / f"round{number}", landing, size, rivals, number % 2 == 1) for number in range(size.rounds)
    ]
    check(*(measurement(size, rival, rounds) for rival in rivals))


def land(landing: str, size: RaceSize) -> None:
    """A commit and a file for each day, of which a job for a day reads no other."""
    demo_rows.land(Path(landing), size.rows, size.days, begin=BEGIN, a_commit=size.rows // size.days)


def _round(folder: Path, landing: str, size: RaceSize, rivals: Sequence[Rival], reversed_: bool) -> dict[str, TreeCost]:
    """Costs by name; the tables are compared and removed."""
    runs: list[tuple[str, Callable[[], TreeCost]]] = [(OURS, partial(_ours, folder / OURS, landing))]
    runs += [(rival.name, partial(_theirs, folder / rival.folder, landing, size, rival)) for rival in rivals]
    costs = {name: run() for name, run in (runs[::-1] if reversed_ else runs)}
    mine = built(folder / OURS)
    names = list(task(folder / OURS, landing, size.dates, 0).columns)
    for rival in rivals:
        if count := differences(mine, built(folder / rival.folder), names, size.dates):
            raise DifferentRows(f"{rival.name}: {count:,} rows differ from our agent's")
    shutil.rmtree(folder)
    return costs


def _ours(place: Path, landing: str) -> TreeCost:
    ours.project(place, landing)
    command = [sys.executable, "-P", "-m", "tests.bench.other_tools.ours", str(place)]
    return cost_of(command, cwd=place, env=environment(place / "home"), timeout=SECONDS)


def _theirs(place: Path, landing: str, size: RaceSize, rival: Rival) -> TreeCost:
    ours.project(place / "ours", landing)
    task(place / "ours", landing, size.dates, rival.batch_days).write(place)
    command = rival.tool.command(rival.module, str(place))
    return cost_of(command, cwd=place, env=environment(place / "home"), timeout=SECONDS)


def built(place: Path) -> str:
    """The one table of parsed requests below a folder `lake`."""
    (log,) = (
        log for log in (place / ours.LAKE).rglob("_delta_log") if "requests" in str(log.relative_to(place / ours.LAKE))
    )
    return str(log.parent)


def measurement(size: RaceSize, rival: Rival, rounds: Sequence[Mapping[str, TreeCost]]) -> Measurement:
    """The median of the rounds' ratios of processor seconds, beside medians of both costs."""
    ratio = statistics.median(each[OURS].processor / each[rival.name].processor for each in rounds)
    processor = "/".join(
        f"{statistics.median(each[name].processor for each in rounds):.1f}" for name in (OURS, rival.name)
    )
    seconds = "/".join(f"{statistics.median(each[name].seconds for each in rounds):.1f}" for name in (OURS, rival.name))
    tool = f"{rival.tool.package} {rival.tool.version}"
    return Measurement(
        what=f"backfill of {size.rows:,} rows of {size.days} days, from `apply` to live, beside {rival.name}",
        figure=ratio,
        limit=rival.goal if size.judged else None,
        text=f"{ratio:.2f} × its processor time, of {tool} {1 / ratio:.2f} × ours ({processor} processor seconds, {seconds} s by the clock, {len(rounds)} runs)",
    )  # fmt: skip
