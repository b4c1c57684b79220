"""Rows that a replay would lose: expired in the source, never stored there, or removed by a filter."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR
from typing import TypeVar

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.live import Feed, Live, TableState
from console.model.schema import Table
from console.model.slices import EARLY, FIRST, LATE, day_name
from console.planning.cache.planner_cache import PlannerCache
from console.planning.fingerprint import DesiredTable
from console.planning.loss.allowed import accepting
from console.planning.loss.expired_days import expired_days, first_day, missing_rows
from console.planning.sql.semantics.functions import is_volatile
from console.planning.sql.syntax.flat import conjuncts, merged
from console.planning.sql.tree import DIALECT, kind, render
from console.remedy import Edit, Elsewhere, Remedy, SetKey

Times = tuple[tuple[str, str], ...]  # column → its part of the time
_Op = type[exp.Expr]
_MIRRORED: dict[_Op, _Op] = {
    exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ,
}  # fmt: skip
_OPPOSITE: dict[_Op, _Op] = {
    exp.GT: exp.LTE, exp.GTE: exp.LT, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ,
}  # fmt: skip
_ORDERS: dict[_Op, tuple[int, ...]] = {
    exp.GT: (1,), exp.GTE: (0, 1), exp.LT: (-1,), exp.LTE: (-1, 0), exp.EQ: (0,), exp.NEQ: (-1, 1),
}  # fmt: skip
_Bound = TypeVar("_Bound", str, int)  # a day, or a year
_CUT: dict[_Op, _Op] = {exp.GT: exp.GTE, exp.LT: exp.LTE}  # the bound splits its own day
_FULL = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_KNOWN = ("time", "day")
_SHOWN = 80  # letters of a condition in a message


def _days(table: Table, lost: Sequence[str]) -> str:
    if len(lost) == 1:
        return f"1 day of {table.name} ({lost[0]}) is"
    return f"{len(lost)} days of {table.name} ({lost[0]} … {lost[-1]}) are"


def retention(
    wanted: DesiredTable,
    before: TableState | None,
    source: DesiredTable | None,
    live: Live,
    cache: PlannerCache,
    remedies: tuple[Remedy, ...],
) -> list[Problem]:
    """Whether a source still holds the history of a table that is replayed from it. remedies: ways to keep it"""
    if source is None:
        return []
    table, origin = wanted.table, source.table.name
    keeps = _kept(source.table, live)
    target_stats, source_stats = (live.table(name) for name in (table.name, origin))
    if (
        before is not None
        and target_stats is not None
        and target_stats.rows
        and (source_stats is None or not source_stats.rows)
    ):
        message = (
            f"{origin} holds no row in {live.region}, and {table.name} {target_stats.rows:,}: a replay would lose them"
        )
        return [_refusal(table, "C102", message, (*_renamed(source.table, live), *remedies))]
    if before is not None and target_stats is not None and source_stats is not None and target_stats.rows:
        release = live.release
        fed = release.feeds_into(table.name) if release and any(f.source == origin for f in wanted.feeds) else ()
        if before.table.kind == "aggregate":
            fed = ()
        if lost := expired_days(target_stats, source_stats, fed, cache):
            message = f"{_days(table, lost)} no longer whole in {origin}: a replay would lose rows of them"
            return [_refusal(table, "C101", message, remedies)]
        if fewer := missing_rows(target_stats, source_stats, fed, cache):
            message = f"{origin} holds {fewer:,} rows less than {table.name} was made of: a replay would lose them"
            return [_refusal(table, "C101", message, remedies)]
        if keeps is not None and not (first_day(target_stats.days) and first_day(source_stats.days)):
            message = f"{origin} keeps {keeps} days, and no time column tells which rows of {table.name} are older"
            return [_refusal(table, "C101", message, remedies)]
    return _shorter(table, source.table, keeps, remedies)


def _renamed(source: Table, live: Live) -> tuple[Remedy, ...]:
    """A remedy for a new landing table with the columns of a live one, which it may be under a new name."""
    if source.kind != "landing" or live.release is None or live.release.table(source.name):
        return ()
    names = {column.name for column in source.columns}
    landing = (state.table for state in live.release.tables if state.table.kind == "landing")
    was = next((table.name for table in landing if {column.name for column in table.columns} == names), "")
    same = f"if {source.name} is {was} under another name"
    return (SetKey(node=source.name, key="was", value=was, effect=same),) if was else ()


def _refusal(table: Table, code: str, message: str, remedies: tuple[Remedy, ...]) -> Problem:
    lost = accepting(code, table.name, "lets them go; the previous release keeps them until cleanup")
    return Problem(
        code=code, message=message, where=table.where, severity="refuse", node=table.name, remedies=(*remedies, lost)
    )


def _kept(source: Table, live: Live) -> int | None:
    """Retention of a source in days: the shorter of the live and the declared one."""
    state = live.release.table(source.name) if live.release else None
    each = (source.retention_days, state.table.retention_days if state else None)
    return min((days for days in each if days is not None), default=None)


def _shorter(table: Table, source: Table, keeps: int | None, remedies: tuple[Remedy, ...]) -> list[Problem]:
    promoted = Elsewhere(what=f"promote before {source.name} has lost them")
    if keeps == 0:
        message = f"{source.name} stores nothing (retention 0): {table.name} starts empty"
        return [_later(table, "C102", message, source.where, remedies or (promoted,))]
    if keeps is not None and (table.retention_days is None or table.retention_days > keeps):
        wish = "forever" if table.retention_days is None else f"{table.retention_days} days"
        message = f"{source.name} keeps {keeps} days, {table.name} {wish}: only what is still there can be re-read"
        return [_later(table, "C101", message, table.where, (*remedies, promoted))]
    return []


def _later(table: Table, code: str, message: str, where: str, remedies: tuple[Remedy, ...]) -> Problem:
    return Problem(code=code, message=message, where=where, severity="warn", node=table.name, remedies=remedies)


def spanning(source: str, live: Live) -> list[Problem]:
    stats = live.table(source)
    if stats is None or all(day.exact for day in stats.days):
        return []
    message = f"files of {source} span several days: rows per day are estimates, and a batch reads more than its days"
    return [Problem(code="C117", message=message, severity="note", node=source)]


def filtered(
    wanted: DesiredTable, sources: Mapping[str, DesiredTable], live: Live, cache: PlannerCache
) -> list[Problem]:
    """Days of the live table that a feed's filter would remove if history were read through it today.

    Stored rows have passed the live feed's filter, so only new conditions are examined, and those that read the clock,
    whose result differs today.
    """
    table, stats = wanted.table, live.table(wanted.table.name)
    days = [day.day for day in stats.days if day.day and day.rows] if stats else []
    old = live.release.feeds_into(table.name) if live.release else ()
    problems: list[Problem] = []
    for feed in wanted.feeds:
        source = sources.get(feed.source)
        if source is None or not days or not source.table.time or not table.time:
            continue
        times = _times(source, cache)
        timed = {
            (feed.source, column.name)
            for column in source.table.columns
            if dict(times).get(column.name.lower()) in _KNOWN
        }
        if not (time_reads := wanted.reads.get(table.time)) or not time_reads <= timed:
            continue
        remedies = (
            Edit(node=feed.materialization, how=f"leave the filter out of {feed.materialization}"),
            accepting("C119", table.name, "lets them go; the previous release keeps them until cleanup"),
        )
        for condition in cache.by_value(_conditions, feed.sql, times):
            message = _loss(condition, feed, _kept_conditions(feed, old, times, cache), times, days, table.name)
            if message:
                problems.append(
                    Problem(
                        code="C119",
                        message=message,
                        where=table.where,
                        severity="refuse",
                        node=table.name,
                        remedies=remedies,
                    )
                )
    return problems


def _times(source: DesiredTable, cache: PlannerCache) -> Times:
    """Columns of a source that date a row: its time, and columns computed from the same source column as the time."""
    table = source.table
    roles = {table.time.lower(): "time"}
    time_reads = source.reads.get(table.time)
    for column in table.columns:
        if (
            time_reads
            and column.type in _TIMES
            and source.reads.get(column.name) == time_reads
            and column.name != table.time
        ):
            plain = column.type == "date" and all(
                cache.by_value(_is_day, feed.sql, column.name, table.time) for feed in source.feeds
            )
            roles[column.name.lower()] = "day" if plain else "other"
    return tuple(sorted(roles.items()))


def _is_day(sql: str, column: str, time: str) -> bool:
    """Whether a query computes a column as the day of its time column."""
    tree = sqlglot.parse_one(sql, read=DIALECT)
    query = merged(tree) or tree
    parts = {part.alias_or_name: part.unalias() for part in query.expressions}
    if not isinstance(query, exp.Select) or not isinstance(of := parts.get(time), exp.Column) or column not in parts:
        return False
    return _side(parts[column], ((of.name.lower(), "time"),)) == "day"


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition on the source's time. whole: every source row must pass it."""

    node: exp.Expr
    text: str
    whole: bool


