"""What a region holds, from its Delta logs: no Spark, no lock, milliseconds."""

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from console import crash, paths
from console.agent.rows import nanoseconds
from console.agent.rows.demands import demanded
from console.agent.store import days, log
from console.agent.store.ledger import Releases, Rollouts
from console.agent.store.shape import physical_name
from console.errors import RegionError, Unreachable, no_warehouse
from console.model.event import BatchDone
from console.model.live import READABLE, Day, Live, Release, TableStats
from console.model.schema import Column
from console.model.slices import EARLY, FIRST, LAST, LATE, day_name
from console.paths import version_path

MAX_SPAN_DAYS = 40
NEWEST_FILES = 8  # whose times are looked at: what a foreign writer does now
_SIMPLE = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def resolve(warehouse: Path, path: str) -> str:
    """A version's absolute place."""
    return version_path(warehouse, path)


def survey(warehouse: Path, region: str, pipeline: str, landing: Sequence[str]) -> Live:
    """Everything the planner may know of one region.

    raises  DataError if the warehouse is not there
    """
    if not warehouse.is_dir():
        raise no_warehouse(region, warehouse)
    held = Releases(warehouse, pipeline).all()
    live = next((h.release for h in held if h.row.state == "live"), None)
    places = (
        {state.table.name: (resolve(warehouse, state.version.path), state.table.time) for state in live.tables}
        if live
        else {}
    )
    for name in landing:
        places.setdefault(name, (str(warehouse / name), ""))
    stats = [
        replace(found, finer=_finer(path, found)) if name in landing else found
        for name, (path, time) in places.items()
        if (found := _landing_stats(name, path, time) if name in landing else table_stats(name, path, time))
    ]
    return Live(
        region,
        pipeline,
        live,
        tuple(h.row for h in held),
        tuple(stats),
        _rate(warehouse, pipeline, live),
        shutil.disk_usage(warehouse).free,
    )


def _landing_stats(name: str, path: str, time: str) -> TableStats | None:
    """Of a table that others write; one that cannot be opened for what it demands of its readers tells that alone.

    raises  RegionError E_PATH where it lies, behind a link, in a folder where no table can
    """
    if what := paths.unfit_here(path):
        raise RegionError(f"{name}: {path}: no Delta table can lie below {what!r}", hint=paths.UNFIT, code="E_PATH")
    try:
        return table_stats(name, path, time)
    except Unreachable:
        demands = demanded(path)
        if demands <= READABLE:
            raise
        return TableStats(name, path, log.latest_version(path), 0, 0, 0, (), reader=tuple(sorted(demands)))


def table_stats(name: str, path: str, time: str = "", version: int | None = None) -> TableStats | None:
    """Rows, bytes, files, schema and days of one table; None where there is none.

    time     the column by which days are told; "" takes the first timestamp column
    version  as of which Delta version; None is the latest
    raises   Unreachable if there is a log that cannot be read
    """
    try:
        table = DeltaTable(path, version=version)
        actions = table.get_add_actions(flatten=True)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise Unreachable(f"{name}: {path}: {error}", hint="console doctor") from None
    schema = json.loads(table.schema().to_json())
    columns = _columns(schema)
    time = time or next((c.name for c in columns if c.type.startswith("timestamp")), "")
    files = {name: actions.column(name) for name in actions.column_names}
    counts = files["num_records"].to_pylist()
    protocol = table.protocol()
    if "deletionVectors" in (protocol.reader_features or ()):
        counts = _left(table, path, files["path"].to_pylist(), counts)
    sizes = files["size_bytes"].to_pylist()
    return TableStats(
        name,
        path,
        table.version(),
        sum(rows or 0 for rows in counts),
        sum(sizes),
        len(sizes),
        columns,
        tuple(table.metadata().partition_columns),
        _days(files, time, physical_name(schema, time), counts),
        tuple(sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})),
        tuple(sorted((k, str(v)) for k, v in table.metadata().configuration.items() if k.startswith("delta."))),
        tuple(sorted(protocol.reader_features or ())),
        sum(rows is None for rows in counts),
    )


def _finer(path: str, stats: TableStats) -> tuple[str, ...]:
    """Columns that hold times which Spark would cut, told from the newest files."""
    if not any("timestamp" in column.type for column in stats.columns):
        return ()
    table = DeltaTable(path, version=stats.version)
    columns = nanoseconds.timed(table.schema().to_json(), [column.name for column in stats.columns])
    newest = nanoseconds.files(table, path)[:NEWEST_FILES]
    return tuple(sorted({found[1] for file in newest if (found := nanoseconds.finer([file], columns))}))


