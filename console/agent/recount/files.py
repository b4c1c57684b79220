"""Files added by commits, determined by delta-rs from two versions of a table, and their rows, read by Delta's own reader."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.recount.pinned_tables import Pinned
from console.agent.store import days, log
from console.errors import RegionError
from console.model.schema import quoted

COMMIT = "_console_commit"
SMALL = 256 << 20  # size in bytes up to which a whole table may be read to find the rows of a sample
CUT = 10**6  # microseconds; statistics truncate times by less
BYTES = 8 << 30  # bytes of files that may be read in a larger table


class Unreadable(Exception):
    """Rows can no longer be read, or only at an unreasonable cost."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a version, its values as in `days.plain_values`.

    part       partition values
    low, high  bounds of the table's time; None if they are unknown, or some rows have no time
    """

    bytes: int
    part: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files of one version by their names, which are unique. parts: partition columns"""

    files: Mapping[str, File]
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Pinned, version: int) -> "VersionFiles":
        """The files of a version; none before version 0. raises  Unreadable"""
        if version < 0:
            return cls({})
        if not log.covers(table.path, version):
            raise Unreadable(f"version {version} can no longer be read")
        try:
            actions = DeltaTable(table.path, version=version).get_add_actions(flatten=True)
        except (DeltaError, OSError):
            raise Unreadable(f"version {version} can no longer be read") from None
        time = table.state.stored_time
        wanted = ("path", "size_bytes", f"min.{time}", f"max.{time}", f"null_count.{time}")
        statistics = {
            name: days.plain_values(actions.column(name))
            for name in actions.column_names
            if name in wanted or name.startswith("partition.")
        }
        names = [unquote(path).rpartition("/")[2] for path in statistics["path"]]
        if len({*names}) < len(names):
            raise Unreadable(f"files of version {version} share their names")
        parts = tuple(sorted(name.removeprefix("partition.") for name in statistics if name.startswith("partition.")))
        none = [None] * len(names)
        values = zip(*(statistics[f"partition.{part}"] for part in parts), strict=True) if parts else ((),) * len(names)
        lows, highs = (statistics.get(f"{end}.{time}", none) for end in ("min", "max"))
        nulls = statistics.get(f"null_count.{time}", none)
        each = zip(statistics["size_bytes"], values, lows, highs, nulls, strict=True)
        files = [
            File(size or 0, part, *((low, high) if count == 0 and None not in (low, high) else ()))
            for size, part, low, high, count in each
        ]
        return cls(dict(zip(names, files, strict=True)), parts)


@dataclass(frozen=True, slots=True)
class Span:
    """Commits first…last of a table; `number` identifies them in the rows."""

    number: int
    first: int
    last: int


def rows_of(session: Any, table: Pinned, spans: Sequence[Span]) -> Any:
    """The rows added by these commits, with the number of their span as column `COMMIT`.

    Each span is read as of a version with all of its files unchanged: the pinned one, else the span's last.

    raises  Unreadable
    """
    by_version = {table.version: VersionFiles.of(table, table.version)}
    wanted: dict[int, dict[str, int]] = {}
    for span in spans:
        added = _added(table, span)
        unchanged = {*added} <= {*by_version[table.version].files} and _unchanged(table, span)
        version = table.version if unchanged else span.last
        if version not in by_version:
            by_version[version] = VersionFiles.of(table, version)
        wanted.setdefault(version, {}).update(dict.fromkeys(added, span.number))
    parts = [_read(session, Pinned(table.state, table.path, at), each, by_version[at]) for at, each in wanted.items()]
    # a column may have been added between two spans
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def _added(table: Pinned, span: Span) -> tuple[str, ...]:
    """The files added by a span's commits, without those that only contain rows moved by compaction.

    raises  Unreadable if one of them was compacted within the span
    """
    before, after = VersionFiles.of(table, span.first - 1), VersionFiles.of(table, span.last)
    added = _between(table, span, before, after)
    if not added <= {*after.files}:
        raise Unreadable(f"files were moved between versions {span.first} and {span.last}")
    return tuple(added)


def _between(table: Pinned, span: Span, before: VersionFiles, after: VersionFiles) -> set[str]:
    """As `_added`, by bisection down to the commits that moved rows: of thousands of commits few are examined."""
    if {*before.files} <= {*after.files}:
        return {*after.files} - {*before.files}
    if span.first == span.last:
        return set()
    middle = (span.first + span.last) // 2
    middle_files = VersionFiles.of(table, middle)
    early, late = replace(span, last=middle), replace(span, first=middle + 1)
    return _between(table, early, before, middle_files) | _between(table, late, middle_files, after)


def _unchanged(table: Pinned, span: Span) -> bool:
    """Whether no later commit up to the pinned version rewrote rows or changed the schema."""
    try:
        later = log.commits(table.path, span.last + 1, table.version)
        return not any(commit.kind == "rewrite" or commit.metadata for commit in later)
    except RegionError:
        return False


def _read(session: Any, table: Pinned, numbers: Mapping[str, int], files_at: VersionFiles) -> Any:
    from pyspark.sql.functions import col, create_map, element_at, lit

    stored = table.stored(session)
    if "_metadata" in stored.columns:
        raise Unreadable("its column _metadata hides the files of its rows")
    for condition in _conditions(stored, table.state.stored_time, numbers, files_at):
        stored = stored.where(condition)
    name = col("_metadata.file_name")
    numbers_by_name = create_map(*(lit(each) for pair in numbers.items() for each in pair))
    return stored.where(name.isin(*numbers)).withColumn(COMMIT, element_at(numbers_by_name, name))


def _conditions(stored: Any, time: str, numbers: Mapping[str, int], files_at: VersionFiles) -> Iterator[Any]:
    """Conditions met by all rows of the chosen files, so that Delta skips most other files.

    raises  Unreadable if too many bytes would still have to be read
    """
    from pyspark.sql.functions import col

    remaining = dict(files_at.files)
    if sum(file.bytes for file in remaining.values()) <= SMALL:
        return
    chosen = [remaining[name] for name in numbers]
    kinds = {field.name: field.dataType.typeName() for field in stored.schema.fields}
    if files_at.parts and {*files_at.parts} <= {*stored.columns}:
        parts = {file.part for file in chosen}
        same = [
            [
                col(quoted(name)).eqNullSafe(days.literal(None if value == "" else value, kinds[name]))
                for name, value in zip(files_at.parts, part, strict=True)
            ]
            for part in parts
        ]
        yield reduce(lambda a, b: a | b, (reduce(lambda a, b: a & b, each) for each in same))
        remaining = {name: file for name, file in remaining.items() if file.part in parts}
    if time in stored.columns and all(file.low is not None for file in chosen):
        low, high = min(file.low for file in chosen), max(file.high for file in chosen)
        upper = high if kinds[time] == "date" else high + CUT
        at = col(quoted(time))
        yield (at >= days.literal(low, kinds[time])) & (at <= days.literal(upper, kinds[time]))
        remaining = {name: f for name, f in remaining.items() if f.low is None or (f.low <= high and f.high >= low)}
    size = sum(file.bytes for file in remaining.values())
    if size > BYTES:
        raise Unreadable(f"to find its rows {size / 2**30:,.0f} GiB would have to be read")
