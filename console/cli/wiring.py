"""From flags to an open project: its files, its regions and their drivers. Heavy modules are imported only when used."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from uuid import uuid4

import click

import console
from console.cli.flags import Flags, root_of

if TYPE_CHECKING:
    from pathlib import Path

    from console.demo.cockpit import ScreenRunner
    from console.drivers.protocol import Driver, Who
    from console.model.live import Live
    from console.model.pipeline import Pipeline
    from console.model.plan import Plan
    from console.model.region import Region
    from console.project import Project
    from console.runner.fleet import Fleet
    from console.runner.region_planner import RegionPlanner

    Planner = Callable[[Pipeline, Live, Region], Plan]


@dataclass(frozen=True)
class Wiring:
    """The outside world of the command line, replaceable in tests.

    drivers  one driver per region; none connects before its first call
    screen   opens the terminal screen; given by `main`, since this face must not import the other
    execute  replaces this process: argv, and the bytes on its stdin
    """

    drivers: Callable[[Sequence["Region"]], "Mapping[str, Driver]"]
    screen: "ScreenRunner | None" = None
    execute: Callable[[list[str], bytes], NoReturn] | None = None


@dataclass
class CliContext:
    """State of one call of the command line, click's `obj`: filled in while the arguments are parsed."""

    wiring: Wiring
    flags: Flags = field(default_factory=Flags)
    sources: dict[str, str] = field(default_factory=dict)
    streaming: bool = False  # JSON lines have been printed: an error becomes one more line


def cli_context() -> CliContext:
    """The context of the running command."""
    context: CliContext = click.get_current_context().obj
    return context


def region_planner() -> "RegionPlanner":
    from console.runner.region_planner import RegionPlanner

    return RegionPlanner()


@dataclass(frozen=True, kw_only=True)
class OpenProject:
    """A project opened for one pipeline and the selected regions, in the order of waves."""

    files: "Project"
    pipeline: str
    regions: "tuple[Region, ...]"
    pipelines: "Mapping[str, Pipeline]"
    connect: "Callable[[], Mapping[str, Driver]]"  # creates new drivers: each belongs to one event loop
    planner: "RegionPlanner" = field(default_factory=region_planner)
    allowed: frozenset[str] = frozenset()  # losses accepted on the command line
    history: "Mapping[str, str]" = field(default_factory=dict)  # table → the choice for its existing rows
    probing: bool = False  # the plan checks in the data whether values convert
    without: frozenset[str] = frozenset()  # regions that a run may leave out if they are unreachable
    on_failure: Literal["keep", "discard"] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(region.name for region in self.regions)

    def landing(self, region: str) -> tuple[str, ...]:
        return tuple(table.name for table in self.pipelines[region].tables if table.kind == "landing")

    @asynccontextmanager
    async def drivers(self) -> "AsyncIterator[Mapping[str, Driver]]":
        """Drivers of the regions, closed afterwards; the agents continue."""
        drivers = self.connect()
        try:
            yield drivers
        finally:
            for driver in drivers.values():
                await driver.close()

    @asynccontextmanager
    async def fleet(
        self, planner: "Planner | None" = None, *, steering: bool = False, remember: bool = False
    ) -> "AsyncIterator[Fleet]":
        """The runner over these regions; links and journal are closed afterwards, the agents continue."""
        fleet = self.open_fleet(planner, steering=steering, remember=remember)
        try:
            yield fleet
        finally:
            await fleet.close()

    def open_fleet(
        self,
        planner: "Planner | None" = None,
        *,
        steering: bool = False,
        remember: bool = False,
        runs_on: bool = False,
    ) -> "Fleet":
        """The runner over these regions; closing it, which is the caller's task, also closes the journal.

        steering  it controls rollouts: once another console takes them over, its actions are refused
        remember  its views also show events that the regions stored before it watched them
        runs_on   it stays open, and starts the waves that promotions make due
        """
        from console.runner.fleet import Fleet
        from console.runner.journal import Journal

        return Fleet(
            self.pipeline,
            self.connect(),
            self.pipelines,
            planner or self.plan_of,
            Journal(),
            replace(who(), console=uuid4().hex) if steering else who(),
            without=self.without,
            on_failure=self.on_failure,
            remember=remember,
            runs_on=runs_on,
        )

    def plan_of(self, pipeline: "Pipeline", live: "Live", region: "Region") -> "Plan":
        """A region's plan, with the losses that were accepted and the choices that were made on the command line."""
        return self.planner.plan(pipeline, live, region, self.allowed, self.history)


