"""From flags to a desk: the project, its regions and the way to reach them. Nothing heavy is imported before it is used."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from uuid import uuid4

import click

import console
from console.cli.flags import Flags

if TYPE_CHECKING:
    from console.demo import ScreenRunner
    from console.drivers.protocol import Driver, Who
    from console.model.live import Live
    from console.model.pipeline import Pipeline
    from console.model.plan import Plan
    from console.model.region import Region
    from console.project import Project
    from console.runner.fleet import Fleet

    Planner = Callable[[Pipeline, Live, Region], Plan]


@dataclass(frozen=True)
class Wiring:
    """The ways out of this process, so that a test can stand in each of them.

    drivers  one driver per region; nothing is reached before the first call
    screen   opens the terminal screen; `main` gives it, for this face must not know the other
    execute  replaces this process: argv, and what it finds on its stdin
    """

    drivers: Callable[[Sequence["Region"]], "Mapping[str, Driver]"]
    screen: "ScreenRunner | None" = None
    execute: Callable[[list[str], bytes], NoReturn] | None = None


@dataclass
class CliContext:
    """One call of the command line, as click carries it: filled in while the arguments are read."""

    wiring: Wiring
    flags: Flags = field(default_factory=Flags)
    sources: dict[str, str] = field(default_factory=dict)
    streaming: bool = False  # lines of JSON have begun: an error is one more of them


def session() -> CliContext:
    """The session of the command that is running."""
    found: CliContext = click.get_current_context().obj
    return found


@dataclass(frozen=True)
class OpenProject:
    """A project opened for one pipeline and the selected regions, in the order of waves."""

    project: "Project"
    name: str
    regions: "tuple[Region, ...]"
    pipelines: "Mapping[str, Pipeline]"
    connect: "Callable[[], Mapping[str, Driver]]"  # new drivers: each belongs to one event loop
    allowed: frozenset[str] = frozenset()  # losses accepted on the command line
    probing: bool = False  # the data are asked whether their values convert
    without: frozenset[str] = frozenset()  # regions that a run goes on without where they are away
    on_failure: Literal["keep", "discard"] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(region.name for region in self.regions)

    def landing(self, region: str) -> tuple[str, ...]:
        return tuple(table.name for table in self.pipelines[region].tables if table.kind == "landing")

    @asynccontextmanager
    async def reach(self) -> "AsyncIterator[Mapping[str, Driver]]":
        """The drivers, closed afterwards; the agents go on."""
        drivers = self.connect()
        try:
            yield drivers
        finally:
            for driver in drivers.values():
                await driver.close()

    @asynccontextmanager
    async def fleet(self, planner: "Planner | None" = None, *, steering: bool = False) -> "AsyncIterator[Fleet]":
        """The runner over these regions; links and journal are closed afterwards, the agents go on."""
        fleet = self.open_fleet(planner, steering=steering)
        try:
            yield fleet
        finally:
            await fleet.close()

    def open_fleet(self, planner: "Planner | None" = None, *, steering: bool = False) -> "Fleet":
        """The runner over these regions; its caller closes it, and with it the journal.

        steering  it carries rollouts: another console may take them over, and its deeds are then refused
        """
        from console.runner.fleet import Fleet
        from console.runner.journal import Journal

        return Fleet(
            self.name,
            self.connect(),
            self.pipelines,
            planner or self.plan_of,
            Journal(),
            replace(who(), console=uuid4().hex) if steering else who(),
            without=self.without,
            on_failure=self.on_failure,
        )

    def plan_of(self, pipeline: "Pipeline", live: "Live", region: "Region") -> "Plan":
        """`plan_of`, with the losses that were accepted on the command line."""
        return plan_of(pipeline, live, region, self.allowed)


def plan_of(pipeline: "Pipeline", live: "Live", region: "Region", allowed: frozenset[str] = frozenset()) -> "Plan":
    """The planner, signed with this tool's version and with what earlier runs compiled."""
    from console.planning import plan
    from console.project.recent import planner, remembered

    with remembered() as memory:
        return plan(pipeline, live, region, tool(), memory, allowed=allowed, planner=planner())


