"""Columns and tables as declared by the operator: frozen values, no files, no Spark."""

from contextlib import suppress
from dataclasses import field
from datetime import date
from typing import Literal, get_args

from console.model.codec import BESIDE, QUIET, needed
from console.model.expectation import Expectation
from console.record import dataclass

Kind = Literal["landing", "append", "aggregate"]
OnRewrite = Literal["stop", "ignore", "take_inserts", "replay_days"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table.

    type      Spark's simple string in lower case: `string`, `bigint`, `decimal(10,2)`, `array<string>`
    default   SQL literal that older rows read as, or None; a new nullable column without one reads NULL
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepts:
    """The means to distinguish lines of a landing table's shape from those of older shapes, if some would fit both.

    marker  column that each line of the shape has, and no line of an older one;  shape  name sent with the lines
    """

    marker: str = ""
    shape: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One logical table, as declared in `tables/<name>.yaml`, a region's overrides applied.

    time            the raw timestamp or date column by which history is cut into days; "" for none
    retention_days  rows older than this may be deleted; None keeps all
    forward_query   SELECT list over the live table (no FROM, no WHERE), or ""
    backward_query  for a landing table with values of a forward query: SELECT list that computes the live columns back, or ""
    managed         landing only: the agent is the only writer
    backfill        `read` allows computing a column from the table's other columns at read time
    cluster_by      sort order of the rows of one batch, and of a compacted partition
    read_time_days  as `read`, if retention makes it obsolete within this many days
    accepts_until   managed landing only: day (UTC) from which lines of older shapes are refused, `2026-12-01`; "" for none
    accepts         managed landing only: how lines of its shape are distinguished from older ones; None for no distinction
    was             landing only: the name under which it is live; never stored
    source          of an adapter: the foreign landing table that it is fed from, column by column; its kind is `append`
    key         of a table of kind `latest` or `distinct`: rows that are equal in these columns are read as one; its
                kind is `append`
    order_by    of kind `latest`: the row with the greatest values is read; () for `distinct`, whose rows are all key
    history         the effect of a change on stored rows, as spelled by `history_word`; "" recomputes them all
    expectations    expectations on its rows, in the order of the file
    where           `file:line:column` of the declaration; not part of digests
    """

    name: str
    kind: Kind
    columns: tuple[Column, ...]
    time: str = ""
    partition_by: tuple[str, ...] = ()
    retention_days: int | None = None
    description: str = ""
    forward_query: str = ""
    managed: bool = False
    owner: str = ""
    on_rewrite: OnRewrite = "stop"
    backfill: Literal["auto", "read"] = "auto"
    read_time_days: int = 0
    where: str = ""
    cluster_by: tuple[str, ...] = field(default=(), metadata=QUIET)
    was: str = field(default="", metadata=QUIET)
    accepts_until: str = field(default="", metadata=BESIDE)
    history: str = field(default="", metadata=QUIET)
    source: str = field(default="", metadata=BESIDE)
    accepts: Accepts | None = field(default=None, metadata=needed("0.2.0"))
    backward_query: str = field(default="", metadata=QUIET)
    key: tuple[str, ...] = field(default=(), metadata=needed("0.2.0"))
    order_by: tuple[str, ...] = field(default=(), metadata=needed("0.2.0"))
    expectations: tuple[Expectation, ...] = field(default=(), metadata=BESIDE)

    @property
    def is_distinct(self) -> bool:
        """Whether equal rows are read as one: all of its columns are the key."""
        return bool(self.key) and not self.order_by

    @property
    def kind_word(self) -> str:
        """The kind as named in the file."""
        return "distinct" if self.is_distinct else "latest" if self.key else self.kind

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


OlderValues = Literal["", "computed", "default", "null"]
OLDER_VALUES: tuple[OlderValues, ...] = get_args(OlderValues)
HISTORY_WORDS = (
    "expected all, carry, from now, or since with a day such as 2026-11-01; the last three also with"
    " `as computed`, `as default` or `as null`"
)


@dataclass(frozen=True, slots=True)
class Carry:
    """Rows that a table holds are copied from its live version; those that arrive later follow the new query.

    older  values of these rows in new and changed columns; "": a changed one keeps its values, a new one is computed if
           that is proven possible, else its default, else NULL
    """

    older: OlderValues = ""

    def __str__(self) -> str:
        return f"carry{_as(self.older)}"


@dataclass(frozen=True, slots=True)
class Since:
    """Rows of days before `day` are copied as in `Carry`, the others are computed from the source by the new query."""

    day: str
    older: OlderValues = ""

    def __str__(self) -> str:
        return f"since {self.day}{_as(self.older)}"


@dataclass(frozen=True, slots=True)
class FromNow:
    """The files of the live version are the older rows of the new one; rows that arrive later follow the new query."""

    older: OlderValues = ""

    def __str__(self) -> str:
        return f"from now{_as(self.older)}"


HistoryChoice = Carry | Since | FromNow


def _as(older: OlderValues) -> str:
    return f" as {older}" if older else ""


def history_word(text: str) -> HistoryChoice | None:
    """The operator's choice for a table's history; None for `all`, every row as if the new query had always run.

    raises  ValueError for a text that is not, or not yet, a valid choice
    """
    chosen, _, word = " ".join(text.split()).partition(" as ")
    older = next((value for value in OLDER_VALUES if value == word.strip()), None)
    if older is None:
        raise ValueError(f"`{word[:20]}` is not what older rows may show: computed, default or null")
    match chosen.split():
        case ["carry"]:
            return Carry(older)
        case ["since", day]:
            with suppress(ValueError):
                return Since(date.fromisoformat(day).isoformat(), older)
            raise ValueError(f"`{day[:20]}` is not a day such as 2026-11-01")
        case ["from", "now"]:
            return FromNow(older)
        case [] | ["all"] if not older:
            return None
    raise ValueError(HISTORY_WORDS)


def quoted(name: str) -> str:
    """A column name quoted for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A text literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def types(columns: tuple[Column, ...]) -> dict[str, str]:
    """Name → Spark type, in order."""
    return {column.name: column.type for column in columns}