def _left(table: DeltaTable, path: str, files: Sequence[str], counts: Sequence[int | None]) -> list[int | None]:
    """The rows of each file that deletion vectors leave of as many as its statistics tell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    root, gone = log.local(path), dict[str, int]()
    for batch in table.deletion_vectors():
        held = pa.record_batch(batch)
        for place, kept in zip(held.column("filepath").to_pylist(), held.column("selection_vector"), strict=True):
            gone[log.absolute_path(root, place)] = len(kept.values) - (pc.sum(kept.values).as_py() or 0)
    return [
        None if rows is None else rows - gone.get(log.absolute_path(root, file), 0)
        for file, rows in zip(files, counts, strict=True)
    ]


def _columns(schema: dict[str, Any]) -> tuple[Column, ...]:
    return tuple(Column(f["name"], simple_type(f["type"]), bool(f["nullable"])) for f in schema["fields"])


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


def _days(files: Mapping[str, Any], time: str, stored: str, counts: Sequence[int | None]) -> tuple[Day, ...]:
    """Rows and bytes a day, from each file's smallest and largest time; a file over several days is shared out.

    stored  the time column's name in the statistics
    counts  rows of each file
    """
    if not time:
        return ()
    sizes = files["size_bytes"].to_pylist()
    unknown: list[int | None] = [None] * len(sizes)
    part = days.numbers(files[f"partition.{time}"]) if f"partition.{time}" in files else None
    ends = [files.get(f"{end}.{stored}") for end in ("min", "max")]
    lows, highs = (part or (unknown if end is None else days.numbers(end)) for end in ends)
    nulls = files[f"null_count.{stored}"].to_pylist() if f"null_count.{stored}" in files else unknown
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    vague: set[str] = set()
    for low, high, empty, total, size in zip(lows, highs, nulls, counts, sizes, strict=True):
        known = max(0, (total or 0) - (empty or 0))
        names = _between(low, high, told=bool(known) and empty is not None)
        if empty:
            found[""][0] += empty
        share = names or [""]
        for i, day in enumerate(share):
            found[day][0] += known // len(share) + (i < known % len(share))
            found[day][1] += size // len(share)
        if len(names) > 1:
            vague.update(names)
    return tuple(Day(day, found[day][0], found[day][1], day not in vague) for day in sorted(found))


def _between(low: int | None, high: int | None, *, told: bool) -> list[str]:
    """Names of the days of a file from its first to its last.

    A time that a log tells in five digits is not read: it lies beyond all days that have a name.

    told  the log has statistics of the file's times
    """
    if low is None and high is None:
        return [EARLY, LATE] if told else []
    first, last = FIRST - 1 if low is None else low, LAST + 1 if high is None else high
    if first < FIRST or last > LAST:
        return sorted({day_name(first), day_name(last)})
    # A stray time makes a file span decades: a few wide steps are as good a guess as ten thousand days. Slices reach
    # from one known day to the next, so what lies between belongs to one of them all the same.
    return [day_name(number) for number in range(first, last + 1, 1 + (last - first) // MAX_SPAN_DAYS)]


def _rate(warehouse: Path, pipeline: str, live: Release | None) -> float:
    """Rows a second of the newest rollout's batches; 0 where nothing was measured."""
    if live is None:
        return 0.0
    done = [r.event for r in Rollouts(warehouse, pipeline).newest() if isinstance(r.event, BatchDone)]
    seconds = sum(batch.seconds for batch in done)
    return sum(batch.rows_in for batch in done) / seconds if seconds else 0.0


def drop_version(warehouse: Path, path: str) -> bool:
    """Delete a version's directory; only below a warehouse that carries our marker, and never a landing table.

    returns  whether there was anything to delete
    """
    root = warehouse.resolve()
    target = (root / path).resolve()
    ours = (root / "_console" / "marker.json").is_file() and target.is_relative_to(root)
    if not ours or len(target.relative_to(root).parts) != 2 or "_console" in target.parts:
        raise RegionError(f"{path} is not a version of ours; nothing was deleted", code="E_NOT_OURS")
    doomed = list(target.parent.glob(f".dropped-{target.name}-*"))  # by an agent that died in the middle
    if target.exists():
        doomed.append(target.with_name(f".dropped-{target.name}-{uuid4().hex}"))
        crash.point("before-drop")
        target.rename(doomed[-1])
        crash.point("after-drop")
    for place in doomed:
        shutil.rmtree(place)
    return bool(doomed)
