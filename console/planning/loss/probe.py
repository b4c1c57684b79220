"""Which values of a plan's history do not convert: questions to the data, asked before anything is copied.

A changed type stops the batch that meets a value which does not fit it. The questions are the feeds' own expressions
with TRY_CAST in the place of the cast, over the live release's tables; their answers become part of the plan.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.plan import Plan
from console.model.step import Backfill
from console.planning.sql.tree import DIALECT, name, render

EXAMPLES = 10
CODE = "C103"


@dataclass(frozen=True, slots=True)
class Probe:
    """One question: `count` gives one number, `keys` up to ten rows that tell where, never the values themselves.

    column  of `table`, whose type changes;  type  the new one;  source  the logical table that is read
    """

    table: str
    column: str
    type: str
    source: str
    count: str
    keys: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """An answer: how many values do not convert, and the keys of some of them."""

    probe: Probe
    values: int
    keys: tuple[str, ...] = ()


def probes(plan: Plan) -> tuple[Probe, ...]:
    """The questions of a plan: one for each column whose type changes so that a value may not fit, and each way in."""
    asked: list[Probe] = []
    for step in plan.steps:
        if not isinstance(step, Backfill) or step.stored or step.since or step.until:
            continue
        node = next((n for n in plan.nodes if n.kind == "table" and n.name == step.target), None)
        changed = {c.column.lower() for c in node.columns if c.change == "type"} if node else set()
        told = {p.node for p in plan.problems if p.code == CODE}
        if step.target in told and changed:
            asked += _of(step, changed)
    return tuple(asked)


def _of(step: Backfill, changed: Iterable[str]) -> list[Probe]:
    tree = sqlglot.parse_one(step.sql, read=DIALECT)
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("joins"):
        return []
    parts = {part.alias_or_name.lower(): part.unalias() for part in tree.expressions}
    keys = [part for part in tree.expressions if part.alias_or_name.lower() not in changed][:2]
    made = []
    for column in sorted(changed):
        cast = parts.get(column)
        if not isinstance(cast, exp.Cast) or (isinstance(cast, exp.TryCast) and cast.args.get("safe")):
            continue
        careful = exp.TryCast(this=cast.this.copy(), to=cast.to.copy(), safe=True)
        lost = exp.and_(
            exp.Not(this=exp.Is(this=exp.paren(cast.this.copy()), expression=exp.Null())),
            exp.Is(this=careful, expression=exp.Null()),
        )
        bad = tree.where(lost)
        counted, some = bad.copy(), bad.copy()
        counted.set("expressions", [exp.alias_(exp.Count(this=exp.Star()), name("values"))])
        some.set("expressions", [part.copy() for part in keys] or [exp.alias_(exp.Literal.number(1), name("row"))])
        type = cast.to.sql(DIALECT).lower()
        made.append(Probe(step.target, column, type, step.source, render(counted), render(some.limit(EXAMPLES))))
    return made


def probed(plan: Plan, answers: Iterable[ProbeResult]) -> Plan:
    """The plan with what the data say: a column whose values all convert is no question any more, another stops it."""
    by_table: dict[str, list[ProbeResult]] = {}
    for found in answers:
        by_table.setdefault(found.probe.table, []).append(found)
    problems: list[Problem] = []
    for problem in plan.problems:
        asked = [f for f in by_table.get(problem.node, []) if _about(problem, f)]
        problems.append(_told(problem, asked) if asked and problem.code == CODE else problem)
    return replace(plan, problems=tuple(problems))


def _about(problem: Problem, found: ProbeResult) -> bool:
    return problem.message.lower().startswith(f"{found.probe.table}.{found.probe.column} ".lower())


def _told(problem: Problem, asked: list[ProbeResult]) -> Problem:
    lost = sum(found.values for found in asked)
    where = asked[0].probe
    if not lost:
        if problem.severity != "warn":
            return problem  # narrowing loses digits of values that do convert
        message = f"{where.table}.{where.column}: every value of its history converts to {where.type}, as probed"
        return replace(problem, message=message, severity="note", hint="")
    keys = [key for found in asked for key in found.keys][:EXAMPLES]
    message = f"{where.table}.{where.column}: {lost:,} values of its history do not convert to {where.type}, at {'; '.join(keys)}"
    severity = "refuse" if problem.severity in ("warn", "refuse") else problem.severity
    return replace(problem, message=message, severity=severity)
