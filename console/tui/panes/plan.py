"""The plan of one region: each node with its action and reason, the plan's problems, drift and regional overrides."""

from functools import lru_cache

from textual.content import Content

from console.errors import Problem
from console.model.pipeline import Override
from console.model.plan import (
    ACTIONS,
    COLUMN_SIGNS,
    Action,
    ColumnChange,
    Drift,
    HistoryOption,
    NodeChange,
    Plan,
    Price,
    Tone,
)
from console.runner.view import RegionView
from console.tui.drawing import cell, heading, key_hints, safe, stack_lines, wrap_indented
from console.tui.format import count, plural, size, span

TONE_STYLES: dict[Tone, str] = {
    "unchanged": "$text-muted", "in place": "$text-primary", "copied": "$text-accent", "recomputed": "$text-warning",
    "added": "$text-success", "removed": "$text-error",
}  # fmt: skip
SEVERITY_STYLES = {"refuse": ("✗", "$text-error"), "warn": ("!", "$text-warning"), "note": ("i", "$text-primary")}
NAME_CELLS = 22
WIDE = 100  # width from which a long reason continues on the next line

MAX_ENTRIES = 200  # of one list


def plan_inputs(view: RegionView) -> tuple[object, ...]:
    """Everything that `draw_plan` depends on: it changes seldom, while a view changes with every batch."""
    return view.plan, view.problem, view.link, view.link_why, view.note


def draw_plan(view: RegionView, width: int, at: float) -> Content:
    """The whole plan, changes first; without a plan, the next step."""
    lines: list[Content] = []
    if view.problem:
        lines += wrap_indented(Content.assemble(("✗ ", "$text-error"), safe(view.problem, "$text-error")), 0, width)
        lines += [key_hints(("r", "refresh once the files or the region are fixed")), Content("")]
    plan = view.plan
    if plan is None:
        if not view.problem:
            lines += wrap_indented(_no_plan_reason(view), 0, width)
        return stack_lines(lines)
    lines += [_total_line(plan), *_rollback_lines(plan, width), Content("")]
    lines += [line for problem in plan.problems[:MAX_ENTRIES] for line in _problem_lines(problem, width)]
    if plan.problems:
        lines.append(Content(""))
    lines += [line for node in plan.changes[:MAX_ENTRIES] for line in _node_lines(node, width)]
    lines += _answer_lines(plan, width)
    kept = [node for node in plan.nodes if not node.changes]
    lines += [line for node in kept[:MAX_ENTRIES] for line in _unchanged_lines(_name(node), node.why, width)]
    if plan.drift:
        lines += [Content(""), heading("altered by hand, unlike the live release")]
        lines += [line for drift in plan.drift[:MAX_ENTRIES] for line in _drift_lines(drift, width)]
    if plan.overrides:
        lines += [Content(""), heading("overrides of this region")]
        lines += [line for override in plan.overrides[:MAX_ENTRIES] for line in _override_lines(override, width)]
    return stack_lines(lines)


def action_counts(plan: Plan) -> Content:
    """`2 replay, 1 metadata`, in the order of the nodes."""
    counts: dict[Action, int] = {}
    for node in plan.changes:
        counts[node.action] = counts.get(node.action, 0) + 1
    parts = [
        Content.styled(f"{number} {action}", TONE_STYLES[ACTIONS[action].tone]) for action, number in counts.items()
    ]
    return Content(", ").join(parts) if parts else Content.styled("nothing to change", "$text-success")


def price_text(price: Price) -> str:
    """`14 days, 466,830 rows, 118 MB, about 12 s`; "" where no rows are moved."""
    if not price.rows and not price.bytes:
        return ""
    parts = [plural(price.days, "day")] if price.days else []
    parts += [f"{count(price.rows)} rows", size(price.bytes)]
    return ", ".join([*parts, f"about {span(price.seconds)}"] if price.seconds else parts)


def column_changes(changes: tuple[ColumnChange, ...], limit: int = 8) -> Content:
    """`+user_agent ~path -old`."""
    parts = [
        Content.assemble(COLUMN_SIGNS[change.change], safe(change.column, limit=60), _old_name(change))
        for change in changes[:limit]
    ]
    if len(changes) > limit:
        parts.append(Content(f"and {len(changes) - limit} more"))
    return Content(" ").join(parts)


def _old_name(change: ColumnChange) -> Content:
    named = change.change in ("renamed", "type") and change.was
    return Content.assemble("(was ", safe(change.was, limit=60), ")") if named else Content("")


def _no_plan_reason(view: RegionView) -> Content:
    if view.link == "unreachable":
        return Content.assemble(
            safe(view.link_why or "no answer", "$text-warning"), ": ", key_hints(("r", "try again"))
        )
    if view.note:
        return Content.assemble(safe(view.note, "$text-primary"), ". The plan is shown once it is built.")
    return Content.assemble("reading the region: the plan appears by itself, or ", key_hints(("r", "read it again")))


def _total_line(plan: Plan) -> Content:
    parts = [Content.styled("Plan ", "bold"), action_counts(plan)]
    if price := price_text(plan.price):
        parts.append(Content(f" · {price}"))
    if plan.price.rows and plan.everything.rows > plan.price.rows:
        parts.append(Content.styled(f" (rebuilding everything: {count(plan.everything.rows)} rows)", "$text-muted"))
    return Content("").join(parts)


