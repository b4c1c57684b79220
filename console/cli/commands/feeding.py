"""`console ingest`, which hands a file to the region's agent, and `console follow`, which is that agent."""

import hashlib
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import click

from console.cli.flags import command
from console.cli.voice import Voice
from console.cli.wiring import Desk, choices, open_desk, session
from console.errors import DataError, UsageError

# of a frame of 1 MiB; the rest is for the request around the lines
CHUNK_BYTES = 900 * 1024
CHUNK_LINES = 20_000
_SHOWN = 5
FOLLOW_TICK_SECONDS = 0.5


@command(
    "ingest",
    changes=True,
    examples="console ingest events.ndjson --region eu\nzcat events.gz | console ingest - --region eu --table landing",
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--table", metavar="NAME", help="The managed landing table (default: the only one).")
def ingest(file: str, table: str | None) -> int:
    """Append a file of NDJSON events to a landing table, once per file.

    Lines are matched to columns by name. The same content ingested again, whole or after an interruption, adds
    nothing twice. `-` reads stdin.
    """
    from console.cli.figures import count
    from console.cli.interrupt import carry

    desk = open_desk(one=True)
    voice = Voice(session().flags)
    region = desk.names[0]
    target = _landing(desk, region, table)
    with _opened(file) as source:
        batch, length, lines = examine(source, "stdin" if file == "-" else file)
        source.seek(0)
        result = carry(_send(desk, voice, target, batch, chunks(source, length)))
    if voice.json:
        voice.document({"region": region, "table": target, "batch": batch, "lines": lines, **result})
    elif result["already"]:
        voice.data(f"{target}: already there, nothing added ({count(lines, 'line')})")
    else:
        voice.data(f"{target}: {count(result['rows'], 'row')} added")
    return 0


def _landing(desk: Desk, region: str, wanted: str | None) -> str:
    managed = [table.name for table in desk.pipelines[region].tables if table.kind == "landing" and table.managed]
    if wanted is None and len(managed) == 1:
        return managed[0]
    if not managed:
        raise UsageError(f"{desk.name} has no managed landing table", hint="managed: true in tables/<name>.yaml")
    if wanted is None:
        raise UsageError("say which landing table", hint=f"--table, one of {', '.join(managed)}")
    if wanted not in managed:
        raise UsageError(f"{wanted!r} is no managed landing table of {desk.name}", **choices(managed, wanted))
    return wanted


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """The file, or all of stdin kept aside: it is read twice, first to be checked."""
    if file == "-":
        with tempfile.SpooledTemporaryFile(max_size=1 << 24) as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.seek(0)
            yield spool
        return
    with ExitStack() as stack:
        try:
            source = stack.enter_context(open(file, "rb"))
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}", hint="console ingest FILE, or - for stdin") from None
        yield source


def examine(source: IO[bytes], name: str) -> tuple[str, int, int]:
    """Read everything once before anything is sent.

    returns  (sha256 of the content, its bytes, its lines that hold an event); a file that grows meanwhile is taken
             up to here
    raises   DataError naming the first lines that are no JSON object, or too long to be sent
    """
    digest, length, events = hashlib.sha256(), 0, 0
    wrong: list[str] = []
    for number, raw in enumerate(_lines(source), 1):
        digest.update(raw)
        length += len(raw)
        if not raw.strip():
            continue
        events += 1
        if reason := _fault(raw):
            wrong.append(f"{name}:{number}: {reason}")
            if len(wrong) == _SHOWN:
                break
    if wrong:
        raise DataError("; ".join(wrong), hint="one JSON object a line, UTF-8; nothing was sent")
    if not events:
        raise DataError(f"{name}: no events", hint="one JSON object a line")
    return digest.hexdigest(), length, events


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    """Line by line, a too long one in pieces: a file that is no text must not fill the memory."""
    while line := source.readline(CHUNK_BYTES + 1):
        yield line


def _fault(raw: bytes) -> str:
    if len(raw) > CHUNK_BYTES:
        return f"longer than {CHUNK_BYTES:,} bytes"
    try:
        text = raw.decode()
        if not isinstance(json.loads(text), dict):
            return "no JSON object"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return "" if _cost(text) <= CHUNK_BYTES else f"longer than {CHUNK_BYTES:,} bytes"


def _cost(line: str) -> int:
    """Bytes of a line inside a request: it is escaped there as a JSON string."""
    return len(json.dumps(line)) + 1


