"""The lock that lets one console at a time change a store: a mark in the store itself, which names its holder."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname
from time import time
from typing import Final, Protocol
from uuid import uuid4

from console.errors import Conflict
from console.process import birth

LOCK: Final = "console_schema_lock"
REHEARSAL: Final = (
    "__rehearsal_"  # in the names of copies; each also has its holder's mark, by which leftovers are recognized
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLockHolder:
    """The console that holds a store's lock, or held it when it died.

    by, host  as shown to people;  user  of the operating system
    place     the machine's boot id and its pid namespace: containers may share a host name
    pid       in that namespace;  born  its start time, as the machine counts it
    at        seconds since 1970, UTC
    nonce     unique to this acquisition
    """

    by: str
    host: str = ""
    user: int = -1
    place: str = ""
    pid: int = 0
    born: str = ""
    at: float = 0.0
    nonce: str = ""

    @classmethod
    def now(cls, by: str, host: str) -> "StoreLockHolder":
        """This process."""
        pid = os.getpid()
        return cls(
            by=by, host=host, user=os.getuid(), place=_place(), pid=pid, born=birth(pid), at=time(), nonce=uuid4().hex
        )

    @classmethod
    def read(cls, mark: str) -> "StoreLockHolder":
        """The holder that a mark names; of a mark that cannot be parsed only its text is known."""
        with suppress(ValueError, TypeError):
            return cls(**json.loads(mark))
        return cls(by=" ".join(mark.split())[:200] or "someone else")

    @property
    def mark(self) -> str:
        return json.dumps(asdict(self))

    @property
    def gone(self) -> bool:
        """Its process has certainly ended: it ran under this user and in this namespace, and its pid is free or reused."""
        if not self.place or (self.user, self.place) != (os.getuid(), _place()):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return bool(self.born) and self.born != birth(self.pid)


class Marks(Protocol):
    """Named marks of one store."""

    def set_mark(self, name: str, mark: str) -> bool:
        """False if a mark of that name exists already: of two concurrent calls one succeeds."""
        ...

    def mark(self, name: str) -> str | None: ...

    def drop_mark(self, name: str) -> None:
        """Does nothing if there is none."""
        ...


@contextmanager
def marked(store: str, marks: Marks, by: str, host: str, *, take_over: bool) -> Iterator[None]:
    """Hold a store by a mark that only its setter removes; a mark left by a dead process of ours is replaced.

    raises  Conflict naming the holder
    """
    mine = StoreLockHolder.now(by, host)
    there = marks.mark(LOCK)
    if there is not None and take_over:
        marks.drop_mark(_successor(there))
        marks.drop_mark(LOCK)
    elif there is not None:
        if not StoreLockHolder.read(there).gone:
            raise lock_conflict(store, there)
        _remove_dead(store, marks, LOCK, there, mine.mark)
    if not _set(marks, LOCK, mine.mark):
        raise lock_conflict(store, marks.mark(LOCK) or "")
    try:
        yield
    finally:
        if marks.mark(LOCK) == mine.mark:
            marks.drop_mark(LOCK)


def _remove_dead(store: str, marks: Marks, name: str, dead: str, mine: str) -> None:
    """Remove a dead holder's mark; of two successors one does, and neither removes the other's mark.

    A successor may die meanwhile, and then has successors of its own.
    """
    successor = _successor(dead)
    if not _set(marks, successor, mine):
        other = marks.mark(successor) or ""
        if not StoreLockHolder.read(other).gone:
            raise lock_conflict(store, other)
        _remove_dead(store, marks, successor, other, mine)
        if not _set(marks, successor, mine):
            raise lock_conflict(store, marks.mark(successor) or "")
    try:
        if marks.mark(name) == dead:
            marks.drop_mark(name)
    finally:
        marks.drop_mark(successor)


def _set(marks: Marks, name: str, mark: str) -> bool:
    """A client may send twice if an answer was lost: the existing mark is then our own."""
    return marks.set_mark(name, mark) or marks.mark(name) == mark


def _successor(mark: str) -> str:
    return f"{LOCK}_after_{StoreLockHolder.read(mark).nonce}"


def lock_conflict(store: str, mark: str) -> Conflict:
    """The error for a store that another console holds. mark: the holder's"""
    holder = StoreLockHolder.read(mark)
    where = f" on {holder.host}, process {holder.pid}" if holder.host else ""
    since = f", since {datetime.fromtimestamp(holder.at, UTC):%Y-%m-%d %H:%M:%S} UTC" if holder.at else ""
    return Conflict(
        f"{store}: migrations are being applied by {holder.by}{where}{since}",
        hint="wait for it; if that console is gone: the same command with --take-over",
        code="E_SCHEMA_LOCK",
    )


def _place() -> str:
    if not Path("/proc/self").exists():
        return gethostname()  # a system without containers of its own
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""
