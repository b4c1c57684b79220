"""One region in the list: one line, with columns chosen by the width of the screen."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

from textual.content import Content

from console.model.share import progress_percent
from console.model.status import Status
from console.record import dataclass
from console.runner.view import RegionView
from console.tui.charts import sparkline
from console.tui.drawing import badge, bar, cell, draw_label, safe
from console.tui.fleet.figures import behind, hour_of, lag, ready_at, ready_late, reason, rows_per_second
from console.tui.labels import (
    change_pending,
    done_fraction,
    release_text,
    running_fraction,
    state_label,
    under_way,
)
from console.tui.state import same_fields
from console.tui.times import FRESH_SECONDS, STALE_SECONDS, moment

WIDEST, WIDE, NARROW = 168, 110, 76
# fields that no column shows
UNSEEN = {"status", "events", "guide", "witness", "seq", "log", "log_dropped"}
VIEW_FIELDS = tuple(field.name for field in fields(RegionView) if field.name not in UNSEEN)
STATUS_FIELDS = tuple(field.name for field in fields(Status) if field.name not in UNSEEN)
DONE_CELLS = 5  # of `100%`, and a blank
WITH_READY = 18  # cells that a bar and a time need


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The input of a line.

    plan  label of the plan that runs, else of the pending one; "" if all regions plan the same, which narrow screens omit
    age   how old its figures are
    at    now
    """

    view: RegionView
    plan: str
    at: float
    marked: bool
    current: bool

    @property
    def age(self) -> float:
        return self.at - self.view.heard if self.view.heard else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumn:
    """A column: its name, its width in cells (0: the rest), and its drawing into that many cells."""

    name: str
    cells: int
    draw: Callable[[Row, int], Content]
    figure: bool = False  # an old one is dimmed
    right: bool = False


def columns(width: int, names: Sequence[str], environments: Sequence[str]) -> tuple[ListColumn, ...]:
    """The columns that fit into this width; names of regions get the room that they need."""
    name = max(6, min(18, max((len(name) for name in names), default=6)))
    mixed = len(set(environments)) > 1
    if width >= WIDEST:
        environment = (ListColumn(name="ENV", cells=12, draw=_environment),) if mixed else ()
        return (
            ListColumn(name="REGION", cells=name, draw=_name), ListColumn(name="WAVE", cells=5, draw=_wave), *environment, ListColumn(name="STATE", cells=18, draw=_state),
            ListColumn(name="DONE", cells=17, draw=_done), ListColumn(name="READY AT", cells=13, draw=_ready, figure=True),
            ListColumn(name="ROWS/S", cells=6, draw=_rate, figure=True, right=True), ListColumn(name="LAST HOUR", cells=10, draw=_rate_hour, figure=True),
            ListColumn(name="LAG", cells=8, draw=_lag, figure=True, right=True), ListColumn(name="LAST HOUR", cells=10, draw=_lag_hour, figure=True),
            ListColumn(name="BEHIND", cells=6, draw=_behind, figure=True, right=True), ListColumn(name="NOW, OR WHY NOT", cells=0, draw=_reason),
            ListColumn(name="PLAN", cells=4, draw=_plan), ListColumn(name="RELEASE", cells=10, draw=_release), ListColumn(name="SEEN", cells=8, draw=_seen),
        )  # fmt: skip
    if width >= WIDE:
        environment = (ListColumn(name="ENV", cells=9, draw=_environment),) if mixed else ()
        return (
            ListColumn(name="REGION", cells=min(name, 12), draw=_name), ListColumn(name="WAVE", cells=4, draw=_wave), *environment,
            ListColumn(name="STATE", cells=16, draw=_state), ListColumn(name="DONE", cells=12, draw=_done), ListColumn(name="READY", cells=5, draw=_ready_late, figure=True),
            ListColumn(name="ROWS/S", cells=6, draw=_rate, figure=True, right=True), ListColumn(name="LAG", cells=6, draw=_lag, figure=True, right=True),
            ListColumn(name="1 H", cells=6, draw=_lag_hour, figure=True), ListColumn(name="NOW, OR WHY NOT", cells=0, draw=_reason),
            ListColumn(name="PLAN", cells=4, draw=_plan), ListColumn(name="RELEASE", cells=9, draw=_release),
        )  # fmt: skip
    if width >= NARROW:
        return (
            ListColumn(name="REGION", cells=min(name, 8), draw=_name), ListColumn(name="W", cells=2, draw=_wave), ListColumn(name="STATE", cells=16, draw=_state),
            ListColumn(name="DONE, OR WHY NOT", cells=0, draw=_done_or_reason),
            ListColumn(name="ROW/S", cells=5, draw=_rate, figure=True, right=True), ListColumn(name="LAG", cells=6, draw=_lag, figure=True, right=True),
            ListColumn(name="1 H", cells=4, draw=_lag_hour, figure=True), ListColumn(name="RELEASE", cells=9, draw=_release),
        )  # fmt: skip
    return (
        ListColumn(name="REGION", cells=min(name, 8), draw=_name), ListColumn(name="STATE", cells=16, draw=_state), ListColumn(name="DONE", cells=0, draw=_done_or_reason),
        ListColumn(name="LAG", cells=6, draw=_lag, figure=True, right=True), ListColumn(name="RELEASE", cells=9, draw=_release),
    )  # fmt: skip


