"""The banner: the pipeline, the number of regions per state, the steering console, and the time. Pure."""

from collections.abc import Mapping

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import cell, safe
from console.tui.labels import ACTIVE, Condition, condition, state_label, under_way
from console.tui.state import ScreenState
from console.tui.times import FRESH_SECONDS, age, clock, zone_of

WIDE = 110


def draw_banner(state: ScreenState, view: RegionView | None, width: int) -> Content:
    """Left: pipeline and states; right: who steers, the times and the age of the oldest figure."""
    right = _right(state, view, width)
    left = Content.assemble(
        _lead(state, width),
        safe(f"{state.title}  " if state.title else "", "bold", 40),
        ("read-only  ", "bold $text-warning") if state.readonly else "",
    )
    left = left + _states(state, width - left.cell_length - right.cell_length)
    return cell(left, max(0, width - right.cell_length)) + right


def _lead(state: ScreenState, width: int) -> Content:
    if state.position:
        return Content.styled(" PLAYBACK ", "bold reverse $text-warning") + " "
    return Content.styled(" console ", "bold $text-accent") if width >= WIDE else Content(" ")


def _states(state: ScreenState, room: int) -> Content:
    """`3 regions: 2 live · 1 at the gate`, or with symbols alone if there is less room."""
    words: dict[str, int] = {}
    signs: dict[str, int] = {}
    for view in state.views.values():
        label = state_label(view, state.at)
        words[label.text] = words.get(label.text, 0) + 1
        signs[label.symbol] = signs.get(label.symbol, 0) + 1
    number = len(state.views)
    tally = " · ".join(f"{many} {word}" for word, many in words.items())
    text = f"{_release(state)}{number} {'region' if number == 1 else 'regions'}: {tally}"
    if len(text) > room:
        text = f"{_release(state)}{number}: " + " ".join(f"{many}{sign}" for sign, many in signs.items())
    return safe(text, "$text-muted", 200)


def _release(state: ScreenState) -> str:
    """`r8 in `: the release that is being rolled out, if there is exactly one."""
    names = {view.status.release for view in state.views.values() if under_way(view) and view.status.release}
    return f"{names.pop()} in " if len(names) == 1 else ""


def _right(state: ScreenState, view: RegionView | None, width: int) -> Content:
    parts = [steering(state)] if width >= WIDE else []
    parts.append(watching(state, width))
    parts.append(clock(state.at))
    if view and width >= WIDE and view.region.zone not in ("", "UTC"):
        parts.append(f"{view.region.name} {clock(state.at, zone_of(view.region.zone))}")
    if oldest := _oldest(state, width):
        parts.append(oldest)
    return safe(" " + "  ".join(part for part in parts if part) + " ", "$text-muted", 160)


def steering(state: ScreenState) -> str:
    """The console that steers the running rollouts; "" if none is running."""
    names = [view.status.taken_by or view.status.by for view in state.views.values() if under_way(view)]
    steerers = list(dict.fromkeys(name for name in names if name))
    if not steerers:
        return ""
    others = f" and {len(steerers) - 1} more" if len(steerers) > 1 else ""
    return f"{steerers[0]}{others} steer{'s' if len(steerers) == 1 else ''}"


def watching(state: ScreenState, width: int) -> str:
    """The other consoles that watch these regions: `bob@tower watches`, or `+2 watch` if there is less room."""
    others = {watcher.shown for view in state.views.values() for watcher in view.others_watching}
    if not others:
        return ""
    verb = "watches" if len(others) == 1 else "watch"
    if width < WIDE:
        return f"+{len(others)} {verb}"
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"{min(others)[:40]}{more} {verb}"


def _oldest(state: ScreenState, width: int) -> str:
    """`oldest figure 2 s`, with its region if it is not fresh."""
    ages: Mapping[str, float] = {
        name: state.at - view.heard
        for name, view in state.views.items()
        if view.heard and (view.attended or condition(view) in ACTIVE or condition(view) is Condition.UNREACHABLE)
    }
    if not ages:
        return ""
    name = max(ages, key=lambda name: ages[name])
    whose = f" {name}" if ages[name] > FRESH_SECONDS else ""
    return (
        f"oldest figure{whose} {age(ages[name])}"
        if width >= WIDE
        else f"{name + ' ' if whose else ''}{age(ages[name])}"
    )
