"""The gate: what was checked, what changes, and whether there is a way back."""

from textual.content import Content

from console.model.plan import ACTIONS
from console.runner.view import RegionView
from console.tui.actions import objection
from console.tui.dialogs.content import DialogContent
from console.tui.drawing import safe
from console.tui.format import count, span
from console.tui.labels import STYLES
from console.tui.panes.checks import check_lines, promotion_blocker, tally
from console.tui.panes.plan import TONE_STYLES, column_changes
from console.tui.panes.summary import lag_text
from console.tui.state import ScreenState

BODY_WIDTH = 72  # cells of the body at 80 columns
MAX_ENTRIES = 40


def confirm_promotion(scene: ScreenState, region: str) -> DialogContent:
    """The question of promotion; blocked unless the region stands at its gate and every check passed."""
    view = scene.views[region]
    status = view.status
    lines = [
        _line("live", Content.assemble(safe(status.was or view.live or "nothing", limit=60), " → ", safe(status.release, "bold", 60), "   one commit, all tables")),
        _line("rows", Content(f"{count(status.rows_done)} moved · {lag_text(view) or 'no lag measured'}")),
        _line("checks", tally(status)),
        *[line for check in sorted(status.checks, key=lambda c: c.ok is True)[:MAX_ENTRIES] for line in check_lines(check, BODY_WIDTH)],
        _line("changes", Content(" · ").join(_changes(view)) or Content("as accepted")),
        _line("after", _rollback_text(view)),
    ]  # fmt: skip
    if status.by:
        lines.append(_line("asked by", safe(f"{status.by}, plan {status.plan[:10]}", "$text-muted", 120)))
    return DialogContent(
        f"Promote {region}",
        (view.region.environment,),
        tuple(lines),
        "Promote",
        typed=region,
        blocked=_blocked(scene, view),
    )


def confirm_rollback(scene: ScreenState, region: str) -> DialogContent:
    """The question of going back to the release before."""
    view = scene.views[region]
    lines = (
        _line("live", Content.assemble(safe(view.live, limit=60), " → ", safe(view.previous, "bold", 60), "   one commit, all tables")),
        _line("lag", Content(lag_text(view) or "none measured")),
        _line("after", Content.assemble(safe(view.previous, limit=60), " was kept fed: no row is lost. ", safe(view.live, limit=60), " stays built until cleanup.")),
    )  # fmt: skip
    blocked = objection("rollback", view, scene.readonly)
    return DialogContent(
        f"Roll back {region}", (view.region.environment,), lines, "Roll back", typed=region, blocked=blocked
    )


def _blocked(scene: ScreenState, view: RegionView) -> str:
    if against := objection("promote", view, scene.readonly):
        return against
    found = promotion_blocker(view.status)
    if found and not any(check.ok is False for check in view.status.checks):
        return (
            f"{found}; v shows them, X cancels; once they are understood: console promote --region {view.region.name}"
        )
    return f"{found}: nothing is promoted on that; v shows them, X cancels" if found else ""


def _line(name: str, content: Content) -> Content:
    return Content.assemble((f"{name:<9}", "$text-muted"), content)


def _changes(view: RegionView) -> list[Content]:
    # the pending plan may be another by now: files move, and what it lists is then not what is promoted
    changes = view.accepted.changes if view.accepted else ()
    return [
        Content.assemble(
            (f"{ACTIONS[node.action].symbol} ", TONE_STYLES[ACTIONS[node.action].tone]),
            safe(node.name, limit=60),
            Content.assemble(" ", column_changes(node.columns, 4)) if node.columns else "",
        )
        for node in changes[:MAX_ENTRIES]
    ]


def _rollback_text(view: RegionView) -> Content:
    was = view.status.was or view.live
    hours = view.region.policy.rollback_window_hours
    if not was or hours <= 0:
        return Content.styled("no way back: there is no release before it", STYLES["warn"])
    return Content.assemble("R goes back to ", safe(was, limit=60), f", which is kept fed for {span(hours * 3600)}")