def draw_header(shown: Sequence[ListColumn], width: int) -> Content:
    """The names of the columns."""
    parts = [
        Content(f"{column.name:>{cells}}" if column.right else f"{column.name:<{cells}}")
        for column, cells in zip(shown, _cells(shown, width), strict=True)
    ]
    return cell(Content.styled("   ", "$text-muted") + Content(" ").join(parts).stylize("$text-muted"), width)


def draw_row(row: Row, shown: Sequence[ListColumn], width: int) -> Content:
    """One line of `width` cells; figures are dimmed once they are older than ten seconds."""
    old = row.age > FRESH_SECONDS or row.view.link == "unreachable"
    parts = []
    for column, cells in zip(shown, _cells(shown, width), strict=True):
        content = column.draw(row, cells)
        if column.right and (missing := cells - content.cell_length) > 0:
            content = Content(" " * missing) + content
        content = content.stylize("$text-muted") if column.figure and old else content
        parts.append((content, cells))
    signs = Content.assemble(
        ("›" if row.current else " ", "bold $text-accent"), ("*" if row.marked else " ", "bold $text-accent"), " "
    )
    return cell(signs + Content(" ").join(_spread(parts)), width)


def _spread(parts: Sequence[tuple[Content, int]]) -> Iterator[Content]:
    """Each content in its cells; one that is longer also takes the cells of empty columns behind it."""
    at = 0
    while at < len(parts):
        content, cells = parts[at]
        at += 1
        while at < len(parts) and content.cell_length > cells and not parts[at][0].plain.strip():
            cells += 1 + parts[at][1]
            at += 1
        yield cell(content, cells)


def look_of(view: RegionView, at: float) -> str:
    """The parts of a line that depend on the time alone: while they are equal, the line need not be redrawn."""
    return f"{_seen_text(view, at)} {state_label(view, at).text}"


def same_row(before: RegionView, now: RegionView) -> bool:
    """Whether both give the same line, at the same time and with the same plan; False in doubt."""
    return same_fields(before, now, VIEW_FIELDS) and same_fields(before.status, now.status, STATUS_FIELDS)


def _cells(shown: Sequence[ListColumn], width: int) -> list[int]:
    fixed = 3 + sum(column.cells for column in shown) + len(shown) - 1
    return [column.cells or max(4, width - fixed) for column in shown]


def _name(row: Row, cells: int) -> Content:
    return safe(row.view.region.name, "bold", 60)


def _wave(row: Row, cells: int) -> Content:
    region = row.view.region
    canary = {2: "c", 4: " c", 5: " can"}.get(cells, " canary") if region.canary else ""
    return Content(f"{region.wave}{canary}")


def _environment(row: Row, cells: int) -> Content:
    return badge(row.view.region.environment)


def _state(row: Row, cells: int) -> Content:
    return draw_label(state_label(row.view, row.at))


def _done(row: Row, cells: int) -> Content:
    if not under_way(row.view):
        return Content("")
    part = done_fraction(row.view)
    label = state_label(row.view, row.at)
    return Content.assemble(
        bar(part, min(40, cells - DONE_CELLS), label.style, running_fraction(row.view)), f" {progress_percent(part):3}%"
    )


def _done_or_reason(row: Row, cells: int) -> Content:
    """Without a column for reasons: the bar of a rollout and its end, else the plan or the trouble."""
    if under_way(row.view):
        ready = f"{ready_late(row.view):>6}" if cells >= WITH_READY else ""
        return Content.assemble(_done(row, cells - len(ready)), ready)
    why = reason(row.view)
    label = f"{row.plan} " if row.plan and change_pending(row.view) else ""
    return Content.assemble((label, "$text-accent"), safe(why.text, why.style, 80))


def _ready(row: Row, cells: int) -> Content:
    return Content(ready_at(row.view))


def _ready_late(row: Row, cells: int) -> Content:
    return Content(ready_late(row.view))


def _rate(row: Row, cells: int) -> Content:
    return Content(rows_per_second(row.view))


def _rate_hour(row: Row, cells: int) -> Content:
    return Content(sparkline(hour_of(row.view, "rows", row.at, 2 * cells), cells))


def _lag(row: Row, cells: int) -> Content:
    return Content(lag(row.view, cells))


def _lag_hour(row: Row, cells: int) -> Content:
    return Content(sparkline(hour_of(row.view, "lag", row.at, 2 * cells), cells))


def _behind(row: Row, cells: int) -> Content:
    return Content(behind(row.view))


def _reason(row: Row, cells: int) -> Content:
    why = reason(row.view)
    return safe(why.text, why.style, 200)


def _plan(row: Row, cells: int) -> Content:
    return Content.styled(row.plan, "$text-accent")


def _release(row: Row, cells: int) -> Content:
    return safe(release_text(row.view), "", 60)


def _seen(row: Row, cells: int) -> Content:
    return Content.styled(_seen_text(row.view, row.at), "$text-muted")


def _seen_text(view: RegionView, at: float) -> str:
    """`now`, `20 s`, or the time if that is longer ago."""
    old = at - view.heard
    if not view.heard:
        return "—"
    if old <= FRESH_SECONDS:
        return "now"
    return f"{int(old // 10) * 10} s" if old <= STALE_SECONDS else moment(view.heard, at)
