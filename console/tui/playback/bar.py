"""The line of a playback: position, speed, the next decision, and missing parts of the recording. Pure."""

from datetime import UTC, datetime

from textual.content import Content

from console.runner.view import Position
from console.tui.commands.keys import FIRST, LATER, FooterKey
from console.tui.drawing import cell, safe
from console.tui.format import DAY, HOUR

BAR_CELLS, BAR_CELLS_NARROW = 32, 12
WIDE = 110


def draw_bar(position: Position, width: int) -> Content:
    """`▶ ×60 2026-11-02 12:40:10Z ━━━━╸──── 12:38 … 14:10 · next 13:20 eu: awaiting-confirmation`"""
    sign = "▶" if position.playing else "■" if position.at >= position.ends else "‖"
    form = _form(position.ends - position.begins)
    span = f"{_time(position.begins, form)} … {_time(position.ends, form)}"
    left = Content.assemble(
        (f" {sign} ×{position.speed:g} ", "bold $text-accent"),
        (f"{date_and_time(position.at)} ", "bold"),
        _bar(position, BAR_CELLS if width >= WIDE else BAR_CELLS_NARROW),
        (f" {span} ", "$text-muted"),
    )
    return cell(left + _tail(position, form), width)


def date_and_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _form(length: float) -> str:
    """The format of times that is precise enough for a recording of this length."""
    if length > DAY:
        return "%m-%d %H:%M"
    return "%H:%M" if length > HOUR else "%H:%M:%S"


def _time(at: float, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _bar(position: Position, cells: int) -> Content:
    length = position.ends - position.begins
    done = round(cells * (position.at - position.begins) / length) if length > 0 else cells
    return Content.assemble(("━" * done, "$text-accent"), ("─" * (cells - done), "$text-muted"))


def _tail(position: Position, form: str) -> Content:
    if not position.next_what:
        return Content.styled("· no further decision", "$text-muted")
    return Content.assemble(
        (f"· next {_time(position.next_at, form)} ", "$text-muted"), safe(position.next_what, limit=120)
    )


def draw_missing(position: Position, width: int) -> Content:
    """The parts that the recording lacks; empty if it is complete."""
    return cell(safe(f" {position.missing}", "$text-warning", 400), width) if position.missing else Content("")


def playback_keys(position: Position) -> tuple[FooterKey, ...]:
    """The keys of a playback that apply now."""
    return (
        FooterKey("space", "pause" if position.playing else "play", "screen.playback('toggle')", FIRST),
        FooterKey(",", "previous", "screen.playback('decision_before')", FIRST),
        FooterKey(".", "next decision", "screen.playback('decision_after')", FIRST),
        FooterKey("<", "slower", "screen.playback('slower')", LATER),
        FooterKey(">", "faster", "screen.playback('faster')", LATER),
        FooterKey("b", "minute back", "screen.playback('back')", LATER),
        FooterKey("f", "on", "screen.playback('on')", LATER),
        FooterKey("a", "time", "screen.playback('time')", LATER),
    )