def _loss(condition: _Condition, feed: Feed, before: list[set[str]], times: Times, days: list[str], table: str) -> str:
    """The rows that a condition would lose, as a sentence; "" for none.

    before  conditions that the live rows have passed, by the feed that wrote them
    """
    if any(is_volatile(node) for node in condition.node.walk()):
        return (
            f"{feed.materialization} filters by the clock: history of {table} that passed when it arrived"
            " would not pass now"
        )
    if before and all(condition.text in passed for passed in before):
        return ""
    stops = {day: stopped(condition.node, times, day) for day in days}
    if not condition.whole:  # rows that one branch filters may pass another
        stops = {day: None if stop else stop for day, stop in stops.items()}
    if lost := sorted(day for day, stop in stops.items() if stop):
        return (
            f"{len(lost)} days of {table} ({lost[0]} … {lost[-1]}) do not pass the filter of {feed.materialization}:"
            " a replay would lose them"
        )
    if None in stops.values():
        shown = condition.text if len(condition.text) <= _SHOWN else f"{condition.text[: _SHOWN - 1]}…"
        return (
            f"which days of {table} pass {shown} in {feed.materialization} cannot be determined: a replay may lose them"
        )
    return ""


def _kept_conditions(feed: Feed, old: tuple[Feed, ...], times: Times, cache: PlannerCache) -> list[set[str]]:
    """Conditions of the live feeds whose rows a feed reads again, one set for each."""
    return [{one.text for one in cache.by_value(_conditions, was.sql, times)} for was in _partners(feed, old)]


