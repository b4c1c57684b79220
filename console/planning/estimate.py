"""Rows, bytes and duration of a plan, from the Delta log's statistics and the region's measured rate."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from console.model import small_batch
from console.model.live import Day, Live
from console.model.plan import Price
from console.model.region import Limits, lowest
from console.model.schema import Column, Table
from console.model.slices import Counted, cut, is_heavy

_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4}
_TEXT = ("string", "binary", "array", "map", "struct")
_TEXT_WIDTH = 32


def share(read: Collection[str], columns: Sequence[Column]) -> float:
    """The share of a table's bytes in some of its columns: Parquet is read by column.

    By the usual width of each type, since the log has no bytes per column; at least 1 %.
    """
    whole = sum(_width(column.type) for column in columns)
    part = sum(_width(column.type) for column in columns if column.name in read)
    return max(part / whole, 0.01) if whole else 1.0


def _width(type: str) -> int:
    return _TEXT_WIDTH if type.startswith(_TEXT) else _WIDTHS.get(type, 8)


def history(live: Live, source: str, time: str, limits: Limits) -> Price:
    """The price of reading one table's whole history in batches.

    source  its statistics give days, rows and bytes; a table that does not exist yet costs nothing
    time    the Spark type of the column by which it is sliced, "" for none: one slice
    """
    stats = live.table(source)
    if stats is None:
        return Price()
    heavy = lowest(limits.rows, limits.day_rows(live.rows_per_second))
    batches = _batches(stats.days, limits, time != "date", heavy) if time and stats.days else 0
    known = sum(1 for day in stats.days if day.day) if time else 0
    return Price(
        days=known,
        rows=stats.rows,
        bytes=stats.bytes,
        batches=max(batches, 1 if stats.rows else 0),
        seconds=_seconds(live, stats.rows),
    )


def _batches(days: Sequence[Day], limits: Limits, hours: bool, heavy: int | None) -> int:
    """The number of non-empty batches that `small_batch.next_run` makes of `slices.cut`; counted without cutting if no day is
    heavy, for the sake of large fleets.

    heavy  rows above which a day is cut, None for no limit
    """
    newest_first = sorted(days, key=lambda day: day.day, reverse=True)  # as slices are
    pieces: Sequence[Counted] = newest_first
    if hours and any(is_heavy([day], heavy, limits.bytes) for day in days if day.day):
        pieces = cut(days, heavy, hours, bytes_limit=limits.bytes)
    batches = after = 0
    while run := small_batch.next_run(pieces, after, limits.rows, limits.bytes):
        batches += any(piece.rows for piece in run)
        after += len(run)
    return batches


def total(parts: Sequence[Price]) -> Price:
    """The sum of prices; `days` is the maximum."""
    return Price(
        days=max((part.days for part in parts), default=0),
        rows=sum(part.rows for part in parts),
        bytes=sum(part.bytes for part in parts),
        batches=sum(part.batches for part in parts),
        seconds=sum(part.seconds for part in parts),
    )


def log(live: Live, source: str) -> Price:
    """The price of following a rebuilt table's log from its start: the same rows, without batches."""
    stats = live.table(source)
    return (
        Price(days=0, rows=stats.rows, bytes=stats.bytes, batches=0, seconds=_seconds(live, stats.rows))
        if stats
        else Price()
    )


def _seconds(live: Live, rows: int) -> float:
    return rows / live.rows_per_second if live.rows_per_second > 0 else 0.0


def cutting(table: Table) -> str:
    """The type of the column by which a table is sliced, "" for none."""
    column = table.column(table.time) if table.time else None
    return column.type if column else ""


def days_since(live: Live, day: str) -> Live:
    """The region as if its tables began on a day; "" leaves it unchanged."""
    return _some(live, lambda at: at >= day) if day else live


def days_until(live: Live, day: str) -> Live:
    """The region as if its tables ended before a day; rows without a time are kept."""
    return _some(live, lambda at: at < day) if day else live


def _some(live: Live, keeps: Callable[[str], bool]) -> Live:
    tables = []
    for stats in live.stats:
        days = tuple(day for day in stats.days if keeps(day.day))
        rows, size = sum(day.rows for day in days), sum(day.bytes for day in days)
        tables.append(replace(stats, days=days, rows=rows, bytes=size))
    return replace(live, stats=tuple(tables))
