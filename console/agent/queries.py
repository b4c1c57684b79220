"""What readers and producers ask of a region: queries over the live release, copies, sinks, and batches for landing."""

import json
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from console import crash
from console.agent.feeds.live_feed import logical_rows
from console.agent.pipeline import PipelineController
from console.agent.spark_session import SparkHandle
from console.agent.store import exports, log
from console.agent.store.survey import resolve
from console.errors import DataError, RegionError
from console.model.live import Release
from console.model.receipt import LEDGER, LEDGER_VIEW

MAX_ROWS = 100_000
TURN_SECONDS = 60.0  # that a run waits for another: whoever waits holds one of the agent's few threads
_copying: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by the copy's path


def query(
    controller: PipelineController,
    spark: SparkHandle,
    sql: str,
    *,
    tables: Sequence[str],
    args: Mapping[str, Sequence[str]],
    limit: int,
) -> dict[str, Any]:
    """Run one compiled SELECT over the live release, whole: all its tables are of the one release read first.

    args    name → [value as text, Spark type]
    raises  DataError where a value is not of its parameter's type; RegionError with Spark's first line if it fails
    """
    release, bound = controller.live(), _arguments(args)
    session = spark.session()
    register(controller, session, release, tables)
    limit = max(1, min(limit, MAX_ROWS))
    try:
        found = session.sql(sql, args=bound).limit(limit + 1)
        columns = [[name, kind] for name, kind in found.dtypes]
        rows = _rows(found)
    except Exception as error:
        raise RegionError(f"the query failed: {_first(error)}", code="E_QUERY") from None
    return {"columns": columns, "rows": rows[:limit], "release": release.id, "truncated": len(rows) > limit}


def _rows(found: Any) -> list[list[Any]]:
    """The rows of a DataFrame; where one holds a time that Python has no value for, every time as Spark writes it."""
    from pyspark.sql.functions import col, translate

    try:
        return [[plain(value) for value in row] for row in found.collect()]
    except (ValueError, OverflowError):
        pass
    shown = []
    for i, (_, kind) in enumerate(found.dtypes):
        value, timed = col(f"c{i}"), "date" in kind or "timestamp" in kind
        text = value.cast("string") if timed else value
        shown.append(translate(text, " ", "T") if kind.startswith("timestamp") else text)
    renamed = found.toDF(*(f"c{i}" for i in range(len(found.dtypes))))
    return [[plain(value) for value in row] for row in renamed.select(*shown).collect()]


def register(controller: PipelineController, session: Any, release: Release, tables: Sequence[str]) -> None:
    """The release's tables, and its copies' outputs, as views by logical name."""
    for name in tables:
        state = release.table(name)
        if state is not None:
            stored = session.read.format("delta").load(controller.path(state.version.path))
            logical_rows(session, state, stored).createOrReplaceTempView(name)
        elif any(copy.into == name for copy in release.copies):
            path = copy_path(controller.warehouse, name)
            if not log.exists(path):
                raise RegionError(f"{name} has not been copied yet", hint=f"console copy {name}", code="E_NO_COPY")
            session.read.format("delta").load(path).createOrReplaceTempView(name)
        elif name.startswith(LEDGER_VIEW):
            _ledger(controller, session, name)
        else:
            raise DataError(f"release {release.id} has no table {name}", hint="console status")


def _ledger(controller: PipelineController, session: Any, name: str) -> None:
    """One of the region's own tables, without the columns that are no reader's: manifests and plans."""
    table = name.removeprefix(LEDGER_VIEW)
    columns = LEDGER.get(table, {})
    path = str(controller.rollouts.path.with_name({"events": "rollouts"}.get(table, table)))
    if not columns or not log.exists(path):
        raise RegionError(
            f"_console.{table}: nothing was recorded here yet", hint="console history", code="E_NO_LEDGER"
        )
    session.read.format("delta").load(path).select(*(f"`{column}`" for column in columns)).createOrReplaceTempView(name)


def copy_path(warehouse: Path, into: str) -> str:
    return resolve(warehouse, f"{into}/copy")


