"""The lock by which one console at a time changes a store: a mark in the store itself, and who set it."""

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
ASIDE: Final = "__rehearsal_"  # in the names of copies; each has a holder's mark too, and whoever it is of ends it


@dataclass(frozen=True, slots=True)
class StoreLockHolder:
    """One console that holds a store, or held it when it died.

    by, host  as they are shown;  user  of the operating system
    place     the machine since its last start, and which of its process numberings: containers may share a host's name
    pid       there;  born  when, as that machine counts it
    at        seconds since 1970, UTC
    nonce     of this one time
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
        return cls(by, host, os.getuid(), _place(), pid, birth(pid), time(), uuid4().hex)

    @classmethod
    def read(cls, mark: str) -> "StoreLockHolder":
        """As its mark tells; a mark that cannot be read is a holder of whom nothing more is known."""
        with suppress(ValueError, TypeError):
            return cls(**json.loads(mark))
        return cls(" ".join(mark.split())[:200] or "someone else")

    @property
    def mark(self) -> str:
        return json.dumps(asdict(self))

    @property
    def gone(self) -> bool:
        """Its process is no more, for certain: it was one of this user and this numbering, and its number is free or another's."""
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
        """False where there is one of that name already: of two who set it, one does."""
        ...

    def mark(self, name: str) -> str | None: ...

    def drop_mark(self, name: str) -> None:
        """Nothing happens where there is none."""
        ...


@contextmanager
def marked(store: str, marks: Marks, by: str, host: str, *, take_over: bool) -> Iterator[None]:
    """Hold a store by a mark that only its setter takes away again; one left by a dead process of ours is inherited.

    raises  Conflict naming the holder
    """
    mine = StoreLockHolder.now(by, host)
    there = marks.mark(LOCK)
    if there is not None and take_over:
        marks.drop_mark(_heir(there))
        marks.drop_mark(LOCK)
    elif there is not None:
        if not StoreLockHolder.read(there).gone:
            raise held(store, there)
        _bury(store, marks, LOCK, there, mine.mark)
    if not _set(marks, LOCK, mine.mark):
        raise held(store, marks.mark(LOCK) or "")
    try:
        yield
    finally:
        if marks.mark(LOCK) == mine.mark:
            marks.drop_mark(LOCK)


def _bury(store: str, marks: Marks, name: str, dead: str, mine: str) -> None:
    """Take a dead holder's mark away; of two heirs one does, and neither takes the other's.

    An heir may die over it, and then has heirs of its own.
    """
    heir = _heir(dead)
    if not _set(marks, heir, mine):
        other = marks.mark(heir) or ""
        if not StoreLockHolder.read(other).gone:
            raise held(store, other)
        _bury(store, marks, heir, other, mine)
        if not _set(marks, heir, mine):
            raise held(store, marks.mark(heir) or "")
    try:
        if marks.mark(name) == dead:
            marks.drop_mark(name)
    finally:
        marks.drop_mark(heir)


def _set(marks: Marks, name: str, mark: str) -> bool:
    """A client may ask twice where an answer was lost: the mark that is there already is then our own."""
    return marks.set_mark(name, mark) or marks.mark(name) == mark


def _heir(mark: str) -> str:
    return f"{LOCK}_after_{StoreLockHolder.read(mark).nonce}"


def held(store: str, mark: str) -> Conflict:
    """Somebody else is at work in a store, whose mark it is."""
    holder = StoreLockHolder.read(mark)
    where = f" on {holder.host}, process {holder.pid}" if holder.host else ""
    since = f", since {datetime.fromtimestamp(holder.at, UTC):%Y-%m-%d %H:%M:%S} UTC" if holder.at else ""
    return Conflict(
        f"{store}: migrations are being applied by {holder.by}{where}{since}",
        hint="wait for it; if that console is gone for good: the same command with --take-over",
        code="E_SCHEMA_LOCK",
    )


def _place() -> str:
    if not Path("/proc/self").exists():
        return gethostname()  # a system without containers of its own
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""
