"""History cut into slices in a fixed order, and the slices of each batch. Pure.

A day is named `2026-11-07`. Spark and Delta hold days outside of Python's calendar (a time in milliseconds read as
seconds lies in the year 58851): all days before its first share one name, and so do all days after its last. Names
sort as text in the order of their days.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Protocol, TypeVar

from console.model.incident import SlicedDay
from console.model.live import Day
from console.record import dataclass

HOURS, MICROS_A_DAY = 24, 86_400 * 10**6
MOST_DAYS = 5_000  # days listed in one event, 13 years: it must fit into one message
EARLY, LATE = "0000 and before", "after 9999"
_EPOCH = date(1970, 1, 1).toordinal()
FIRST, LAST = (
    date.min.toordinal() - _EPOCH,
    date.max.toordinal() - _EPOCH,
)  # days since 1970 with their own name
_BEGIN, _END = "0001-01-01T00:00:00", "9999-12-31T24:00:00"  # bounds of the times between the two ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The smallest piece of a backfill.

    index       1, 2, … in the plan's fixed order, newest first; the position at which a batch ends
    label       `2026-11-07`, `2026-11-07T13` (an hour of a heavy day), or `no day` for rows whose time is NULL
    first, end  half-open, ISO 8601 UTC, see `moment`; "" is unbounded: the newest slice has no end and the oldest no
                beginning, so that every row is inside. Both are "" for the NULL slice.
    rows, bytes estimates from file statistics
    """

    index: int
    label: str
    first: str
    end: str
    rows: int
    bytes: int
    null: bool = False


def cut(
    days: Iterable[Day], rows_limit: int | None = None, hours: bool = True, *, bytes_limit: int | None = None
) -> tuple[Slice, ...]:
    """Cut a table into slices, newest first, the NULL slice last; every possible row is in exactly one of them.

    days        in any order, from the log at the fence; "" is the NULL day, `EARLY` and `LATE` the two ends
    rows_limit, bytes_limit  a day with more is cut into its 24 hours; None for no limit
    hours       False if the time column is a date, which has no hours
    returns     the slices; at least two (all rows, NULL rows) even for an empty table
    """
    by_name: dict[str, list[Day]] = {}
    for day in days:
        by_name.setdefault(day.day, []).append(day)
    late, early, nulls = (by_name.pop(name, []) for name in (LATE, EARLY, ""))
    pieces = [
        piece
        for name in sorted(by_name, reverse=True)
        for piece in _pieces(name, by_name[name], hours and is_heavy(by_name[name], rows_limit, bytes_limit))
    ]
    pieces = pieces or [("all", "", 0, 0)]
    if late:
        pieces.insert(0, (LATE, _END, *_sums(late)))
    oldest, _, *sums = pieces[-1]
    pieces[-1] = (oldest, _BEGIN if early else "", sums[0], sums[1])
    if early:
        pieces.append((EARLY, "", *_sums(early)))
    ends = ["", *(first for _, first, _, _ in pieces[:-1])]
    slices = [
        Slice(index=index, label=label, first=first, end=end, rows=rows, bytes=size)
        for index, ((label, first, rows, size), end) in enumerate(zip(pieces, ends, strict=True), 1)
    ]
    rows, size = _sums(nulls)
    null = Slice(index=len(slices) + 1, label="no day", first="", end="", rows=rows, bytes=size, null=True)
    return (*slices, null)


def is_heavy(days: Sequence[Day], rows_limit: int | None, bytes_limit: int | None) -> bool:
    """Whether a day is cut into its hours. days: what is known of it, in any number of parts"""
    rows, size = _sums(days)
    return (rows_limit is not None and rows > rows_limit) or (bytes_limit is not None and size > bytes_limit)


