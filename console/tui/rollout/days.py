"""The days of a rollout's backfills as a calendar: a cell per day and table, and the figures of the cell under the cursor. Pure."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from textual.content import Content
from textual.style import Style

from console.model.calendar import DayCell, StepDays, calendar
from console.model.event import ComparedDay, Recorded
from console.model.step import Backfill
from console.model.step_id import StepId
from console.record import dataclass
from console.runner.view import RegionView
from console.tui.drawing import cell, safe, wrap_indented
from console.tui.format import count, plural, short, size, span
from console.tui.labels import STYLES, Tone

DayState = Literal["waiting", "running", "done", "retried", "differs"]
SIGNS: dict[DayState, tuple[str, Tone]] = {
    "waiting": ("□", "quiet"),
    "running": ("◪", "busy"),
    "done": ("▪", "good"),
    "retried": ("▲", "warn"),
    "differs": ("✗", "bad"),
}
LEGEND = "▪ done ◪ running □ waiting ▲ retried ✗ differs"
HEAD_CELLS, WIDE_CELLS, NARROW_CELLS = 7, 6, 3
MAX_TABLES, MAX_MONTHS, MAX_COMPARED = 20, 60, 400


@dataclass(frozen=True, slots=True)
class TableDays:
    """The days of one backfill, or the compared days of a table without one. compared: label → its comparison at the gate"""

    target: str
    step: StepDays
    compared: dict[str, ComparedDay]

    def state(self, day: DayCell) -> DayState:
        compared = self.compared.get(day.label)
        return "differs" if compared and not compared.equal else day.state


@dataclass(frozen=True, slots=True)
class DayCursor:
    """Index of a table and of one of its days; both are clamped to the existing ones."""

    table: int = 0
    day: int = 0

    def moved(self, tables: Sequence[TableDays], table: int = 0, day: int = 0) -> "DayCursor":
        """The cursor moved by these steps, never beyond the ends."""
        if not tables:
            return DayCursor()
        at = min(max(0, self.table + table), len(tables) - 1)
        return DayCursor(at, min(max(0, self.day + day), max(0, len(tables[at].step.days) - 1)))


class CalendarCache:
    """The calendar of the events seen last: a rollout's events are read again only when there are more of them."""

    def __init__(self) -> None:
        self._events: tuple[Recorded, ...] = ()
        self._steps: tuple[StepDays, ...] = ()

    def tables(self, view: RegionView) -> list[TableDays]:
        """The tables whose history is copied, in the order of their fences."""
        if view.events is not self._events:
            self._events = view.events
            self._steps = calendar(event for event in view.events if event.rollout == view.status.rollout)
        targets = (
            {step.id: step.target for step in view.accepted.steps if isinstance(step, Backfill)}
            if view.accepted
            else {}
        )
        by_table = []
        for step in self._steps[:MAX_TABLES]:
            target = targets.get(step.step) or StepId.parse(step.step).subject
            by_table.append(TableDays(target, step, _compared(view, target)))
        listed = {table.target for table in by_table}
        others = dict.fromkeys(check.table for check in view.status.checks if check.table not in listed)
        return [*by_table, *(table for name in others if (table := _differing(name, _compared(view, name))))]


def _compared(view: RegionView, table: str) -> dict[str, ComparedDay]:
    days = (day for check in view.status.checks if check.table == table for day in check.days)
    return {day.day or "no day": day for day in days}


def _differing(target: str, compared: dict[str, ComparedDay]) -> TableDays | None:
    """A table without a backfill of its own, if days of it differ."""
    if all(day.equal for day in compared.values()):
        return None
    newest = sorted(compared.items(), reverse=True)[:MAX_COMPARED]
    cells = (
        DayCell(label=label, rows=day.new, first=number, last=number, done=1)
        for number, (label, day) in enumerate(newest, 1)
    )
    return TableDays(target, StepDays(step="", source="", version=0, days=tuple(cells)), compared)


