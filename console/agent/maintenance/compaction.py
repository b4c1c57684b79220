"""Compaction of a partition's small files while rows keep arriving (docs/design.md, rule 8)."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from console import crash
from console.agent.errors import CompactionDiffers
from console.agent.feeds.checksum import sums_per_day
from console.agent.feeds.file_layout import FILE_BYTES, SMALL_BYTES, clustered
from console.agent.feeds.newest import reduced
from console.agent.maintenance.replaced_files import partition_files, replace_files
from console.agent.object_store.object_path import in_bucket
from console.agent.store import commits, days, log, spark_files, write_lock
from console.model.live import TableState
from console.model.schema import quoted, text_literal
from console.model.slices import EARLY, LATE

MANY = 100  # small files in one partition that are worth a Spark job
MOST_BYTES = 8 << 30  # of one partition; more would block the live feeds for too long
PLAIN = (*days.COMPARABLE, "boolean")


@dataclass(frozen=True, slots=True)
class Crowd:
    """A partition with many small files. values: (column, value), None for NULL; () for a table without partitions"""

    values: tuple[tuple[str, str | None], ...]
    files: int
    rows: int
    bytes: int

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in self.values) or "all rows"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A commit that moved rows into fewer files. files: their number now; version: of the table"""

    crowd: Crowd
    files: int
    version: int


def crowded(table: str, many: int = MANY) -> tuple[Crowd, ...]:
    """Partitions with at least `many` small files, those with most files first; read from the log."""
    opened = DeltaTable(table)
    columns = tuple(opened.metadata().partition_columns)
    kinds = {field.name: str(getattr(field.type, "type", field.type)) for field in opened.schema().fields}
    if any(kinds[name] not in PLAIN for name in columns):
        return ()
    actions = opened.get_add_actions(flatten=True)
    sizes, counts = (actions.column(name).to_pylist() for name in ("size_bytes", "num_records"))
    groups: dict[tuple[str | None, ...], list[tuple[int, int]]] = defaultdict(list)
    parts = [days.partition_texts(actions, name) for name in columns]
    for at, (size, rows) in enumerate(zip(sizes, counts, strict=True)):
        groups[tuple(part[at] for part in parts)].append((size, rows or 0))
    crowds = []
    for key, files in groups.items():
        if {EARLY, LATE} & set(key):  # several days under one name, which older consoles allowed
            continue
        small, size = sum(each < SMALL_BYTES for each, _ in files), sum(each for each, _ in files)
        if small >= many and size <= MOST_BYTES:
            values = tuple(zip(columns, key, strict=True))
            crowds.append(Crowd(values, len(files), sum(rows for _, rows in files), size))
    return tuple(sorted(crowds, key=lambda crowd: -crowd.files))


def compact(session: Any, table: str, crowd: Crowd, most_tasks: int = 1, state: TableState | None = None) -> Compacted:
    """Rewrite one partition into larger files, in one commit without data change, which feeds skip.

    On a disk rows are read from the table's latest version, never from a pinned one: rows appended between a pinned read and
    the write would be replaced and lost without a conflict. In a bucket the commit names the files that were read, which are
    those of a pinned version. Rows appended during the write are not touched.

    session     a session of its own
    most_tasks  upper limit of tasks, so that a slot stays free for live feeds (rule 10)
    state       for the clustering columns
    raises      RegionError E_COMPACTION if the commit's rows are not those of the version before it; in a bucket E_BUSY, E_DV
    """
    where = _where(crowd.values)
    note = {"kind": "compact", "partition": crowd.label, "files": crowd.files}
    if in_bucket(table):
        commits.own(table)
        pinned = log.latest_version(table)
        gone = partition_files(table, pinned, crowd.values)
        rows = session.read.format("delta").option("versionAsOf", pinned).load(table)
        files = spark_files.write(session, _rewritten(session, rows, where, crowd, most_tasks, state), table)
        version = replace_files(table, gone, files, crowd.values, note)
    else:
        rows = session.read.format("delta").load(table)
        rows_out = _rewritten(session, rows, where, crowd, most_tasks, state)
        version = _save(rows_out, table, where, note)
    _check_unchanged(session, table, where, version, state)
    return Compacted(crowd, _files(table, version, crowd), version)


def _rewritten(session: Any, rows: Any, where: str, crowd: Crowd, most_tasks: int, state: TableState | None) -> Any:
    rows = _merged(session, rows.where(where) if where else rows, state)
    rows_out = rows.coalesce(max(1, min(most_tasks, crowd.bytes // FILE_BYTES + 1)))
    return clustered(rows_out, state) if state else rows_out


def _save(rows_out: Any, table: str, where: str, note: dict[str, Any]) -> int:
    """Write and commit the rows by Spark. Returns the version."""
    writer = rows_out.write.format("delta").mode("overwrite").option("dataChange", "false")
    before = log.latest_version(table)
    with write_lock.shared(table):
        crash.point("before-commit-compact")
        (writer.option("replaceWhere", where) if where else writer).option("userMetadata", json.dumps(note)).save(table)
        crash.point("after-commit-compact")
    written = log.commits(table, before + 1, log.latest_version(table))
    return next(commit.version for commit in written if commit.note == note)


def _merged(session: Any, rows: Any, state: TableState | None) -> Any:
    """For a table that keeps the newest row of each key, these rows. A partition contains all rows of a key."""
    return reduced(session, state.newest, rows) if state is not None and state.newest is not None else rows


def _check_unchanged(session: Any, table: str, where: str, version: int, state: TableState | None) -> None:
    before_totals, after_totals = (_totals(session, table, where, each, state) for each in (version - 1, version))
    if before_totals != after_totals:
        raise CompactionDiffers(
            f"{table}: compaction in version {version} changed {where or 'the table'}: {before_totals} is now {after_totals}",
            hint=f"stop the agent, RESTORE the table to version {version - 1} and report this",
        )


def _totals(session: Any, table: str, where: str, version: int, state: TableState | None) -> tuple[Any, ...]:
    """Number of rows and sums of their hashes in one partition, as of a version."""
    pinned = session.read.format("delta").option("versionAsOf", version).load(table)
    types = [(field.name, field.dataType.simpleString()) for field in pinned.schema.fields]
    kinds = [
        (name, kind) for name, kind in types if "map<" not in kind.removeprefix("map<")
    ]  # Spark hashes no nested maps
    rows = _merged(session, pinned.where(where) if where else pinned, state)
    sums = sums_per_day(rows, "", kinds).collect()
    return tuple(sums[0]) if sums else ()


def _where(values: Sequence[tuple[str, str | None]]) -> str:
    """A predicate on partition columns only, as `replaceWhere` requires."""
    return " AND ".join(
        f"{quoted(name)} IS NULL" if value is None else f"{quoted(name)} = {text_literal(value)}"
        for name, value in values
    )


def _files(table: str, version: int, crowd: Crowd) -> int:
    actions = DeltaTable(table, version=version).get_add_actions(flatten=True)
    parts = [days.partition_texts(actions, name) for name, _ in crowd.values]
    wanted = tuple(value for _, value in crowd.values)
    keys = zip(*parts, strict=True) if parts else ((),) * len(actions.column("path").to_pylist())
    return sum(key == wanted for key in keys)
