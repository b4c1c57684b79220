"""What the `forward_query` of a landing table says: which live column each declared one continues, and what it computes."""

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
from console.planning.sql.tree import DIALECT, kind

_TEXT_IN_JSON = ("string", "binary", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Continued:
    """What becomes of a landing table's columns.

    origins   declared column → the live one that it continues
    computed  declared column → SQL over the live columns, which gives a value for every row
    refused   declared columns whose expression may fail, with the reason
    """

    origins: Mapping[str, str] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def continued(table: Table, live: TableState) -> Continued:
    """One that made the live release says nothing more."""
    if not table.managed or not table.forward_query.strip() or table.forward_query == live.table.forward_query:
        return Continued()
    sql, problems = reads.forward(table, live)
    if not sql:
        return Continued(problems=problems)
    types = {column.name: kind(column.type) for column in table.columns}
    origins: dict[str, str] = {}
    computed: dict[str, str] = {}
    refused: dict[str, str] = {}
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
            case _:
                computed[name] = part.unalias().sql(DIALECT)
    return Continued(origins, computed, refused, problems)


def _continues(live: TableState, origin: str, type: str) -> bool:
    was = live.table.column(origin)
    return was is not None and (kind(was.type) == type or read_wider(kind(was.type), type))


def _without_cast(value: exp.Expr, type: str) -> exp.Expr:
    while isinstance(value, exp.Cast) and not value.args.get("safe") and kind(value.to.sql(DIALECT)) == type:
        value = value.this.unnest()
    return value


def _why_not(name: str, value: exp.Expr, table: Table, live: TableState) -> str:
    """Why a column cannot be computed whenever the table is read, "" where it can."""
    columns = {column.name.lower(): kind(column.type) for column in live.table.columns}
    if type_if_total(value, columns) is None:
        return "it may fail for a row, or that is not known, and then no reader could read the table"
    if name in (table.time, *table.partition_by):
        return "days and files are told by stored values"
    old, new = columns.get(name.lower()), next(kind(c.type) for c in table.columns if c.name == name)
    if old == new:
        return "lines go on giving it: which of them are to be computed could not be told"
    if old is not None and _alike_in_json(old, new):
        return f"a line's value for it could be of either shape, {old} or {new}"
    return ""


def _alike_in_json(old: str, new: str) -> bool:
    """Whether a value in a line may be of both types."""
    if old in _TEXT_IN_JSON or new in _TEXT_IN_JSON:
        text, other = (old, new) if old in _TEXT_IN_JSON else (new, old)
        nested = text == "string" and other.startswith(("struct", "map", "array"))
        return other in _TEXT_IN_JSON or other.startswith("decimal") or nested
    return old != "boolean" and new != "boolean"


def renamed(table: Table, live: TableState) -> dict[str, str]:
    """Live column → its new name, for columns of a managed landing table that are to go on under another one."""
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
        name: renamed(table, state)
        for name, table in tables.items()
        if table.kind == "landing" and table.forward_query and (state := release.table(name)) is not None
    }
    return {name: names for name, names in columns.items() if names}
