"""The operations on a store, as values: SQL statements for ClickHouse, typed operations for Iceberg and Delta."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from console.errors import DataError
from console.propagation.migration import ReplaceColumn
from console.propagation.sql.defaults import recast
from console.propagation.tables import StoreColumn, StoreTable
from console.propagation.types import Type

MARK: Final = "names changed by "  # in the comments of columns whose names pass to others
BETWEEN: Final = "__from_"
NEXT: Final = "__next"  # suffix of a view that is to replace the view beside it


def between(columns: Iterable[StoreColumn]) -> frozenset[str]:
    """Columns in the middle of a swap: nothing can be written under either name until it is complete.

    Each is named `<new>__from_<old>`, beside an alias `<new>`; a column with such a name but no alias is not one.
    """
    kinds = {column.name: column.kind for column in columns}
    moving = (name for name in kinds if BETWEEN in name)
    return frozenset(name for name in moving if any(kinds.get(new) == "ALIAS" for new in _before(name)))


def _before(name: str) -> Iterator[str]:
    """The candidates for the new name: `__from_` may occur more than once."""
    parts = name.split(BETWEEN)
    return (BETWEEN.join(parts[:end]) for end in range(1, len(parts)))


class Unprepared(DataError):
    """The column that is to take a name does not exist yet."""


def unprepared(table: StoreTable, operation: ReplaceColumn) -> Unprepared:
    return Unprepared(
        f"{table.name} has no column {operation.taker}, where the new {operation.name} waits for its name",
        hint="console schema apply --phase pre makes it, before the application's own migration; where the store has"
        f" the new {operation.name} already: --phase post --recorded",
    )


def value_of(default: str, kind: Type) -> str:
    """A migration's default as a literal of its column's type.

    raises  DataError if it is not one
    """
    literal = recast(default, kind)
    if literal is None:
        raise DataError(
            f"the default {default:.60} is not a value of {kind}",
            hint="write one of that type into the migration, or null: rows arrive with their values",
        )
    return literal


@dataclass(frozen=True, slots=True)
class StoreStatement:
    """One statement of a store with an SQL interface: ClickHouse.

    why    one sentence for `--dry-run`
    lossy  stored values may be lost, even if none are in PostgreSQL
    """

    sql: str
    why: str
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class AddField:
    """Iceberg, Delta: a new column at the end, always one that may be missing in older rows.

    type     in the store's words: `decimal(10,2)`, `list<string>` (Iceberg), `array<string>` (Delta)
    default  a literal as in a migration, for older rows if the store supports it; else None
    """

    name: str
    type: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class DropField:
    """Iceberg: the field leaves the schema; old files keep it unread."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameFields:
    """Iceberg: names pass to other fields in one schema update; field ids stay.

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
    """Iceberg: a required field becomes optional."""

    name: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Delta: one commit that rewrites the table, for changes that its log cannot express without column mapping.

    columns  (name, the column its values come from, type), in order; any other column is dropped
    lossy    stored values may be lost, even if none are in PostgreSQL
    loosens  columns that become nullable; the others stay as they are
    """

    columns: tuple[tuple[str, str, str], ...]
    why: str
    lossy: bool = False
    loosens: tuple[str, ...] = ()


StoreOperation = StoreStatement | AddField | DropField | RenameFields | ChangeField | LoosenField | Rewrite


def lossy(operation: StoreOperation) -> bool:
    """Whether the store may lose values even if PostgreSQL loses none. Iceberg's own promotions lose nothing."""
    return isinstance(operation, StoreStatement | Rewrite) and operation.lossy


@dataclass(frozen=True, slots=True)
class Translation:
    """The remaining steps of one migration in one store, computed from the store's current state.

    A pure function of migration and description: after a kill the store is described again and the rest is translated
    again; a store that is complete has no steps left.

    steps     in order
    warnings  losses and changes that are not made, one sentence each
    """

    steps: tuple[StoreOperation, ...] = ()
    warnings: tuple[str, ...] = ()
