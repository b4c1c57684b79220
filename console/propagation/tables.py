"""Tables as PostgreSQL and the stores describe them. Frozen values; whoever reads a server fills them in."""

from collections.abc import Iterable
from dataclasses import dataclass

from console.propagation.types import Type


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a PostgreSQL table.

    postgres  its type as PostgreSQL writes it: `character varying(255)`
    type      what that means
    nullable  False also where a valid CHECK constraint says NOT NULL
    default   as in a migration: a literal, `now()`, `[]`, or None
    computed  the value comes from PostgreSQL (serial, identity, generated, a volatile default)
    """

    name: str
    postgres: str
    type: Type
    nullable: bool = True
    default: str | None = None
    computed: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One PostgreSQL table.

    key  the columns of its primary key, in order; () where there is none, or none is known
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class StoreColumn:
    """One column as its store describes it.

    type     in the store's own words, nullability included where it is part of the type (`Nullable(String)`)
    default  the store's own expression, or ""
    kind     ClickHouse: `DEFAULT`, `ALIAS`, `MATERIALIZED` or ""
    comment  as the store keeps it
    """

    name: str
    type: str
    nullable: bool = True
    default: str = ""
    kind: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Dependent:
    """A ClickHouse materialized view that is fed by a table.

    name     database-qualified as the store has it: `default.issues_mv`
    target   the table of its TO clause, qualified; "" where the view keeps its rows itself
    select   its query, as `system.tables.as_select` has it
    columns  the target's columns, in order
    key      the target's columns that order or partition its rows
    """

    name: str
    target: str
    select: str
    columns: tuple[StoreColumn, ...] = ()
    key: tuple[str, ...] = ()

    def column(self, name: str) -> StoreColumn | None:
        """A column of the target's."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Reader:
    """A view of ClickHouse's that is not fed by the table itself: it fails as soon as a column that it reads is gone.

    name    qualified;  select  its query, as `system.tables.as_select` has it
    """

    name: str
    select: str


@dataclass(frozen=True, slots=True)
class StoreTable:
    """One table as its store describes it.

    name        as the store is to be asked for it: `default.siphon_issues`
    key         columns that order, partition or identify its rows: they can be neither dropped nor renamed
    dependents  ClickHouse: the materialized views that it feeds
    marks       the renamings that hold here, by their migrations' names, as far as the table itself tells
    readers     ClickHouse: all other views that there are
    """

    name: str
    columns: tuple[StoreColumn, ...]
    key: tuple[str, ...] = ()
    dependents: tuple[Dependent, ...] = ()
    marks: tuple[str, ...] = ()
    readers: tuple[Reader, ...] = ()

    def column(self, name: str) -> StoreColumn | None:
        return next((column for column in self.columns if column.name == name), None)


def named(columns: Iterable[StoreColumn]) -> frozenset[str]:
    return frozenset(column.name for column in columns)
