"""Regions of this machine: the agent's socket, the process behind it, and the survey without an agent."""

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

from console import paths
from console.drivers.frames import Link, error_in
from console.drivers.rpc import RpcDriver
from console.drivers.store_secrets import of_region
from console.drivers.survey import Surveyor, agent_command, agent_environment
from console.drivers.transport import Surveyed, SurveyRequest, greet
from console.errors import (
    Conflict,
    ConsoleError,
    DataError,
    NoAgent,
    Protocol,
    RegionError,
    Unreachable,
    no_warehouse,
    require_spark,
)
from console.model.region import BackfillSpark, Follow, Region

_LOG_BYTES = 4 << 20  # above this size the log is rotated before the next start
_LOCK_BYTES = 1 << 16
# of an agent that wrote no error, as where its log cannot be written
_ENDS: dict[int, type[ConsoleError]] = {4: Conflict, 5: Unreachable, 65: DataError}
_OTHER_AGENT_SECONDS = 10.0  # time for another console's starting agent to open its socket


class LocalDriver(RpcDriver):
    """A region whose warehouse is accessible from this machine.

    surveyor  shared by the regions that are planned together; see `local_drivers`
    """

    def __init__(
        self,
        region: Region,
        surveyor: Surveyor | None = None,
        *,
        tick_seconds: float = 0.5,
        start_seconds: float = 90.0,
    ) -> None:
        super().__init__(region, LocalTransport(region, surveyor or Surveyor(), tick_seconds, start_seconds))


def local_drivers(regions: Iterable[Region], *, tick_seconds: float = 0.5) -> dict[str, LocalDriver]:
    """One driver per region, by name; one process surveys them all."""
    surveyor = Surveyor()
    return {region.name: LocalDriver(region, surveyor, tick_seconds=tick_seconds) for region in regions}


