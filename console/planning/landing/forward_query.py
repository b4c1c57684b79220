"""Analysis of a landing table's `forward_query`: the live column that each declared one continues, and the computed columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.live import Release, TableState
from console.model.schema import Table
from console.planning.landing.total import type_if_total
from console.planning.sql import reads
from console.planning.sql.convert import read_wider
from console.planning.sql.semantics.functions import is_volatile
from console.planning.sql.tree import DIALECT, kind

_STRICT = (
    exp.Column, exp.Identifier, exp.Literal, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Paren, exp.Neg, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Abs, exp.Round, exp.Upper, exp.Lower, exp.Trim, exp.Length, exp.Substring, exp.TsOrDsToDate,
)  # fmt: skip
_TEXT_IN_JSON = ("string", "binary", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A landing table's columns, by how the new release obtains them.

    origins        declared column → the live one that it continues
    computed       declared column → SQL over the live columns that cannot fail for any row
    converted      declared column → SQL over the live columns that may fail, or whose result must be stored: needs a new version
    refused        declared columns that cannot be computed at all, with the reason
    distinguished  of `computed`: columns that lines of either shape may contain; `accepts` distinguishes the shapes
    alike          of `refused`: those that declaring `accepts` would make possible
    """

    origins: Mapping[str, str] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    converted: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    distinguished: frozenset[str] = frozenset()
    alike: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


def continued(table: Table, live: TableState) -> Continued:
    """A `forward_query` that already made the live release has no further effect: the result is empty."""
    if not table.managed or not table.forward_query.strip() or table.forward_query == live.table.forward_query:
        return Continued()
    sql, problems = reads.forward(table, live)
    if not sql:
        return Continued(problems=problems)
    types = {column.name: kind(column.type) for column in table.columns}
    origins: dict[str, str] = {}
    computed: dict[str, str] = {}
    converted: dict[str, str] = {}
    refused: dict[str, str] = {}
    stored: set[str] = set()
    names = {column.name.lower(): column.name for column in live.table.columns}
    for part in sqlglot.parse_one(sql, read=DIALECT).expressions:
        name, value = part.alias_or_name, _without_cast(part.unalias(), types[part.alias_or_name])
        match value:
            case exp.Column() if _continues(live, names[value.name.lower()], types[name]):
                origins[name] = names[value.name.lower()]
            case exp.Null():  # a new column
                pass
            case _ if why := _why_not(name, part.unalias(), table, live):
                refused[name] = why
                stored |= {name} if _only_stored(name, part.unalias(), table, live) else set()
            case _ if _only_stored(name, part.unalias(), table, live):
                converted[name] = part.unalias().sql(DIALECT)
            case _:
                computed[name] = part.unalias().sql(DIALECT)
    either = {name for name in (*refused, *computed) if _of_either_shape(name, types[name], live)}
    return Continued(
        origins=origins,
        computed=computed,
        converted=converted,
        refused=refused,
        distinguished=frozenset(either & computed.keys()),
        alike=frozenset(either & refused.keys() - stored) if not tells_lines_apart(table, live) else frozenset(),
        problems=problems,
    )


def tells_lines_apart(table: Table, live: TableState) -> bool:
    """Whether `accepts` distinguishes lines of this shape from those of the live one: by a new marker or a new shape name."""
    now, was = table.accepts, live.table.accepts
    return now is not None and now != was and (not now.marker or live.table.column(now.marker) is None)


def _continues(live: TableState, origin: str, type: str) -> bool:
    was = live.table.column(origin)
    return was is not None and (kind(was.type) == type or read_wider(kind(was.type), type))


def _without_cast(value: exp.Expr, type: str) -> exp.Expr:
    while isinstance(value, exp.Cast) and not value.args.get("safe") and kind(value.to.sql(DIALECT)) == type:
        value = value.this.unnest()
    return value


def _only_stored(name: str, value: exp.Expr, table: Table, live: TableState) -> bool:
    """Whether a column cannot be computed at read: its expression may fail, or it is the time or a partition column,
    which must be stored."""
    columns = {column.name.lower(): kind(column.type) for column in live.table.columns}
    return type_if_total(value, columns) is None or name in (table.time, *table.partition_by)


def _why_not(name: str, value: exp.Expr, table: Table, live: TableState) -> str:
    """Why a column cannot be computed at all, "" if it can."""
    if any(is_volatile(node) for node in value.walk()):
        return "another computation of it would give another value"
    type = next(kind(column.type) for column in table.columns if column.name == name)
    either, stored = _of_either_shape(name, type, live), _only_stored(name, value, table, live)
    if either and stored:
        return f"{either}, and `accepts` distinguishes lines only for a column that is computed at read and never fails"
    if either and not tells_lines_apart(table, live):
        return either
    return _null_of_either_shape(name, value, live) if stored else ""


def _of_either_shape(name: str, new: str, live: TableState) -> str:
    """Why a line's value for a column does not reveal its shape, old or new; "" where it does."""
    was = live.table.column(name)
    old = kind(was.type) if was else None
    if old == new:
        return "lines may still give it: which of them are to be computed could not be determined"
    if old is not None and _alike_in_json(old, new):
        return f"a line's value for it could be of either shape, {old} or {new}"
    return ""


def _null_of_either_shape(name: str, value: exp.Expr, live: TableState) -> str:
    """The same for a NULL in a line, for a column that is not computed at read."""
    if live.table.column(name) is None or _null_for_null(value):
        return ""
    return "a line that gives NULL for it could be of either shape, which are not the same then"


def _null_for_null(value: exp.Expr) -> bool:
    """Whether an expression is NULL whenever its input is NULL."""
    return bool(value.find(exp.Column)) and all(isinstance(node, _STRICT) for node in value.walk())


def _alike_in_json(old: str, new: str) -> bool:
    """Whether one JSON value may be valid for both types."""
    if old in _TEXT_IN_JSON or new in _TEXT_IN_JSON:
        text, other = (old, new) if old in _TEXT_IN_JSON else (new, old)
        nested = text == "string" and other.startswith(("struct", "map", "array"))
        return other in _TEXT_IN_JSON or other.startswith("decimal") or nested
    return old != "boolean" and new != "boolean"


def renamed(table: Table, live: TableState) -> dict[str, str]:
    """Live column → its new name, for renamed columns of a managed landing table."""
    if table.kind != "landing" or live.table.kind != "landing":
        return {}
    before = {column.name for column in live.table.columns}
    after = {column.name for column in table.columns}
    pairs = [
        (old, new) for new, old in continued(table, live).origins.items() if new not in before and old not in after
    ]
    olds = [old for old, _ in pairs]
    return {old: new for old, new in pairs if olds.count(old) == 1}


def all_renamed(release: Release, tables: Mapping[str, Table]) -> dict[str, dict[str, str]]:
    """Table → live column → new name, of all landing tables with such columns."""
    columns = {
        name: {**renamed(table, state), **_of_another_meaning(table, state)}
        for name, table in tables.items()
        if table.kind == "landing" and table.forward_query and (state := release.table(name)) is not None
    }
    return {name: names for name, names in columns.items() if names}


def _of_another_meaning(table: Table, live: TableState) -> dict[str, str]:
    """Live column → an internal name, for columns that keep name and type while their values become computed ones."""
    types = {column.name: kind(column.type) for column in live.table.columns}
    named = continued(table, live).distinguished
    return {c.name: f"{c.name}@before" for c in table.columns if c.name in named and types.get(c.name) == kind(c.type)}
