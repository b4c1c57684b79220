"""`console ingest`, which sends a file to the region's agent, and `console follow`, which runs that agent."""

import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from console import paths
from console.cli.flags import command
from console.cli.format import count
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject, choices, cli_context, open_project
from console.drivers.local import agent_config
from console.drivers.store_secrets import environment, of_region
from console.drivers.survey import agent_command
from console.errors import DataError, UsageError, require_spark
from console.model.codec import loads
from console.model.load import NAME_LENGTH, valid_name
from console.model.region import Region
from console.runner.ingest.events import examine
from console.runner.ingest.upload import FileUpload, UploadResult

if TYPE_CHECKING:
    from console.runner.ingest.events import Events

FOLLOW_TICK_SECONDS = 0.5


@command(
    "ingest",
    changes=True,
    examples="console ingest events.ndjson --region eu\nzcat events.gz | console ingest - --region eu --table landing",
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--table", metavar="NAME", help="The managed landing table (default: the only one).")
@click.option(
    "--load", metavar="NAME", help="Name under which the region remembers the file (default: the file's name)."
)
@click.option(
    "--shape", default="", metavar="NAME", help="The shape of the lines, if the table's file distinguishes lines by it."
)
def ingest(file: str, table: str | None, load: str | None, shape: str) -> int:
    """Append a file of NDJSON events to a landing table, once per file.

    Lines are matched to columns by name, and all are checked before the first is written. Ingesting the same content
    again, whole or after an interruption, adds nothing twice; a file that begins with lines that have landed is
    continued after them, and one that differs there is refused unless --load names another load. `-` reads stdin.
    """
    project = open_project(one=True)
    output = Output(cli_context().flags)
    region = project.names[0]
    target = _landing(project, region, table)

    def on_progress(rows: int) -> None:
        output.detail(f"{region}  {target}: {rows:,} rows added")

    if load is not None and not valid_name(load):
        raise UsageError(
            f"{load!r:.60} is not a valid name for a load", hint=f"up to {NAME_LENGTH} characters on one line"
        )
    with _opened(file) as source:
        events = examine(source, "stdin" if file == "-" else file)
        uploads: list[FileUpload] = []

        async def work() -> UploadResult:
            async with project.drivers() as drivers:
                driver, name = drivers[region], load or _load_name(file, events)
                uploads.append(
                    FileUpload(
                        driver,
                        project.pipeline,
                        target,
                        events,
                        load=name,
                        named=load is not None,
                        shape=shape,
                        on_progress=on_progress,
                    )
                )
                return await uploads[0].run()

        done = run_interruptible(work(), lambda: uploads[0].landed() if uploads else "")
    _print_result(output, region, target, events, done)
    return 0


def _print_result(output: Output, region: str, table: str, events: "Events", done: "UploadResult") -> None:
    already = not done.rows
    if output.json:
        about = {"region": region, "table": table, "batch": events.batch, "lines": events.count}
        loaded = {"rows": done.rows, "already": already, "load": done.load, "landed_before": done.before}
        output.document({**about, **loaded})
    elif already:
        output.data(f"{table}: already there, nothing added ({count(events.count, 'line')})")
    else:
        after = f", after {count(done.before, 'row')} that had landed" if done.before else ""
        output.data(f"{table}: {count(done.rows, 'row')} added{after}")


def _load_name(file: str, events: "Events") -> str:
    """The default name of a load. The name of a pipe says nothing about its content."""
    name = Path(file).name
    if file == "-" or not Path(file).is_file():
        return f"stdin-{events.first.hex()[:12]}"
    return name if valid_name(name) else f"file-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}"


def _landing(project: OpenProject, region: str, wanted: str | None) -> str:
    managed = [table.name for table in project.pipelines[region].tables if table.kind == "landing" and table.managed]
    if wanted is None and len(managed) == 1:
        return managed[0]
    if not managed:
        raise UsageError(f"{project.pipeline} has no managed landing table", hint="managed: true in tables/<name>.yaml")
    if wanted is None:
        raise UsageError("choose a landing table", hint=f"--table, one of {', '.join(managed)}")
    if wanted not in managed:
        raise UsageError(f"{wanted!r} is not a managed landing table of {project.pipeline}", **choices(managed, wanted))
    return wanted


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """The file, or a spooled copy of a pipe: it is read more than once, the first time for checks."""
    with ExitStack() as stack:
        try:
            source: IO[bytes] = sys.stdin.buffer if file == "-" else stack.enter_context(open(file, "rb"))
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}", hint="console ingest FILE, or - for stdin") from None
        if file == "-" or not source.seekable():
            spool = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=1 << 24))
            shutil.copyfileobj(source, spool)
            spool.seek(0)
            source = spool
        yield source