def _rollback_lines(plan: Plan, width: int) -> list[Content]:
    """Whether a rollback after the promotion is lossless, else which columns it loses, and why."""
    back = plan.rollback
    if not plan.changes:
        return []
    if back.lossless:
        why = Content.assemble("; ", safe(back.why)) if back.why else Content("")
        return wrap_indented(Content.assemble(("↶ ", "$text-success"), "a rollback loses nothing", why), 0, width)
    names = Content(", ").join([safe(column, "bold", 120) for column in back.columns[:MAX_ENTRIES]])
    lost = names if back.columns else Content("no stored rows, but does not restore everything")
    line = Content.assemble(("! ", "$text-warning"), "a rollback loses ", lost, ": ", safe(back.why, "$text-muted"))
    return wrap_indented(line, 0, width)


def _answer_lines(plan: Plan, width: int) -> list[Content]:
    """Endpoints, copies and sinks whose results change, owner by owner; those without an owner come last."""
    lines = [Content(""), heading("results change for")] if plan.answers else []
    for answer in sorted(plan.answers, key=lambda answer: (not answer.owner, answer.owner))[:MAX_ENTRIES]:
        owner = safe(answer.owner, "bold", 80) if answer.owner else Content.styled("no owner", "$text-muted")
        node = Content.assemble(safe(answer.name, limit=80), f" ({answer.kind})")
        lines += wrap_indented(Content.assemble(owner, ": ", node, "  ", safe(answer.why, "$text-muted")), 2, width)
    return [*lines, Content("")] if lines else []


def _name(node: NodeChange) -> str:
    return node.name if node.kind == "table" else f"{node.name} ({node.kind})"


def _head(name: str, action: Action, width: int) -> Content:
    traits = ACTIONS[action]
    style = TONE_STYLES[traits.tone]
    return Content.assemble(
        cell(Content.styled(traits.symbol, style), 4),
        cell(safe(name, "bold" if traits.changes else "", 80), NAME_CELLS if width < 72 else NAME_CELLS + 8),
        " ",
        cell(Content.styled(action, style), 9),
    )


@lru_cache(4 * MAX_ENTRIES)  # the largest part of a plan, and equal in most regions that the cursor passes
def _unchanged_lines(name: str, why: str, width: int) -> tuple[Content, ...]:
    """One line, cut, if lines are short: changes are more important there."""
    head, text = _head(name, "keep", width), safe(why, "$text-muted", 200)
    if width < WIDE:
        return (cell(head + text, width),)
    first, *rest = wrap_indented(text, head.cell_length, width)
    return (head + first[head.cell_length :], *rest)


def _node_lines(node: NodeChange, width: int) -> list[Content]:
    """A node that changes: action, columns and price, then why."""
    head = _head(_name(node), node.action, width)
    price = price_text(node.price)
    facts = [column_changes(node.columns)] if node.columns else []
    facts += [Content.styled(price, "$text-muted")] if price else []
    line = Content.assemble(head, Content("  ").join(facts))
    lines = [line] if line.cell_length <= width else [head, *wrap_indented(Content("  ").join(facts), 4, width)]
    why = Content.assemble(safe(node.why, "$text-muted"), _source(node))
    options = [line for option in node.options for line in wrap_indented(_option(option), 6, width)]
    return [*lines, *wrap_indented(why, 4, width), *options]


def option_text(option: HistoryOption) -> Content:
    """`carry: 14 days, 14,000 rows, 123 kB, about 14 s; older rows: agent is NULL`, or why it is not possible."""
    name = safe(option.history, "bold" if option.chosen else "", 40)
    if option.impossible:
        return Content.assemble(name, (" not possible: ", "$text-warning"), safe(option.impossible, "$text-muted"))
    moved = price_text(option.price) or "no row moves"
    return Content.assemble(name, f": {moved}; ", safe(option.older_rows, "$text-muted"))


def _option(option: HistoryOption) -> Content:
    return Content.assemble("● " if option.chosen else "○ ", option_text(option))


def _source(node: NodeChange) -> Content:
    return (
        Content.assemble((" · from ", "$text-muted"), safe(node.source, "$text-muted", 80))
        if node.source
        else Content("")
    )


def _drift_lines(drift: Drift, width: int) -> list[Content]:
    """The altered parts, and how to adopt or repair them."""
    name = ".".join(filter(None, (drift.table, drift.name)))
    altered = Content.assemble(
        ("! ", "$text-warning"), safe(name, "bold", 120), f" ({drift.what}): the release has ",
        safe(drift.said or "nothing"), ", the table has ", safe(drift.found or "nothing"),
    )  # fmt: skip
    ways = [Content.assemble((f"to {verb} it: ", "$text-muted"), safe(way)) for verb, way in (("adopt", drift.adopt), ("repair", drift.repair))]  # fmt: skip
    return [*wrap_indented(altered, 2, width), *(line for way in ways for line in wrap_indented(way, 4, width))]


def _problem_lines(problem: Problem, width: int) -> list[Content]:
    symbol, style = SEVERITY_STYLES.get(problem.severity, SEVERITY_STYLES["refuse"])
    head = Content.assemble((f"{symbol} ", style), safe(str(problem), style))
    lines = wrap_indented(head, 0, width)
    return lines + (wrap_indented(Content.assemble("→ ", safe(problem.hint)), 2, width) if problem.hint else [])


def _override_lines(override: Override, width: int) -> list[Content]:
    change = Content.assemble(
        safe(override.path, limit=100), ": ", safe(override.base or "—", "$text-muted", 100), " → ", safe(override.value, limit=100),
        safe(f"  {override.where}" if override.where else "", "$text-muted", 120),
    )  # fmt: skip
    return wrap_indented(change, 2, width)
