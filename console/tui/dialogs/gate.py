"""Confirmations at the gate: what was checked, what changes, and whether a rollback is possible."""

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


def confirm_promotion(state: ScreenState, region: str) -> DialogContent:
    """Confirmation of a promotion; blocked unless the region is at its gate and every check passed."""
    view = state.views[region]
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
        lines.append(_line("by", safe(f"{status.by}, plan {status.plan[:10]}", "$text-muted", 120)))
    return DialogContent(
        title=f"Promote {region}",
        environments=(view.region.environment,),
        lines=tuple(lines),
        verb="Promote",
        typed=region,
        blocked=_blocked(state, view),
    )


def confirm_rollback(state: ScreenState, region: str) -> DialogContent:
    """Confirmation of a rollback to the previous release."""
    view = state.views[region]
    lines = (
        _line("live", Content.assemble(safe(view.live, limit=60), " → ", safe(view.previous, "bold", 60), "   one commit, all tables")),
        _line("lag", Content(lag_text(view) or "none measured")),
        _line("after", Content.assemble(safe(view.previous, limit=60), " was kept up to date: no row is lost. ", safe(view.live, limit=60), " is kept until cleanup.")),
    )  # fmt: skip
    blocked = objection("rollback", view, state.readonly)
    return DialogContent(
        title=f"Roll back {region}",
        environments=(view.region.environment,),
        lines=lines,
        verb="Roll back",
        typed=region,
        blocked=blocked,
    )


def _blocked(state: ScreenState, view: RegionView) -> str:
    if against := objection("promote", view, state.readonly):
        return against
    doubt = promotion_blocker(view.status)
    if doubt and not any(check.ok is False for check in view.status.checks):
        return f"{doubt}; v shows them, X cancels; to promote all the same: console promote --region {view.region.name}"
    return f"{doubt}: promotion refused; v shows them, X cancels" if doubt else ""


def _line(name: str, content: Content) -> Content:
    return Content.assemble((f"{name:<9}", "$text-muted"), content)


def _changes(view: RegionView) -> list[Content]:
    # not the pending plan: the files may have changed since, and then it lists something else
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
        return Content.styled("no rollback possible: there is no previous release", STYLES["warn"])
    return Content.assemble(
        "R rolls back to ", safe(was, limit=60), f", which is kept up to date for {span(hours * 3600)}"
    )
