"""The remote end of SSH: the process that a console elsewhere starts on the region's host, one for each channel.

Its command line is fixed: the request arrives as one JSON line on stdin, so that no secret shows in `ps` and nothing
needs quoting. It answers with one line and then, for `dial`, becomes a pipe to the agent's socket.
"""

import argparse
import asyncio
import json
import os
import re
import select
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn
from urllib.parse import unquote

import console
from console.drivers import prerequisites
from console.drivers.frames import FRAME
from console.drivers.local import LocalTransport, check_peer, local_path
from console.drivers.lock_holder import lease_holder
from console.drivers.prerequisites import Prerequisite
from console.drivers.survey import Sample, Surveyor, raw_answers, raw_profile
from console.drivers.transport import SurveyRequest
from console.errors import ConsoleError, DataError, NoAgent, RegionError, Unreachable, no_warehouse, type_name
from console.model import codec
from console.model.region import STORE_SECRETS, Region
from console.text import hide

COMMAND = ("console", "agent", "remote")
READY = 1
# in a survey's `config`, which hosts of 0.1.0 ignore there: the console supports fields added after 0.1.0
LATER = {"later": True}
SILENT_BEATS = 4  # missed heartbeats of the console after which its channel counts as dead
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")  # one folder of the warehouse: no path that leads elsewhere
_BUCKET = re.compile(r"s3a?://(?P<place>[^/]+(?:/[^/]+)*)/?")
_CREDENTIALS = frozenset(name.upper() for name in STORE_SECRETS)
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A console's request.

    beat         seconds between two blank lines, its heartbeat
    config       settings of the agent to start; in a survey `LATER`, `hours` of the samples, `after` of the records to return,
                 and `tables`, false if the tables themselves are not to be surveyed
    credentials  of the region's bucket, as variables of the environment of the processes that are started here; without any
                 this host's own count
    """

    do: Literal["dial", "survey", "look", "profile"]
    region: str
    warehouse: str
    pipeline: str = ""
    landing: tuple[str, ...] = ()
    state: bool = False
    past: str = ""
    start: bool = False
    start_seconds: float = 90.0
    beat: float = 0.0
    config: dict[str, Any] = field(default_factory=dict)
    sample: Sample | None = None
    credentials: tuple[tuple[str, str], ...] = field(default=(), repr=False, metadata=codec.QUIET)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one request; returns the exit code."""
    parser = argparse.ArgumentParser(prog="console agent remote")
    parser.add_argument("--only", action="append", default=[], metavar="WAREHOUSE", help="refuse any other warehouse")
    only = parser.parse_args(argv).only
    try:
        unread, request = _request()
        _check_request(request, only)
        if request.do == "survey":
            return asyncio.run(_survey(request))
        if request.do == "look":
            return asyncio.run(_look(request))
        if request.do == "profile":
            return asyncio.run(_profile(request))
        path = asyncio.run(_agent_socket(request))
        _pipe(path, request, unread)
    except ConsoleError as error:
        _print_line(
            {"error": {"message": str(error), "type": type_name(error), "hint": error.hint, "code": error.code}}
        )
        return error.exit_code


def _request() -> tuple[bytes, Request]:
    """The first line of stdin as a request, and the bytes after it."""
    unread = b""
    while b"\n" not in unread and len(unread) < FRAME:
        chunk = os.read(0, _CHUNK)
        if not chunk:
            break
        unread += chunk
    line, end, rest = unread.partition(b"\n")
    if not end:
        raise DataError(
            "no request received: this command is started by a console over SSH",
            hint="console plan, on the machine with the project",
        )
    return rest, codec.decode(Request, codec.loads(line))


def _check_request(request: Request, only: Sequence[str]) -> None:
    """raises  DataError for an impossible region name or path; RegionError for one that this key may not reach"""
    if not _NAME.fullmatch(request.region):
        raise DataError(f"{request.region!r:.80} is not a region's name")
    _check_warehouse(request.warehouse)
    if only and _place(request.warehouse) not in map(_place, only):
        raise RegionError(
            f"{request.region}: this key may not reach {request.warehouse}",
            region=request.region,
            hint="see `--only` at its line in ~/.ssh/authorized_keys of that host",
            code="E_ONLY",
        )
    _check_credentials(dict(request.credentials))


def _check_warehouse(warehouse: str) -> None:
    """raises  DataError for anything but an absolute path, or a folder of a bucket of S3, by a name that leads nowhere else"""
    if (path := local_path(warehouse)) is not None:
        if not path.is_absolute() or ".." in path.parts or "\0" in warehouse:
            raise DataError(f"{warehouse!r:.200} is not an absolute path without `..`")
    elif (named := _BUCKET.fullmatch(warehouse)) is None:
        raise DataError(f"{warehouse!r:.200} is in an object store that no agent serves", code="E_STORE")
    elif {".", ".."} & set(unquote(named["place"]).split("/")) or any(ord(char) < 32 for char in unquote(warehouse)):
        raise DataError(f"{warehouse!r:.200} is not a folder of a bucket")


def _check_credentials(given: Mapping[str, str]) -> None:
    """Hide their values from now on. A key that is limited to one warehouse must set no other variable of a process here.

    raises  DataError
    """
    if given.keys() - _CREDENTIALS or any("\0" in value for value in given.values()):
        raise DataError(f"credentials: expected {', '.join(sorted(_CREDENTIALS))}")
    hide(given.items())


def _place(warehouse: str) -> str:
    """A warehouse by one name: a directory with its links followed, or the URI of a folder in a bucket."""
    named = _BUCKET.fullmatch(warehouse)
    return f"s3://{named['place']}" if named else os.path.realpath(local_path(warehouse) or warehouse)


