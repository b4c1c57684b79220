"""The checks of `console doctor`: this machine, and the project if there is one, with its regions behind SSH."""

import asyncio
import locale
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from console import paths
from console.cli.flags import Flags, root_of
from console.drivers import connect_server, prerequisites
from console.drivers.prerequisites import Prerequisite
from console.errors import ConsoleError, Problems, installing
from console.model.spark_master import spark_master
from console.project import load
from console.runner.journal import Journal, JournalDamaged

if TYPE_CHECKING:
    from console.model.region import Region


def examine(flags: Flags) -> list[Prerequisite]:
    """Run all checks; a check that raises is itself a finding."""
    looks: tuple[Callable[[], Prerequisite], ...] = (
        prerequisites.python, *_agent(), _state, prerequisites.sockets, _journal, _terminal,
    )  # fmt: skip
    findings = []
    for look in looks:
        try:
            findings.append(look())
        except (OSError, ValueError, ConsoleError) as error:
            findings.append(Prerequisite(look.__name__.lstrip("_"), False, str(error), getattr(error, "hint", "")))
    return [*findings, *_project(flags)]


def _agent() -> tuple[Callable[[], Prerequisite], ...]:
    """Requirements of agents on this machine; without Spark there are none, which may be intended."""
    if find_spec("pyspark"):
        return prerequisites.libraries, prerequisites.java, prerequisites.jars, prerequisites.versions

    def agent() -> Prerequisite:
        detail = "pyspark is not installed: this console plans and checks, and starts no agent on this machine"
        return Prerequisite("agent", None, detail, f"to start agents here: {installing('agent')}")

    return (agent,)


def _state() -> Prerequisite:
    folder = paths.state_dir()
    probe = folder / f".probe-{os.getpid()}"
    probe.write_bytes(b"\0" * 4096)
    probe.unlink()
    return prerequisites.space("disk of journal and logs", folder)


def _journal() -> Prerequisite:
    """A damaged journal is moved aside: the regions hold everything needed, and it would only block commands."""
    journal = Journal()
    if not journal.path.exists():
        return Prerequisite("journal", True, "none yet")
    try:
        journal.check()
    except JournalDamaged:
        moved = journal.move_damaged()
        fix = "console status shows the state of the regions; they hold everything that is needed"
        return Prerequisite("journal", None, f"it was damaged and has been moved to {moved}; a new one begins", fix)
    except ConsoleError as error:
        return Prerequisite("journal", False, str(error), error.hint)
    finally:
        journal.close()
    return Prerequisite("journal", True, str(journal.path))


def _terminal() -> Prerequisite:
    if not sys.stdout.isatty():
        return Prerequisite(
            "terminal", None, "stdout is not a terminal: no screen here", "console --headless works everywhere"
        )
    columns, lines = shutil.get_terminal_size()
    name = os.environ.get("TERM", "")
    coding = locale.getpreferredencoding(False)
    detail = f"{name or 'TERM is unset'}, {columns}×{lines}, {coding}"
    if not name or name == "dumb" or columns < 80 or lines < 24 or "UTF" not in coding.upper():
        return Prerequisite("terminal", None, detail, "the screen needs 80×24, a TERM other than dumb, and UTF-8")
    return Prerequisite("terminal", True, detail)


def _project(flags: Flags) -> Iterator[Prerequisite]:
    try:
        root = root_of(flags)
    except ConsoleError as error:
        yield Prerequisite("project", None, str(error), error.hint)
        return
    try:
        project = load(root)
    except Problems as error:
        for problem in error.problems:
            yield Prerequisite("project", False, str(problem), problem.hint)
        return
    except ConsoleError as error:
        yield Prerequisite("project", False, str(error), error.hint)
        return
    yield Prerequisite(
        "project", True, f"{root}: {', '.join(region.name for region in project.regions) or 'no regions'}"
    )
    for region in project.regions:
        place = region.warehouse.removeprefix("file://")
        if "://" not in place and not region.transport:
            yield from _named(region.name, prerequisites.warehouse(Path(place)))
        if place.startswith(("s3://", "s3a://")) and not region.transport:
            yield from _named(region.name, prerequisites.bucket(jars=not region.spark.remote))
        if region.spark.remote and not region.transport:
            yield from _named(region.name, connect_server.look(region))
        elif not region.transport:
            known = spark_master(region.spark.master)
            yield from _named(region.name, prerequisites.cluster(known, region.spark.defaults))
        if (second := region.backfill_spark) and not (second.spark.remote or region.transport):
            known = spark_master(second.spark.master)
            yield from _named(f"{region.name}'s second Spark", prerequisites.cluster(known, second.spark.defaults))
    if remote := [region for region in project.regions if region.transport]:
        yield from asyncio.run(_behind_ssh(remote))


async def _behind_ssh(regions: "Sequence[Region]") -> list[Prerequisite]:
    """The connection to each region, and the findings of its host about itself; all are requested at once."""
    return [prerequisite for each in await asyncio.gather(*map(_host, regions)) for prerequisite in each]


async def _host(region: "Region") -> list[Prerequisite]:
    from console.drivers.ssh.driver import SshDriver

    assert region.transport
    driver = SshDriver(region)
    try:
        prerequisites = await driver.look()
    except ConsoleError as error:
        return [Prerequisite(f"ssh to {region.name}", False, str(error), error.hint)]
    finally:
        await driver.close()
    way = Prerequisite(
        f"ssh to {region.name}", True, f"{region.transport.host} has its known host key and accepts the login"
    )
    return [way, *_named(region.name, prerequisites)]


def _named(region: str, prerequisites: "Sequence[Prerequisite] | Iterator[Prerequisite]") -> Iterator[Prerequisite]:
    for one in prerequisites:
        yield replace(one, name=f"{one.name} of {region}")
