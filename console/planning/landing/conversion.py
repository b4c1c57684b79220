"""A landing table whose `forward_query` may fail for a row: a new version stores the computed values, and rows can be
converted back."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.live import Relay, TableState
from console.model.schema import Table, types
from console.planning.landing.forward_query import Continued, continued
from console.planning.landing.total import type_if_total
from console.planning.sql import reads
from console.planning.sql.convert import kept
from console.planning.sql.tree import DIALECT, cast, kind, name, render
from console.remedy import Edit

Values = Mapping[str, exp.Expr]  # column → expression over the columns of the other version


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The conversion of rows between a live landing version and one with other values, in both directions.

    forward   over a view of the live table's rows: the new version's columns
    backward  over a view of the new version's rows: columns of the live one;  lost: those for which some values cannot
              be converted back
    keys      columns whose absence identifies a line of the older shape
    why       why no conversion is possible, "" if one is
    """

    forward: str
    backward: Values
    lost: tuple[str, ...]
    keys: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    why: str = ""


def conversion(table: Table, live: TableState) -> Conversion | None:
    """None where every column can be computed at read from the stored columns."""
    continuation = continued(table, live)
    if not continuation.converted:
        return None
    forward, _ = reads.forward(table, live)
    backward, lost, problems = (
        _given(table, live) if table.backward_query.strip() else _inverse(table, live, continuation)
    )
    keys = tuple(c.name for c in table.columns if c.name in {*continuation.converted, *continuation.computed})
    return Conversion(
        forward=forward, backward=backward, lost=lost, keys=keys, problems=problems, why=_why_not(table, live)
    )


def relay(table: Table, live: TableState, made: Conversion, read: str) -> Relay:
    """read: of the new version"""
    places = {live.stored_in(column.name)[-1]: column.name for column in live.table.columns}
    parts = []
    for stored in live.version.columns:
        value = made.backward.get(places.get(stored.name, ""), exp.Null()).copy()
        parts.append(exp.alias_(cast(value, stored.type), name(stored.name)))
    backward = exp.select(*parts).from_(_rows(read, table.name))
    forward = sqlglot.parse_one(made.forward, read=DIALECT)
    forward.set("from_", exp.From(this=_rows(live.read, table.name)))
    return Relay(
        table=table.name, older=live.version.path, forward=render(forward), backward=render(backward),
        columns=live.version.columns, lost=(*made.lost, *_new(table, live)), keys=made.keys,
    )  # fmt: skip


def _new(table: Table, live: TableState) -> tuple[str, ...]:
    """Columns without any counterpart in the live version: their values exist only in the new one."""
    known = {*continued(table, live).origins, *(column.name for column in live.table.columns)}
    return tuple(column.name for column in table.columns if column.name not in known)


def _rows(read: str, table: str) -> exp.Subquery:
    """The logical rows of a version, from a view of its stored ones that has the table's name."""
    tree = sqlglot.parse_one(read, read=DIALECT)
    assert isinstance(tree, exp.Select)
    tree.set("from_", exp.From(this=exp.Table(this=name(table))))
    return tree.subquery(name(table))


def _why_not(table: Table, live: TableState) -> str:
    if not live.table.managed:
        return "its producers still write it: promote `managed: true` first"
    if table.was and live.table.was:
        return f"it gets the name {table.name} in the same plan: promote that first"
    return ""


def _inverse(
    table: Table, live: TableState, continuation: Continued
) -> tuple[Values, tuple[str, ...], tuple[Problem, ...]]:
    """Backward values that need no `backward_query`: identical columns, and types that keep every value."""
    values: dict[str, exp.Expr] = {}
    lost: list[str] = []
    now = types(table.columns)
    for column in live.table.columns:
        continuing = [new for new, old in continuation.origins.items() if old == column.name]
        source = next(iter(continuing), column.name if column.name in now else "")
        if not source:
            lost.append(column.name)
            continue
        loss = kept(kind(now[source]), kind(column.type)) not in ("same", "wider", "whole")
        if not loss:
            values[column.name] = exp.column(name(source))
        elif continuing:
            to = exp.DataType.build(column.type, dialect=DIALECT)
            values[column.name] = exp.TryCast(this=exp.column(name(source)), to=to, safe=True)
        if loss:
            lost.append(column.name)
    return values, tuple(lost), ()


def _given(table: Table, live: TableState) -> tuple[Values, tuple[str, ...], tuple[Problem, ...]]:
    """The operator's `backward_query`; it must be total, since no row may stop the relay back."""
    older = replace(live.table, name=table.name, forward_query=table.backward_query, where=table.where)
    sql, wrong = reads.forward(older, replace(live, table=table))
    problems = [replace(each, message=each.message.replace("forward_query", "backward_query", 1)) for each in wrong]
    if not sql:
        return {}, (), tuple(problems)
    was, now = types(live.table.columns), {column: kind(type) for column, type in types(table.columns).items()}
    folded = {column.lower(): type for column, type in now.items()}
    values: dict[str, exp.Expr] = {}
    lost: list[str] = []
    for part in sqlglot.parse_one(sql, read=DIALECT).expressions:
        column, value = part.alias_or_name, part.unalias()
        if type_if_total(value, folded) is None:
            message = f"backward_query of {table.name}: {column} may fail for a row, and feeds of the previous release would stop"
            how = "compute it by try_cast, CASE, coalesce and functions of text"
            problems.append(_refused(table, message, how))
        values[column] = value
        bare = value.this if isinstance(value, exp.Cast) else value
        if not isinstance(bare, exp.Column) or kept(folded[bare.name.lower()], kind(was[column])) not in (
            "same",
            "wider",
            "whole",
        ):
            lost.append(column)
    return values, tuple(lost), tuple(problems)


def _refused(table: Table, message: str, how: str) -> Problem:
    remedies = (Edit(node=table.name, how=how),)
    return Problem(
        code="C130", message=message, where=table.where, severity="refuse", node=table.name, remedies=remedies
    )
