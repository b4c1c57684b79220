"""The plainer questions: start through the waves, cancel, discard."""

from collections.abc import Sequence
from typing import Literal

from textual.content import Content

from console.runner.view import RegionView
from console.tui.actions import objection
from console.tui.dialogs.content import DialogContent
from console.tui.drawing import safe
from console.tui.panes.plan import action_counts, price_text
from console.tui.state import ScreenState


def confirm_start(scene: ScreenState, regions: Sequence[str]) -> DialogContent:
    """Which regions go in which wave, and which stay out and why."""
    views = [scene.views[name] for name in regions if name in scene.views]
    ready = [view for view in views if not objection("start", view, scene.readonly)]
    lines: list[Content] = []
    for number, wave in enumerate(_waves(ready), 1):
        then = "" if number == 1 else " · when the one before is live"
        lines.append(
            Content.styled(f"wave {number}{' · canary' if wave[0].region.canary else ''}{then}", "$text-muted")
        )
        lines += [_ready(view) for view in wave]
    out = [
        Content.assemble("  ", safe(objection("start", view, scene.readonly), "$text-muted", 160))
        for view in views
        if view not in ready
    ]
    if out:
        lines += [Content.styled("stay out", "$text-muted"), *out]
    if ready:
        lines += [Content(""), Content("Each region works up to its gate and stops there. Live is not touched.")]
    environments = tuple(view.region.environment for view in ready)
    return DialogContent(
        _title(ready), environments, tuple(lines), "Start", blocked="" if ready else "nothing can start", gentle=True
    )


def confirm_end(scene: ScreenState, regions: Sequence[str], deed: Literal["cancel", "discard"]) -> DialogContent:
    """What is lost by ending a rollout: what it built, never what is live."""
    views = [scene.views[name] for name in regions if name in scene.views]
    blocked = next((why for view in views if (why := objection(deed, view, scene.readonly))), "")
    lines = [
        Content.assemble("  ", safe(view.region.name, "bold", 60), safe(f"  {view.status.release}", limit=60), f"  {view.status.rows_done:,} rows built are dropped")
        for view in views
    ]  # fmt: skip
    lines += [Content(""), Content("Live keeps running; nothing that is live is touched.")]
    verb = "Cancel the rollout" if deed == "cancel" else "Discard"
    environments = tuple(view.region.environment for view in views)
    return DialogContent(f"{verb} of {', '.join(regions)}", environments, tuple(lines), verb, blocked=blocked)


def _waves(views: Sequence[RegionView]) -> list[list[RegionView]]:
    keys = sorted({(not view.region.canary, view.region.wave) for view in views})
    return [[view for view in views if (not view.region.canary, view.region.wave) == key] for key in keys]


def _ready(view: RegionView) -> Content:
    plan = view.plan
    assert plan is not None  # `objection` lets no region start without one
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
