"""How history is cut: slices in a fixed order, and which run of them one batch carries. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from console.model.live import Day

HOURS = 24


@dataclass(frozen=True, slots=True)
class Slice:
    """The smallest piece of a backfill.

    index       1, 2, … in the plan's fixed order, newest first; the position a batch ends at
    label       `2026-11-07`, `2026-11-07T13` (an hour of a heavy day), or `no day` for rows whose time is NULL
    first, end  half-open, ISO 8601 UTC; "" is open: the newest slice has no end and the oldest no beginning, so no
                row can lie outside. Both are "" for the NULL slice.
    rows, bytes estimates from file statistics
    """

    index: int
    label: str
    first: str
    end: str
    rows: int
    bytes: int
    null: bool = False


def cut(days: Iterable[Day], rows_limit: int | None = None, hours: bool = True) -> tuple[Slice, ...]:
    """Cut a table into slices, newest first, the NULL slice last; every possible row is in exactly one.

    days        D entries in any order, from the log at the fence; "" is the NULL day
    rows_limit  a day with more rows is cut into its 24 hours
    hours       False where the time column is a date and cannot be cut finer
    returns     the slices; at least two (all rows, NULL rows) even for an empty table
    """
    known = sorted((day for day in days if day.day), key=lambda day: day.day, reverse=True)
    nulls = [day for day in days if not day.day]
    pieces: list[tuple[str, str, int, int]] = []
    for day in known:
        start = datetime.combine(date.fromisoformat(day.day), datetime.min.time(), UTC)
        if hours and rows_limit is not None and day.rows > rows_limit:
            share = (-(-day.rows // HOURS), -(-day.bytes // HOURS))
            for hour in reversed(range(HOURS)):
                at = start + timedelta(hours=hour)
                pieces.append((f"{day.day}T{hour:02}", _iso(at), *share))
        else:
            pieces.append((day.day, _iso(start), day.rows, day.bytes))
    if not pieces:
        pieces = [("all", "", 0, 0)]
    ends = ["", *(first for _, first, _, _ in pieces[:-1])]
    slices = [
        Slice(i, label, first if i < len(pieces) else "", end, rows, size)
        for i, ((label, first, rows, size), end) in enumerate(zip(pieces, ends, strict=True), 1)
    ]
    slices.append(
        Slice(len(slices) + 1, "no day", "", "", sum(d.rows for d in nulls), sum(d.bytes for d in nulls), null=True)
    )
    return tuple(slices)


def half(slices: Sequence[Slice], since: str = "", until: str = "") -> tuple[Slice, ...]:
    """The slices of one side of a day, cut there and counted anew; the NULL slice belongs to the older side.

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


def pack(slices: Sequence[Slice], after: int, rows: float | None, size: float | None) -> tuple[Slice, ...]:
    """The run of slices that the next batch carries: whole, in order, within the limits; at least one.

    slices   as `cut` made them, index 1…n
    after    position reached: the index of the last slice done, 0 at the start
    rows, size  what a batch may carry (rows, bytes); None is no limit; a larger slice travels alone
    returns  the run; empty when nothing is left
    """
    run: list[Slice] = []
    total_rows = total_size = 0
    for piece in slices[after:]:
        total_rows += piece.rows
        total_size += piece.bytes
        full = (rows is not None and total_rows > rows) or (size is not None and total_size > size)
        if run and full:
            break
        run.append(piece)
    return tuple(run)


def days_between(days: Sequence[Day]) -> tuple[str, ...]:
    """The days missing between the first and the last: a hole in history that the plan mentions."""
    known = sorted(date.fromisoformat(day.day) for day in days if day.day)
    holes: list[str] = []
    for a, b in pairwise(known):
        holes += [(a + timedelta(i)).isoformat() for i in range(1, (b - a).days)]
    return tuple(holes)


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S")
