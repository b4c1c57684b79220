"""Confirmations at the gate: whether it is safe to promote, one region or the regions of a wave, and to roll back."""

from collections.abc import Iterator, Sequence

from textual.content import Content

from console.model.gate import check_name, unaccepted
from console.runner.flips import wave_name
from console.runner.view import RegionView
from console.tui.actions import objection
from console.tui.dialogs.content import DialogContent, DifferingDay
from console.tui.drawing import safe, wrap_indented
from console.tui.format import count, plural
from console.tui.groups import same_plan
from console.tui.labels import STYLES
from console.tui.panes.checks import check_lines, promotion_blocker
from console.tui.panes.safety import checks_line, day_lines, doubts, safety_lines
from console.tui.panes.summary import lag_text, way_back_proof
from console.tui.state import ScreenState

BODY_WIDTH = 72  # cells of the body at 80 columns
MAX_ENTRIES = 40
TOGETHER = (
    Content("All at once, with one commit in each region; none if one is not ready."),
    Content("If one fails after others, P finishes the rest and R returns all."),
)


def confirm_promotion(state: ScreenState, regions: Sequence[str]) -> DialogContent:
    """Confirmation of a promotion; blocked unless every region is at its gate and all of their checks passed.

    regions  one, or several of one wave: these are promoted together, and the wave's name is typed
    """
    views = [state.views[name] for name in regions]
    if len(views) == 1:
        return _promote_one(state, views[0])
    waves = sorted({view.region.wave for view in views})
    blocked = next((why for view in views if (why := _blocked(state, view, state.at))), "")
    if len(waves) > 1:
        blocked = "the regions belong to several waves: mark those of one wave"
    return DialogContent(
        title=f"Promote {plural(len(views), 'region')} of wave {waves[0]}",
        environments=tuple(view.region.environment for view in views),
        lines=(*(line for view in views for line in _brief(state, view)), Content(""), *TOGETHER),
        verb="Promote",
        typed=f"wave {waves[0]}",
        blocked=blocked,
        reason_for=_reason_for(views),
        ticket_for=_ticket_for(views),
        details=tuple(line for view in views for line in _details(view)),
        differing=tuple(day for view in views for day in _differing(view)),
    )


def confirm_rollback(state: ScreenState, region: str) -> DialogContent:
    """Confirmation of a rollback to the previous release."""
    view = state.views[region]
    lines = (
        _line("live", Content.assemble(safe(view.live, limit=60), " → ", safe(view.previous, "bold", 60), "   one commit, all tables")),
        _line("lag", Content(lag_text(view) or "none measured")),
        *_named_proof(view, state.at),
        _line("after", Content.assemble(_brought(view), safe(view.live, limit=60), " is kept until cleanup.")),
    )  # fmt: skip
    blocked = objection("rollback", view, state.refusal("rollback"))
    return DialogContent(
        title=f"Roll back {region}",
        environments=(view.region.environment,),
        lines=lines,
        verb="Roll back",
        typed=region,
        blocked=blocked,
    )


def confirm_return(state: ScreenState, regions: Sequence[str]) -> DialogContent:
    """Confirmation of the rollback of all regions of a wave that are live with a change."""
    views = [state.views[name] for name in regions]
    lines: list[Content] = []
    for view in views:
        way = Content.assemble(
            safe(view.live, limit=60),
            " → ",
            safe(view.previous, "bold", 60),
            f"   {lag_text(view) or 'no lag measured'}",
        )
        lines += [Content.assemble(safe(view.region.name, "bold", 60), "  ", way), *_named_proof(view, state.at)]
    stay = state.splits[regions[0]].waiting if regions[0] in state.splits else ()
    if stay:
        kept = "waits at its gate" if len(stay) == 1 else "wait at their gates"
        lines.append(_line("stay", safe(f"{', '.join(stay)}: {kept}, untouched")))
    lines.append(_line("after", Content("one commit in each region, all at once; no row is lost.")))
    wave = wave_name((view.region.wave for view in views), regions)
    return DialogContent(
        title=f"Roll back {plural(len(views), 'region')} of {wave}",
        environments=tuple(view.region.environment for view in views),
        lines=tuple(lines),
        verb="Roll back",
        typed=wave,
        blocked=next((why for view in views if (why := objection("rollback", view, state.refusal("rollback")))), ""),
    )  # fmt: skip


