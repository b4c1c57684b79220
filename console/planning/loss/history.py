"""Rows that a replay would not bring back: gone from the source, never stored there, or stopped by a filter."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.merge_subqueries import merge_subqueries

from console.errors import Problem
from console.model.live import Live, TableState
from console.model.schema import Table
from console.planning.desired import Wanted
from console.planning.loss.gone import first, gone, missing
from console.planning.sql import allow
from console.planning.sql.tree import DIALECT

_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}


def retention(wanted: Wanted, before: TableState | None, source: Wanted | None, live: Live) -> list[Problem]:
    """Whether a table that stands still holds the history of a table that is replayed from it."""
    if source is None:
        return []
    table, origin = wanted.table, source.table.name
    keeps = _kept(source.table, live)
    hint = f"a forward_query on {table.name} carries the older days; or keep {origin} longer"
    mine, theirs = (live.table(name) for name in (table.name, origin))
    if before is not None and mine is not None and mine.rows and (theirs is None or not theirs.rows):
        message = f"{origin} holds no row in {live.region}, and {table.name} {mine.rows:,}: a replay would lose them"
        return [Problem("C102", message, table.where, hint, "refuse", table.name)]
    if before is not None and mine is not None and theirs is not None and mine.rows:
        release = live.release
        fed = release.feeds_into(table.name) if release and any(f.source == origin for f in wanted.feeds) else ()
        if before.table.kind == "aggregate":
            fed = ()
        if lost := gone(mine, theirs, fed):
            days = f"{len(lost)} days of {table.name} ({lost[0]} … {lost[-1]})"
            message = f"{days} are no longer whole in {origin}: a replay would lose rows of them"
            return [Problem("C101", message, table.where, hint, "refuse", table.name)]
        if fewer := missing(mine, theirs, fed):
            message = f"{origin} holds {fewer:,} rows less than {table.name} was made of: a replay would lose them"
            return [Problem("C101", message, table.where, hint, "refuse", table.name)]
        if keeps is not None and not (first(mine.days) and first(theirs.days)):
            message = f"{origin} keeps {keeps} days, and no time column tells which rows of {table.name} are older"
            more = f"{hint}; or declare `time:`"
            return [Problem("C101", message, table.where, more, "refuse", table.name)]
    return _shorter(table, source.table, keeps, hint)


def _kept(source: Table, live: Live) -> int | None:
    """Days that a source has kept so far: as it is live, and as it will be."""
    state = live.release.table(source.name) if live.release else None
    each = (source.retention_days, state.table.retention_days if state else None)
    return min((days for days in each if days is not None), default=None)


def _shorter(table: Table, source: Table, keeps: int | None, hint: str) -> list[Problem]:
    if keeps == 0:
        message = f"{source.name} stores nothing (retention 0): {table.name} starts empty"
        return [Problem("C102", message, source.where, hint, "warn", table.name)]
    if keeps is not None and (table.retention_days is None or table.retention_days > keeps):
        wish = "for ever" if table.retention_days is None else f"{table.retention_days} days"
        message = f"{source.name} keeps {keeps} days, {table.name} {wish}: only what is still there can be re-read"
        return [Problem("C101", message, table.where, hint, "warn", table.name)]
    return []


def spanning(source: str, live: Live) -> list[Problem]:
    stats = live.table(source)
    if stats is None or all(day.exact for day in stats.days):
        return []
    message = f"files of {source} span several days: rows per day are estimates, and a batch reads more than its days"
    return [Problem("C117", message, "", "", "note", source)]


def filtered(wanted: Wanted, sources: Mapping[str, Wanted], live: Live) -> list[Problem]:
    """Days of the live table that the filter of a feed would stop, were history read through it today."""
    table, stats = wanted.table, live.table(wanted.table.name)
    days = [day.day for day in stats.days if day.day and day.rows] if stats else []
    found: list[Problem] = []
    for feed in wanted.feeds:
        source = sources.get(feed.source)
        time = source.table.time if source else ""
        if not days or not time or wanted.reads.get(table.time) != frozenset({(feed.source, time)}):
            continue
        for op, bound in _bounds(feed.sql, time):
            hint = f"leave the filter out of {feed.materialization}, or accept the loss by its name"
            if not bound:
                message = f"{feed.materialization} filters by the clock: history of {table.name} that passed when it arrived would not pass now"
                found.append(Problem("C119", message, table.where, hint, "refuse", table.name))
            elif lost := sorted(day for day in days if _stopped(day, op, bound)):
                message = f"{len(lost)} days of {table.name} ({lost[0]} … {lost[-1]}) do not pass the filter of {feed.materialization}: a replay would lose them"
                found.append(Problem("C119", message, table.where, hint, "refuse", table.name))
    return found


def _stopped(day: str, op: type[exp.Expr], bound: str) -> bool:
    """Whether no row of a day can pass; a day that is cut in two is not counted."""
    return day < bound if op in (exp.GT, exp.GTE) else day > bound


@lru_cache(maxsize=4096)
def _bounds(sql: str, time: str) -> tuple[tuple[type[exp.Expr], str], ...]:
    """Comparisons of the source's time with a constant day, or with the clock ("")."""
    return tuple(_comparisons(sql, time))


def _comparisons(sql: str, time: str) -> Iterator[tuple[type[exp.Expr], str]]:
    tree = sqlglot.parse_one(sql, read=DIALECT)
    try:
        tree = merge_subqueries(tree)
    except (SqlglotError, KeyError, AttributeError):
        return
    where = tree.args.get("where")
    for part in _conjuncts(where.this if where is not None else None):
        node = part.unnest()
        if isinstance(node, exp.Between):
            yield from _one(exp.GTE, node.this, node.args["low"], time)
            yield from _one(exp.LTE, node.this, node.args["high"], time)
        elif isinstance(node, tuple(_TURNED)):
            yield from _one(type(node), node.this, node.expression, time)
            yield from _one(_TURNED[type(node)], node.expression, node.this, time)


def _conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    if node is None:
        return []
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


def _one(op: type[exp.Expr], side: exp.Expr, other: exp.Expr, time: str) -> Iterator[tuple[type[exp.Expr], str]]:
    columns = {column.name.lower() for column in side.find_all(exp.Column)}
    if columns != {time.lower()} or other.find(exp.Column) is not None:
        return
    if any(type(n).__name__ in allow.VOLATILE_NODES for n in other.walk()):
        yield op, ""
    elif (text := other.find(exp.Literal)) is not None and text.is_string and text.this[:4].isdigit():
        yield op, text.this[:10]