def _partners(feed: Feed, old: tuple[Feed, ...]) -> tuple[Feed, ...]:
    """The live feeds whose rows a feed reads again."""
    same = tuple(one for one in old if one.materialization == feed.materialization and one.source == feed.source)
    return same or tuple(one for one in old if one.source == feed.source)


def _conditions(sql: str, times: Times) -> tuple[_Condition, ...]:
    """Conditions on the source's time in the WHERE clauses of a query."""
    tree = sqlglot.parse_one(sql, read=DIALECT)
    query = merged(tree) or tree
    conditions: list[_Condition] = []
    for where in query.find_all(exp.Where):
        if isinstance(where.parent, exp.Filter):
            continue
        for part in conjuncts(where.this):
            if any(column.name.lower() in dict(times) for column in part.find_all(exp.Column)):
                plain = part.transform(lambda n: exp.column(n.name.lower()) if isinstance(n, exp.Column) else n)
                conditions.append(_Condition(part, render(plain), where.parent is query))
    return tuple(conditions)


def stopped(node: exp.Expr, times: Times, day: str) -> bool | None:
    """Whether no row of a day can pass a condition, None if unknown; a day that is split by a bound does not count."""
    node = node.unnest()
    match node:
        case exp.And():
            each = [stopped(part, times, day) for part in (node.this, node.expression)]
            return True if True in each else None if None in each else False
        case exp.Or():
            each = [stopped(part, times, day) for part in (node.this, node.expression)]
            return False if False in each else None if None in each else True
        case exp.Not():
            return _denied(node.this.unnest(), times, day)
        case exp.Between():
            low, high = (
                exp.GTE(this=node.this, expression=node.args["low"]),
                exp.LTE(this=node.this, expression=node.args["high"]),
            )
            return stopped(exp.and_(low, high), times, day)
        case exp.In() if node.expressions:
            equal = [exp.EQ(this=node.this, expression=one) for one in node.expressions]
            return stopped(exp.or_(*equal), times, day)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return True if _side(node.this, times) in _KNOWN else None
    if isinstance(node, tuple(_MIRRORED)):
        return _compared(type(node), node.this, node.expression, times, day)
    return None


