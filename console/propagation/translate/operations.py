"""What a store is asked to do, as values: SQL statements for ClickHouse, typed operations for Iceberg and Delta."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from console.errors import DataError
from console.propagation.migration import ReplaceColumn
from console.propagation.sql.defaults import recast
from console.propagation.tables import StoreColumn, StoreTable
from console.propagation.types import Type

MARK: Final = "names changed by "  # in the comments of columns whose names change hands
BETWEEN: Final = "__from_"
NEXT: Final = "__next"  # how the name of a view ends that stands beside the one whose place it is to take


def between(columns: Iterable[StoreColumn]) -> frozenset[str]:
    """Columns on their way to another name: nothing can be written under either until they are there.

    Each is named `<new>__from_<old>`, beside an alias `<new>`; a column that only is called so is none.
    """
    kinds = {column.name: column.kind for column in columns}
    moving = (name for name in kinds if BETWEEN in name)
    return frozenset(name for name in moving if any(kinds.get(new) == "ALIAS" for new in _before(name)))


def _before(name: str) -> Iterator[str]:
    """What may stand before `__from_` in a name that may hold it more than once."""
    parts = name.split(BETWEEN)
    return (BETWEEN.join(parts[:end]) for end in range(1, len(parts)))


class Unprepared(DataError):
    """The column that is to take a name was not made yet."""


def unprepared(table: StoreTable, operation: ReplaceColumn) -> Unprepared:
    return Unprepared(
        f"{table.name} has no column {operation.taker}, where the new {operation.name} waits for its name",
        hint="console schema apply --phase pre makes it, before the application's own migration; where the store has"
        f" the new {operation.name} already: --phase post --recorded",
    )


def value_of(default: str, kind: Type) -> str:
    """A migration's default as a literal of its column's type.

    raises  DataError where it is none
    """
    literal = recast(default, kind)
    if literal is None:
        raise DataError(
            f"the default {default:.60} is no value of {kind}",
            hint="write one of that type into the migration, or null: rows arrive with their values",
        )
    return literal


@dataclass(frozen=True, slots=True)
class StoreStatement:
    """One statement of a store that is spoken to in SQL: ClickHouse.

    why    one sentence for `--dry-run`
    lossy  a stored value may not survive it, whatever the migration says of PostgreSQL's
    """

    sql: str
    why: str
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class AddField:
    """Iceberg, Delta: a new column at the end, always one that may be missing in older rows.

    type     in the store's words: `decimal(10,2)`, `list<string>` (Iceberg), `array<string>` (Delta)
    default  a literal as in a migration, which older rows are to read where the store can do that; else None
    """

    name: str
    type: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class DropField:
    """Iceberg: the field goes from the schema; old files keep it unread."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameFields:
    """Iceberg: names change hands in one schema update; field ids stay.

    pairs  (old, new)
    """

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ChangeField:
    """Iceberg: a promotion of the type that the format allows (int → long, float → double, more digits)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class LoosenField:
    """Iceberg: a required field may be missing from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Delta: one commit that rewrites the table, for what its log cannot say without column mapping.

    columns  (name, the column its values come from, type), in order; whatever is not read here is gone
    lossy    a stored value may not survive its new type, whatever the migration says of PostgreSQL's
    loosens  those that may be NULL from now on; the others go on as they are
    """

    columns: tuple[tuple[str, str, str], ...]
    why: str
    lossy: bool = False
    loosens: tuple[str, ...] = ()


StoreOperation = StoreStatement | AddField | DropField | RenameFields | ChangeField | LoosenField | Rewrite


def lossy(operation: StoreOperation) -> bool:
    """It may lose what the store holds though the migration is none that loses anything in PostgreSQL.

    Iceberg's own promotions lose nothing.
    """
    return isinstance(operation, StoreStatement | Rewrite) and operation.lossy


@dataclass(frozen=True, slots=True)
class Translation:
    """What is left to do in one store for one migration, seen from the state the store is in.

    A pure function of migration and description: after a kill the store is described again and the rest is translated
    again; a store that has it all has nothing left to do.

    steps     in order
    warnings  what is lost on the way, or not carried, each in one sentence
    """

    steps: tuple[StoreOperation, ...] = ()
    warnings: tuple[str, ...] = ()