@contextmanager
def recorded(fleet: "Fleet", path: "Path | None") -> "Iterator[None]":
    """Record the fleet's views in a new file, if one is named, until the fleet is closed.

    raises  UsageError for a file that cannot be created; afterwards RegionError if not everything could be written
    """
    if path is None:
        yield
        return
    from console.runner.recording.writer import RecordingWriter

    writer = RecordingWriter(path)
    fleet.record(writer)
    yield
    if writer.error:
        raise writer.error


def tool() -> str:
    return f"console {console.__version__}"


def who() -> "Who":
    from console.drivers import identity

    return identity.who()


def open_project(*, need_regions: bool = False, one: bool = False) -> OpenProject:
    """Load the project and select its regions.

    need_regions  the command's changes are hard to undo: regions must be named, unless there is only one
    one           the command works on exactly one region
    raises        Problems with all errors in the files; UsageError for names and selections
    """
    from console.errors import DataError, UsageError
    from console.project import load
    from console.text import hide

    context = cli_context()
    project = load(root_of(context.flags))
    for region in project.regions:
        hide(region.spark.conf)
    if not project.regions:
        raise DataError(f"{project.root}: no regions", hint="add regions/<name>.yaml with its warehouse")
    named = context.flags.regions
    everyone = ", ".join(region.name for region in project.regions)
    if (need_regions or one) and not named and len(project.regions) != 1:
        flag = "--region NAME" if one else "--region NAME or --regions NAME,NAME"
        raise UsageError(f"say which region: {everyone}", hint=f"add {flag}")
    regions = project.select(named or "all")
    if one and len(regions) != 1:
        raise UsageError(f"this command takes one region, not {len(regions)}", hint=f"--region, one of {everyone}")
    pipelines = {region.name: project.pipeline(context.flags.pipeline, region) for region in regions}
    allowed = frozenset(context.flags.allow_destructive) | ({"C122:*"} if context.flags.allow_protocol else frozenset())
    without = _without(context.flags.continue_without, [region.name for region in regions])
    return OpenProject(
        files=project,
        pipeline=next(iter(pipelines.values())).name,
        regions=regions,
        pipelines=pipelines,
        connect=lambda: context.wiring.drivers(regions),
        allowed=allowed,
        history=_histories(context.flags.history, pipelines),
        probing=context.flags.probe,
        without=without,
        on_failure=context.flags.on_failure,
    )


def _histories(words: "Sequence[str]", pipelines: "Mapping[str, Pipeline]") -> dict[str, str]:
    """The choices of `--history`, by table.

    raises  UsageError for a table that no region has
    """
    from console.errors import UsageError

    known = sorted({table.name for pipeline in pipelines.values() for table in pipeline.tables})
    chosen = {}
    for choice in words:
        table, _, word = choice.partition("=")
        if table not in known:
            raise UsageError(f"--history {table!r:.80} is not a table of the pipeline", **choices(known, table))
        chosen[table] = word
    return chosen


def _without(words: str, names: "Sequence[str]") -> frozenset[str]:
    """The regions of `--continue-without`.

    raises  UsageError for one that is not among those worked on
    """
    from console.errors import UsageError

    wanted = frozenset(word.strip() for word in words.split(",") if word.strip())
    for word in sorted(wanted - set(names)):
        raise UsageError(f"--continue-without {word!r:.80} is not one of the chosen regions", **choices(names, word))
    return wanted


def real_drivers(regions: "Sequence[Region]") -> "Mapping[str, Driver]":
    """Drivers of this machine's regions, and of those behind SSH."""
    from console.drivers import local

    drivers: dict[str, Driver] = dict(local.local_drivers(r for r in regions if r.transport is None))
    if remote := [region for region in regions if region.transport]:
        from console.drivers.ssh.driver import SshDriver

        drivers |= {region.name: SshDriver(region) for region in remote}
    return {region.name: drivers[region.name] for region in regions}


def execute(argv: list[str], stdin: bytes) -> NoReturn:
    """Replace this process by another program, in the foreground, with these bytes on its stdin."""
    import os
    import sys
    import tempfile

    from console.drivers.survey import agent_environment

    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    os.execve(argv[0], argv, agent_environment())


def why_no_screen() -> str:
    """Why no screen can be opened here; "" if one can."""
    import os
    import sys

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "no terminal to open the screen on"
    term = os.environ.get("TERM", "")
    return f"this terminal (TERM={term}) cannot show the screen" if term in ("dumb", "unknown") else ""


def choices(known: Sequence[str], wrong: str) -> dict[str, Any]:
    """The hint for a misspelt name: the closest known name, and all known names."""
    from difflib import get_close_matches

    near = get_close_matches(wrong, known, 1)
    listed = ", ".join(sorted(known)) or "none"
    return {"hint": (f"did you mean {near[0]}? " if near else "") + f"there are: {listed}"}
