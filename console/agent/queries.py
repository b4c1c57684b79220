"""Queries over the live release, and runs of its copies and sinks."""

import json
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from console import crash, paths
from console.agent.compared.examples import ComparedReleases, day_examples
from console.agent.compared.records import records_of
from console.agent.feeds.live_feed import logical_rows
from console.agent.object_store.object_path import in_bucket
from console.agent.pipeline import PipelineController
from console.agent.rows.arguments import arguments
from console.agent.spark_session import SparkHandle
from console.agent.store import commits, copy_commit, exports, log, open_tables
from console.errors import DataError, RegionError
from console.model.compared import DayExamples
from console.model.live import Release
from console.model.receipt import LEDGER, LEDGER_VIEW

MAX_ROWS = 100_000
WAIT_SECONDS = 60.0  # limit of a run's wait for another one: it blocks one of the agent's few threads
_copy_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by the copy's path


@dataclass(frozen=True, slots=True)
class PipelineReader:
    """A pipeline as one request reads it: through its live release, or through that of a sandbox."""

    controller: PipelineController
    sandbox: str = ""

    def release(self) -> Release:
        """raises  RegionError if no release is live yet; DataError E_NO_PREVIEW"""
        return self.controller.readable(self.sandbox)

    def copy_path(self, into: str) -> str:
        """The path that a copy writes: in a sandbox, one of its own."""
        if self.sandbox:
            return str(self.controller.sandboxes.store.copies(self.sandbox) / into)
        return copy_path(self.controller.warehouse, into)


def query(
    reading: PipelineReader,
    spark: SparkHandle,
    sql: str,
    *,
    tables: Sequence[str],
    args: Mapping[str, Sequence[str]],
    limit: int,
) -> dict[str, Any]:
    """Run one compiled SELECT; all tables belong to the release that was live when it began, or to the sandbox.

    tables   logical names that the query reads
    args     name → [value as text, Spark type]
    limit    rows at most, up to `MAX_ROWS`
    returns  columns [[name, type]], rows, release (its id), truncated
    raises   DataError if a value is not of its parameter's type; RegionError E_QUERY with Spark's first line
    """
    release, bound = reading.release(), arguments(args)
    limit = max(1, min(limit, MAX_ROWS))
    with spark.query_session() as session:
        register(reading, session, release, tables)
        try:
            result = spark.ask(session, sql, bound).limit(limit + 1)
            columns = [[name, kind] for name, kind in result.dtypes]
            rows = rows_of(result)
        except Exception as error:
            raise RegionError(f"the query failed: {_first_line(error)}", code="E_QUERY") from None
    return {"columns": columns, "rows": rows[:limit], "release": release.id, "truncated": len(rows) > limit}


def rows_of(result: Any) -> list[list[Any]]:
    """The rows of a DataFrame; if one holds a time that Python cannot represent, all times as Spark writes them."""
    from pyspark.sql.functions import col, translate

    try:
        return [[plain(value) for value in row] for row in result.collect()]
    except (ValueError, OverflowError):
        pass
    shown = []
    for i, (_, kind) in enumerate(result.dtypes):
        value, timed = col(f"c{i}"), "date" in kind or "timestamp" in kind
        text = value.cast("string") if timed else value
        shown.append(translate(text, " ", "T") if kind.startswith("timestamp") else text)
    renamed = result.toDF(*(f"c{i}" for i in range(len(result.dtypes))))
    return [[plain(value) for value in row] for row in renamed.select(*shown).collect()]


def register(reading: PipelineReader, session: Any, release: Release, tables: Sequence[str]) -> None:
    """Register tables of the release, outputs of its copies and the region's own tables as views.

    tables  their logical names
    raises  DataError for an unknown table; RegionError E_NO_COPY, E_NO_LEDGER for one without rows yet
    """
    controller = reading.controller
    for name in tables:
        state = release.table(name)
        if state is not None:
            stored = session.read.format("delta").load(controller.path(state.version.path))
            logical_rows(session, state, stored).createOrReplaceTempView(name)
        elif any(copy.into == name for copy in release.copies):
            path = reading.copy_path(name)
            if not log.exists(path):
                raise RegionError(f"{name} has not been copied yet", hint=f"console copy {name}", code="E_NO_COPY")
            session.read.format("delta").load(path).createOrReplaceTempView(name)
        elif name.startswith(LEDGER_VIEW):
            _ledger(controller, session, name)
        else:
            raise DataError(f"release {release.id} has no table {name}", hint="console status")


def _ledger(controller: PipelineController, session: Any, name: str) -> None:
    """One of the region's own tables, without manifests and plans."""
    table = name.removeprefix(LEDGER_VIEW)
    columns = LEDGER.get(table, {})
    path = str(controller.rollouts.path.with_name({"events": "rollouts"}.get(table, table)))
    if not columns or not log.exists(path):
        raise RegionError(
            f"_console.{table}: nothing was recorded here yet", hint="console history", code="E_NO_LEDGER"
        )
    session.read.format("delta").load(path).select(*(f"`{column}`" for column in columns)).createOrReplaceTempView(name)


