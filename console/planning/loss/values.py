"""Values that change in a rebuild: types that narrow, expressions and joins that are not repeatable."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.live import TableState
from console.model.plan import ColumnChange
from console.model.schema import Table
from console.planning.cache.planner_cache import PlannerCache
from console.planning.diff import Diff, split_value
from console.planning.fingerprint import DesiredTable
from console.planning.loss.allowed import accepting
from console.planning.sql.convert import kept
from console.planning.sql.reads import projections
from console.planning.sql.semantics.functions import called
from console.planning.sql.syntax.flat import merged
from console.planning.sql.tree import DIALECT, kind
from console.remedy import AnotherColumn, Edit, Elsewhere, Remedy, SetKey

# functions that return NULL for a value that does not convert
_TRYING = {"try_to_date": "date", "try_to_timestamp": "timestamp", "try_to_binary": "binary"}
_GIVEN = "the forward_query computes it under that name"


def repeatable(wanted: DesiredTable, *, carried: bool = False) -> list[Problem]:
    """C113, C114: columns whose values a replay may change. carried: `history: carry` is possible instead"""
    table, problems = wanted.table, []
    if joined := [name for name in wanted.values if name in wanted.joined]:
        review = Elsewhere(what="review the list")
        keep = SetKey(node=table.name, key="history", value="carry", effect="keeps what was joined")
        others = ", ".join(sorted({name for feed in wanted.feeds for name in feed.joins}))
        message = f"{table.name} is replayed through a join: {', '.join(joined)} show the values of {others} at that time, not those when rows arrived, and are not compared"
        problems.append(
            Problem(
                code="C113",
                message=message,
                where=table.where,
                severity="warn",
                node=table.name,
                remedies=(review, keep) if carried else (review,),
            )
        )
    if wanted.volatile:
        message = f"{table.name}: {', '.join(sorted(wanted.volatile))} will have other values than before (now(), rand() and the like), and are not compared"
        remedies: tuple[Remedy, ...] = (Elsewhere(what="review the list"),)
        if table.kind != "aggregate":
            remedies = (SetKey(node=table.name, key="forward_query", effect="keeps what is stored"),)
        problems.append(
            Problem(
                code="C114", message=message, where=table.where, severity="warn", node=table.name, remedies=remedies
            )
        )
    return problems


def estimates(wanted: DesiredTable, before: TableState, read: str = "") -> list[Problem]:
    """C115: estimates from sketches that will be computed or read in another way, in a table whose rows do not change.

    read  the new read if the sketches are kept: an equivalent expression yields the same numbers, however spelled
    """
    table, problems = wanted.table, list[Problem]()
    sketches = [
        n for n in wanted.inexact if any(c.name.startswith(f"{n}__") and c.type == "binary" for c in wanted.columns)
    ]
    changed = [
        n
        for n in sketches
        if n in before.values and split_value(before.values[n])[0] != split_value(wanted.values[n])[0]
    ]
    if changed and read:
        now, was = projections(read), projections(before.read)
        changed = [n for n in changed if _as_numbers(now.get(n.lower())) != _as_numbers(was.get(n.lower()))]
    if changed:
        message = f"{table.name}: the estimates in {', '.join(changed)} are computed another way: published numbers will change"
        problems.append(
            Problem(
                code="C115",
                message=message,
                where=table.where,
                severity="note",
                node=table.name,
                remedies=(Elsewhere(what="inform the readers of these numbers"),),
            )
        )
    return problems


def _as_numbers(value: exp.Expr | None) -> exp.Expr | None:
    """The expression with fractions in one spelling."""

    def spelled(node: exp.Expr) -> exp.Expr:
        fraction = isinstance(node, exp.Literal) and not node.is_string and not node.is_int
        return exp.Literal.number(repr(float(node.name))) if fraction else node

    return value.transform(spelled) if value is not None else None


def types(wanted: DesiredTable, diff: Diff, cache: PlannerCache, *, forward: str = "") -> list[Problem]:
    """Type changes that truncate values, or that a value may not fit. forward: the converting query, if not the feed"""
    table, problems = wanted.table, []
    converting = (forward,) if forward else tuple(feed.sql for feed in wanted.feeds)
    given = bool(forward and table.forward_query and diff.rows)
    for change in diff.columns:
        problem = conversion(table, change, given=given)
        if problem is None or (column := table.column(change.column)) is None:
            continue
        new = kind(column.type)
        if not all(cache.by_value(tries, sql, column.name, new) for sql in converting):
            problems.append(problem)
    return problems


def conversion(table: Table, change: ColumnChange, *, given: bool = False) -> Problem | None:
    """C103 of one column whose type changes, if values may be truncated or not convert; None if all are preserved.

    table  as wanted;  given: its forward_query computes it, and would have to compute a column under another name
    """
    column = table.column(change.column)
    if change.change != "type" or column is None:
        return None
    name, old, new = f"{table.name}.{column.name}", kind(change.was), kind(column.type)
    match kept(old, new):
        case "cut":
            message = f"{name} narrows from {old} to {new}, which loses digits without an error"
            remedies = (
                Edit(node=table.name, how="compute it with try_cast and a default"),
                AnotherColumn(node=table.name, column=column.name, effect=_GIVEN if given else ""),
                accepting("C103", table.name, "cuts them"),
            )
            return Problem(
                code="C103", message=message, where=table.where, severity="refuse", node=table.name, remedies=remedies
            )
        case "may fail":
            message = f"{name} changes from {old} to {new}: a value that does not convert stops its batch"
            how = (Edit(node=table.name, how="try_cast and coalesce accept such values"),)
            return Problem(
                code="C103", message=message, where=table.where, severity="warn", node=table.name, remedies=how
            )
        case "same" | "wider" | "whole":
            return None


def tries(sql: str, column: str, type: str) -> bool:
    """Whether a query computes a column by a try_cast to this very type, without another conversion before or after.

    A default beside it is allowed: `coalesce(try_cast(x AS INT), 0)`.
    """
    nodes = list(_computing(sqlglot.parse_one(sql, read=DIALECT), column, type))
    return bool(nodes) and all(_tried(node, type) for node in nodes)


def _computing(tree: exp.Expr, column: str, type: str) -> Iterator[exp.Expr]:
    """The expressions that compute a column, in each branch of a UNION."""
    query = merged(tree) or tree
    if isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.SetOperation):
        names = [name.lower() for name in query.named_selects]
        for branch in (query.this, query.expression) if column.lower() in names else ():
            yield from _computing(branch, branch.named_selects[names.index(column.lower())], type)
        return
    parts = query.expressions if isinstance(query, exp.Select) else []
    for part in parts:
        if part.alias_or_name.lower() != column.lower():
            continue
        value = _bare(part.unalias(), type)
        inner = query.args["from_"].this if query.args.get("from_") else None
        if isinstance(value, exp.Column) and isinstance(inner, exp.Subquery) and inner.alias == value.table:
            yield from _computing(inner.this, value.name, type)
        else:
            yield value


def _bare(node: exp.Expr, type: str) -> exp.Expr:
    """Without casts to the column's own type, which have no effect on a value of that type."""
    node = node.unnest()
    while isinstance(node, exp.Cast) and not node.args.get("safe") and kind(node.to.sql(DIALECT)) == type:
        node = node.this.unnest()
    return node


def _tried(node: exp.Expr, type: str) -> bool:
    node = _bare(node, type)
    match node:
        case exp.TryCast() if node.args.get("safe"):
            return kind(node.to.sql(DIALECT)) == type
        case exp.Coalesce():
            choices = [node.this, *node.expressions]
        case exp.If():
            choices = [node.args["true"], node.args.get("false") or exp.Null()]
        case exp.Case():
            choices = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default") or exp.Null()]
        case _:
            return _TRYING.get(called(node), "") == type
    return all(_tried(choice, type) or choice.find(exp.Column) is None for choice in choices)


def partitions(wanted: DesiredTable, diff: Diff) -> list[Problem]:
    """C105: the values of a partition column change, so rows move to other partitions."""
    table = wanted.table
    changed = {name for name, why in diff.computed.items() if why.kind == "expression"}
    moved = [name for name in table.partition_by if name in changed]
    if not moved:
        return []
    message = f"{table.name} is partitioned by {', '.join(moved)}, whose values change: every row may move to another partition"
    return [
        Problem(
            code="C105",
            message=message,
            where=table.where,
            severity="warn",
            node=table.name,
            remedies=(Elsewhere(what="queries that name a partition find other rows"),),
        )
    ]
