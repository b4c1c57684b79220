"""Who holds a local region's lock, asked of the lock itself, and how such a holder is ended.

The file says who took it last; whether anybody holds it now only `flock` tells. A process is ended only if it has
this very file open: a pid that was written down may be another process by now.
"""

import fcntl
import json
import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.errors import Conflict, RegionError, no_warehouse

_BYTES = 1 << 16
ASK_SECONDS = 8.0  # for an agent to stop by itself: it ends its feeds' jobs first
END_SECONDS = 20.0  # for the kernel to take a killed JVM apart


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A region's lock at one moment.

    held       whether anybody holds it; else the rest is of the last holder
    since      seconds, UTC; 0 where nobody ever took it
    processes  pid → state, of those on this host that have it open: `running` or `stopped` (SIGSTOP)
    """

    held: bool
    pid: int = 0
    host: str = ""
    since: float = 0.0
    tool: str = ""
    processes: tuple[tuple[int, str], ...] = ()

    @property
    def stopped(self) -> bool:
        return any(pid == self.pid and state == "stopped" for pid, state in self.processes)

    @property
    def told(self) -> str:
        """`pid 4711 on box since 2026-11-07 03:12:09Z`, as far as it is known."""
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.since)) if self.since else "an unknown time"
        return f"pid {self.pid or '?'} on {self.host or '?'} since {when}"


def lock_path(warehouse: Path) -> Path:
    return warehouse / "_console" / "agent.lock"


def holder(warehouse: Path) -> LockHolder:
    """raises  DataError if there is no warehouse; RegionError if its lock cannot be opened"""
    if not warehouse.is_dir():
        raise no_warehouse("", warehouse)
    path = lock_path(warehouse)
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return LockHolder(False)
    except OSError as error:
        raise RegionError(f"{path}: {error.strerror}", hint="ask as the user who runs the agent") from None
    try:
        said = _said(os.read(fd, _BYTES))
        facts = (int(said.get("pid") or 0), str(said.get("host", "")), float(said.get("since") or 0))
        return LockHolder(_held(fd), *facts, str(said.get("tool", "")), tuple(_with_open(path)))
    finally:
        os.close(fd)


def end(warehouse: Path, expected: LockHolder) -> None:
    """End the holder, its JVM included, and return when the lock is free.

    A running agent is asked first (SIGTERM) and then killed; a stopped one hears no request and is killed at once.

    expected  the holder a person was shown
    raises    Conflict if another holds it by now, or one on another host; RegionError if it cannot be ended
    """
    now = holder(warehouse)
    if (now.pid, now.since) != (expected.pid, expected.since):
        raise Conflict(f"{warehouse} is held by {now.told} by now", hint="console lock show", code="E_LOCK")
    if now.held and not now.processes:
        raise Conflict(
            f"{warehouse} is held by {now.told}, and no process of this host has it open",
            hint=f"on {now.host or 'that host'}: console lock force --warehouse {warehouse}",
            code="E_LOCK",
        )
    if now.held and not now.stopped:
        _signal(now, signal.SIGTERM)
        now = _free(warehouse, ASK_SECONDS)
    if now.held:
        _signal(now, signal.SIGKILL)
        now = _free(warehouse, END_SECONDS)
    if now.held:
        raise RegionError(f"{warehouse}: {now.told} was killed and still holds the lock", hint="console lock show")


def _free(warehouse: Path, seconds: float) -> LockHolder:
    until = time.monotonic() + seconds
    while (now := holder(warehouse)).held and time.monotonic() < until:
        time.sleep(0.1)
    return now


def _signal(now: LockHolder, what: signal.Signals) -> None:
    """To all who have the lock open when they are to be killed; a request goes to the agent alone, which ends its JVM."""
    asked = [pid for pid, _ in now.processes if what is signal.SIGKILL or pid == now.pid]
    for pid in asked or [pid for pid, _ in now.processes]:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            continue
        except PermissionError:
            raise RegionError(f"pid {pid} is another user's", hint="ask as the user who runs the agent") from None


def _held(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who only look do not see each other
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _said(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _with_open(path: Path) -> list[tuple[int, str]]:
    """Processes of this host, but for this one, that have a file open, with their state; [] where /proc does not tell."""
    wanted = path.stat()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid == os.getpid():
            continue
        with suppress(OSError):
            opened = [fd.stat() for fd in (entry / "fd").iterdir() if os.readlink(fd) == str(path.resolve())]
            if any((each.st_dev, each.st_ino) == (wanted.st_dev, wanted.st_ino) for each in opened):
                stopped = (entry / "stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
                found.append((pid, "stopped" if stopped else "running"))
    return sorted(found)


def here(now: LockHolder) -> bool:
    """Whether the holder is on this host."""
    return now.host == socket.gethostname() or bool(now.processes)
