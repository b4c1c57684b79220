"""The planner's rules: problems of a region or a plan that the operator has to see. Codes in docs/codes.md."""

from collections.abc import Mapping
from dataclasses import replace

from console.errors import Problem
from console.model.live import Live, TableState, TableStats
from console.model.pipeline import Pipeline
from console.model.schema import Column, Table
from console.planning.cache.planner_cache import PlannerCache
from console.planning.diff import Diff
from console.planning.estimate import days_since
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.landing.forward_query import Continued, continued, renamed
from console.planning.landing.problems import unpartitioned
from console.planning.loss import history, protocol, values
from console.planning.routes.verdict import Verdict
from console.planning.sql.convert import read_wider
from console.planning.sql.tree import UnknownColumn, kind


def region_problems(pipeline: Pipeline, live: Live) -> list[Problem]:
    """Landing tables of a region that differ from their declaration, so that the pipeline cannot run there."""
    problems: list[Problem] = []
    for table in pipeline.tables:
        if table.kind != "landing":
            continue
        stats = live.table(table.name)
        problems += protocol.misspelt(table, stats, live.region)
        if stats is None:
            if not table.managed:
                hint = "create it there, correct the name, or declare `managed: true`"
                problems.append(
                    Problem(
                        code="C110",
                        message=f"{live.region} has no landing table {table.name}",
                        where=table.where,
                        hint=hint,
                        node=table.name,
                    )
                )
            continue
        if unreadable := protocol.unreadable(table, stats, live.region):
            problems += unreadable
            continue  # nothing else of it was read
        problems += protocol.cut(table, stats, live.region)
        problems += _landing_columns(table, stats, live)
    return problems


def _landing_columns(table: Table, stats: TableStats, live: Live) -> list[Problem]:
    actual = {column.name.lower(): column for column in stats.columns}
    before = live.release.table(table.name) if live.release else None
    was = {new: old for old, new in renamed(table, before).items()} if before else {}
    taken = (
        {part.lower() for column in before.table.columns for part in before.stored_in(column.name)} if before else ()
    )
    continuation = continued(table, before) if before else Continued()
    computed = {*continuation.computed, *continuation.refused}
    problems: list[Problem] = []
    for column in table.columns:
        if column.name in computed and before and before.table.column(column.name):
            continue
        old = was.get(column.name, column.name)
        declared = before.table.column(old) if before and table.managed else None
        if before is None or declared is None:
            own = None if table.managed and column.name.lower() in taken else actual.get(column.name.lower())
            problems += _landing_column(table, column, own, live)
            continue
        # the widest of its stored columns has the type that is live; a wider one is stored beside it
        actual_column = actual.get(before.stored_in(old)[-1].lower())
        if (
            actual_column is not None
            and actual_column.type == declared.type
            and read_wider(kind(declared.type), kind(column.type))
        ):
            continue
        problems += _landing_column(
            table, column, replace(actual_column, name=column.name) if actual_column else None, live
        )
    return problems


def _landing_column(table: Table, column: Column, actual: Column | None, live: Live) -> list[Problem]:
    name = f"{table.name}.{column.name}"
    if actual is None:
        if table.managed and (column.nullable or column.default is not None):
            return []
        if table.managed:
            message = f"{name} is new and not nullable: older rows have no value"
            hint = "declare it nullable, or give it a default"
            return [Problem(code="C111", message=message, where=table.where, hint=hint, node=table.name)]
        message = f"{name} is declared, and the table in {live.region} has no such column"
        return [
            Problem(
                code="C111",
                message=message,
                where=table.where,
                hint="add it there first, or use an override for this region",
                node=table.name,
            )
        ]
    try:
        if kind(actual.type) == kind(column.type):
            return []
    except ValueError:
        return []
    message = f"{name} is declared {column.type}, and is {actual.type} in {live.region}"
    return [
        Problem(
            code="C112",
            message=message,
            where=table.where,
            hint=f"declare the actual type{', drop forward_query' if table.forward_query else ''}, and cast in the materialization",
            node=table.name,
        )
    ]


def dropped_but_read(
    problems: tuple[Problem, ...], unknown: Mapping[Problem, UnknownColumn], live: Live
) -> tuple[Problem, ...]:
    """Replace "there is no such column" by C104 where the live release still has the column."""
    if live.release is None:
        return problems
    live_columns = {
        (state.table.name, column.name.lower()) for state in live.release.tables for column in state.table.columns
    }
    return tuple(_dropped(problem, unknown.get(problem), live_columns) or problem for problem in problems)


def _dropped(problem: Problem, read: UnknownColumn | None, live_columns: set[tuple[str, str]]) -> Problem | None:
    table = next((table for table in read.tables if (table, read.column) in live_columns), None) if read else None
    if read is None or table is None:
        return None
    message = f"{problem.node} still reads {table}.{read.column}, which this change drops"
    hint = "change it as well, or keep the column"
    return Problem(code="C104", message=message, where=problem.where, hint=hint, node=problem.node)