@command(
    "follow",
    changes=True,
    examples="console follow --region eu\nconsole follow --warehouse /srv/acme/eu\nconsole follow --region eu --stop",
)
@click.option("--warehouse", metavar="URI", help="Use no project files, but the settings stored in the region.")
@click.option("--stop", is_flag=True, help="End the region's agent instead; the next one continues its work.")
def follow(warehouse: str | None, stop: bool) -> int:
    """Run a region's agent here, as a service would.

    Keeps every table of the live release current and executes accepted plans up to their gate. It may be restarted at
    any moment, and logs to stderr.
    """
    if warehouse and cli_context().flags.regions:
        raise UsageError("--warehouse and --region exclude each other", hint="give only one of them")
    if stop:
        return _stop(warehouse)
    if warehouse:
        place, config = _kept(warehouse)
    else:
        region = open_project(one=True).regions[0]
        if region.transport:
            raise UsageError(
                f"{region.name} is behind SSH: its agent runs on {region.transport.host}",
                region=region.name,
                hint=f"there: console follow --warehouse {shlex.quote(region.warehouse)}; --stop ends it from here",
            )
        place, config = region.warehouse, agent_config(region, FOLLOW_TICK_SECONDS)
        if credentials := of_region(region):  # of this process, which is about to become the agent
            own = environment(os.environ, credentials)
            os.environ.clear()
            os.environ.update(own)
    execute = cli_context().wiring.execute
    if execute is None:
        raise UsageError("this console cannot start another program", hint="python -m console.agent serve")
    require_spark()
    execute(agent_command("serve", "--warehouse", place, "--config", "-"), json.dumps(config).encode())


@command("agent", examples="console agent remote\nconsole agent remote --only /srv/acme/eu")
@click.argument("what", type=click.Choice(["remote"]))
@click.option("--only", multiple=True, metavar="WAREHOUSE", help="Refuse requests for any other warehouse.")
def agent(what: str, only: tuple[str, ...]) -> int:
    """Serve one request of a console that connects over SSH.

    Reads and writes JSON on stdin and stdout. As the forced command of a key in ~/.ssh/authorized_keys, with --only, it
    is all that the key allows (docs/ssh.md).
    """
    from console.drivers.ssh import remote

    return remote.main([word for place in only for word in ("--only", place)])


def _kept(warehouse: str) -> tuple[str, dict[str, Any]]:
    """The settings with which its agent was last started, from the region itself."""
    place = warehouse.removeprefix("file://")
    if "://" not in place:
        place = str(Path(place).resolve())
    path = (paths.region_dir(place) if "://" in place else Path(place) / "_console") / "agent.json"
    try:
        config = loads(path.read_bytes())
    except OSError as error:
        hint = "start it once from its project: console follow --region NAME"
        raise UsageError(f"{path}: {error.strerror}", hint=hint) from None
    if not isinstance(config, dict):
        raise DataError(f"{path}: expected an object", hint="console follow --region NAME writes it again")
    return place, config


def _stop(warehouse: str | None) -> int:
    output = Output(cli_context().flags)
    if warehouse:
        place, config = _kept(warehouse)
        region = Region(name=str(config.get("region", "region")), warehouse=place)
        connect, name = partial(cli_context().wiring.drivers, (region,)), region.name
    else:
        project = open_project(one=True)
        connect, name = partial(cli_context().wiring.drivers, project.regions), project.names[0]

    async def work() -> None:
        driver = connect()[name]
        try:
            await driver.stop()
        finally:
            await driver.close()

    run_interruptible(work())
    output.info(f"{name}: the agent has ended; rows wait in its landing table until the next begins")
    return 0