def _promote_one(state: ScreenState, view: RegionView) -> DialogContent:
    name = view.region.name
    return DialogContent(
        title=f"Promote {name}",
        environments=(view.region.environment,),
        lines=tuple(safety_lines(view, same_plan(state.views, name), BODY_WIDTH, state.at)),
        verb="Promote",
        typed=name,
        blocked=_blocked(state, view),
        reason_for=_reason_for([view]),
        ticket_for=_ticket_for([view]),
        details=tuple(_details(view)),
        differing=tuple(_differing(view)),
    )


def _brief(state: ScreenState, view: RegionView) -> list[Content]:
    """One region of several: its releases, its tally, and its doubts."""
    rows = f" · {count(view.status.rows_done)} rows moved" if view.status.rows_done else ""
    releases = safe(f"  {view.live or 'nothing'} → {view.status.release}", limit=60)
    lines = [Content.assemble(safe(view.region.name, "bold", 60), releases, rows)]
    lines += wrap_indented(Content.assemble("  ", checks_line(view, state.at)), 2, BODY_WIDTH)
    against = doubts(view, same_plan(state.views, view.region.name), state.at)[:MAX_ENTRIES]
    for doubt in against:
        lines += wrap_indented(safe(f"! {doubt.text}", STYLES[doubt.tone]), 2, BODY_WIDTH)
    return lines


def _details(view: RegionView) -> list[Content]:
    """Each day of each comparison, then every check with its figures."""
    checks = [
        line for check in view.status.checks[:MAX_ENTRIES] for line in check_lines(check, BODY_WIDTH, view.status)
    ]
    return [safe(view.region.name, "bold", 60), *day_lines(view, BODY_WIDTH), Content(""), *checks]


def _differing(view: RegionView) -> Iterator[DifferingDay]:
    """The differing days of its comparisons, for which rows can be fetched."""
    for check in view.status.checks:
        for day in check.days:
            if not day.equal:
                yield DifferingDay(view.region.name, check.table, day.day)


def _blocked(state: ScreenState, view: RegionView, now: float = 0.0) -> str:
    """now: seconds since 1970, UTC; 0 leaves the age of the figures out"""
    if against := objection("promote", view, state.refusal("promote"), now):
        return against
    refused = any(check.ok is False for check in view.status.checks) or not unaccepted(view.status)
    if refused and (doubt := promotion_blocker(view.status)):
        return f"{doubt}: promotion refused; v shows them, X cancels"
    if unaccepted(view.status):
        return (
            ""  # accepted with this dialog, even if approvals or time are missing as well: these count only afterwards
        )
    # a ticket is named with this dialog
    waits = next((each for each in view.gate.closed_by if each.state == "waiting" and each.kind != "ticket"), None)
    return f"{waits.name}: {waits.why}" if waits else ""


def _reason_for(views: Sequence[RegionView]) -> str:
    """The inconclusive checks that are accepted with this promotion."""
    names = [check_name(check) for view in views for check in unaccepted(view.status)]
    return names[0] if len(names) == 1 else f"{len(names)} inconclusive checks" if names else ""


def _ticket_for(views: Sequence[RegionView]) -> str:
    """The regions whose ticket is named with this promotion."""
    names = [view.region.name for view in views if wants_ticket(view)]
    return names[0] if len(names) == 1 else f"{len(names)} regions" if names else ""


def wants_ticket(view: RegionView) -> bool:
    """Whether the gate of a region waits for its ticket."""
    return any(each.kind == "ticket" for each in view.gate.closed_by)


def _brought(view: RegionView) -> Content:
    proof = view.status.way_back
    if proof is not None and proof.release == view.previous and proof.state == "failed":
        return Content("its agent refuses where rows would be missing. ")
    return Content.assemble(safe(view.previous, limit=60), " was kept up to date: no row is lost. ")


def _named_proof(view: RegionView, at: float) -> list[Content]:
    """Whether the previous release is fed, whole and answers, wrapped below its text."""
    first, *rest = wrap_indented(way_back_proof(view, at), 9, BODY_WIDTH)
    return [_line("proof", first[9:]), *rest]


def _line(name: str, content: Content) -> Content:
    return Content.assemble((f"{name:<9}", "$text-muted"), content)
