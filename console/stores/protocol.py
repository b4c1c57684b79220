"""The protocol of a store, the records of applied migrations that each store keeps, and helpers that stores share."""

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

from console.errors import ConsoleError, DataError, RegionError, Unreachable, installing
from console.model.codec import dumps
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import StoreOperation

RECORDS: Final = "console_schema_migrations"
LEFT_OUT: Final = "console_arriving"
# of a commit that loses to concurrent ones: each try wins with some chance, whatever the writer's rate, until one does
_PATIENCE_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.05

T = TypeVar("T")

State = Literal["announced", "step", "applied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of a store's table of migrations; rows are only ever added.

    seq        rank in the table, from 1
    migration  the file's name without `.json`;  body  its JSON;  place  the table's name in this store
    state      announced: a renaming that consumers see before it is applied here · step: about to be sent ·
               applied: complete
    left       with `step`: the number of remaining operations, this one included
    at         seconds since 1970, UTC
    """

    seq: int
    migration: str
    body: str
    place: str
    state: State
    left: int
    at: float
    by: str
    host: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows that arrived with a column missing from the store's table."""

    place: str
    column: str
    rows: int
    since: float


class Store(Protocol):
    """One store at one address. Calls block; each may raise `Unreachable` (safe to repeat) or `RegionError`."""

    name: str
    address: str  # without secrets; two stores with the same address are one store
    atomic: bool  # all operations of a migration go into one commit; otherwise each is a commit of its own

    def describe(self, places: Collection[str]) -> dict[str, StoreTable]:
        """The existing tables among these names."""
        ...

    def run(self, table: StoreTable, operations: Sequence[StoreOperation], mark: str) -> None:
        """Apply these operations to one table, all of them or none.

        operations  one, or if `atomic` all that a migration needs;  mark  the migration's name, stored in that commit
        """
        ...

    def marked(self, place: str, mark: str) -> bool:
        """True if a commit with this mark exists; a table may look the same before and after it."""
        ...

    def records(self) -> tuple[Record, ...]:
        """All records, in the order of `seq`."""
        ...

    def record(self, record: Record) -> None:
        """Store a record durably."""
        ...

    def left_out(self) -> tuple[LeftOut, ...]:
        """Columns that arrived and were not stored, with their counts added up."""
        ...

    def add_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        """Add to the counts of columns that arrived and were not stored: column → rows."""
        ...

    def lock(self, by: str, host: str, *, take_over: bool) -> AbstractContextManager[None]:
        """Lock held while migrations are applied here.

        raises  Conflict naming the holder
        """
        ...

    def rehearsal_copy(self, place: str) -> "AbstractContextManager[tuple[Store, str]]":
        """A copy of the table's newest partition and of the views on it, dropped at the end of the block.

        returns  the store with the copy, and its name there
        """
        ...

    def count(self, table: StoreTable, column: str = "") -> int:
        """The number of rows in a table; with a column, of rows whose value there is not NULL."""
        ...

    def rewrite_bytes(self, place: str) -> int:
        """Bytes that a `Rewrite` of the table reads; 0 for a store without rewrites."""
        ...

    def close(self) -> None: ...


def digest(tables: Iterable[StoreTable]) -> str:
    """A digest of tables as described: columns in order, types, nullability, defaults, keys and dependents' queries."""
    text = "\n".join(dumps(table) for table in sorted(tables, key=lambda table: table.name))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def first_line(error: BaseException) -> str:
    """A client's error on one line, without an address that may contain a password."""
    text = " ".join(str(error).split("(for url", maxsplit=1)[0].split())
    if cause := re.search(r"Caused by \w+\([\"'](.*?)[\"']\)", text):
        text = cause[1]
    text = text.removeprefix("Received ClickHouse exception, ").partition("server response: ")[2] or text
    return re.sub(r"//[^/@\s]*@", "//", text)[:600]


def missing_package(package: str, store: str) -> DataError:
    return DataError(f"{store}: {package} is not installed here", hint=installing("stores"))


def recorded(rows: Iterable[Mapping[str, Any]]) -> tuple[Record, ...]:
    return tuple(Record(**row) for row in sorted(rows, key=lambda row: (row["seq"], row["at"])))


def summed(rows: Iterable[Mapping[str, Any]]) -> tuple[LeftOut, ...]:
    """The counts of each column added up, since the first of them."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for row in rows:
        key = (row["place"], row["column"])
        count, since = sums.get(key, (0, row["at"]))
        sums[key] = (count + row["rows"], min(since, row["at"]))
    return tuple(LeftOut(*key, *value) for key, value in sorted(sums.items()))


def retried(store: str, commit: Callable[[], T], overtaken: type[Exception] | tuple[type[Exception], ...]) -> T:
    """Run a commit, and retry it if a concurrent one came first.

    raises  RegionError once that has happened for two minutes, with the time that one attempt takes
    """
    began = time.monotonic()
    while True:
        started = time.monotonic()
        try:
            return commit()
        except overtaken as error:
            now = time.monotonic()
            if now - began > _PATIENCE_SECONDS:
                raise RegionError(
                    f"{store}: other commits came first for {now - began:.0f} s: {first_line(error)}",
                    hint=f"stop the table's writers for some {now - started + 1:.0f} s, and run the same command: it continues where it stopped",
                ) from None
            time.sleep(_PAUSE_SECONDS)


@contextmanager
def client_errors(store: str, lake: str, address: str, unanswered: Callable[[Exception], bool]) -> Iterator[None]:
    """A client's errors as the project's own.

    unanswered  whether an error means that the store did not answer
    raises  Unreachable, which is safe to repeat; RegionError for a refusal
    """
    try:
        yield
    except (ConsoleError, TypeError):
        raise
    except Exception as error:
        if unanswered(error):
            raise Unreachable(
                f"{store}: no answer from {lake} at {address}: {first_line(error)}",
                hint="check that it runs and that its address is right; the same command continues where it stopped",
            ) from None
        raise RegionError(f"{store}: {lake} refused: {type(error).__name__}: {first_line(error)}") from None
