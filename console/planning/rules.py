"""The planner's rules: what a region or a plan must not do without somebody having read it. Codes in docs/codes.md."""

from collections.abc import Mapping

from console.errors import Problem
from console.model.live import Live, TableState
from console.model.pipeline import Pipeline
from console.model.plan import Price
from console.model.schema import Column, Table
from console.planning.desired import Desired, Wanted
from console.planning.diff import narrows
from console.planning.route import Verdict
from console.planning.sql.tree import kind


def region_problems(pipeline: Pipeline, live: Live) -> list[Problem]:
    """What makes a pipeline impossible in one region: its landing tables are not what the files say."""
    found: list[Problem] = []
    for table in pipeline.tables:
        if table.kind != "landing":
            continue
        stats = live.table(table.name)
        if stats is None:
            if not table.managed:
                hint = "create it there, correct the name, or declare `managed: true`"
                found.append(
                    Problem(
                        "C110", f"{live.region} has no landing table {table.name}", table.where, hint, node=table.name
                    )
                )
            continue
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
    found: list[Problem] = []
    for verdict in verdicts.values():
        if not verdict.rebuilt or verdict.wanted is None:
            continue
        wanted = verdict.wanted
        if verdict.action != "forward":
            for source in sorted(_roots(verdict.name, verdicts)):
                found += _retention(wanted, verdict.live, desired.tables.get(source), live)
                found += _spanning(source, live)
            found += _repeatable(wanted, verdict.live)
        if verdict.live is not None and verdict.diff is not None:
            found += _types(verdict)
            if verdict.diff.hidden:
                names = ", ".join(verdict.diff.hidden)
                hint = "the previous version keeps them until cleanup"
                found.append(
                    Problem(
                        "C116",
                        f"{wanted.table.name} is rewritten without {names}",
                        wanted.table.where,
                        hint,
                        "warn",
                        wanted.table.name,
                    )
                )
    if live.free_bytes and price.bytes > live.free_bytes:
        message = f"{live.region} has {live.free_bytes:,} bytes free and the plan writes about {price.bytes:,}"
        found.append(Problem("C120", message, "", "free space first, or clean up older releases", "warn"))
    return list(dict.fromkeys(found))


def _roots(name: str, verdicts: Mapping[str, Verdict]) -> frozenset[str]:
    """The tables that stand and from which a replayed table's history comes in the end."""
    verdict = verdicts[name]
    if not verdict.rebuilt or verdict.wanted is None or verdict.action == "forward":
        return frozenset({name})
    return frozenset().union(*(_roots(feed.source, verdicts) for feed in verdict.wanted.feeds))


def _spanning(source: str, live: Live) -> list[Problem]:
    stats = live.table(source)
    if stats is None or all(day.exact for day in stats.days):
        return []
    message = f"files of {source} span several days: rows per day are estimates, and a batch reads more than its days"
    return [Problem("C117", message, "", "", "note", source)]


def _retention(wanted: Wanted, before: TableState | None, source: Wanted | None, live: Live) -> list[Problem]:
    if source is None:
        return []
    table, keeps = wanted.table, source.table.retention_days
    hint = f"a forward_query on {table.name} carries the older days; or keep {source.table.name} longer"
    mine, theirs = (live.table(name) for name in (table.name, source.table.name))
    if before is not None and mine is not None and theirs is not None and mine.rows and theirs.days:
        first = min((day.day for day in theirs.days if day.day), default="")
        lost = sorted(day.day for day in mine.days if day.day and day.day < first and day.rows)
        if lost:
            message = f"{len(lost)} days of {table.name} before {first} ({lost[0]} … {lost[-1]}) are no longer in {source.table.name}: a replay would lose them"
            return [Problem("C101", message, table.where, hint, "refuse", table.name)]
    if keeps == 0:
        message = f"{source.table.name} stores nothing (retention 0): {table.name} starts empty"
        return [Problem("C102", message, source.table.where, hint, "warn", table.name)]
    if keeps is not None and (table.retention_days is None or table.retention_days > keeps):
        wish = "for ever" if table.retention_days is None else f"{table.retention_days} days"
        message = (
            f"{source.table.name} keeps {keeps} days, {table.name} {wish}: only what is still there can be re-read"
        )
        return [Problem("C101", message, table.where, hint, "warn", table.name)]
    return []


def _repeatable(wanted: Wanted, before: TableState | None) -> list[Problem]:
    """Only a table that readers already know can differ from what they know."""
    if before is None:
        return []
    table, found = wanted.table, []
    if joined := [name for name in wanted.values if name in wanted.joined]:
        message = f"{table.name} is replayed through a join: {', '.join(joined)} may differ where the joined table has changed since"
        found.append(Problem("C113", message, table.where, "these columns are not compared", "warn", table.name))
    if wanted.volatile:
        message = f"{table.name}: {', '.join(sorted(wanted.volatile))} will not come out as before (now(), rand() and the like)"
        found.append(Problem("C114", message, table.where, "these columns are not compared", "warn", table.name))
    sketches = [
        n for n in wanted.inexact if any(c.name.startswith(f"{n}__") and c.type == "binary" for c in wanted.columns)
    ]
    if changed := [n for n in sketches if n in before.values and before.values[n] != wanted.values[n]]:
        message = f"{table.name}: the estimates in {', '.join(changed)} are computed another way: published numbers will change"
        found.append(Problem("C115", message, table.where, "", "note", table.name))
    return found


def _types(verdict: Verdict) -> list[Problem]:
    assert verdict.wanted is not None
    assert verdict.live is not None
    table, found = verdict.wanted.table, []
    tried = verdict.wanted.tries if verdict.action != "forward" else frozenset()
    for change in verdict.diff.columns if verdict.diff else ():
        column = table.column(change.column)
        if change.change != "type" or column is None or change.column in tried or "try_" in verdict.forward.lower():
            continue
        old, new = kind(change.was), kind(column.type)
        if narrows(old, new):
            message = f"{table.name}.{column.name} narrows from {old} to {new}, which loses digits without an error"
            hint = "compute it with try_cast and a default, or give it another name"
            found.append(Problem("C103", message, table.where, hint, "refuse", table.name))
        elif (old, new) not in {("string", "string")} and new != "string" and not _wider(old, new):
            message = (
                f"{table.name}.{column.name} changes from {old} to {new}: a value that does not convert stops its batch"
            )
            found.append(
                Problem("C103", message, table.where, "try_cast and coalesce accept such values", "warn", table.name)
            )
    return found


def _wider(old: str, new: str) -> bool:
    order = ("tinyint", "smallint", "int", "bigint")
    return (old in order and new in order and order.index(old) < order.index(new)) or (old, new) == ("float", "double")