def first_cursor(tables: Sequence[TableDays]) -> DayCursor:
    """On the first running day, else on the first waiting one."""
    for wanted in ("running", "waiting"):
        for table, days in enumerate(tables):
            for number, day in enumerate(days.step.days):
                if day.state == wanted:
                    return DayCursor(table, number)
    return DayCursor()


def days_lines(tables: Sequence[TableDays], cursor: DayCursor, width: int) -> list[Content]:
    """Table by table, newest day first; below, the day under the cursor."""
    if not tables:
        return wrap_indented(
            Content.styled("no days: this rollout has copied no history yet.", "$text-muted"), 0, width
        )
    cursor = cursor.moved(tables)
    lines: list[Content] = []
    for number, table in enumerate(tables):
        chosen = cursor.day if number == cursor.table else -1
        lines += _table_lines(number, table, chosen, width)
    lines += day_detail(tables[cursor.table], cursor.day, width)
    return [line.truncate(width, ellipsis=True) for line in lines]


def _table_lines(number: int, table: TableDays, chosen: int, width: int) -> list[Content]:
    days = table.step.days
    done = sum(day.state in ("done", "retried") for day in days)
    title = f" from {table.step.source} as of v{table.step.version} · {done} of {plural(len(days), 'day')}"
    if not table.step.source:
        title = f" as compared at the gate · {plural(len(days), 'day')}"
    head = Content.assemble(safe(table.target, "bold", 60), safe(title, "$text-muted", 120))
    legend = Content.styled(LEGEND, "$text-muted")
    if head.cell_length + legend.cell_length + 2 <= width and number == 0:
        head = cell(head, width - legend.cell_length) + legend
    if not days:
        return [head, Content.styled("its agent is too old to list them", "$text-muted")]
    if HEAD_CELLS + WIDE_CELLS * len(days) <= width:
        return [head.truncate(width), *_columns(number, table, chosen, WIDE_CELLS, figures=True)]
    if HEAD_CELLS + NARROW_CELLS * len(days) <= width:
        return [head.truncate(width), *_columns(number, table, chosen, NARROW_CELLS, figures=False)]
    return [head.truncate(width), *_months(number, table, chosen, width)]


def _columns(number: int, table: TableDays, chosen: int, cells: int, *, figures: bool) -> list[Content]:
    """A column a day; with `figures`, its rows and how long they took."""
    days = table.step.days
    names = "".join(f"{_short_label(day.label, cells - 1):>{cells}}" for day in days)
    signs = [Content.assemble(" " * (cells - 1), _sign(number, table, at, chosen)) for at in range(len(days))]
    lines = [
        Content.styled(f"{'day':<{HEAD_CELLS}}{names}", "$text-muted"),
        Content.assemble((f"{'state':<{HEAD_CELLS}}", "$text-muted"), *signs),
    ]
    if figures:
        rows = "".join(f"{short(day.rows):>{cells}}" for day in days)
        took = "".join(f"{_took(table, day):>{cells}}" for day in days)
        lines += [
            Content.assemble((f"{'rows':<{HEAD_CELLS}}", "$text-muted"), rows),
            Content.assemble((f"{'took':<{HEAD_CELLS}}", "$text-muted"), took),
        ]
    return lines


