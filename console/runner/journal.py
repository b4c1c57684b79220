"""Journal of this machine's consoles: intents and their outcomes. The regions remain the truth (docs/design.md, P2)."""

import hashlib
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from console import crash, paths
from console.errors import ConsoleError, DataError
from console.model.codec import decode, dumps, loads
from console.model.event import Recorded, point
from console.text import redacted_data

VERSION = 1
Kind = Literal["intent", "outcome", "event", "fleet"]
_BUSY_SECONDS = 10.0  # how long another console of this machine may lock the file
_EVENTS_KEPT = 50_000
_COLUMNS = ("id", "at", "kind", "region", "pipeline", "about")
_RUINED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR)
_SCHEMA = """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL, kind TEXT NOT NULL, region TEXT NOT NULL, pipeline TEXT NOT NULL,
    about INTEGER NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
) STRICT
"""


@dataclass(eq=False)
class JournalDamaged(DataError):
    """The journal's file cannot be read any more; it can be moved away."""

    code: str = field(default="E_JOURNAL_DAMAGED", kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One entry of the journal.

    kind   intent: about to send `body["verb"]` to a region · outcome: the result of the intent `about` ·
           event: one stored event of a region (`about` its seq) · fleet: the waves of one run
    at     seconds since 1970, UTC
    """

    id: int
    at: float
    kind: Kind
    region: str
    pipeline: str
    about: int
    body: dict[str, Any]


class Journal:
    """SQLite, flushed to disk before any action. Opened at the first use, so that planning needs no journal.

    Calls block for a disk flush: run them in a thread. One connection, one writer at a time.

    path   the file; default `journal.db` in the state directory, 0600
    clock  seconds since 1970, UTC
    """

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._guard = threading.RLock()

    @property
    def path(self) -> Path:
        if self._path is None:
            self._path = paths.state_dir() / "journal.db"
        return self._path

    def intent(self, region: str, pipeline: str, verb: str, body: Mapping[str, Any]) -> int:
        """Record a request before it is sent. Returns the entry's id.

        raises  ConsoleError if the entry is not durable: then nothing may be sent
        """
        crash.point(f"console-before-intent-{verb}")
        written = self._write("intent", region, pipeline, 0, {"verb": verb, **body})
        crash.point(f"console-intent-{verb}")
        return written

    def outcome(self, intent: int, region: str, pipeline: str, result: str, message: str = "") -> None:
        """Record the result of an intent: `done`, `refused` or `unknown` (the answer was lost; the region knows)."""
        crash.point("console-before-outcome")
        self._write("outcome", region, pipeline, intent, {"result": result, "told": message})
        crash.point("console-outcome")

    def record_event(self, region: str, pipeline: str, recorded: Recorded) -> None:
        """Record a stored event of a region."""
        crash.point(f"console-before-saw-{point(recorded.event)}")
        self._write("event", region, pipeline, recorded.seq, loads(dumps(recorded)))
        crash.point(f"console-saw-{point(recorded.event)}")

    def fleet(self, pipeline: str, waves: Sequence[Sequence[str]], body: Mapping[str, Any]) -> int:
        """Record the waves of a run, before any request to its regions."""
        crash.point("console-before-fleet")
        written = self._write("fleet", "", pipeline, 0, {"waves": [list(wave) for wave in waves], **body})
        crash.point("console-fleet")
        return written

    def entries(self, kind: Kind | None = None, region: str = "") -> tuple[JournalEntry, ...]:
        """Entries, oldest first."""
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT id, at, kind, region, pipeline, about, body FROM entries"
                " WHERE (:kind IS NULL OR kind = :kind) AND (:region = '' OR region = :region) ORDER BY id",
                {"kind": kind, "region": region},
            ).fetchall()
        return tuple(self._entry(row) for row in rows)

    def _entry(self, row: tuple[Any, ...]) -> JournalEntry:
        """Decode a row: its hash proves only that it was not changed by accident."""
        *facts, text = row
        try:
            return decode(JournalEntry, {**dict(zip(_COLUMNS, facts, strict=True)), "body": loads(text)})
        except DataError as error:
            raise self._damaged(f"entry {facts[0]}: {error}") from None

    def events(self, region: str, pipeline: str = "") -> tuple[Recorded, ...]:
        """The recorded events of one region, of one pipeline or of all, in the order in which they were received."""
        entries = [entry for entry in self.entries("event", region) if pipeline in ("", entry.pipeline)]
        try:
            return tuple(decode(Recorded, entry.body) for entry in entries)
        except DataError as error:
            raise error if error.code else self._damaged(str(error)) from None

    def open_intents(self) -> tuple[JournalEntry, ...]:
        """Intents without an outcome: the console died between the two. The region knows their outcome."""
        with_outcome = {entry.about for entry in self.entries("outcome")}
        return tuple(entry for entry in self.entries("intent") if entry.id not in with_outcome)

    def check(self) -> None:
        """raises  ConsoleError if the file is damaged, of a newer version, or cannot be written"""
        with self._connected():
            pass

    def close(self) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
            if connection:
                connection.close()

    def move_damaged(self) -> Path:
        """Move a damaged journal aside; the next use creates a new one. Returns the old one's new path."""
        self.close()
        with self._guard:
            moved = self.path.with_name(f"{self.path.name}.damaged-{self._clock():.0f}")
            for suffix in ("", "-wal", "-shm"):
                old = self.path.with_name(self.path.name + suffix)
                with suppress(FileNotFoundError):
                    old.replace(moved.with_name(moved.name + suffix))
            return moved

    def _write(self, kind: Kind, region: str, pipeline: str, about: int, body: Mapping[str, Any]) -> int:
        text, at = json.dumps(redacted_data(dict(body)), sort_keys=True, allow_nan=False), self._clock()
        with self._guard, self._translating_errors():
            connection = self._open()
            row = (at, kind, region, pipeline, about, text)
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                cursor = connection.execute(
                    "INSERT INTO entries (at, kind, region, pipeline, about, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*row, _hash(row)),
                )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._guard, self._translating_errors():
            yield self._open()

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self.close()
            raise self._unwritable(error) from None

    def _unwritable(self, error: Exception) -> ConsoleError:
        # text that is not UTF-8 comes without an SQLite error code
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        corrupt = not isinstance(error, sqlite3.OperationalError) or code in _RUINED
        if isinstance(error, UnicodeDecodeError) or (isinstance(error, sqlite3.DatabaseError) and corrupt):
            return self._damaged(str(error))
        try:
            free = f"{shutil.disk_usage(self.path.parent).free:,} bytes free"
        except OSError:
            free = "its directory cannot be read"
        return ConsoleError(
            f"the journal {self.path} cannot be written ({error}; {free}), so nothing was done",
            hint="free some space or set CONSOLE_HOME to a directory that can be written; then repeat the command",
            code="E_JOURNAL",
        )

    def _damaged(self, what: str) -> JournalDamaged:
        return JournalDamaged(
            f"the journal {self.path} is damaged ({what}), so nothing was done",
            hint="console doctor moves it away; the state of the rollouts is in the regions",
        )

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self.path, flags, 0o600))
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {VERSION:d}")
                return
        if version != VERSION:
            raise DataError(
                f"the journal {self.path} has version {version}, this console supports {VERSION}",
                hint="use the newer console, or set CONSOLE_HOME to another directory",
                code="E_JOURNAL_VERSION",
            )
        self._verify(connection)

    def _verify(self, connection: sqlite3.Connection) -> None:
        (integrity,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if integrity != "ok":
            raise self._damaged(str(integrity))
        with closing(
            connection.execute("SELECT at, kind, region, pipeline, about, body, hash, id FROM entries")
        ) as rows:
            for *row, recorded_hash, id in rows:
                if _hash(tuple(row)) != recorded_hash:
                    raise self._damaged(f"entry {id} was changed after it was written")
        connection.execute(
            "DELETE FROM entries WHERE kind = 'event' AND id <= (SELECT max(id) FROM entries) - ?", (_EVENTS_KEPT,)
        )


def _hash(row: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()