def tool() -> str:
    return f"console {console.__version__}"


def who() -> "Who":
    from console.drivers import identity

    return identity.who()


def root_of(flags: Flags) -> Path:
    """The project's root: as told, else found upward from here."""
    from console.project import find

    return flags.project.resolve() if flags.project else find(Path.cwd())


def open_desk(*, need_regions: bool = False, one: bool = False) -> OpenProject:
    """Load the project and select its regions.

    need_regions  the command changes what cannot be taken back lightly: regions must be named, unless there is one
    one           the command is about exactly one region
    raises        Problems with all that is wrong in the files; UsageError for names and selections
    """
    from console.errors import DataError, UsageError
    from console.project import load
    from console.text import hide

    now = session()
    project = load(root_of(now.flags))
    for region in project.regions:
        hide(region.spark.conf)
    if not project.regions:
        raise DataError(f"{project.root}: no regions", hint="add regions/<name>.yaml with its warehouse")
    named = now.flags.regions
    everyone = ", ".join(region.name for region in project.regions)
    if (need_regions or one) and not named and len(project.regions) != 1:
        flag = "--region NAME" if one else "--region NAME or --regions NAME,NAME"
        raise UsageError(f"say which region: {everyone}", hint=f"add {flag}")
    regions = project.select(named or "all")
    if one and len(regions) != 1:
        raise UsageError(f"this command is about one region, not {len(regions)}", hint=f"--region, one of {everyone}")
    pipelines = {region.name: project.pipeline(now.flags.pipeline, region) for region in regions}
    name = next(iter(pipelines.values())).name
    allowed = frozenset(now.flags.allow_destructive) | ({"C122:*"} if now.flags.allow_protocol else frozenset())
    without = _without(now.flags.continue_without, [region.name for region in regions])
    return OpenProject(
        project,
        name,
        regions,
        pipelines,
        lambda: now.wiring.drivers(regions),
        allowed,
        now.flags.probe,
        without,
        now.flags.on_failure,
    )


def _without(words: str, names: "Sequence[str]") -> frozenset[str]:
    """The regions of `--continue-without`.

    raises  UsageError for one that is not among those worked on
    """
    from console.errors import UsageError

    wanted = frozenset(word.strip() for word in words.split(",") if word.strip())
    for word in sorted(wanted - set(names)):
        raise UsageError(f"--continue-without {word!r:.80} is none of the regions worked on", **choices(names, word))
    return wanted


def real_drivers(regions: "Sequence[Region]") -> "Mapping[str, Driver]":
    """The real drivers: of this machine's regions, and of those behind SSH."""
    from console.drivers import local

    drivers: dict[str, Driver] = dict(local.local_drivers(r for r in regions if r.transport is None))
    if remote := [region for region in regions if region.transport]:
        from console.drivers.ssh.driver import SshDriver

        drivers |= {region.name: SshDriver(region) for region in remote}
    return {region.name: drivers[region.name] for region in regions}


def execute(argv: list[str], stdin: bytes) -> NoReturn:
    """Become another program, in the foreground, with these bytes on its stdin."""
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


def screenless() -> str:
    """Why no screen can be opened here; "" where one can."""
    import os
    import sys

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "no terminal to open the screen on"
    term = os.environ.get("TERM", "")
    return f"this terminal (TERM={term}) cannot show the screen" if term in ("dumb", "unknown") else ""


def choices(known: Sequence[str], wrong: str) -> dict[str, Any]:
    """The hint for a misspelt name: what was probably meant, and what there is."""
    from difflib import get_close_matches

    near = get_close_matches(wrong, known, 1)
    listed = ", ".join(sorted(known)) or "none"
    return {"hint": (f"did you mean {near[0]}? " if near else "") + f"there are: {listed}"}