def _pieces(name: str, days: Sequence[Day], hours: bool) -> list[tuple[str, str, int, int]]:
    """The slices of one day, newest first: label, first moment, rows, bytes."""
    start, (rows, size) = datetime.fromisoformat(name), _sums(days)
    if not hours:
        return [(name, start.isoformat(), rows, size)]
    share = (-(-rows // HOURS), -(-size // HOURS))
    starts = [(hour, start + timedelta(hours=hour)) for hour in reversed(range(HOURS))]
    return [(f"{name}T{hour:02}", at.isoformat(), *share) for hour, at in starts]


def _sums(days: Sequence[Day]) -> tuple[int, int]:
    return sum(day.rows for day in days), sum(day.bytes for day in days)


def half(slices: Sequence[Slice], since: str = "", until: str = "") -> tuple[Slice, ...]:
    """The slices on one side of a day, cut there and renumbered; the NULL slice belongs to the older side.

    since, until  days, one of them "": every row of a table is in exactly one of `half(s, since=d)` and `half(s, until=d)`
    """
    low, high = (f"{day}T00:00:00" if day else "" for day in (since, until))
    kept: list[Slice] = []
    for piece in slices:
        first = max(piece.first, low)
        end = min(piece.end or high, high) if high else piece.end
        if (piece.null and until) or (not piece.null and (not end or first < end)):
            kept.append(piece if piece.null else replace(piece, first=first, end=end))
    return tuple(replace(piece, index=index) for index, piece in enumerate(kept, 1))


class Counted(Protocol):
    """What is packed into batches: slices, or the days of which they are made."""

    @property
    def rows(self) -> int: ...

    @property
    def bytes(self) -> int: ...


Piece = TypeVar("Piece", bound=Counted)


def pack(slices: Sequence[Piece], after: int, rows: float | None, size: float | None) -> tuple[Piece, ...]:
    """The slices of the next batch: whole, in order, within the limits; at least one.

    slices   as `cut` made them, index 1…n
    after    number of completed ones, which is the index of the last
    rows, size  limits of a batch (rows, bytes), None for no limit; a larger slice is a batch of its own
    returns  the slices; empty when none is left
    """
    run: list[Piece] = []
    total_rows = total_size = 0
    for piece in islice(slices, after, None):
        total_rows += piece.rows
        total_size += piece.bytes
        full = (rows is not None and total_rows > rows) or (size is not None and total_size > size)
        if run and full:
            break
        run.append(piece)
    return tuple(run)


def by_day(slices: Sequence[Slice], most: int = MOST_DAYS) -> tuple[SlicedDay, ...]:
    """The slices by day, in their order; more than `most` days are listed in runs of days.

    returns  their `slices` sum to the number of slices given
    """
    days: list[SlicedDay] = []
    for piece in slices:
        label = piece.label.partition("T")[0]
        if days and days[-1].label == label:
            days[-1] = SlicedDay(label=label, rows=days[-1].rows + piece.rows, slices=days[-1].slices + 1)
        else:
            days.append(SlicedDay(label=label, rows=piece.rows))
    each = -(-len(days) // most)
    return tuple(_run_of_days(days[at : at + each]) for at in range(0, len(days), each)) if each > 1 else tuple(days)


def _run_of_days(days: Sequence[SlicedDay]) -> SlicedDay:
    label = days[0].label if len(days) == 1 else f"{days[0].label} … {days[-1].label}"
    return SlicedDay(label=label, rows=sum(day.rows for day in days), slices=sum(day.slices for day in days))


@lru_cache(1 << 14)  # the days of one region are those of all its tables
def day_name(number: int) -> str:
    """The name of a day, counted from 1970; one of the ends for a day outside of the calendar."""
    if FIRST <= number <= LAST:
        return date.fromordinal(number + _EPOCH).isoformat()
    return EARLY if number < FIRST else LATE


def is_day(text: str) -> bool:
    """Whether a text is the name of a day, or of one of the two ends."""
    if text in (EARLY, LATE):
        return True
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def day_after(name: str) -> str:
    """The day after a named day; "" if it has no name of its own."""
    if name == EARLY:
        return day_name(FIRST)
    if name in (LATE, day_name(LAST)):
        return ""
    return day_name(date.fromisoformat(name).toordinal() - _EPOCH + 1)


def moment(text: str) -> int:
    """A slice's boundary in microseconds since 1970; `9999-12-31T24:00:00` is the end of the last named day."""
    day, _, clock = text.partition("T")
    hour, minute, second = map(int, clock.split(":"))
    number = date.fromisoformat(day).toordinal() - _EPOCH
    return number * MICROS_A_DAY + (hour * 3600 + minute * 60 + second) * 10**6