def _months(number: int, table: TableDays, chosen: int, width: int) -> list[Content]:
    """A row a month, a sign a day; as many rows as a long month needs."""
    lines: list[Content] = []
    per_row = max(1, (width - 9) // 2)
    indexed = list(enumerate(table.step.days))
    for month, group in groupby(indexed, key=lambda item: item[1].label[:7] if _is_date(item[1].label) else "other"):
        members = [at for at, _ in group]
        for start in range(0, len(members), per_row):
            signs = [Content.assemble(_sign(number, table, at, chosen), " ") for at in members[start : start + per_row]]
            lines.append(Content.assemble((f"{month if not start else '':<9}", "$text-muted"), *signs))
    if len(lines) > MAX_MONTHS:
        left = len(lines) - MAX_MONTHS
        lines = [*lines[:MAX_MONTHS], Content.styled(f"         … and {plural(left, 'row')} more", "$text-muted")]
    return lines


def day_detail(table: TableDays, at: int, width: int) -> list[Content]:
    """Rows, time and tries of one day, its hours, and its comparison."""
    if at >= len(table.step.days):
        return []
    day = table.step.days[at]
    symbol, tone = SIGNS[table.state(day)]
    parts = [f"{table.target} {day.label}", *_figures(day)]
    if day.tries:
        parts.append(f"{plural(day.tries, 'failed try', 'failed tries')}: {', '.join(dict.fromkeys(day.causes))}")
    compared = table.compared.get(day.label)
    if compared:
        columns = f", other values in {', '.join(compared.columns)}" if compared.columns else ""
        equal = (
            f"{count(compared.new)} rows equal to live"
            if compared.equal
            else f"live {count(compared.old)} rows, new {count(compared.new)}{columns}"
        )
        parts.append(equal)
    text = Content.assemble(
        ("› ", "bold $text-accent"), (f"{symbol} ", STYLES[tone]), safe(" · ".join(parts), limit=300)
    )
    return [*wrap_indented(text, 0, width), *_hour_lines(day, width)]


def _figures(day: DayCell) -> list[str]:
    if day.batch is None and day.done:
        return []
    if day.batch is None:
        return [f"about {count(day.rows)} rows", "running" if day.running else "waiting"]
    batch = day.batch
    same = "in = out" if batch.rows_in == batch.rows_out else f"in, {count(batch.rows_out)} out"
    left_out = [f"{count(batch.quarantined)} left out"] if batch.quarantined else []
    whose = "" if batch.label == day.label else f"with {batch.label}: "
    version = [f"v{batch.version}"] if batch.version >= 0 else []
    return [
        f"{whose}{count(batch.rows_in)} rows {same}",
        *left_out,
        span(batch.seconds),
        size(batch.bytes),
        *version,
        _clock(day.at),
    ]


def _hour_lines(day: DayCell, width: int) -> list[Content]:
    """`hours 23 ▪▪▪▪▪□□□ 00`, for a day that is divided into hours."""
    if not day.hours:
        return []
    signs = [Content.styled(*_styled(state)) for _, state in day.hours]
    line = Content.assemble(("  hours 23 ", "$text-muted"), *signs, (" 00", "$text-muted"))
    return [line.truncate(width, ellipsis=True)]


def _sign(number: int, table: TableDays, at: int, chosen: int) -> Content:
    symbol, style = _styled(table.state(table.step.days[at]))
    sign = Content.styled(symbol, f"{style} reverse" if at == chosen else style)
    return sign.stylize(Style.from_meta({"@click": f"screen.choose_day({number}, {at})"}))


def _styled(state: DayState) -> tuple[str, str]:
    symbol, tone = SIGNS[state]
    return symbol, STYLES[tone]


def _took(table: TableDays, day: DayCell) -> str:
    """Seconds of its batch; `~` marks its share of a batch that had other days too."""
    if day.batch is None:
        return "·"
    seconds, estimated = table.step.took(day)
    return f"{'~' if estimated else ''}{_brief(seconds)}"


def _brief(seconds: float) -> str:
    return (
        f"{seconds:.0f}s" if seconds < 99.5 else f"{seconds / 60:.0f}m" if seconds < 5970 else f"{seconds / 3600:.0f}h"
    )


def _is_date(label: str) -> bool:
    return len(label) == 10 and label[4] == label[7] == "-"


def _short_label(label: str, cells: int) -> str:
    if _is_date(label):
        return label[5:] if cells >= 5 else label[8:]
    return "none" if label == "no day" and cells >= 4 else label[:cells]


def _clock(at: float) -> str:
    second = int(at) % 86_400
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