class LocalTransport:
    """Finds or starts a local region's agent: implements `drivers.transport.AgentTransport`.

    config       configuration for an agent that is started; by default from the region's file
    credentials  of its bucket; by default those to which the region's file leads
    """

    def __init__(
        self,
        region: Region,
        surveyor: Surveyor,
        tick_seconds: float,
        start_seconds: float,
        config: dict[str, Any] | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        self._region = region
        self._surveyor = surveyor
        self._start_seconds = start_seconds
        self._config = config or agent_config(region, tick_seconds)
        self._given = credentials
        self.agent_socket: Path | None = None  # where the agent was last found
        self._agent_pid = 0  # of the process behind that socket

    async def dial(self, *, start: bool) -> Link:
        self._check_warehouse()
        if link := await self._find_agent():
            return link
        if not start:
            raise NoAgent(
                f"{self._region.name}: no agent runs",
                region=self._region.name,
                hint=f"console follow --region {self._region.name}",
            )
        return await self._start_agent()

    async def survey(self, request: SurveyRequest) -> Surveyed:
        return await self._surveyor.survey(request, await self._credentials())

    async def _credentials(self) -> Mapping[str, str]:
        """In a thread, since a reference may be a command. raises  RegionError E_CREDENTIALS"""
        if self._given is not None:
            return self._given
        return await asyncio.to_thread(of_region, self._region) if self._region.secrets else {}

    def save_tail(self, tail: bytes) -> str:
        return save_tail(self._region.name, tail)

    def _check_warehouse(self) -> None:
        path = local_path(self._region.warehouse)
        if path is None or path.is_dir():
            return
        if path.exists():
            hint = f"correct `warehouse:` in {self._region.where or 'the inventory'}"
            raise DataError(
                f"{self._region.name}: the warehouse {path} is not a directory", region=self._region.name, hint=hint
            )
        raise no_warehouse(self._region.name, path, self._region.where or "the inventory")

    async def _find_agent(self) -> Link | None:
        """A link to the agent that holds the warehouse, at our socket or at the one named in its lock."""
        for path in (_socket_path(self._region.warehouse), self._holder_socket()):
            if path is None:
                continue
            found = await _connect(path, self._region.name)
            if found is None:
                continue
            link, pid = found
            try:
                await greet(link, self._region.warehouse)
            except BaseException:
                await link.close()
                raise
            self.agent_socket, self._agent_pid = path, pid
            return link
        return None

    def _holder_socket(self) -> Path | None:
        path = self._lock().get("socket")
        return Path(path) if isinstance(path, str) else None

    def _lock(self) -> dict[str, Any]:
        """The record that the holder wrote into the region's lock; {} if there is none."""
        path = local_path(self._region.warehouse)
        if path is not None:
            with suppress(OSError, ValueError), (path / "_console" / "agent.lock").open("rb") as lock:
                content = json.loads(lock.read(_LOCK_BYTES))
                return content if isinstance(content, dict) else {}
        return {}

    async def _start_agent(self) -> Link:
        require_spark()
        environment = agent_environment(credentials=await self._credentials())
        agent = AgentProcess(self._region.warehouse, self._config, agent_log(self._region.name), environment)
        loop = asyncio.get_running_loop()
        until, delay = loop.time() + self._start_seconds, 0.05
        lost_race = False
        while loop.time() < until:
            await asyncio.sleep(delay)
            delay = min(0.5, delay * 1.3)
            if link := await self._find_agent():
                if self._agent_pid != agent.pid:
                    agent.dismiss()  # another console's agent was faster; ours would wait for the lock and take over later
                return link
            if agent.code is not None and not lost_race:
                if agent.code != Conflict.exit_code:
                    break
                # another agent took the lock between our check and our start, and may not listen yet
                lost_race, until = True, min(until, loop.time() + _OTHER_AGENT_SECONDS)
        raise self._silent(agent)

    def _silent(self, agent: "AgentProcess") -> ConsoleError:
        name, hint = self._region.name, f"its log: {agent.log}"
        if agent.code is None:
            return Unreachable(
                f"{name}: the agent does not answer after {self._start_seconds:g} s", region=name, hint=hint
            )
        if error := agent.own_error(name):
            return error
        kind = _ENDS.get(agent.code, RegionError)
        return kind(f"{name}: the agent ended with exit code {agent.code}: {agent.last_words()}", hint=hint)


def agent_config(region: Region, tick_seconds: float) -> dict[str, Any]:
    """The agent's configuration, sent on its stdin (docs/architecture.md, Agent commands)."""
    return {
        "region": region.name,
        **({"remote": region.spark.remote} if region.spark.remote else {"master": region.spark.master}),
        "conf": dict(region.spark.conf),
        "tick_seconds": tick_seconds,
        "rollback_window_hours": region.policy.rollback_window_hours,
        "keep_failed_hours": region.policy.keep_failed_hours,
        **({"spark_defaults": region.spark.defaults} if region.spark.defaults else {}),
        **_backfill_config(region.backfill_spark),
        **_follow_config(region.follow),
    }


def _backfill_config(second: BackfillSpark | None) -> dict[str, Any]:
    if second is None:
        return {}
    defaults = {"backfill_defaults": second.spark.defaults} if second.spark.defaults else {}
    return {"backfill_master": second.spark.master, "backfill_conf": dict(second.spark.conf), **defaults}


def _follow_config(follow: Follow) -> dict[str, Any]:
    """What differs from the defaults, since an agent of an older version refuses keys that it does not know."""
    usual = fields(Follow)
    return {f"follow_{each.name}": value for each in usual if (value := getattr(follow, each.name)) != each.default}


def save_tail(region: str, tail: bytes) -> str:
    """Save the last bytes received from a broken agent; returns the file's path."""
    path = paths.log_dir() / f"protocol-{region}.log"
    with suppress(OSError):
        path.unlink(missing_ok=True)
        with _append(path) as log:
            log.write(tail)
    return str(path)


def agent_log(region: str) -> Path:
    """The log file of a region's agent; /dev/null if it cannot be written, since the agent is more important than its log."""
    try:
        log = paths.log_dir() / f"agent-{region}.log"
        _append(log).close()
    except OSError:
        return Path(os.devnull)
    return log


class AgentProcess:
    """An agent in its own session: it outlives this console, and our terminal's signals do not reach it.

    code  its exit code, None while it runs
    """

    def __init__(self, warehouse: str, config: dict[str, Any], log: Path, environment: Mapping[str, str]) -> None:
        self.code: int | None = None
        self.log = log
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with _append(log) as out:
            self._begin = out.tell()
            process = subprocess.Popen(
                agent_command("serve", "--warehouse", warehouse, "--config", "-"),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env=environment,
            )
        self.pid = process.pid
        assert process.stdin
        with suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(json.dumps(config).encode())
        # reaped by a thread and not by asyncio, whose transports kill their child when the loop ends
        threading.Thread(target=self._reap, args=(process,), name=f"agent {log.stem}", daemon=True).start()

    def dismiss(self) -> None:
        """Terminate it; it holds no lock yet."""
        if self.code is None:
            os.kill(self.pid, signal.SIGTERM)

    def own_error(self, region: str) -> ConsoleError | None:
        """The error with which it ended, as it wrote it for a program to read; None if it wrote none."""
        for line in reversed(self._end()):
            if line.startswith('{"error"'):
                with suppress(ValueError, Protocol):
                    return error_in(json.loads(line), region)
        return None

    def last_words(self) -> str:
        """The end of its log, on one line."""
        return " | ".join(self._end())[-400:] or "it printed nothing"

    def _end(self) -> list[str]:
        """The last lines of its log, without those of earlier agents."""
        with self.log.open("rb") as log:
            log.seek(max(self._begin, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode("utf-8", "replace").split("\n")
        return [stripped for line in lines if (stripped := line.strip())]

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        self.code = process.wait()


def local_path(warehouse: str) -> Path | None:
    """The directory behind a warehouse; None for one in an object store."""
    scheme, mark, rest = warehouse.partition("://")
    if not mark:
        return Path(warehouse)
    return Path(rest) if scheme == "file" else None


def _socket_path(warehouse: str) -> Path:
    try:
        return paths.socket_path(warehouse)
    except OSError as error:
        raise RegionError(str(error), hint="set XDG_RUNTIME_DIR to a directory of your own", code="E_RUNTIME") from None


async def _connect(path: Path, peer: str) -> tuple[Link, int] | None:
    """A link to the process that listens at `path`, and its pid; None if none does.

    raises  Conflict if the process behind it is another user's
    """
    try:
        reader, writer = await asyncio.open_unix_connection(str(path))
    except (OSError, ValueError):
        return None
    try:
        pid = check_peer(writer.get_extra_info("socket"), path, peer)
    except Conflict:
        writer.close()
        raise
    return Link(reader, writer, peer), pid


def check_peer(end: socket.socket, path: Path, peer: str) -> int:
    """The process at the other end of a unix socket. raises  Conflict if it is another user's"""
    pid, user, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user not in (os.getuid(), 0):
        raise Conflict(
            f"{peer}: the socket {path} is held by user {user}", region=peer, hint="work as that user", code="E_USER"
        )
    return int(pid)


def _append(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.fdopen(os.open(path, flags, 0o600), "ab")
    log.seek(0, os.SEEK_END)
    return log