def chunks(source: IO[bytes], length: int) -> Iterator[tuple[str, ...]]:
    """The events of the first `length` bytes in runs that fit a frame; the same content is always cut the same."""
    run: list[str] = []
    room = CHUNK_BYTES
    read = 0
    for whole in _lines(source):
        raw = whole[: length - read]
        read += len(raw)
        line = raw.decode().strip()
        cost = _cost(line)
        if line and run and (cost > room or len(run) == CHUNK_LINES):
            yield tuple(run)
            run, room = [], CHUNK_BYTES
        if line:
            run.append(line)
            room -= cost
        if read >= length:
            break
    if run:
        yield tuple(run)


async def _send(desk: Desk, voice: Voice, table: str, batch: str, runs: Iterator[tuple[str, ...]]) -> dict[str, Any]:
    rows, already = 0, True
    region = desk.names[0]
    async with desk.reach() as drivers:
        for number, lines in enumerate(runs, 1):
            result = await drivers[region].ingest(desk.name, table, f"{batch}/{number}", lines)
            already = already and bool(result["already"])
            rows += 0 if result["already"] else int(result["rows"])
            voice.detail(f"{region}  {table}: {rows:,} rows added")
    return {"rows": rows, "already": already}


@command(
    "follow",
    changes=True,
    examples="console follow --region eu\nconsole follow --warehouse /srv/acme/eu\nconsole follow --region eu --stop",
)
@click.option("--warehouse", metavar="URI", help="Without project files, with the settings kept in the region.")
@click.option("--stop", is_flag=True, help="End the region's agent instead; its work is taken up by the next.")
def follow(warehouse: str | None, stop: bool) -> int:
    """Run a region's agent here, as a service would.

    It keeps every table of the live release current and carries accepted plans up to their gate; restart it at any
    instant. It speaks on stderr.
    """
    from console.drivers.local import agent_config
    from console.drivers.survey import agent_command

    if warehouse and session().flags.regions:
        raise UsageError("--warehouse and --region say the same in two ways", hint="give one of them")
    if stop:
        return _stop(warehouse)
    if warehouse:
        place, config = _kept(warehouse)
    else:
        region = open_desk(one=True).regions[0]
        if region.transport:
            raise UsageError(
                f"{region.name} is behind SSH: its agent runs on {region.transport.host}",
                hint=f"there: console follow --warehouse {shlex.quote(region.warehouse)}; --stop ends it from here",
            )
        place, config = region.warehouse, agent_config(region, FOLLOW_TICK_SECONDS)
    execute = session().wiring.execute
    if execute is None:
        raise UsageError("this console cannot start another program", hint="python -m console.agent serve")
    execute(agent_command("serve", "--warehouse", place, "--config", "-"), json.dumps(config).encode())


@command("agent", examples="console agent remote\nconsole agent remote --only /srv/acme/eu")
@click.argument("what", type=click.Choice(["remote"]))
@click.option("--only", multiple=True, metavar="WAREHOUSE", help="Refuse requests about any other.")
def agent(what: str, only: tuple[str, ...]) -> int:
    """Serve one request of a console that came over SSH.

    It speaks JSON on stdin and stdout, not with people. As the forced command of a key in ~/.ssh/authorized_keys,
    with --only, it is all that this key can do (docs/ssh.md).
    """
    from console.drivers.ssh import far

    return far.main([word for place in only for word in ("--only", place)])


def _kept(warehouse: str) -> tuple[str, dict[str, Any]]:
    """The settings its agent was last started with, from the region itself."""
    from console.model.codec import loads

    place = warehouse.removeprefix("file://")
    if "://" not in place:
        place = str(Path(place).resolve())
    path = Path(place) / "_console" / "agent.json"
    try:
        config = loads(path.read_bytes())
    except OSError as error:
        hint = "start it once from its project: console follow --region NAME"
        raise UsageError(f"{path}: {error.strerror}", hint=hint) from None
    if not isinstance(config, dict):
        raise DataError(f"{path}: expected an object", hint="console follow --region NAME writes it anew")
    return place, config


def _stop(warehouse: str | None) -> int:
    from console.cli.interrupt import carry
    from console.model.region import Region

    voice = Voice(session().flags)
    if warehouse:
        place, config = _kept(warehouse)
        region = Region(str(config.get("region", "region")), place)
        connect, name = partial(session().wiring.drivers, (region,)), region.name
    else:
        desk = open_desk(one=True)
        connect, name = partial(session().wiring.drivers, desk.regions), desk.names[0]

    async def work() -> None:
        driver = connect()[name]
        try:
            await driver.stop()
        finally:
            await driver.close()

    carry(work())
    voice.talk(f"{name}: the agent has ended; rows wait in its landing table until the next begins")
    return 0
