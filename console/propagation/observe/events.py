"""The results of observing: changes, ignored statements with the reason, and remarks."""

from dataclasses import dataclass

from console.propagation.migration import Migration, Operation


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """One change as its statement makes it, before folding with the others of its transaction."""

    schema: str
    table: str
    operation: Operation
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A statement, or one action of it, that changes nothing in any store.

    kind       `create_table`, `add_constraint`, `data`, `comment` …
    statement  its beginning, on one line
    table      its table, or ""
    """

    where: str
    kind: str
    reason: str
    statement: str
    table: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about a change, which does not stop it.

    table  its table, or "": only replications of the table need the remark
    """

    where: str
    message: str
    table: str = ""


@dataclass(frozen=True, slots=True)
class Refilled:
    """Rows of a table get new values, which arrive as rows.

    columns  set in every row; () if only some rows are, or it is not known
    """

    schema: str
    table: str
    columns: frozenset[str]
    where: str


@dataclass(frozen=True, slots=True)
class Firm:
    """Columns that a constraint makes NOT NULL. No change by itself: the stores still allow NULL."""

    schema: str
    table: str
    columns: frozenset[str]


Event = ObservedChange | Ignored | Remark | Refilled | Firm


@dataclass(frozen=True, slots=True)
class Observed:
    """One migration, and its place in the files."""

    migration: Migration
    where: str


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything observed in the files."""

    migrations: tuple[Observed, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    remarks: tuple[Remark, ...] = ()