def run_copy(controller: PipelineController, spark: SparkHandle, name: str, run: str, by: str) -> dict[str, Any]:
    """Append or replace the copy's table with its query's rows, in one commit; a run that is in is answered, not repeated.

    run      this run's own name, which its commit carries: whoever got no answer asks again under the same one. A transaction
             of its own for each run, so that whatever of an earlier try commits late is skipped, or is what was asked for
    returns  rows (0 where the run was in already), already, path
    raises   RegionError E_BUSY while the table is being written by another; E_NO_COMMIT if the run's commit is not in its log
    """
    release = controller.live()
    copy = next((copy for copy in release.copies if copy.name == name), None)
    if copy is None:
        known = ", ".join(c.name for c in release.copies) or "none"
        raise DataError(f"no copy {name} in release {release.id} (there is: {known})")
    path = copy_path(controller.warehouse, copy.into)
    app_id = f"copy/{controller.pipeline}/{name}/{run}"
    with _turn(path):
        before = log.latest_version(path) if log.exists(path) else -1
        if log.position(path, app_id) is not None:
            return {"rows": 0, "already": True, "path": path}
        session = spark.session()
        register(controller, session, release, [state.table.name for state in release.tables])
        note = json.dumps({"kind": "copy", "copy": name, "release": release.id, "by": by, "run": run})
        writer = session.sql(copy.sql).coalesce(1).write.format("delta")
        writer = writer.options(txnAppId=app_id, txnVersion="1", userMetadata=note)
        if copy.mode == "replace":
            writer = writer.mode("overwrite").option("overwriteSchema", "true")
        else:
            writer = writer.mode("append")
        crash.point("before-commit-copy")
        writer.save(path)
        crash.point("after-commit-copy")
        return {"rows": _read_back(path, before, app_id), "already": False, "path": path}


def _read_back(path: str, before: int, app_id: str) -> int:
    """Rows of the run's own commit after version `before`."""
    for commit in log.commits(path, before + 1, log.latest_version(path)):
        if app_id in commit.txn:
            return sum(file.rows for file in commit.added)
    raise RegionError(f"{path}: the run's commit is not in the table's log", hint="ask again", code="E_NO_COMMIT")


@contextmanager
def _turn(path: str) -> Iterator[None]:
    """One run after the other: who asks again while the first try goes on is answered by what it did, or comes back later."""
    if not _copying[path].acquire(timeout=TURN_SECONDS):
        why = f"{path}: another run has been writing it for {TURN_SECONDS:.0f} s"
        raise RegionError(why, hint="ask again when it has ended", code="E_BUSY")
    try:
        yield
    finally:
        _copying[path].release()


def run_sink(controller: PipelineController, spark: SparkHandle, name: str) -> dict[str, Any]:
    """Export the sink's query to files below the warehouse; its last output is replaced when the new one is whole.

    raises  DataError E_SINK_TAKEN where something else lies at its path
    """
    release = controller.live()
    sink = next((sink for sink in release.sinks if sink.name == name), None)
    if sink is None:
        known = ", ".join(s.name for s in release.sinks) or "none"
        raise DataError(f"no sink {name} in release {release.id} (there is: {known})")
    out = exports.output(controller.warehouse, sink.path, controller.pipeline, sink.name)

    def write(fresh: Path) -> int:
        session = spark.session()
        register(controller, session, release, [state.table.name for state in release.tables])
        rows = session.sql(sink.sql).coalesce(1)
        count = int(rows.count())
        writer = rows.write.mode("overwrite")
        match sink.format:
            case "ndjson":
                writer.json(str(fresh))
            case "csv":
                writer.option("header", "true").csv(str(fresh))
            case "parquet":
                writer.parquet(str(fresh))
        return count

    return {"rows": exports.put(out, write), "path": str(out.target)}


def _arguments(args: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Texts as typed Python values, which Spark binds as literals; it takes no cast there.

    raises  DataError naming the parameter whose text is not of its type
    """
    return {name: _typed(name, value, kind) for name, (value, kind) in args.items()}


def _typed(name: str, text: str, kind: str) -> Any:
    try:
        match kind.partition("(")[0]:
            case "tinyint" | "smallint" | "int" | "bigint":
                return int(text)
            case "float" | "double":
                return float(text)
            case "decimal":
                return Decimal(text)
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
            case "date":
                return date.fromisoformat(text)
            case "timestamp":
                at = datetime.fromisoformat(text)
                return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, KeyError, InvalidOperation):
        raise DataError(f"parameter {name}: {text!r:.60} is no {kind}") from None
    return text


def plain(value: Any) -> Any:
    """A value as JSON can say it: times in ISO 8601 UTC, decimals and infinities as text, bytes as hex."""
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


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:400] if lines else type(error).__name__
