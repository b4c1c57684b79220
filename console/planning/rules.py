"""The planner's rules: what a region or a plan must not do without somebody having read it. Codes in docs/codes.md."""

from collections.abc import Mapping

from console.errors import Problem
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Price
from console.model.schema import Column, Table
from console.planning.desired import Desired, DesiredTable
from console.planning.diff import Diff
from console.planning.loss import history, protocol, values
from console.planning.routes.verdict import Verdict
from console.planning.sql.tree import kind


def region_problems(pipeline: Pipeline, live: Live) -> list[Problem]:
    """What makes a pipeline impossible in one region: its landing tables are not what the files say."""
    found: list[Problem] = []
    for table in pipeline.tables:
        if table.kind != "landing":
            continue
        stats = live.table(table.name)
        found += protocol.misspelt(table, stats, live.region)
        if stats is None:
            if not table.managed:
                hint = "create it there, correct the name, or declare `managed: true`"
                found.append(
                    Problem(
                        "C110", f"{live.region} has no landing table {table.name}", table.where, hint, node=table.name
                    )
                )
            continue
        if strange := protocol.unreadable(table, stats, live.region):
            found += strange
            continue  # nothing else of it was read
        found += protocol.cut(table, stats, live.region)
        real = {column.name.lower(): column for column in stats.columns}
        for column in table.columns:
            found += _landing_column(table, column, real.get(column.name.lower()), live)
    return found


def _landing_column(table: Table, column: Column, real: Column | None, live: Live) -> list[Problem]:
    name = f"{table.name}.{column.name}"
    if real is None:
        if table.managed and column.nullable:
            return []
        if table.managed:
            message, hint = f"{name} is new and not nullable: older rows have no value", "declare it nullable"
            return [Problem("C111", message, table.where, hint, node=table.name)]
        message = f"{name} is declared, and the table in {live.region} has no such column"
        return [
            Problem(
                "C111", message, table.where, "add it there first, or use an override for this region", node=table.name
            )
        ]
    try:
        if kind(real.type) == kind(column.type):
            return []
    except ValueError:
        return []
    message = f"{name} is declared {column.type}, and is {real.type} in {live.region}"
    return [
        Problem("C112", message, table.where, "declare what is there and cast in the materialization", node=table.name)
    ]


def dropped_but_read(problems: tuple[Problem, ...], live: Live) -> tuple[Problem, ...]:
    """Give "there is no such column" its better name where the live release still has the column."""
    if live.release is None:
        return problems
    held = {(state.table.name, column.name.lower()) for state in live.release.tables for column in state.table.columns}
    better = []
    for plain in problems:
        problem = plain
        words = problem.message.split()
        if problem.code == "S108" and problem.message.startswith("there is no column") and len(words) > 6:
            column, table = words[4].lower(), words[6]
            if (table, column) in held:
                problem = Problem(
                    "C104",
                    f"{problem.node} still reads {table}.{column}, which this change drops",
                    problem.where,
                    "change it as well, or keep the column",
                    node=problem.node,
                )
        better.append(problem)
    return tuple(better)


def plan_problems(desired: Desired, verdicts: Mapping[str, Verdict], live: Live, price: Price) -> list[Problem]:
    """What the rules say about a plan that could run."""
    own = [problem for verdict in verdicts.values() for problem in verdict.problems]
    found = [problem for verdict in verdicts.values() for problem in _protocol(verdict, live)]
    for verdict in verdicts.values():
        if not verdict.rebuilt or verdict.wanted is None:
            continue
        if verdict.recomputed is not None:
            found += _replayed(verdict, verdict.wanted, desired, verdicts, live)
        if verdict.live is not None and verdict.diff is not None:
            forwarded = verdict.copied.sql if verdict.copied is not None and verdict.recomputed is None else ""
            found += values.types(verdict.wanted, verdict.diff, forward=forwarded)
            found += values.partitions(verdict.wanted, verdict.diff)
            found += _erased(verdict.wanted, verdict.diff)
    return [*own, *dict.fromkeys(found)]


def _replayed(
    verdict: Verdict, wanted: DesiredTable, desired: Desired, verdicts: Mapping[str, Verdict], live: Live
) -> list[Problem]:
    found: list[Problem] = []
    if verdict.recomputed is not None and (start := verdict.recomputed.since):
        table = wanted.table
        without = [c.name for c in table.columns if verdict.diff is not None and c.name in verdict.diff.computed]
        message = (
            f"days of {table.name} before {start} keep their rows; {', '.join(without)} get what is declared for them"
        )
        found.append(Problem("C118", message, table.where, "a forward_query computes them", "warn", table.name))
    else:
        for source in sorted(_roots(verdict.name, verdicts)):
            found += history.retention(wanted, verdict.live, desired.tables.get(source), live)
            found += history.spanning(source, live)
        if verdict.live is not None:
            found += history.filtered(wanted, desired.tables, live)
    if verdict.live is not None:
        found += values.repeatable(wanted, verdict.live)
        found += _narrower(verdict, wanted)
    return found


def _roots(name: str, verdicts: Mapping[str, Verdict]) -> frozenset[str]:
    """The tables whose history a replayed table's comes from in the end: such as stand, or carry their own over."""
    verdict = verdicts[name]
    if not verdict.rebuilt or verdict.wanted is None or verdict.recomputed is None or verdict.recomputed.since:
        return frozenset({name})
    return frozenset().union(*(_roots(feed.source, verdicts) for feed in verdict.wanted.feeds))


def _narrower(verdict: Verdict, wanted: DesiredTable) -> list[Problem]:
    """A filter more than before, and else the same rows."""
    if not verdict.filters:
        return []
    message = f"{wanted.table.name}: rows that do not pass the new filter of {', '.join(verdict.filters)} are left out of the new version"
    hint = "the previous version keeps them until cleanup"
    return [Problem("C121", message, wanted.table.where, hint, "warn", wanted.table.name)]


def _erased(wanted: DesiredTable, diff: Diff) -> list[Problem]:
    if not diff.hidden:
        return []
    message = f"{wanted.table.name} is rewritten without {', '.join(diff.hidden)}"
    hint = "the previous version keeps them until cleanup"
    return [Problem("C116", message, wanted.table.where, hint, "warn", wanted.table.name)]


def _protocol(verdict: Verdict, live: Live) -> list[Problem]:
    """A column type that Delta has only behind a table feature, for a table that others may read with older tools."""
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
    return [Problem("C122", message, table.where, hint, "refuse", table.name)]
