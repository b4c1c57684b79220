"""Tables as PostgreSQL and the stores describe them. Frozen values, filled in by the clients of the servers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from console.propagation.types import Type

UseKind = Literal["engine", "TTL", "skip index", "projection", "constraint", "computed column"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PgColumn:
    """One column of a PostgreSQL table.

    postgres  its type as PostgreSQL writes it: `character varying(255)`
    type      its generic type
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
class PgTable:
    """One PostgreSQL table.

    key  the columns of its primary key, in order; () if there is none, or none is known
    """

    schema: str
    name: str
    columns: tuple[PgColumn, ...]
    key: tuple[str, ...] = ()

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> PgColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreColumn:
    """One column as its store describes it.

    type     in the store's own words, with nullability if it is part of the type (`Nullable(String)`)
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
class ColumnStorage:
    """Storage settings of a ClickHouse column, which no migration has. codec: as inside CODEC(…), or "" """

    column: str
    codec: str = ""
    low_cardinality: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A part of a ClickHouse table whose expression uses columns.

    name      of the index, projection or constraint, or of the column with the value or TTL; "" for the table's own TTL
    columns   those that its expression uses
    star      a projection of all columns
    grouped   a projection that groups
    """

    kind: UseKind
    name: str
    columns: tuple[str, ...]
    star: bool = False
    grouped: bool = False

    @property
    def label(self) -> str:
        return f"the {self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Overlay:
    """A ClickHouse table without rows of its own, over another: Buffer, Distributed, Merge, Dictionary.

    name     qualified
    columns  its own, which do not follow changes of the other's
    text     the statement that created it
    """

    name: str
    engine: str
    columns: tuple[StoreColumn, ...]
    text: str

    def column(self, name: str) -> StoreColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """A ClickHouse materialized view that is fed by a table.

    name     database-qualified as the store has it: `default.issues_mv`
    target   the table of its TO clause, qualified; "" where the view keeps its rows itself
    select   its query, as `system.tables.as_select` has it
    columns  the target's columns, in order
    key      the target's columns that order or partition its rows
    own      the view's own columns, to whose types a query of the view converts
    head     its DEFINER and SQL SECURITY, as written;  comment  its own
    fixed    why the view cannot be replaced, or ""
    below    its target with all dependents
    """

    name: str
    target: str
    select: str
    columns: tuple[StoreColumn, ...] = ()
    key: tuple[str, ...] = ()
    own: tuple[StoreColumn, ...] = ()
    head: str = ""
    comment: str = ""
    fixed: str = ""
    below: "StoreTable | None" = None

    def column(self, name: str) -> StoreColumn | None:
        """A column of the target's."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A ClickHouse view that the table does not feed; it fails as soon as a column that it reads is dropped.

    name    qualified;  select  its query, as `system.tables.as_select` has it
    own     its columns, to whose types its rows are converted
    head    its DEFINER and SQL SECURITY, as written;  comment  its own
    stored  a materialized view, fed by another table
    """

    name: str
    select: str
    own: tuple[StoreColumn, ...] = ()
    head: str = ""
    comment: str = ""
    stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable:
    """One table as its store describes it.

    name        in queries of the store: `default.siphon_issues`
    key         columns that order, partition or identify its rows: they can be neither dropped nor renamed
    dependents  ClickHouse: the materialized views that it feeds
    marks       the migrations whose renamings the table records itself
    readers     ClickHouse: all other views
    uses        ClickHouse: the parts of the table whose expressions use its columns
    overlays    ClickHouse: tables without rows of their own over this one
    engine      ClickHouse
    cluster     ClickHouse: the cluster on which every statement runs, or ""
    kept        ClickHouse: the operator's storage settings of columns
    """

    name: str
    columns: tuple[StoreColumn, ...]
    key: tuple[str, ...] = ()
    dependents: tuple[Dependent, ...] = ()
    marks: tuple[str, ...] = ()
    readers: tuple[Reader, ...] = ()
    uses: tuple[Use, ...] = ()
    overlays: tuple[Overlay, ...] = ()
    engine: str = ""
    cluster: str = ""
    kept: tuple[ColumnStorage, ...] = ()

    def column(self, name: str) -> StoreColumn | None:
        return next((column for column in self.columns if column.name == name), None)


def named(columns: Iterable[StoreColumn]) -> frozenset[str]:
    return frozenset(column.name for column in columns)
