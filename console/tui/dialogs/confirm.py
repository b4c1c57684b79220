"""Confirmations of starting, cancelling and discarding."""

from collections.abc import Sequence
from typing import Literal

from textual.content import Content

from console.runner.view import RegionView
from console.tui.actions import objection
from console.tui.dialogs.content import DialogContent
from console.tui.drawing import safe
from console.tui.panes.plan import action_counts, price_text
from console.tui.state import ScreenState


def confirm_start(state: ScreenState, regions: Sequence[str]) -> DialogContent:
    """The regions of each wave, and those that are left out, with the reason."""
    views = [state.views[name] for name in regions if name in state.views]
    ready = [view for view in views if not objection("start", view, state.refusal("start"))]
    lines: list[Content] = []
    for number, wave in enumerate(_waves(ready), 1):
        then = "" if number == 1 else " · once the wave before is live"
        lines.append(
            Content.styled(f"wave {number}{' · canary' if wave[0].region.canary else ''}{then}", "$text-muted")
        )
        lines += [_ready(view) for view in wave]
    left_out = [
        Content.assemble("  ", safe(objection("start", view, state.refusal("start")), "$text-muted", 160))
        for view in views
        if view not in ready
    ]
    if left_out:
        lines += [Content.styled("not included", "$text-muted"), *left_out]
    if ready:
        lines += [
            Content(""),
            Content("Each region is prepared up to its gate and stops there. Live tables are not touched."),
        ]
    environments = tuple(view.region.environment for view in ready)
    return DialogContent(
        title=_title(ready),
        environments=environments,
        lines=tuple(lines),
        verb="Start",
        blocked="" if ready else "no region can start",
        harmless=True,
    )


def confirm_end(state: ScreenState, regions: Sequence[str], action: Literal["cancel", "discard"]) -> DialogContent:
    """The effect of ending a rollout: it drops the built versions, never the live ones."""
    views = [state.views[name] for name in regions if name in state.views]
    blocked = next((why for view in views if (why := objection(action, view, state.refusal(action)))), "")
    lines = [
        Content.assemble("  ", safe(view.region.name, "bold", 60), safe(f"  {view.status.release}", limit=60), f"  {view.status.rows_done:,} built rows are dropped")
        for view in views
    ]  # fmt: skip
    lines += [Content(""), Content("The live release keeps running and is not touched.")]
    verb = "Cancel the rollout" if action == "cancel" else "Discard the rollout"
    environments = tuple(view.region.environment for view in views)
    return DialogContent(
        title=f"{verb} of {', '.join(regions)}",
        environments=environments,
        lines=tuple(lines),
        verb=verb,
        blocked=blocked,
    )


def _waves(views: Sequence[RegionView]) -> list[list[RegionView]]:
    keys = sorted({(not view.region.canary, view.region.wave) for view in views})
    return [[view for view in views if (not view.region.canary, view.region.wave) == key] for key in keys]


def _ready(view: RegionView) -> Content:
    plan = view.plan
    assert plan is not None  # `objection` refuses to start a region without one
    price = price_text(plan.price)
    return Content.assemble(
        "  ",
        safe(view.region.name, "bold", 60),
        "  ",
        action_counts(plan),
        (f" · {price}" if price else "", "$text-muted"),
    )


def _title(views: Sequence[RegionView]) -> str:
    return f"Start {views[0].region.name}" if len(views) == 1 else f"Start {len(views)} regions"