def plan_problems(desired: Desired, verdicts: Mapping[str, Verdict], live: Live, cache: PlannerCache) -> list[Problem]:
    """Problems of a plan that could run."""
    forward_queries = [problem for verdict in verdicts.values() for problem in verdict.problems]
    problems = [problem for verdict in verdicts.values() for problem in _protocol(verdict, live)]
    for verdict in verdicts.values():
        if verdict.wanted is not None and verdict.wanted.table.kind == "landing":
            problems += unpartitioned(verdict.wanted.table, live.table(verdict.name), verdict.live, live.region)
    for verdict in verdicts.values():
        if verdict.states_read and verdict.wanted is not None and verdict.live is not None:
            problems += values.estimates(verdict.wanted, verdict.live)
        if not verdict.rebuilt or verdict.wanted is None:
            continue
        if verdict.recomputed is not None:
            problems += _replayed(verdict, verdict.wanted, desired, verdicts, live, cache)
        if verdict.filters and (verdict.recomputed is None or verdict.recomputed.since):
            problems += history.filtered(verdict.wanted, desired.tables, live, cache)
            problems += _new_filters(verdict, verdict.wanted) if verdict.recomputed is None else []
        if verdict.live is not None and verdict.diff is not None:
            forwarded = verdict.copied.sql if verdict.copied is not None and verdict.recomputed is None else ""
            problems += values.types(verdict.wanted, verdict.diff, cache, forward=forwarded)
            problems += values.partitions(verdict.wanted, verdict.diff)
            problems += _removed_columns(verdict.wanted, verdict.diff)
    return [*forward_queries, *dict.fromkeys(problems)]


def _replayed(
    verdict: Verdict,
    wanted: DesiredTable,
    desired: Desired,
    verdicts: Mapping[str, Verdict],
    live: Live,
    cache: PlannerCache,
) -> list[Problem]:
    problems: list[Problem] = []
    if verdict.recomputed is not None and verdict.recomputed.since and verdict.history:
        problems += history.filtered(wanted, desired.tables, days_since(live, verdict.recomputed.since), cache)
    elif verdict.recomputed is not None and verdict.recomputed.since:
        problems.append(_kept_days(verdict, wanted.table, verdict.recomputed.since))
    else:
        for source in sorted(_roots(verdict.name, verdicts)):
            origin = desired.tables.get(source)
            problems += history.retention(wanted, verdict.live, origin, live, cache, _remedy(verdict, source))
            problems += history.spanning(source, live)
        if verdict.live is not None:
            problems += history.filtered(wanted, desired.tables, live, cache)
    return problems + (_computed_again(verdict, wanted, verdict.live) if verdict.live is not None else [])


def _computed_again(verdict: Verdict, wanted: DesiredTable, before: TableState) -> list[Problem]:
    same_rows = verdict.diff is not None and verdict.diff.rows
    estimates = values.estimates(wanted, before) if same_rows else []
    return [*values.repeatable(wanted), *estimates, *_new_filters(verdict, wanted)]


def _kept_days(verdict: Verdict, table: Table, start: str) -> Problem:
    """C118: days that the source has lost are copied. start: the first one that is computed"""
    without = [c.name for c in table.columns if verdict.diff is not None and c.name in verdict.diff.computed]
    message = f"days of {table.name} before {start} keep their rows; {', '.join(without)} get what is declared for them"
    hint = "a forward_query computes them"
    if table.kind == "aggregate":
        message = (
            f"days of {table.name} before {start} are gone in its source and keep their states: there {verdict.older}"
        )
        hint = "a `default:` is what they show instead of NULL"
    return Problem(code="C118", message=message, where=table.where, hint=hint, severity="warn", node=table.name)


def _remedy(verdict: Verdict, source: str) -> str:
    """What keeps the rows that a replay would lose, "" where nothing does. source: the table that it reads in the end"""
    aggregate = verdict.wanted is not None and verdict.wanted.table.kind == "aggregate"
    instead = verdict.remedy if aggregate else history.KEEP.format(table=verdict.name, origin=source)
    carried = "`history: carry` copies the rows that are there" if verdict.may_be_carried else ""
    return "; or ".join(part for part in (instead, carried) if part)


def _roots(name: str, verdicts: Mapping[str, Verdict]) -> frozenset[str]:
    """The tables that a replay reads in the end: those that are not rebuilt, or that copy their own rows."""
    verdict = verdicts[name]
    if not verdict.rebuilt or verdict.wanted is None or verdict.recomputed is None or verdict.recomputed.since:
        return frozenset({name})
    return frozenset().union(*(_roots(feed.source, verdicts) for feed in verdict.wanted.feeds))


def _new_filters(verdict: Verdict, wanted: DesiredTable) -> list[Problem]:
    """C121: the same rows, with a filter added."""
    if not verdict.filters:
        return []
    message = f"{wanted.table.name}: rows that do not pass the new filter of {', '.join(verdict.filters)} are left out of the new version"
    hint = "the previous version keeps them until cleanup"
    return [
        Problem(
            code="C121", message=message, where=wanted.table.where, hint=hint, severity="warn", node=wanted.table.name
        )
    ]


def _removed_columns(wanted: DesiredTable, diff: Diff) -> list[Problem]:
    if not diff.hidden:
        return []
    message = f"{wanted.table.name} is rewritten without {', '.join(diff.hidden)}"
    hint = "the previous version keeps them until cleanup"
    return [
        Problem(
            code="C116", message=message, where=wanted.table.where, hint=hint, severity="warn", node=wanted.table.name
        )
    ]


def _protocol(verdict: Verdict, live: Live) -> list[Problem]:
    """C122: a column type that needs a Delta table feature, in a table that others may read with older tools."""
    if verdict.wanted is None:
        return []
    table = verdict.wanted.table
    new, missing = protocol.raised(table, live.table(verdict.name))
    if not missing:
        return []
    message = (
        f"{', '.join(c.name for c in new)} would raise the Delta protocol of {table.name} ({', '.join(missing)}):"
        " it cannot be taken back, and older readers are locked out"
    )
    hint = "choose another type, or accept it with --allow-protocol"
    return [Problem(code="C122", message=message, where=table.where, hint=hint, severity="refuse", node=table.name)]
