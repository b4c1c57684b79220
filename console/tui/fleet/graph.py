"""The tables of one region's planned or live release, each under its source. Pure."""

from collections.abc import Iterator

from textual.content import Content

from console.model.plan import ACTIONS, Plan
from console.runner.view import RegionView
from console.tui.drawing import safe
from console.tui.panes.plan import TONE_STYLES

MAX_LINES = 2000


def draw_graph(view: RegionView) -> list[Content]:
    """One line a table under its source, with what the plan does to it; [] without a plan."""
    plan = view.plan or view.accepted
    return list(_lines(plan)) if plan else []


def _lines(plan: Plan) -> Iterator[Content]:
    below: dict[str, list[tuple[str, str]]] = {}
    for feed in plan.release.feeds:
        for source in (feed.source, *feed.joins):
            below.setdefault(source, []).append((feed.materialization, feed.target))
    targets = {target for feeds in below.values() for _, target in feeds}
    actions = {node.name: node for node in plan.nodes if node.kind == "table"}
    names = [name for name in (*actions, *below) if name not in targets]
    pending = [(name, "", 0) for name in reversed(list(dict.fromkeys(names)))]
    for _ in range(MAX_LINES):
        if not pending:
            return
        name, by, depth = pending.pop()
        node = actions.get(name)
        traits = ACTIONS[node.action] if node else None
        action = (f"{traits.symbol} {node.action}", TONE_STYLES[traits.tone]) if node and traits else ("", "")
        branch = f"{'   ' * (depth - 1)}└─ " if depth else ""
        yield Content.assemble(
            (branch, "$text-muted"),
            safe(name, "bold", 80),
            "  ",
            action,
            safe(f"  by {by}" if by else "", "$text-muted", 80),
        )
        pending += [(target, feed, depth + 1) for feed, target in reversed(below.get(name, []))]
