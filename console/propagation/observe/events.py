"""What observing yields: changes, what was left out and why, and what a person should know."""

from dataclasses import dataclass

from console.propagation.migration import Migration, Operation


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """One change as a statement says it, not yet folded with the others of its transaction."""

    schema: str
    table: str
    operation: Operation
    where: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A statement, or an action of one, that changes nothing a store has.

    kind       `create_table`, `add_constraint`, `data`, `comment` …
    statement  its beginning, on one line
    table      what it is about, where that is a table; else ""
    """

    where: str
    kind: str
    reason: str
    statement: str
    table: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person should know about a change; it stops nothing.

    table  what it is about, where that is one table: only those who replicate it need to know; else ""
    """

    where: str
    message: str
    table: str = ""


@dataclass(frozen=True, slots=True)
class Refilled:
    """Rows of a table get new values, which arrive as rows.

    columns  those that every row gets a value of; () where it is some rows, or is not known
    """

    schema: str
    table: str
    columns: frozenset[str]
    where: str


@dataclass(frozen=True, slots=True)
class Firm:
    """Columns that a constraint keeps from being NULL from here on. No change by itself: the stores take NULL all the same."""

    schema: str
    table: str
    columns: frozenset[str]


Event = ObservedChange | Ignored | Remark | Refilled | Firm


@dataclass(frozen=True, slots=True)
class Observed:
    """One migration, and where it was seen."""

    migration: Migration
    where: str


@dataclass(frozen=True, slots=True)
class Observation:
    """All that the files say."""

    migrations: tuple[Observed, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    remarks: tuple[Remark, ...] = ()