def copy_path(warehouse: Path, into: str) -> str:
    return paths.version_path(warehouse, f"{into}/copy")


def run_copy(reading: PipelineReader, spark: SparkHandle, name: str, run: str, by: str) -> dict[str, Any]:
    """Run a copy: append its query's rows to its table, or replace it, in one commit. A repeated run does nothing.

    run      the run's own name; a caller without a response repeats the call with it. It is part of the transaction's
             app id, so that at most one of several attempts commits
    returns  rows (0 if the run was committed before), already, path
    raises   RegionError E_BUSY while another run writes the table; E_NO_COMMIT if the run's commit is not in the log
    """
    release = reading.release()
    copy = next((copy for copy in release.copies if copy.name == name), None)
    if copy is None:
        known = ", ".join(c.name for c in release.copies) or "none"
        raise DataError(f"no copy {name} in release {release.id} (there is: {known})")
    path = reading.copy_path(copy.into)
    app_id = f"copy/{reading.controller.pipeline}/{name}/{run}"
    with _exclusive(path):
        before = log.latest_version(path) if log.exists(path) else -1
        if before >= 0:
            commits.own(path)
        if open_tables.position(path, app_id) is not None:
            return {"rows": 0, "already": True, "path": path}
        with spark.query_session() as session:
            register(reading, session, release, [state.table.name for state in release.tables])
            rows, replaces = session.sql(copy.sql).coalesce(1), copy.mode == "replace"
            note = {"kind": "copy", "copy": name, "release": release.id, "by": by, "run": run}
            if in_bucket(path):
                copy_commit.run(session, rows, path, replaces=replaces, app_id=app_id, note=note)
            else:
                _save(rows.write.format("delta"), path, replaces=replaces, app_id=app_id, note=json.dumps(note))
        return {"rows": _read_back(path, before, app_id), "already": False, "path": path}


def _save(writer: Any, path: str, *, replaces: bool, app_id: str, note: str) -> None:
    """Write and commit the rows by Spark."""
    writer = writer.options(txnAppId=app_id, txnVersion="1", userMetadata=note)
    writer = writer.mode("overwrite").option("overwriteSchema", "true") if replaces else writer.mode("append")
    crash.point("before-commit-copy")
    writer.save(path)
    crash.point("after-commit-copy")


def _read_back(path: str, before: int, app_id: str) -> int:
    """Rows of the run's commit, which comes after version `before`."""
    for commit in log.commits(path, before + 1, log.latest_version(path)):
        if app_id in commit.txn:
            return sum(file.rows for file in commit.added)
    raise RegionError(f"{path}: the run's commit is not in the table's log", hint="run it again", code="E_NO_COMMIT")


@contextmanager
def _exclusive(path: str) -> Iterator[None]:
    """Lock held for one run on a copy's table: a repeated run waits for the first try.

    raises  RegionError E_BUSY after `WAIT_SECONDS`
    """
    if not _copy_locks[path].acquire(timeout=WAIT_SECONDS):
        message = f"{path}: another run has been writing it for {WAIT_SECONDS:.0f} s"
        raise RegionError(message, hint="repeat the command when that run has ended", code="E_BUSY")
    try:
        yield
    finally:
        _copy_locks[path].release()


def run_sink(controller: PipelineController, spark: SparkHandle, name: str) -> dict[str, Any]:
    """Export the sink's query to files below the warehouse. The old output is replaced once the new one is complete.

    returns  rows, path
    raises   DataError E_SINK_TAKEN if something else lies at its path
    """
    release = controller.live()
    sink = next((sink for sink in release.sinks if sink.name == name), None)
    if sink is None:
        known = ", ".join(s.name for s in release.sinks) or "none"
        raise DataError(f"no sink {name} in release {release.id} (there is: {known})")
    out = exports.output(controller.warehouse, sink.path, controller.pipeline, sink.name)

    def write(fresh: Path) -> int:
        with spark.query_session() as session:
            register(PipelineReader(controller), session, release, [state.table.name for state in release.tables])
            rows = session.sql(sink.sql).coalesce(1)
            count = int(rows.count())
            writer = rows.write.mode("append")  # the folder is this run's own
            match sink.format:
                case "ndjson":
                    writer.json(str(fresh))
                case "csv":
                    writer.option("header", "true").csv(str(fresh))
                case "parquet":
                    writer.parquet(str(fresh))
        return count

    return {"rows": exports.put(out, write), "path": str(out.target)}


def plain(value: Any) -> Any:
    """A value as JSON: times in ISO 8601, decimals, NaN and infinities as text, bytes as hex."""
    match value:
        case datetime():
            return value.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return value


def examples(controller: PipelineController, spark: SparkHandle, table: str, day: str) -> DayExamples:
    """Rows of one day that differ between the versions which the newest rollout compares (`compared/examples`)."""
    recorder = controller.recorder
    compared = ComparedReleases(controller.releases, recorder.status, recorder.plan, controller.path)
    records = records_of(controller.warehouse, controller.pipeline)
    return day_examples(spark.session(), compared, records, table, day, rows_of=rows_of)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:400] if lines else type(error).__name__
