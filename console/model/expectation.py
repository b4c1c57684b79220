"""Expectations on a table's rows: as declared in its file, and as compiled for the agent."""

from typing import Literal, assert_never

from console.record import dataclass

Severity = Literal["stop", "warn"]
SHOWN = 48  # characters of a condition


@dataclass(frozen=True, slots=True)
class NotNull:
    """No row is NULL in the column."""

    column: str


@dataclass(frozen=True, slots=True)
class AcceptedValues:
    """A row has one of the values, SQL literals of the column's type, or NULL."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InRange:
    """A row's value is not below `least` nor above `most`, SQL literals of the column's type, or NULL."""

    column: str
    least: str | None
    most: str | None


@dataclass(frozen=True, slots=True)
class Holds:
    """A SQL condition as written, over the table's columns, is true of each row: NULL fails."""

    sql: str


@dataclass(frozen=True, slots=True)
class UniqueInDay:
    """No two rows of one day are equal in these columns; NULL equals NULL."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fresh:
    """The newest row is no older than this, by the table's time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RowsOfDayBefore:
    """Each complete day has between `least` and `most` times the rows of the day before it."""

    least: float | None
    most: float | None


RowRule = NotNull | AcceptedValues | InRange | Holds
Rule = RowRule | UniqueInDay | Fresh | RowsOfDayBefore


@dataclass(frozen=True, slots=True)
class Expectation:
    """One rule of a table's file. severity: `stop` fails the batch and the gate, `warn` leaves the gate to a person"""

    rule: Rule
    severity: Severity = "stop"

    @property
    def name(self) -> str:
        """`status from 100 to 599`: the name of its check at the gate, made of the declaration, never of rows."""
        match self.rule:
            case NotNull(column):
                return f"{column} is not null"
            case AcceptedValues(column, values):
                return f"{column} is one of {len(values)} values"
            case InRange(column, least, most):
                bounds = (f"from {least}" if least is not None else "", f"to {most}" if most is not None else "")
                return " ".join((column, *filter(None, bounds)))
            case Holds(sql):
                text = " ".join(sql.split())
                return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
            case UniqueInDay(columns):
                return f"{', '.join(columns)} unique within a day"
            case Fresh(seconds):
                return f"newest row within {_duration(seconds)}"
            case RowsOfDayBefore(least, most):
                low = f"at least {least:.4g}" if least is not None else ""
                high = f"at most {most:.4g}" if most is not None else ""
                return f"rows {' and '.join(filter(None, (low, high)))} × the day before"
            case other:
                assert_never(other)


def _duration(seconds: float) -> str:
    """A duration in the largest unit that divides it: `2 h`, `90 s`."""
    units = ((86_400, "d"), (3600, "h"), (60, "min"))
    return next((f"{seconds / size:g} {unit}" for size, unit in units if seconds % size == 0), f"{seconds:g} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """An expectation of single rows, compiled.

    failing  Spark SQL over the table's columns: true for a failing row, never NULL
    keys     columns that identify a failing row: the table's key and sort columns, without the rule's own
    """

    name: str
    severity: Severity
    failing: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCheck:
    """An expectation of a day or of the whole table. keys: key and sort columns that identify a row"""

    name: str
    severity: Severity
    rule: UniqueInDay | Fresh | RowsOfDayBefore
    keys: tuple[str, ...] = ()


ExpectationCheck = RowCheck | DayCheck
