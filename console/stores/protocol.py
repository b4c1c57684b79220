"""What every store answers, the table in which each keeps what was applied to it, and what stores have in common."""

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

from console.errors import ConsoleError, DataError, RegionError, Unreachable
from console.model.codec import dumps
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import StoreOperation

RECORDS: Final = "console_schema_migrations"
ARRIVING: Final = "console_arriving"
_ATTEMPTS: Final = 12  # of a commit that others overtake
_PAUSE_SECONDS: Final = 0.05

T = TypeVar("T")

State = Literal["announced", "step", "applied"]


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a store's table of migrations; lines are only ever added.

    seq        rank in the table, from 1
    migration  the file's name without `.json`;  body  its JSON;  place  the table's name in this store
    state      announced: a rename that a consumer will meet before it is applied here · step: about to be asked for ·
               applied: nothing is left to do
    left       with `step`: how many operations were left, this one included
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
    """Rows that arrived with a column which the store's table did not have."""

    place: str
    column: str
    rows: int
    since: float


class Store(Protocol):
    """One store at one address. Calls block; each may raise `Unreachable` (safe to repeat) or `RegionError`."""

    name: str
    address: str  # without secrets: what two stores that are one have in common
    at_once: bool  # all of one migration's operations go into one commit; else each is one of its own

    def describe(self, places: Collection[str]) -> dict[str, StoreTable]:
        """The tables of these names that exist."""
        ...

    def run(self, table: StoreTable, operations: Sequence[StoreOperation], mark: str) -> None:
        """Do this to one table, wholly or not at all.

        operations  one, or with `at_once` all that a migration needs;  mark  the migration's name, kept in that commit
        """
        ...

    def marked(self, place: str, mark: str) -> bool:
        """True where a commit of this mark was made: a table may look the same before and after it."""
        ...

    def records(self) -> tuple[Record, ...]:
        """Everything recorded, in the order of `seq`."""
        ...

    def record(self, record: Record) -> None:
        """Keep it; when this returns it is durable."""
        ...

    def left_out(self) -> tuple[LeftOut, ...]:
        """Columns that arrived and were not stored, summed up."""
        ...

    def note_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        """Add to what arrived and was not stored: column → rows."""
        ...

    def hold(self, by: str, host: str, *, take_over: bool) -> AbstractContextManager[None]:
        """Be the only one who applies migrations here.

        raises  Conflict naming the holder
        """
        ...

    def copied(self, place: str) -> "AbstractContextManager[tuple[Store, str]]":
        """A copy of the table's newest partition, of the views on it too, for as long as the block lasts.

        returns  where the copy is, and its name there
        """
        ...

    def count(self, table: StoreTable, column: str = "") -> int:
        """How many rows a table holds; with a column, how many of them have a value there."""
        ...

    def weight(self, place: str) -> int:
        """Bytes that a `Rewrite` of the table reads; 0 where the store does none."""
        ...

    def close(self) -> None: ...


def looks(tables: Iterable[StoreTable]) -> str:
    """Digest of tables as described: columns in order, types, nullability, defaults, keys and dependents' queries."""
    text = "\n".join(dumps(table) for table in sorted(tables, key=lambda table: table.name))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def first_line(error: BaseException) -> str:
    """A client's error on one line, without the address that it may hold a password in."""
    text = " ".join(str(error).split("(for url", maxsplit=1)[0].split())
    if cause := re.search(r"Caused by \w+\([\"'](.*?)[\"']\)", text):
        text = cause[1]
    text = text.removeprefix("Received ClickHouse exception, ").partition("server response: ")[2] or text
    return re.sub(r"//[^/@\s]*@", "//", text)[:600]


def lacks(package: str, store: str) -> DataError:
    return DataError(f"{store}: {package} is not installed here", hint="pip install 'console[stores]'")


def recorded(rows: Iterable[Mapping[str, Any]]) -> tuple[Record, ...]:
    return tuple(Record(**row) for row in sorted(rows, key=lambda row: (row["seq"], row["at"])))


def summed(rows: Iterable[Mapping[str, Any]]) -> tuple[LeftOut, ...]:
    """Counts of one column summed, since the first of them."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for row in rows:
        key = (row["place"], row["column"])
        count, since = sums.get(key, (0, row["at"]))
        sums[key] = (count + row["rows"], min(since, row["at"]))
    return tuple(LeftOut(*key, *value) for key, value in sorted(sums.items()))


def retried(commit: Callable[[], T], overtaken: type[Exception]) -> T:
    """A commit, made again where another came first; the last attempt's error is the caller's."""
    for attempt in range(_ATTEMPTS):
        try:
            return commit()
        except overtaken:
            time.sleep(_PAUSE_SECONDS * (attempt + 1))
    return commit()


@contextmanager
def telling(store: str, lake: str, address: str, away: Callable[[Exception], bool]) -> Iterator[None]:
    """A client's errors as ours.

    away    whether an error says that nobody answered
    raises  Unreachable, which is safe to repeat; RegionError for what was refused
    """
    try:
        yield
    except (ConsoleError, TypeError):
        raise
    except Exception as error:
        if away(error):
            raise Unreachable(
                f"{store}: no answer from {lake} at {address}: {first_line(error)}",
                hint="see that it is there and that its address is right; the same command goes on where it stopped",
            ) from None
        raise RegionError(f"{store}: {lake} refused: {type(error).__name__}: {first_line(error)}") from None
