"""Plans as text and as JSON: one tree per region, regions with the same plan folded, figures per region."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from console.cli.format import count, size
from console.cli.plan import blocks
from console.cli.plan.blocks import Paint
from console.cli.plan.histories_table import histories
from console.errors import Problem
from console.model.codec import encode
from console.model.live import TableState
from console.model.pipeline import Override
from console.model.plan import ACTIONS, COLUMN_SIGNS, ColumnChange, NodeChange, Plan, Tone
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Promote, Step, Validate
from console.runner.view import grouped
from console.text import safe_text

_COUNTED = tuple(action for action, traits in ACTIONS.items() if traits.changes)
_COLOURS: dict[Tone, str] = {
    "unchanged": "", "in place": "cyan", "copied": "yellow", "recomputed": "yellow", "added": "green", "removed": "red",
}  # fmt: skip
_SEVERITY = {"refuse": "refused", "warn": "warning", "note": "note", "allowed": "accepted"}


@dataclass(frozen=True, slots=True)
class _Row:
    depth: int
    node: NodeChange


def plan_text(
    plans: Sequence[Plan],
    *,
    explain: bool = False,
    paint: Paint = lambda text, _: text,
) -> str:
    """Every plan, and the count of all in the last line.

    plans    in the order of waves
    explain  the steps as well: the list that the agent will execute
    paint    (text, colour) → text; symbols and words suffice without colour
    """
    groups = grouped(plans)
    parts = blocks.overview(groups)
    for group in groups:
        same = group.plans
        lines = [blocks.head(group, len(groups) == 1)]
        lines += _tree(same, paint) or ["  nothing to do"]
        lines += _other_overrides(same)
        lines += problem_lines(tuple(dict.fromkeys(p for plan in same for p in plan.problems)), paint)
        lines += blocks.drift(same, paint)
        lines += blocks.owners(same[0].answers)
        lines += _rollback(same[0], paint)
        if any(plan.changes for plan in same):
            lines += ["", blocks.figures(same), *blocks.limits(same), *histories(same, paint)]
        if explain:
            lines += _steps(same)
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, summary_line(plans)])


def plan_data(plans: Sequence[Plan]) -> dict[str, Any]:
    """For `--output json`: each plan whole, with its digest; the groups of regions with the same plan."""
    groups = [{"label": g.label, "regions": list(g.regions), "differs": list(g.differs)} for g in grouped(plans)]
    whole = [{**encode(plan), "digest": plan.digest()} for plan in plans]
    return {"plans": whole, "groups": groups, "summary": summary(plans)}


def summary(plans: Iterable[Plan]) -> dict[str, int]:
    """regions; distinct nodes per action; days to be re-read, summed over regions."""
    plans = tuple(plans)
    nodes = {(node.kind, node.name, node.action) for plan in plans for node in plan.changes}
    counts: dict[str, int] = {action: sum(1 for *_, taken in nodes if taken == action) for action in _COUNTED}
    return {"regions": len(plans), **counts, "days": sum(plan.price.days for plan in plans)}


def summary_line(plans: Sequence[Plan]) -> str:
    """`Plan: 3 regions, 2 replay, 4 metadata, 37 days`."""
    totals = summary(plans)
    parts = [f"{totals[action]} {action}" for action in _COUNTED if totals[action]]
    if not parts:
        parts = ["nothing to do"]
    elif totals["days"]:
        parts.append(count(totals["days"], "day"))
    refused = sum(len(plan.refusals) for plan in plans)
    return f"Plan: {', '.join([count(len(plans), 'region'), *parts])}" + (f"; {refused} refused" if refused else "")


def _tree(group: Sequence[Plan], paint: Paint) -> list[str]:
    first = group[0]
    rows = [*_ordered(first), *(_Row(0, node) for node in first.nodes if node.kind != "table")]
    shown = [(row, "  " * row.depth + safe_text(row.node.name) + _kind(row.node)) for row in rows]
    width = max((len(name) for _, name in shown), default=0)
    lines = []
    for row, name in shown:
        node = row.node
        traits = ACTIONS[node.action]
        symbol = paint(f"{traits.symbol:<3}", _COLOURS[traits.tone])
        lines.append(f"  {symbol} {name:<{width}}  {safe_text(node.why)}".rstrip())
        below = " " * (6 + 2 * row.depth + 2)
        lines += [f"{below}{_column(change, first.release.table(node.name))}" for change in node.columns]
        lines += [f"{below}{text}" for text in _overrides(group, node)]
    return lines


def _ordered(plan: Plan) -> list[_Row]:
    """Tables below the one that drives them; a table without a feed in the new release (a dropped table) is at the root."""
    nodes = {node.name: node for node in plan.nodes if node.kind == "table"}
    driver: dict[str, str] = {}
    for feed in plan.release.feeds:
        driver.setdefault(feed.target, feed.source)
    rows: list[_Row] = []

    def visit(name: str, depth: int) -> None:
        if node := nodes.pop(name, None):
            rows.append(_Row(depth, node))
            for child in [target for target, source in driver.items() if source == name]:
                visit(child, depth + 1)

    for name in [name for name in nodes if driver.get(name) not in nodes]:
        visit(name, 0)
    for name in list(nodes):  # feeds itself: cannot be planned, but is still shown
        visit(name, 0)
    return rows


def _kind(node: NodeChange) -> str:
    return "" if node.kind == "table" else f" ({node.kind})"


def _column(change: ColumnChange, state: TableState | None) -> str:
    column = state.table.column(change.column) if state else None
    kind = f" {column.type}" if column and change.change in ("added", "type") else ""
    was = f" (was {safe_text(change.was)})" if change.was else ""
    return f"{COLUMN_SIGNS[change.change]} {safe_text(change.column)}{safe_text(kind)}{was}"


def _overrides(group: Sequence[Plan], node: NodeChange) -> list[str]:
    return _override_lines(group, lambda override: _about(override) == (f"{node.kind}s", node.name))


def _other_overrides(group: Sequence[Plan]) -> list[str]:
    """Overrides without a line of their own: of variables, and of nodes that the plan does not list."""
    shown = {(f"{node.kind}s", node.name) for node in group[0].nodes}
    return [f"  {line}" for line in _override_lines(group, lambda override: _about(override) not in shown)]


def _about(override: Override) -> tuple[str, str]:
    head, _, rest = override.path.partition(".")
    return head, rest.partition(".")[0]


def _override_lines(group: Sequence[Plan], wanted: Callable[[Override], bool]) -> list[str]:
    """Each difference once, with its regions and the place of each override."""
    where: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for plan in group:
        for o in filter(wanted, plan.overrides):
            where.setdefault((o.path, o.base, o.value), []).append((plan.region, o.where))
    lines = []
    for (path, base, value), regions_of in where.items():
        names = ", ".join(safe_text(region) for region, _ in regions_of)
        places = ", ".join(safe_text(place) for _, place in regions_of if place)
        values = f"{safe_text(base) or 'absent'} → {safe_text(value) or 'absent'}"
        lines.append(f"override in {names}: {safe_text(path)} {values}" + (f"  ({places})" if places else ""))
    return lines


def problem_lines(problems: Sequence[Problem], paint: Paint) -> list[str]:
    """Code, message, place and hint of each, below an empty line; [] without any."""
    lines = []
    for problem in problems:
        word = _SEVERITY.get(problem.severity, problem.severity)
        shown = paint(word, "red" if problem.severity == "refuse" else "yellow")
        lines.append(f"  {shown} {safe_text(problem.code)}: {safe_text(problem.message)}")
        lines += [f"      {safe_text(text)}" for text in (problem.where, problem.hint) if text]
    return ["", *lines] if lines else []


def _rollback(plan: Plan, paint: Paint) -> list[str]:
    """Whether a rollback after the promotion will be lossless."""
    if not plan.changes:
        return []
    back = plan.rollback
    if back.lossless:
        return ["", f"  a rollback loses nothing{f'; {safe_text(back.why)}' if back.why else ''}"]
    what = ", ".join(map(safe_text, back.columns)) or "no stored rows, but does not restore everything"
    lost = f"  a rollback {paint('loses', 'red')} {what}"
    return ["", lost, f"      {safe_text(back.why)}"]


def _steps(group: Sequence[Plan]) -> list[str]:
    lines = [""]
    for plan in group:
        lines.append(f"  steps in {safe_text(plan.region)}" + ("" if plan.steps else ": none"))
        lines += [f"  {i:>4}. {safe_text(step_text(step))}" for i, step in enumerate(plan.steps, 1)]
    return lines


def step_text(step: Step) -> str:
    """One step in words."""
    match step:
        case CreateTable(name):
            return f"create the new, empty version of {name}"
        case AddColumns(name, columns):
            return f"add {', '.join(f'{c.name} {c.type}' for c in columns)} to {name} (metadata only)"
        case Backfill(linked=True):
            return f"take over the files of the live version of {step.target} unchanged: no row is read or written"
        case Backfill():
            how = f"from {step.source}" if step.route == "replay" else "from its own live version"
            how += f" since {step.since}" if step.since else f" before {step.until}" if step.until else ""
            how += ", for states that it does not store" if step.states else ""
            few = ", ".join(step.columns[:8]) + (f" and {len(step.columns) - 8} more" if len(step.columns) > 8 else "")
            read = f", reading {few}" if few else ""
            days = f"{count(step.days, 'day')}, " if step.days else ""
            elsewhere = ", on the second Spark" if step.second_spark else ""
            return (
                f"backfill {step.target} {how}: {days}{count(step.rows, 'row')}, {size(step.bytes)}, "
                f"{count(step.batches, 'batch', 'batches')}, newest day first{read}{elsewhere}"
            )
        case CatchUp(_, source, target, start):
            since = {"fence": "the fence", "log": "the start of its log", "vector": "the position of the live feed"}[
                start
            ]
            return f"catch up {target} with {source} since {since}"
        case Validate(comparisons, calls):
            names = [comparison.table for comparison in comparisons]
            if calls:
                endpoints = dict.fromkeys(call.endpoint for call in calls)
                names.append(f"{count(len(calls), 'recorded call')} of {', '.join(endpoints)}")
            return f"validate old against new at the same position: {', '.join(names) or 'nothing to compare'}"
        case Promote():
            return "stop at the gate; then make the new release live in one commit"
        case _:
            assert_never(step)
