"""The keys of a JSON column, read from the data files without Spark: a sample within a budget of bytes and seconds.

Days are sampled evenly first. A key that was not sampled on the first day is then searched for in earlier days, newest
first, as long as the budget lasts: so the first day of a key is exact, or marked as unsure.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from console.agent.store import days, log, log_files
from console.agent.store.shape import physical_name
from console.errors import DataError, RegionError
from console.model.slices import day_name

_DEPTH = 3  # levels of nested objects whose keys are listed
_MAX_KEYS = 2000


@dataclass(slots=True, kw_only=True)
class Budget:
    """Limits of one profile.

    bytes        compressed bytes of the columns read
    rows_a_file  rows sampled of each file
    """

    bytes: int
    seconds: float
    rows_a_file: int = 4096
    spent: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> bool:
        return self.spent < self.bytes and time.monotonic() - self.started < self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One data file; first and last are days, "" where its times are unknown."""

    path: str
    rows: int
    first: str
    last: str
    part: str  # its day, if the table is partitioned by day


@dataclass(slots=True)
class _Stratum:
    """Sampled rows of the files whose first day is the same."""

    sampled: int = 0
    keys: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Sampled:
    """Strata by day; the first day of each key; counts of rows, and of those without an object."""

    strata: dict[str, _Stratum] = field(default_factory=lambda: defaultdict(_Stratum))
    first: dict[str, str] = field(default_factory=dict)
    odd: Counter[str] = field(default_factory=lambda: Counter({"sampled": 0, "null": 0, "not_json": 0}))


def profile(place: str, column: str, when: str, budget: Budget) -> dict[str, Any]:
    """Keys with their share of all rows, the day first seen and whether that day is sure.

    place, column, when  the table, its JSON text column, and its time column ("" without one)
    raises  DataError for a column that is missing or not text; RegionError if there is no table
    """
    files, column, when = _files(place, column, when)
    seen, whole = _Sampled(), set[str]()
    for file in _evenly(files):
        if not budget.left:
            break
        if _sample(file, column, when, seen, budget):
            whole.add(file.path)
    first = seen.first
    sure = _search(files, whole, column, when, first, budget)
    weights = Counter[str]()
    for file in files:
        weights[file.first] += file.rows
    keys = [
        {"key": key, "share": _share(key, seen.strata, weights), "first_seen": first[key], "sure": sure[key]}
        for key in first
    ]
    keys.sort(key=lambda entry: (-float(str(entry["share"])), str(entry["key"])))
    known = sorted(day for file in files for day in (file.first, file.last) if day)
    return {
        "rows": sum(file.rows for file in files), "files": len(files), "files_whole": len(whole), **seen.odd,
        "bytes_read": budget.spent, "first_day": known[0] if known else "", "last_day": known[-1] if known else "",
        "keys": keys,
    }  # fmt: skip


def _files(place: str, column: str, when: str) -> tuple[list[_File], str, str]:
    """The files, and the physical names of the two columns."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(place)
    except TableNotFoundError:
        raise RegionError(f"{place} is not a Delta table", hint="console doctor") from None
    schema = json.loads(table.schema().to_json())
    fields = {f["name"]: f["type"] for f in schema["fields"]}
    if fields.get(column) != "string":
        texts = ", ".join(name for name, kind in fields.items() if kind == "string") or "none"
        raise DataError(f"{place} has no text column {column}", hint=f"--column, one of: {texts}")
    actions = table.get_add_actions(flatten=True)
    paths, counts = (actions.column(name).to_pylist() for name in ("path", "num_records"))
    stored, stored_when = physical_name(schema, column), physical_name(schema, when)
    ends = (f"partition.{when}", f"min.{stored_when}", f"max.{stored_when}")
    part, lows, highs = (
        days.day_names(actions.column(end)) if end in actions.column_names else [""] * len(paths) for end in ends
    )
    files = [
        _File(
            path=log.absolute_path(log_files.root_of(place), path),
            rows=rows or 0,
            first=day or low,
            last=day or high,
            part=day,
        )
        for path, rows, day, low, high in zip(paths, counts, part, lows, highs, strict=True)
    ]
    return files, stored, stored_when


def _evenly(files: list[_File]) -> Iterator[_File]:
    """Order of files: one of each day, then the next of each, so that a small budget still covers every day."""
    by_day: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        by_day[file.first].append(file)
    queues = [sorted(by_day[day], key=lambda file: file.path) for day in sorted(by_day)]
    for i in range(max(map(len, queues), default=0)):
        yield from (queue[i] for queue in queues if i < len(queue))


def _rows(file: _File, column: str, when: str, budget: Budget) -> Iterator[tuple[Any, Any]]:
    """(day, texts) of each row group, as Arrow columns; bytes read are charged to the budget."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path) as parquet:
        stored = {parquet.schema_arrow.field(i).name for i in range(len(parquet.schema_arrow))}
        wanted = [name for name in (column, when) if name in stored]
        for group in range(parquet.num_row_groups):
            meta = parquet.metadata.row_group(group)
            chunks = (meta.column(i) for i in range(meta.num_columns))
            budget.spent += sum(c.total_compressed_size for c in chunks if c.path_in_schema in wanted)
            read = parquet.read_row_group(group, columns=wanted, use_threads=False)
            if when in wanted and not file.part:
                numbers = pc.cast(pc.cast(read.column(when), pa.date32(), safe=False), pa.int32())
                coded = numbers.combine_chunks().dictionary_encode()
                labels = pa.array(map(day_name, coded.dictionary.to_pylist()), pa.string()).take(coded.indices)
            else:
                labels = pa.array([file.part or file.first or None] * read.num_rows, pa.string())
            texts = read.column(column) if column in wanted else pa.nulls(read.num_rows, pa.string())
            yield labels, texts
            if not budget.left:
                return


