"""What every store answers, and the table in which each keeps what was applied to it."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from console.model.codec import dumps
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import StoreOperation

RECORDS: Final = "console_schema_migrations"
ARRIVING: Final = "console_arriving"
LOCK: Final = "console_schema_lock"

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

    def close(self) -> None: ...


def looks(tables: Iterable[StoreTable]) -> str:
    """Digest of tables as described: columns in order, types, nullability, defaults, keys and dependents' queries."""
    text = "\n".join(dumps(table) for table in sorted(tables, key=lambda table: table.name))
    return hashlib.sha256(text.encode()).hexdigest()[:24]
