"""Charts as SVG without text, which is beside them in HTML: they stretch to any width, and every figure is also text."""

from collections.abc import Mapping, Sequence

from console.cli.format import count, span
from console.cli.reports.timeline import Course, Phase
from console.cli.reports.words import day_label, day_words
from console.markup import Element, element
from console.model.event import ComparedDay

WIDTH, BAR, DAYS = 1000.0, 16.0, 60.0  # units of the view, which is stretched to the page's width
NARROW = 2.0  # minimum width of a phase without duration
CLASSES: Mapping[Phase, str] = {
    "planned": "rest", "preparing": "prepare", "backfilling": "fill", "catching-up": "catch", "validating": "check",
    "awaiting-confirmation": "gate", "promoting": "live", "live": "live", "cancelled": "rest", "discarded": "rest",
    "rolled-back": "rest", "cleaned": "rest", "paused": "pause", "failed": "fail",
}  # fmt: skip


def timeline(course: Course, label: str) -> Element:
    """A bar of phases, each as wide as its duration. label: a description of the chart for screen readers"""
    whole = sum(max(each.seconds, 0.0) for each in course.spans)
    room = WIDTH - NARROW * len(course.spans)
    bars, x = [], 0.0
    for each in course.spans:
        width = NARROW + (room * each.seconds / whole if whole else room / len(course.spans))
        title = element("title", f"{each.phase}: {span(each.seconds)}")
        bars.append(_rect(x, 0.0, width, BAR, f"phase {CLASSES[each.phase]}", title))
        x += width
    return _svg(bars, BAR, label, "bar")


def swatch(kind: str) -> Element:
    """A square in the colour of a phase, for a legend."""
    return element(
        "svg", _rect(0.0, 0.0, 10.0, 10.0, f"phase {kind}"), viewBox="0 0 10 10", class_="swatch", aria_hidden="true"
    )


def days(compared: Sequence[ComparedDay], label: str) -> Element:
    """A column for each day, as high as its rows; a differing day has a mark above it, regardless of its height."""
    most = max((max(day.old, day.new) for day in compared), default=0)
    step = WIDTH / max(1, len(compared))
    bars: list[Element] = []
    for at, day in enumerate(compared):
        height = (DAYS - 12.0) * max(day.old, day.new) / most if most else 0.0
        kind = "same" if day.equal else "other"
        x, width = at * step + step * 0.1, step * 0.8
        title = element("title", day_words(day))
        bars.append(_rect(x, DAYS - max(height, 1.0), width, max(height, 1.0), f"day {kind}", title))
        if not day.equal:
            bars.append(_rect(x, 0.0, width, 6.0, "day mark"))
    return _svg(bars, DAYS, label, "columns")


def days_label(table: str, compared: Sequence[ComparedDay]) -> str:
    """`requests: 14 days, 2026-10-25 … 2026-11-07, 1 differs`"""
    ends = f"{day_label(compared[0].day)} … {day_label(compared[-1].day)}"
    differ = sum(not day.equal for day in compared)
    return f"{table}: {count(len(compared), 'day')}, {ends}, {differ or 'none'} {'differs' if differ < 2 else 'differ'}"


def _svg(shapes: list[Element], height: float, label: str, kind: str) -> Element:
    return element(
        "svg", element("title", label), *shapes, viewBox=f"0 0 {WIDTH:g} {height:g}", preserveAspectRatio="none", class_=kind, role="img",
    )  # fmt: skip


def _rect(x: float, y: float, width: float, height: float, kind: str, *inner: Element) -> Element:
    return element(
        "rect", *inner, x=f"{x:.2f}", y=f"{y:.2f}", width=f"{width:.2f}", height=f"{height:.2f}", class_=kind
    )
