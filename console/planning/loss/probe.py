"""Queries for values of a plan's history that do not convert, run before anything is copied.

A changed type stops the batch at a value that does not fit it. The queries are the feeds' own expressions with TRY_CAST
in place of the cast, over the live release's tables; their results become part of the plan.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.plan import Plan
from console.model.step import Backfill
from console.planning.loss.values import conversion
from console.planning.sql.tree import DIALECT, name, render

EXAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One query: `count` returns one number, `keys` up to ten rows that locate such values, never the values themselves.

    column  of `table`, whose type changes;  type  the new one;  source  the logical table that is read
    about   the plan's problem that the result replaces
    """

    table: str
    column: str
    type: str
    source: str
    count: str
    keys: str
    about: Problem


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result: how many values do not convert, and the keys of some of them."""

    probe: Probe
    values: int
    keys: tuple[str, ...] = ()


def probes(plan: Plan) -> tuple[Probe, ...]:
    """The probes of a plan: one for each backfill and column whose new type may not fit every value."""
    asked: list[Probe] = []
    for step in plan.steps:
        if not isinstance(step, Backfill) or step.stored or step.since or step.until:
            continue
        if reported := _reported(plan, step.target):
            asked += _probes_of(step, reported)
    return tuple(asked)


def _reported(plan: Plan, table: str) -> dict[str, Problem]:
    """Column in lower case → the plan's problem of its new type, with place and current severity."""
    state = plan.release.table(table)
    node = next((n for n in plan.nodes if n.kind == "table" and n.name == table), None)
    if state is None or node is None:
        return {}
    expected = {change.column.lower(): conversion(state.table, change) for change in node.columns}
    columns = {_bare(problem): column for column, problem in expected.items() if problem is not None}
    return {columns[_bare(problem)]: problem for problem in plan.problems if _bare(problem) in columns}


def _bare(problem: Problem) -> Problem:
    """Without what a release does not know, the place and the remedies, and the severity, which the operator's acceptance changes."""
    return replace(problem, where="", severity="", hint="", remedies=())


def _probes_of(step: Backfill, changed: Mapping[str, Problem]) -> list[Probe]:
    tree = sqlglot.parse_one(step.sql, read=DIALECT)
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("joins"):
        return []
    parts = {part.alias_or_name.lower(): part.unalias() for part in tree.expressions}
    keys = [part for part in tree.expressions if part.alias_or_name.lower() not in changed][:2]
    queries = []
    for column in sorted(changed):
        cast = parts.get(column)
        if not isinstance(cast, exp.Cast) or (isinstance(cast, exp.TryCast) and cast.args.get("safe")):
            continue
        tried = exp.TryCast(this=cast.this.copy(), to=cast.to.copy(), safe=True)
        failing = exp.and_(
            exp.Not(this=exp.Is(this=exp.paren(cast.this.copy()), expression=exp.Null())),
            exp.Is(this=tried, expression=exp.Null()),
        )
        bad = tree.where(failing)
        counted, some = bad.copy(), bad.copy()
        counted.set("expressions", [exp.alias_(exp.Count(this=exp.Star()), name("values"))])
        some.set("expressions", [part.copy() for part in keys] or [exp.alias_(exp.Literal.number(1), name("row"))])
        type = cast.to.sql(DIALECT).lower()
        queries.append(
            Probe(
                table=step.target,
                column=column,
                type=type,
                source=step.source,
                count=render(counted),
                keys=render(some.limit(EXAMPLES)),
                about=changed[column],
            )
        )
    return queries


def probed(plan: Plan, results: Iterable[ProbeResult]) -> Plan:
    """The plan with the results: a column whose values all convert becomes a note, any other a refusal."""
    by_problem: dict[Problem, list[ProbeResult]] = {}
    for result in results:
        by_problem.setdefault(result.probe.about, []).append(result)
    problems = (
        _answered(problem, by_problem[problem]) if problem in by_problem else problem for problem in plan.problems
    )
    return replace(plan, problems=tuple(problems))


def _answered(problem: Problem, results: list[ProbeResult]) -> Problem:
    failing = sum(result.values for result in results)
    probe = results[0].probe
    if not failing:
        if problem.severity != "warn":
            return problem  # narrowing loses digits of values that do convert
        message = f"{probe.table}.{probe.column}: every value of its history converts to {probe.type}, as probed"
        return replace(problem, message=message, severity="note", hint="", remedies=())
    keys = [key for result in results for key in result.keys][:EXAMPLES]
    message = f"{probe.table}.{probe.column}: {failing:,} values of its history do not convert to {probe.type}, at {'; '.join(keys)}"
    severity = "refuse" if problem.severity in ("warn", "refuse") else problem.severity
    return replace(problem, message=message, severity=severity)
