"""Which files commits added, told by delta-rs from two versions of a table, and their rows, read by Delta's own reader."""

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
SMALL = 256 << 20  # bytes of a table up to which all of it may be read to find the rows of a sample
CUT = 10**6  # microseconds, more than statistics cut from a time
BYTES = 8 << 30  # of files that may hold its rows, in a larger one


class Unreadable(Exception):
    """What was asked for cannot be read any more, or at no reasonable cost."""


@dataclass(frozen=True, slots=True)
class File:
    """low, high: of the table's time; None where they are not known, or some rows have none. part: partition values.
    All as `store/days` tells them plainly."""

    bytes: int
    part: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files of one version by their names, which are unique; parts: the partition columns."""

    files: Mapping[str, File]
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Pinned, version: int) -> "VersionFiles":
        """raises  Unreadable"""
        if version < 0:
            return cls({})
        if not log.covers(table.path, version):
            raise Unreadable(f"version {version} can no longer be read")
        try:
            actions = DeltaTable(table.path, version=version).get_add_actions(flatten=True)
        except (DeltaError, OSError):
            raise Unreadable(f"version {version} can no longer be read") from None
        time = table.state.table.time
        wanted = ("path", "size_bytes", f"min.{time}", f"max.{time}", f"null_count.{time}")
        told = {
            name: days.plain_values(actions.column(name))
            for name in actions.column_names
            if name in wanted or name.startswith("partition.")
        }
        names = [unquote(path).rpartition("/")[2] for path in told["path"]]
        if len({*names}) < len(names):
            raise Unreadable(f"files of version {version} share their names")
        parts = tuple(sorted(name.removeprefix("partition.") for name in told if name.startswith("partition.")))
        none = [None] * len(names)
        values = zip(*(told[f"partition.{part}"] for part in parts), strict=True) if parts else ((),) * len(names)
        lows, highs = (told.get(f"{end}.{time}", none) for end in ("min", "max"))
        nulls = told.get(f"null_count.{time}", none)
        each = zip(told["size_bytes"], values, lows, highs, nulls, strict=True)
        files = [
            File(size or 0, part, *((low, high) if count == 0 and None not in (low, high) else ()))
            for size, part, low, high, count in each
        ]
        return cls(dict(zip(names, files, strict=True)), parts)


@dataclass(frozen=True, slots=True)
class Span:
    """Commits first…last of a table, as `number` in the rows."""

    number: int
    first: int
    last: int


def rows_of(session: Any, table: Pinned, spans: Sequence[Span]) -> Any:
    """The rows that these commits added, with the number of each one's span as `COMMIT`; of each span as of a version
    that holds all of its files unchanged: the pinned one, else its own last.

    raises  Unreadable
    """
    seen = {table.version: VersionFiles.of(table, table.version)}
    wanted: dict[int, dict[str, int]] = {}
    for span in spans:
        added = _added(table, span)
        now = {*added} <= {*seen[table.version].files} and _unchanged(table, span)
        version = table.version if now else span.last
        if version not in seen:
            seen[version] = VersionFiles.of(table, version)
        wanted.setdefault(version, {}).update(dict.fromkeys(added, span.number))
    parts = [_read(session, Pinned(table.state, table.path, at), each, seen[at]) for at, each in wanted.items()]
    # of a column that came between two of them, the earlier rows have nothing
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def _added(table: Pinned, span: Span) -> tuple[str, ...]:
    """The files that a span's commits added, but for those that only hold moved rows anew.

    raises  Unreadable where one of them was moved on within the span
    """
    before, after = VersionFiles.of(table, span.first - 1), VersionFiles.of(table, span.last)
    added = _between(table, span, before, after)
    if not added <= {*after.files}:
        raise Unreadable(f"files were moved between versions {span.first} and {span.last}")
    return tuple(added)


def _between(table: Pinned, span: Span, before: VersionFiles, after: VersionFiles) -> set[str]:
    """The same by halves, down to the commits that moved rows: of thousands of commits few are looked at."""
    if {*before.files} <= {*after.files}:
        return {*after.files} - {*before.files}
    if span.first == span.last:
        return set()
    middle = (span.first + span.last) // 2
    held = VersionFiles.of(table, middle)
    early, late = replace(span, last=middle), replace(span, first=middle + 1)
    return _between(table, early, before, held) | _between(table, late, held, after)


def _unchanged(table: Pinned, span: Span) -> bool:
    """Whether no row and no column of the span was touched between its end and the pinned version."""
    try:
        later = log.commits(table.path, span.last + 1, table.version)
        return not any(commit.kind == "rewrite" or commit.metadata for commit in later)
    except RegionError:
        return False


def _read(session: Any, table: Pinned, numbers: Mapping[str, int], held: VersionFiles) -> Any:
    from pyspark.sql.functions import col, create_map, element_at, lit

    stored = table.stored(session)
    if "_metadata" in stored.columns:
        raise Unreadable("its column _metadata hides the files of its rows")
    for condition in _cuts(stored, table.state.table.time, numbers, held):
        stored = stored.where(condition)
    name = col("_metadata.file_name")
    known = create_map(*(lit(each) for pair in numbers.items() for each in pair))
    return stored.where(name.isin(*numbers)).withColumn(COMMIT, element_at(known, name))


def _cuts(stored: Any, time: str, numbers: Mapping[str, int], held: VersionFiles) -> Iterator[Any]:
    """What all rows of some files have in common, so that Delta reads few others.

    raises  Unreadable where it would have to read too many all the same
    """
    from pyspark.sql.functions import col

    left = dict(held.files)
    if sum(file.bytes for file in left.values()) <= SMALL:
        return
    chosen = [left[name] for name in numbers]
    kinds = {field.name: field.dataType.typeName() for field in stored.schema.fields}
    if held.parts and {*held.parts} <= {*stored.columns}:
        parts = {file.part for file in chosen}
        same = [
            [
                col(quoted(name)).eqNullSafe(days.literal(None if value == "" else value, kinds[name]))
                for name, value in zip(held.parts, part, strict=True)
            ]
            for part in parts
        ]
        yield reduce(lambda a, b: a | b, (reduce(lambda a, b: a & b, each) for each in same))
        left = {name: file for name, file in left.items() if file.part in parts}
    if time in stored.columns and all(file.low is not None for file in chosen):
        low, high = min(file.low for file in chosen), max(file.high for file in chosen)
        most = high if kinds[time] == "date" else high + CUT
        held_at = col(quoted(time))
        yield (held_at >= days.literal(low, kinds[time])) & (held_at <= days.literal(most, kinds[time]))
        left = {name: f for name, f in left.items() if f.low is None or (f.low <= high and f.high >= low)}
    size = sum(file.bytes for file in left.values())
    if size > BYTES:
        raise Unreadable(f"to find its rows {size / 2**30:,.0f} GiB would have to be read")
