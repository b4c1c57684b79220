"""The pane *Needs you*: one line per need; without needs, since when all is well, or where no agent runs, and the next due date. Pure."""

from collections.abc import Sequence

from textual.content import Content

from console.runner.outlook.attention import NeedKind, RegionNeed, upcoming, well_since
from console.tui.drawing import cell, safe
from console.tui.labels import STYLES, Tone
from console.tui.state import ScreenState
from console.tui.times import age, moment

SIGNS: dict[NeedKind, tuple[str, Tone]] = {
    NeedKind.FAILED: ("✗", "bad"),
    NeedKind.DIFFERS: ("✗", "bad"),
    NeedKind.BREACH: ("✗", "bad"),
    NeedKind.FEED_STOPPED: ("✗", "bad"),
    NeedKind.PAUSED: ("‖", "warn"),
    NeedKind.AWAY: ("!", "warn"),
    NeedKind.EXPIRING: ("!", "warn"),
    NeedKind.GATE: ("◆", "warn"),
    NeedKind.WAY_BACK: ("✗", "bad"),
    NeedKind.RETRIED: ("▲", "warn"),
    NeedKind.WAITING: ("…", "busy"),
    NeedKind.UNPLANNED: ("✗", "bad"),
    NeedKind.CLEANUP: ("↶", "quiet"),
    NeedKind.ON_HOLD: ("↶", "quiet"),
}
WIDE = 110


def draw_needs(state: ScreenState, width: int, most: int, *, wrapped: bool = False) -> list[Content]:
    """At most that many lines; the last one counts the omitted needs.

    wrapped  a single need may take a second line for what the first one has no room for
    """
    if not state.needs:
        return [cell(_without_needs(state), width)]
    if most == 1:
        number = Content.styled(f"{len(state.needs)} need you  " if len(state.needs) > 1 else "", "bold")
        need = state.needs[0]
        names, room = min(len(need.region), 18), width - number.cell_length
        if not wrapped:
            return [number + _line(need, state.at, names, room)]
        first, rest = _two_lines(need, state.at, names, room)
        return [number + first, cell(Content.assemble("  ", rest), width)] if rest else [number + first]
    shown = state.needs if len(state.needs) <= most else state.needs[: most - 1]
    names = max(len(need.region) for need in shown)
    lines = [_line(need, state.at, min(names, 18), width) for need in shown]
    left = len(state.needs) - len(shown)
    return [*lines, Content.styled(f"… {left} more: n goes to the next", "$text-muted")] if left else lines


def needs_title(needs: Sequence[RegionNeed]) -> str:
    return f"needs you {len(needs)}" if needs else "needs you: nothing"


def _line(need: RegionNeed, now: float, names: int, width: int) -> Content:
    """`‖ ap  paused by ana · 40 m · due in 1 d 19 h   p resume`: due date and key are never cut."""
    head, tail = _ends(need, now, names, width)
    room = max(8, width - head.cell_length - tail.cell_length)
    cause = need.cause
    if need.due and need.since and width >= WIDE:
        cause = f"{cause} · {age(now - need.since)} ago"
    if need.due and need.then and width >= WIDE:
        cause = f"{cause} · then {need.then}"
    return head + cell(safe(cause, "", 300), room) + tail


def _two_lines(need: RegionNeed, now: float, names: int, width: int) -> tuple[Content, Content]:
    """The same line, and the part of its cause, with what happens on the due date, that it has no room for."""
    head, tail = _ends(need, now, names, width)
    room = max(8, width - head.cell_length - tail.cell_length)
    cause = f"{need.cause} · then {need.then}" if need.due and need.then else need.cause
    first, *more = safe(cause, "", 300).wrap(room)
    return head + cell(first, room) + tail, Content(" ").join(more)


def _ends(need: RegionNeed, now: float, names: int, width: int) -> tuple[Content, Content]:
    """Symbol and region before the cause; due date and key behind it."""
    symbol, tone = SIGNS[need.kind]
    head = Content.assemble((symbol, STYLES[tone]), " ", cell(safe(need.region, "bold", 60), names), " ")
    if need.due:
        left = f"due in {age(need.due - now)}" if need.due > now else f"overdue by {age(now - need.due)}"
    else:
        left = f"for {age(now - need.since)}" if need.since else ""
    key = Content.assemble(("  ", ""), (need.key, "bold $text-accent"), f" {need.does}")
    tail = Content.assemble(("  " if left else "", ""), (left, "bold" if need.due else "$text-muted"), key)
    if width >= WIDE:
        tail = Content.assemble(
            ("  ", ""), cell(Content.styled(left, "bold" if need.due else "$text-muted"), 20), cell(key, 20)
        )
    return head, tail


def _without_needs(state: ScreenState) -> Content:
    reading = sum(view.plan is None and not view.problem for view in state.views.values())
    if reading:
        return Content.styled(f"reading {reading} of {len(state.views)} regions …", "$text-muted")
    live = [view for view in state.views.values() if view.live]
    if unattended := sum(view.attended is False for view in live):
        of = f"in {unattended} of {len(live)} live regions" if len(live) > 1 else "there"
        style, parts = STYLES["warn"], [f"! no agent runs {of}: live feeds stand still"]
    else:
        since = well_since(state.views)
        style, parts = "$text-success", ["✓ all is well" + (f" since {moment(since, state.at)}" if since else "")]
    if due := upcoming(state.views, state.at):
        first = due[0]
        parts.append(f"next: {first.region}, {first.cause} in {age(first.due - state.at)}")
    else:
        parts.append("nothing is due")
    return safe(" · ".join(parts), style, 200)
