"""Statistics of one table, from its Delta log."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from console.agent.object_store.object_path import in_bucket
from console.agent.store import days, log, log_files
from console.agent.store.shape import physical_name
from console.errors import Unreachable
from console.model.live import Day, TableStats
from console.model.schema import Column
from console.model.slices import EARLY, FIRST, LAST, LATE, day_name
from console.record import replace

MAX_SPAN_DAYS = 40
# Of each table and time column the statistics that were read last, with their version and the stamp of that commit's file: an
# agent is asked again and again about tables that have not changed.
_KNOWN: dict[tuple[str, str], tuple[int, log_files.Stamp, TableStats]] = {}
_MOST_KNOWN = 4096
_SIMPLE = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def table_stats(
    name: str, path: str, time: str = "", version: int | None = None, *, options: Mapping[str, str] | None = None
) -> TableStats | None:
    """Rows, bytes, files, schema and days of one table; None if there is no table.

    time     the column that determines days; "" takes the first timestamp column
    version  Delta version; None is the latest
    options  deltalake's, for an object store
    raises   Unreachable if the log cannot be read
    """
    if options or in_bucket(path):
        return _read_stats(name, path, time, version, options)
    wanted = log.latest_version(path, missing_ok=True) if version is None else version
    stamp = log_files.stamp(path, wanted)
    known = _KNOWN.get((path, time))
    if known is not None and stamp is not None and known[:2] == (wanted, stamp):
        return replace(known[2], name=name)
    stats = _read_stats(name, path, time, version, options)
    if stats is not None and stats.version == wanted and stamp is not None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[path, time] = wanted, stamp, stats
    return stats


def _read_stats(
    name: str, path: str, time: str, version: int | None, options: Mapping[str, str] | None
) -> TableStats | None:
    opened = _opened(name, path, version, options)
    return None if opened is None else _stats(name, path, time, *opened)


def counted_stats(name: str, path: str, time: str, version: int) -> TableStats | None:
    """As `table_stats`; None as well if the log does not assign every row to a day, since a file has no statistics of its rows
    or of the time column.
    """
    opened = _opened(name, path, version, None)
    if opened is None or _without_times(*opened, time):
        return None
    stats = _stats(name, path, time, *opened)
    return None if stats.uncounted else stats


def _opened(
    name: str, path: str, version: int | None, options: Mapping[str, str] | None
) -> tuple[DeltaTable, Any] | None:
    """A table and the files that its log names, with their statistics; None if there is no table. raises Unreachable"""
    try:
        table = DeltaTable(path, version=version, storage_options=dict(options) if options else None)
        return table, table.get_add_actions(flatten=True)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise Unreachable(f"{name}: {path}: {error}", hint="console doctor") from None


def _stats(name: str, path: str, time: str, table: DeltaTable, actions: Any) -> TableStats:
    schema = json.loads(table.schema().to_json())
    columns = _columns(schema)
    time = time or next((c.name for c in columns if c.type.startswith("timestamp")), "")
    files = {name: actions.column(name) for name in actions.column_names}
    counts = files["num_records"].to_pylist()
    protocol = table.protocol()
    if "deletionVectors" in (protocol.reader_features or ()):
        counts = _rows_left(table, path, files["path"].to_pylist(), counts)
    sizes = files["size_bytes"].to_pylist()
    return TableStats(
        name=name,
        path=path,
        version=table.version(),
        rows=sum(filter(None, counts)),
        bytes=sum(sizes),
        files=len(sizes),
        columns=columns,
        partition_by=tuple(table.metadata().partition_columns),
        days=_days(files, time, physical_name(schema, time), counts, sizes),
        features=tuple(sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})),
        properties=tuple(
            sorted((k, str(v)) for k, v in table.metadata().configuration.items() if k.startswith("delta."))
        ),
        reader=tuple(sorted(protocol.reader_features or ())),
        uncounted=counts.count(None),
    )


def _without_times(table: DeltaTable, actions: Any, time: str) -> bool:
    """Whether a file has no statistics of the time column. time: the stored column"""
    if f"partition.{time}" in actions.column_names:
        return False
    nulls = f"null_count.{physical_name(json.loads(table.schema().to_json()), time)}"
    counts = actions.column(nulls).to_pylist() if nulls in actions.column_names else [None] * actions.num_rows
    return None in counts


def _rows_left(table: DeltaTable, path: str, files: Sequence[str], counts: Sequence[int | None]) -> list[int | None]:
    """Rows of each file without those deleted by deletion vectors; None if the file has no statistics."""
    import pyarrow as pa
    import pyarrow.compute as pc

    root, deleted = log_files.root_of(path), dict[str, int]()
    for batch in table.deletion_vectors():
        record = pa.record_batch(batch)
        for path_in_log, kept in zip(
            record.column("filepath").to_pylist(), record.column("selection_vector"), strict=True
        ):
            deleted[log.absolute_path(root, path_in_log)] = len(kept.values) - (pc.sum(kept.values).as_py() or 0)
    return [
        None if rows is None else rows - deleted.get(log.absolute_path(root, file), 0)
        for file, rows in zip(files, counts, strict=True)
    ]


def _columns(schema: dict[str, Any]) -> tuple[Column, ...]:
    return tuple(
        Column(name=f["name"], type=simple_type(f["type"]), nullable=bool(f["nullable"])) for f in schema["fields"]
    )


def simple_type(kind: Any) -> str:
    """Delta's JSON type as Spark's simple string: `array<bigint>`."""
    match kind:
        case str():
            return _SIMPLE.get(kind, kind)
        case {"type": "array", "elementType": element}:
            return f"array<{simple_type(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{simple_type(key)},{simple_type(value)}>"
        case {"type": "struct", "fields": fields}:
            return "struct<" + ",".join(f"{f['name']}:{simple_type(f['type'])}" for f in fields) + ">"
    return str(kind)


def _days(
    files: Mapping[str, Any], time: str, stored: str, counts: Sequence[int | None], sizes: Sequence[int]
) -> tuple[Day, ...]:
    """Rows and bytes per day, from each file's smallest and largest time; files that span days are shared out evenly.

    stored  the time column's name in the statistics
    counts  rows of each file, None if unknown
    sizes   bytes of each file
    """
    if not time:
        return ()
    unknown: list[int | None] = [None] * len(sizes)
    part = days.day_numbers(files[f"partition.{time}"]) if f"partition.{time}" in files else None
    ends = [files.get(f"{end}.{stored}") for end in ("min", "max")]
    lows, highs = (part or (unknown if end is None else days.day_numbers(end)) for end in ends)
    nulls = files[f"null_count.{stored}"].to_pylist() if f"null_count.{stored}" in files else unknown
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    rows_of, bytes_of = dict[int, int](), dict[int, int]()  # by the number of the day: of files that lie in one day
    estimated: set[str] = set()
    for low, high, empty, total, size in zip(lows, highs, nulls, counts, sizes, strict=True):
        if low == high and low is not None and not empty and FIRST <= low <= LAST:  # most files
            rows_of[low] = rows_of.get(low, 0) + (total or 0)
            bytes_of[low] = bytes_of.get(low, 0) + size
            continue
        known = max(0, (total or 0) - (empty or 0))
        names = _between(low, high, has_statistics=bool(known) and empty is not None)
        if empty:
            totals[""][0] += empty
        share = names or [""]
        for i, name in enumerate(share):
            totals[name][0] += known // len(share) + (i < known % len(share))
            totals[name][1] += size // len(share)
        if len(names) > 1:
            estimated.update(names)
    if not totals:  # names sort like numbers
        return tuple(Day(day_name(number), rows_of[number], bytes_of[number]) for number in sorted(rows_of))
    for number, rows in rows_of.items():
        day = totals[day_name(number)]
        day[0] += rows
        day[1] += bytes_of[number]
    return tuple(Day(name, rows, size, name not in estimated) for name, (rows, size) in sorted(totals.items()))


def _between(low: int | None, high: int | None, *, has_statistics: bool) -> list[str]:
    """Names of a file's days, from first to last.

    A year of five digits in the log cannot be parsed: such a time is beyond all named days.

    has_statistics  the log has statistics of the file's times
    """
    if low is None and high is None:
        return [EARLY, LATE] if has_statistics else []
    first, last = FIRST - 1 if low is None else low, LAST + 1 if high is None else high
    if first < FIRST or last > LAST:
        return sorted({day_name(first), day_name(last)})
    # A stray time makes a file span decades; a few wide steps are as good an estimate as ten thousand days. Slices reach from
    # one known day to the next, so the days between belong to a slice all the same.
    return [day_name(number) for number in range(first, last + 1, 1 + (last - first) // MAX_SPAN_DAYS)]