def _transport(request: Request) -> LocalTransport:
    region = Region(name=request.region, warehouse=request.warehouse)
    config = {**request.config, "region": request.region}
    return LocalTransport(region, Surveyor(), 0.5, request.start_seconds, config, dict(request.credentials))


async def _survey(request: Request) -> int:
    _check_directory(request)
    ask = SurveyRequest(
        region=request.region,
        warehouse=request.warehouse,
        pipeline=request.pipeline,
        landing=request.landing,
        tables=request.config.get("tables") is not False,
        state=request.state,
        past=request.past,
        hours=float(request.config.get("hours") or 0.0),
        after=None if request.config.get("after") is None else int(request.config["after"]),
        later=request.config.get("later") is True,
    )
    sys.stdout.buffer.write(await raw_answers([ask], dict(request.credentials)))
    sys.stdout.flush()
    return 0


async def _profile(request: Request) -> int:
    sample = _sample(request)
    _check_directory(request)
    sys.stdout.buffer.write(await raw_profile(request.warehouse, sample, dict(request.credentials)))
    sys.stdout.flush()
    return 0


def _sample(request: Request) -> Sample:
    """raises  DataError if the table is not one folder of the warehouse"""
    sample = request.sample
    if sample is None or not _TABLE.fullmatch(sample.table):
        raise DataError(f"{sample.table if sample else ''!r:.80} is not a table of a warehouse")
    return sample


async def _look(request: Request) -> int:
    """Check this host's prerequisites, for `console doctor`; contacts a running agent and starts none."""
    here = Prerequisite("console", True, f"{console.__version__} in {Path(console.__file__).parent}")
    path = local_path(request.warehouse)
    checked = [here, *prerequisites.needed(), *(prerequisites.warehouse(path) if path else prerequisites.bucket())]
    if path is None:
        checked.append(await asyncio.to_thread(_bucket_answers, request))
    if path is None or path.is_dir():
        checked.append(await _agent(request))
    _print_line({"tool": console.__version__, "found": codec.encode(checked)})
    return 0


def _bucket_answers(request: Request) -> Prerequisite:
    """Whether the bucket answers this host, and who holds the region's lease there."""
    try:
        now = lease_holder(request.warehouse, credentials=dict(request.credentials))
    except ConsoleError as error:
        return Prerequisite("warehouse", False, str(error), error.hint)
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    where = f"{request.warehouse} answers{f' at {endpoint}' if endpoint else ''}"
    lease = f"its lease is held by {now.description}" if now.held else "its lease is free"
    return Prerequisite("warehouse", True, f"{where}; {lease}")


async def _agent(request: Request) -> Prerequisite:
    try:
        link = await _transport(request).dial(start=False)
    except NoAgent:
        return Prerequisite("agent", True, "none runs now; the next command that needs one starts it")
    except ConsoleError as error:
        return Prerequisite("agent", False, str(error), error.hint)
    try:
        hello = await link.call("hello", {"protocol": 1}, seconds=30)
    finally:
        await link.close()
    return Prerequisite("agent", True, f"{hello['tool']}, process {hello['pid']}")


def _check_directory(request: Request) -> None:
    path = local_path(request.warehouse)
    if path is not None and not path.is_dir():
        raise no_warehouse(request.region, path)


async def _agent_socket(request: Request) -> Path:
    """The socket of the region's agent, which is started first if requested."""
    transport = _transport(request)
    link = await transport.dial(start=request.start)
    try:
        hello = await link.call("hello", {"protocol": 1}, seconds=30)
    finally:
        await link.close()
    assert transport.agent_socket
    _print_line({"ready": READY, "warehouse": hello["warehouse"]})
    return transport.agent_socket


def _print_line(word: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(word, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _pipe(path: Path, request: Request, unread: bytes) -> NoReturn:
    """Copy stdin to the agent and the agent to stdout, until one of them ends or the console's heartbeat stops.

    A link that was cut silently leaves this process behind: it must end by itself, or an agent tied to its console
    would consider the console connected.
    """
    agent = socket.socket(socket.AF_UNIX)
    try:
        agent.connect(str(path))
    except OSError:
        os._exit(Unreachable.exit_code)
    check_peer(agent, path, request.region)
    threading.Thread(target=_copy_back, args=(agent,), daemon=True).start()
    silence = request.beat * SILENT_BEATS if request.beat > 0 else None
    begins = True
    while True:
        data, begins = without_beats(unread, begins)
        if data:
            agent.sendall(data)
        if not select.select([0], [], [], silence)[0]:
            os._exit(Unreachable.exit_code)
        unread = os.read(0, _CHUNK)
        if not unread:
            os._exit(0)


def _copy_back(agent: socket.socket) -> None:
    code = 0
    try:
        while chunk := agent.recv(_CHUNK):
            while chunk:
                chunk = chunk[os.write(1, chunk) :]
    except OSError:
        code = Unreachable.exit_code
    os._exit(code)


def without_beats(chunk: bytes, begins: bool) -> tuple[bytes, bool]:
    """A chunk of lines without the blank ones.

    begins   whether the chunk begins a line
    returns  what is left, and whether the next chunk begins a line
    """
    kept = re.sub(rb"\n+", b"\n", chunk)
    if begins:
        kept = kept.removeprefix(b"\n")
    return kept, kept.endswith(b"\n") if kept else begins or chunk.endswith(b"\n")


if __name__ == "__main__":
    sys.exit(main())
