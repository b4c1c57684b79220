"""The holder of a local region's lock, read from the lock itself, and its termination.

The file names the last holder; only `flock` shows whether the lock is held now. A process is ended only if it has this
file open: a recorded pid may belong to another process by now.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from console.drivers.frames import error_in
from console.drivers.survey import NO_CREDENTIALS, agent_command, agent_environment
from console.errors import Conflict, RegionError, Unreachable, no_warehouse

_BYTES = 1 << 16
TERM_SECONDS = 8.0  # time for an agent to stop by itself, after its feeds' jobs
LEASE_SECONDS = 60.0  # time for a bucket to answer
END_SECONDS = 20.0  # time for the kernel to tear down a killed JVM


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """State of a region's lock.

    held       whether it is held; if not, the other fields describe the last holder
    since      seconds, UTC; 0 if it was never taken
    processes  pid → state of the processes of this host that have it open: `running` or `stopped` (SIGSTOP)
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
    def description(self) -> str:
        """`pid 4711 on box since 2026-11-07 03:12:09Z`, as far as it is known."""
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.since)) if self.since else "an unknown time"
        return f"pid {self.pid or '?'} on {self.host or '?'} since {when}"


def lease_holder(warehouse: str, *, force: bool = False, credentials: Mapping[str, str] = NO_CREDENTIALS) -> LockHolder:
    """The holder of the lease of a region in a bucket, from any host; with `force` it has lost the lease when this returns.

    Whether a holder that has not released it is alive, only time tells: the next agent waits for it (docs/stores.md).

    raises  whatever the agent's command says: RegionError E_EXTRA, E_CREDENTIALS; Unreachable
    """
    command = agent_command("lease", "force" if force else "show", "--warehouse", warehouse)
    try:
        done = subprocess.run(
            command, env=agent_environment(credentials=credentials), stdin=subprocess.DEVNULL, capture_output=True, timeout=LEASE_SECONDS, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unreachable(
            f"{warehouse} gave no answer in {LEASE_SECONDS:.0f} s", hint="is the bucket reachable?"
        ) from None
    answer = _parsed(done.stdout)
    if error := error_in(answer, warehouse):
        raise error
    match answer:
        case {"held": bool(held)}:
            return _recorded(answer, held=held)
    raise RegionError(f"{warehouse}: its lease cannot be read: exit code {done.returncode}", hint="console doctor")


def _recorded(record: dict[str, Any], *, held: bool) -> LockHolder:
    return LockHolder(
        held=held,
        pid=int(record.get("pid") or 0),
        host=str(record.get("host") or ""),
        since=float(record.get("since") or 0),
        tool=str(record.get("tool") or ""),
    )


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
        return LockHolder(held=False)
    except OSError as error:
        raise RegionError(f"{path}: {error.strerror}", hint="ask as the user who runs the agent") from None
    try:
        record = _parsed(os.read(fd, _BYTES))
        return replace(_recorded(record, held=_is_locked(fd)), processes=tuple(_processes_with(path)))
    finally:
        os.close(fd)


def end(warehouse: Path, expected: LockHolder) -> None:
    """End the holder and its JVM, and return when the lock is free.

    A running agent first gets SIGTERM, then SIGKILL; a stopped one cannot handle a signal and is killed at once.

    expected  the holder that was shown to the operator
    raises    Conflict if the holder has changed or is on another host; RegionError if it cannot be ended
    """
    now = holder(warehouse)
    if (now.pid, now.since) != (expected.pid, expected.since):
        raise Conflict(f"{warehouse} is now held by {now.description}", hint="console lock show", code="E_LOCK")
    if now.held and not now.processes:
        raise Conflict(
            f"{warehouse} is held by {now.description}, and no process of this host has it open",
            hint=f"on {now.host or 'that host'}: console lock force --warehouse {warehouse}",
            code="E_LOCK",
        )
    if now.held and not now.stopped:
        _signal(now, signal.SIGTERM)
        now = _wait_until_free(warehouse, TERM_SECONDS)
    if now.held:
        _signal(now, signal.SIGKILL)
        now = _wait_until_free(warehouse, END_SECONDS)
    if now.held:
        raise RegionError(
            f"{warehouse}: {now.description} was killed and still holds the lock", hint="console lock show"
        )


def _wait_until_free(warehouse: Path, seconds: float) -> LockHolder:
    until = time.monotonic() + seconds
    while (now := holder(warehouse)).held and time.monotonic() < until:
        time.sleep(0.1)
    return now


def _signal(now: LockHolder, what: signal.Signals) -> None:
    """SIGKILL goes to all processes with the lock open; any other signal to the agent alone, which ends its JVM."""
    targets = [pid for pid, _ in now.processes if what is signal.SIGKILL or pid == now.pid]
    for pid in targets or [pid for pid, _ in now.processes]:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            continue
        except PermissionError:
            raise RegionError(f"pid {pid} is another user's", hint="ask as the user who runs the agent") from None


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two readers do not block each other
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _processes_with(path: Path) -> list[tuple[int, str]]:
    """Other processes of this host that have a file open, with their state; [] if /proc does not show them."""
    target = path.stat()
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid == os.getpid():
            continue
        with suppress(OSError):
            opened = [fd.stat() for fd in (entry / "fd").iterdir() if os.readlink(fd) == str(path.resolve())]
            if any((each.st_dev, each.st_ino) == (target.st_dev, target.st_ino) for each in opened):
                stopped = (entry / "stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
                processes.append((pid, "stopped" if stopped else "running"))
    return sorted(processes)


def here(now: LockHolder) -> bool:
    """Whether the holder is on this host."""
    return now.host == socket.gethostname() or bool(now.processes)