def _sample(file: _File, column: str, when: str, seen: _Sampled, budget: Budget) -> bool:
    """Count the keys of rows spread over a file. Returns whether all of its rows were counted."""
    import pyarrow as pa

    stride = -(-max(file.rows, 1) // budget.rows_a_file)
    stratum, before = seen.strata[file.first], seen.odd["sampled"]
    for labels, texts in _rows(file, column, when, budget):
        pick = pa.array(range(0, len(texts), stride), pa.int64())
        for day, text in zip(labels.take(pick).to_pylist(), texts.take(pick).to_pylist(), strict=True):
            stratum.sampled += 1
            seen.odd["sampled"] += 1
            if (data := _object(text)) is None:
                seen.odd["null" if text is None else "not_json"] += 1
                continue
            for key in _keys(data):
                if key in seen.first or len(seen.first) < _MAX_KEYS:
                    stratum.keys[key] += 1
                    seen.first[key] = _earlier(seen.first.get(key, ""), day or "")
    return seen.odd["sampled"] - before == file.rows


def _earlier(a: str, b: str) -> str:
    """The earlier of two days; "" means none."""
    return min(a, b) if a and b else a or b


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        data = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _keys(data: dict[str, Any], above: str = "", depth: int = 1) -> Iterator[str]:
    for key, value in data.items():
        path = f"{above}{key}"
        yield path
        if isinstance(value, dict) and depth < _DEPTH:
            yield from _keys(value, f"{path}.", depth + 1)


def _search(
    files: list[_File], whole: set[str], column: str, when: str, first: dict[str, str], budget: Budget
) -> dict[str, bool]:
    """Search for each key in the days before the first sampled one, and correct that day. Returns whether it is sure.

    A file is read once for all keys that may be in it, newest first; files whose rows were all counted are skipped.
    """
    start = min((file.first for file in files if file.first), default="")
    late = {key for key, day in first.items() if day > start}
    unread: list[_File] = []
    for file in sorted(files, key=lambda file: file.first, reverse=True):
        sought = {key for key in late if not file.first or file.first < first[key]}
        if file.path in whole or not sought:
            continue
        if not budget.left:
            unread.append(file)
            continue
        for labels, texts in _rows(file, column, when, budget):
            for key in sought:
                first[key] = min([first[key], *_days_with(key, labels, texts)])
        if not budget.left:
            unread.append(file)
    return {key: not any(not file.first or file.first < day for file in unread) for key, day in first.items()}


def _days_with(key: str, labels: Any, texts: Any) -> list[str]:
    """Days of the rows that have the key: texts are searched first, and only those with a match are parsed."""
    import pyarrow.compute as pc

    last = json.dumps(key.rpartition(".")[2])
    hits = pc.match_substring(texts, "" if "\\" in last else last)  # a name with escapes may be spelled in other ways
    with_key: set[str] = set()
    for day, text in zip(labels.filter(hits).to_pylist(), texts.filter(hits).to_pylist(), strict=True):
        if day and day not in with_key and (data := _object(text)) is not None and key in _keys(data):
            with_key.add(day)
    return sorted(with_key)


def _share(key: str, strata: dict[str, _Stratum], weights: Counter[str]) -> float:
    """Share of all rows, with each stratum weighted by the rows of its files."""
    known = {day: stratum for day, stratum in strata.items() if stratum.sampled}
    total = sum(weights[day] for day in known)
    return sum(weights[day] * s.keys[key] / s.sampled for day, s in known.items()) / total if total else 0.0
