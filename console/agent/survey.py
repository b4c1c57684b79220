"""A region's survey, from its Delta logs: no Spark, no lock, milliseconds."""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from console import paths, spark_versions
from console.agent.object_store.object_path import ObjectPath
from console.agent.rows import nanoseconds
from console.agent.rows.demands import required_features
from console.agent.store import log
from console.agent.store.ledger import Releases, Rollouts
from console.agent.store.table_stats import table_stats
from console.errors import RegionError, Unreachable, no_warehouse
from console.model.event import BatchDone
from console.model.live import READABLE, Live, Release, TableStats
from console.paths import version_path

READERS = 8  # tables whose logs are read at once
NEWEST_FILES = 8  # newest files whose times are checked, for the foreign writer's current behaviour


def survey(warehouse: Path, region: str, pipeline: str, landing: Sequence[str]) -> Live:
    """The planner's whole input from one region.

    landing  names of the landing tables to survey as well
    raises   DataError if there is no warehouse
    """
    check_warehouse(region, warehouse)
    stored = Releases(warehouse, pipeline).all()
    live = next((h.release for h in stored if h.row.state == "live"), None)
    tables = (
        {state.table.name: (version_path(warehouse, state.version.path), state.stored_time) for state in live.tables}
        if live
        else {}
    )
    for name in landing:
        tables.setdefault(name, (str(warehouse / name), ""))

    def read(named: tuple[str, tuple[str, str]]) -> TableStats | None:
        name, (path, time) = named
        if name not in landing:
            return table_stats(name, path, time)
        stats = _foreign_stats(name, path, time)
        return stats and replace(stats, finer=_nanosecond_columns(path, stats))

    # a log is parsed by a library that leaves the other cores to the others, and in a bucket it is waited for
    with ThreadPoolExecutor(READERS) as readers:
        stats = [stats for stats in readers.map(read, tables.items()) if stats]
    return Live(
        region=region,
        pipeline=pipeline,
        release=live,
        releases=tuple(h.row for h in stored),
        stats=tuple(stats),
        rows_per_second=_rate(warehouse, pipeline, live),
        free_bytes=0 if isinstance(warehouse, ObjectPath) else shutil.disk_usage(warehouse).free,
        spark=spark_versions.installed(paths.jars_dir()).spark,
    )


def check_warehouse(region: str, warehouse: Path) -> None:
    """raises DataError if there is no warehouse on the disk"""
    if not isinstance(warehouse, ObjectPath) and not warehouse.is_dir():
        raise no_warehouse(region, warehouse)


def _foreign_stats(name: str, path: str, time: str) -> TableStats | None:
    """Statistics of a landing table; only its required features, if these keep it from being opened.

    raises  RegionError E_PATH if a link leads to a folder in which no table can lie
    """
    if folder := paths.unfit_here(path):
        raise RegionError(f"{name}: {path}: no Delta table can lie below {folder!r}", hint=paths.UNFIT, code="E_PATH")
    try:
        return table_stats(name, path, time)
    except Unreachable:
        features = required_features(path)
        if features <= READABLE:
            raise
        return TableStats(
            name=name,
            path=path,
            version=log.latest_version(path),
            rows=0,
            bytes=0,
            files=0,
            columns=(),
            reader=tuple(sorted(features)),
        )


def _nanosecond_columns(path: str, stats: TableStats) -> tuple[str, ...]:
    """Columns with times that Spark would truncate, in the newest files."""
    if not any("timestamp" in column.type for column in stats.columns):
        return ()
    table = DeltaTable(path, version=stats.version)
    columns = nanoseconds.time_columns(table.schema().to_json(), [column.name for column in stats.columns])
    newest = nanoseconds.files(table, path)[:NEWEST_FILES]
    return tuple(sorted({finer[1] for file in newest if (finer := nanoseconds.finer([file], columns))}))


def _rate(warehouse: Path, pipeline: str, live: Release | None) -> float:
    """Rows per second in the newest rollout's batches; 0 if nothing was measured."""
    if live is None:
        return 0.0
    events = [recorded.event for recorded in Rollouts(warehouse, pipeline).newest()]
    done = [event for event in events if isinstance(event, BatchDone) and event.seconds]  # others were not measured
    seconds = sum(batch.seconds for batch in done)
    return sum(batch.rows_in for batch in done) / seconds if seconds else 0.0