def _denied(node: exp.Expr, times: Times, day: str) -> bool | None:
    match node:
        case exp.Not():
            return stopped(node.this, times, day)
        case exp.And() | exp.Or():
            other = exp.Or if isinstance(node, exp.And) else exp.And
            parts = [exp.Not(this=exp.paren(part)) for part in (node.this, node.expression)]
            return stopped(other(this=parts[0], expression=parts[1]), times, day)
        case exp.Is() if isinstance(node.expression, exp.Null) and _side(node.this, times) in _KNOWN:
            return False  # rows without a time belong to no day
        case exp.Between():
            outside = exp.or_(
                exp.LT(this=node.this, expression=node.args["low"]),
                exp.GT(this=node.this, expression=node.args["high"]),
            )
            return stopped(outside, times, day)
        case exp.In() if node.expressions:
            others = [exp.NEQ(this=node.this, expression=one) for one in node.expressions]
            return stopped(exp.and_(*others), times, day)
    if (opposite := _OPPOSITE.get(type(node))) is not None:
        return _compared(opposite, node.this, node.expression, times, day)
    return None


def _compared(op: type[exp.Expr], left: exp.Expr, right: exp.Expr, times: Times, day: str) -> bool | None:
    """A comparison of the time, its day or its year with a constant, either way round."""
    if not _side(left, times):
        op, left, right = _MIRRORED[op], right, left
    side, bound = _side(left, times), _constant(right)
    if side == "year" and bound.isdigit():
        return _of_years(op, day, int(bound))
    if side not in _KNOWN or not _FULL.fullmatch(bound):
        return None
    if bound < day_name(FIRST) and day == EARLY:
        return None  # within the days that EARLY stands for
    whole, moment = bound[:10], bound[10:].strip(" T0:.") != ""
    if side == "day" and moment:
        return None  # Spark compares the day's first moment
    if side == "day" or (not moment and op in (exp.LT, exp.GTE)):
        return not _passes(op, day, whole)
    if op is exp.NEQ:
        return False
    return not _passes(_CUT.get(op, op), day, whole)


def _of_years(op: type[exp.Expr], day: str, bound: int) -> bool | None:
    """Whether no row of a day passes a comparison of its year; EARLY and LATE stand for many years."""
    if day not in (EARLY, LATE):
        return not _passes(op, int(day[:4]), bound)
    if not MINYEAR <= bound <= MAXYEAR:
        return None
    return not _passes(op, MINYEAR - 1 if day == EARLY else MAXYEAR + 1, bound)


def _passes(op: type[exp.Expr], value: _Bound, bound: _Bound) -> bool:
    order = (value > bound) - (value < bound)
    return order in _ORDERS[op]


def _side(node: exp.Expr, times: Times) -> str:
    """The part of the time that an expression is: the `time` itself, its `day`, its `year`, some `other` part; "" for
    anything else."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return dict(times).get(node.name.lower(), "")
    if isinstance(node, (exp.TsOrDsToDate, exp.Year)) and not node.args.get("format"):
        inner = _side(node.this, times)
        return inner if inner in ("", "other") else "year" if isinstance(node, exp.Year) else "day"
    if isinstance(node, exp.Cast) and (to := kind(node.to.sql(DIALECT))) in _TIMES:
        inner = _side(node.this, times)
        return "day" if inner == "time" and to == "date" else inner
    return ""


def _constant(node: exp.Expr) -> str:
    """A literal, possibly cast to a time; "" for anything else."""
    node = node.unnest()
    while isinstance(node, exp.TsOrDsToDate) or (isinstance(node, exp.Cast) and kind(node.to.sql(DIALECT)) in _TIMES):
        node = node.this.unnest()
    return node.name if isinstance(node, exp.Literal) else ""
