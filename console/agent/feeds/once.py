"""Rows and their position in one commit, exactly once: the only place that writes to a version (DESIGN §4.1 rules 1, 2)."""

import json
from dataclasses import dataclass
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType

from console import crash
from console.agent.store import log, turns
from console.errors import FeedStopped, RegionError
from console.model.live import Feed, TableState

EPOCH_BITS = 40
CHECKPOINT_COMMITS = 50  # Delta's 10 makes every tenth small live commit a heavy one
POSITION = (1 << EPOCH_BITS) - 1


@dataclass(slots=True)
class Writer:
    """One feed's right to write: its app id, the epoch this process took, and the position it has reached.

    Whoever takes a feed over commits an empty append with the next epoch; from then on every late commit of
    an earlier writer carries a smaller number, which Delta skips.
    """

    app_id: str
    target: str  # absolute path
    epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Written:
    """What one commit did. version is -1 where nothing had to be written."""

    version: int
    rows: int
    bytes: int


def live_id(target: str, feed: Feed) -> str:
    return f"live/{log.table_id(target)}/{feed.materialization}"


def history_id(target: str, materialization: str, fence: int) -> str:
    return f"history/{log.table_id(target)}/{materialization}@{fence}"


def split(number: int) -> tuple[int, int]:
    """Epoch and position of a committed number."""
    return number >> EPOCH_BITS, number & POSITION


def create(session: Any, state: TableState, path: str, keep_hours: float) -> None:
    """Create a version, empty; a second call finds it and does nothing.

    keep_hours  how long removed files and the log are kept at least: the rollback window plus the longest rollout
    raises      RegionError if something else is there
    """
    if log.exists(path):
        found = [(f["name"]) for f in json.loads(log.schema_json(path))["fields"]]
        if found != [column.name for column in state.version.columns]:
            raise RegionError(
                f"{path} exists with other columns than planned", hint="console discard", code="E_OTHER_TABLE"
            )
        return
    nothing = ", ".join(f"CAST(NULL AS {column.type}) AS {_quoted(column.name)}" for column in state.version.columns)
    hours = max(int(keep_hours), 24 * 7)
    writer = session.sql(f"SELECT {nothing} WHERE 1 = 0").write.format("delta").mode("errorifexists")
    writer = writer.option("delta.deletedFileRetentionDuration", f"interval {hours} hours")
    writer = writer.option("delta.logRetentionDuration", f"interval {2 * hours} hours")
    writer = writer.option("delta.checkpointInterval", str(CHECKPOINT_COMMITS))
    writer = writer.option("userMetadata", json.dumps({"kind": "create", "content": state.version.content}))
    if state.version.partition_by:
        writer = writer.partitionBy(*state.version.partition_by)
    crash.point("before-commit-create")
    writer.save(path)
    crash.point("after-commit-create")


def open_feed(session: Any, app_id: str, target: str, start: int) -> Writer:
    """Take a feed over, or open it at `start` where nobody has written under its id yet.

    raises  FeedStopped E_NO_POSITION if the target holds rows but no position: never taken for 0
    """
    log.whole(target)
    number = log.position(target, app_id)
    if number is None and start < 0:
        raise FeedStopped(
            f"{target}: no position under {app_id}",
            hint="the table was replaced or cloned; `console plan` rebuilds it",
            code="E_NO_POSITION",
        )
    epoch, position = split(number) if number is not None else (0, start)
    for _ in range(8):
        seen = log.latest_version(target)
        writer = Writer(app_id, target, epoch + 1, position)
        done = _commit(session, nothing(session, target), writer, position, {"kind": "take-over", "feed": app_id})
        between = [c.txn[app_id] for c in log.commits(target, seen + 1, done.version - 1) if app_id in c.txn]
        if not between:
            return writer
        epoch, position = split(max(between))  # a rival committed while we took over: begin again behind it
        epoch = max(epoch, writer.epoch)
    raise FeedStopped(
        f"{target}: somebody else keeps writing under {app_id}", hint="console follow --stop", code="E_RIVAL"
    )


def close_feed(session: Any, app_id: str, target: str) -> int:
    """Commit a final position with a new epoch, that any late writer collides with or is skipped by."""
    return open_feed(session, app_id, target, -1).position


def append(session: Any, rows: Any, writer: Writer, position: int, note: dict[str, Any]) -> Written:
    """Append rows and move the feed to `position`, in one commit that is read back.

    rows      a DataFrame with the target's stored columns
    raises    FeedStopped E_SKIPPED if Delta skipped the write because another writer is ahead
    """
    _in_order(writer, position)
    done = _commit(session, rows, writer, position, note)
    writer.position = position
    return done


def append_small(rows: Any, writer: Writer, position: int, note: dict[str, Any]) -> Written | None:
    """As `append`, for rows that fit in memory: Spark computes them, deltalake commits them.

    A fifth of the processor time: the JVM rebuilds a table's state before each append (docs/decisions/0005).

    returns  None, with nothing written, where Spark must write them: one of its writes is under way on the table, or
             Arrow has no exact way into a column's type
    raises   FeedStopped E_SKIPPED as `append`; here nothing was written
    """
    import pyarrow as pa

    _in_order(writer, position)
    number = writer.epoch << EPOCH_BITS | position
    data = rows.toArrow()
    with turns.alone(writer.target) as ours:
        if not ours:
            return None
        table = DeltaTable(writer.target)
        before = table.version()
        if (table.transaction_version(writer.app_id) or 0) >= number:
            raise _skipped(writer, position)
        try:
            data = data.cast(pa.schema(table.schema().to_arrow()))
        except pa.ArrowException:
            return None
        crash.point(f"before-commit-{note.get('kind', '')}")
        properties = CommitProperties(
            custom_metadata={"userMetadata": json.dumps(note)}, app_transactions=[Transaction(writer.app_id, number)]
        )
        write_deltalake(table, data, mode="append", commit_properties=properties)
        crash.point(f"after-commit-{note.get('kind', '')}")
    writer.position = position
    return _read_back(writer, before, number, position)


def takes_small(target: str) -> bool:
    """Whether deltalake writes every column of the table as Spark would."""
    return all(_plain(field.type) for field in DeltaTable(target).schema().fields)


def _plain(kind: object) -> bool:
    match kind:
        case PrimitiveType():
            return str(kind.type) != "timestamp_ntz"
        case ArrayType():
            return _plain(kind.element_type)
        case MapType():
            return _plain(kind.key_type) and _plain(kind.value_type)
        case StructType():
            return all(_plain(field.type) for field in kind.fields)
    return False


def _in_order(writer: Writer, position: int) -> None:
    if position <= writer.position:
        raise FeedStopped(
            f"{writer.target}: position {position} is not after {writer.position}", code="E_ORDER", hint="console retry"
        )


def _commit(session: Any, rows: Any, writer: Writer, position: int, note: dict[str, Any]) -> Written:
    before = log.latest_version(writer.target)
    number = writer.epoch << EPOCH_BITS | position
    once = {"txnAppId": writer.app_id, "txnVersion": str(number), "userMetadata": json.dumps(note)}
    with turns.spark(writer.target):
        crash.point(f"before-commit-{note.get('kind', '')}")
        rows.write.format("delta").mode("append").options(**once).save(writer.target)
        crash.point(f"after-commit-{note.get('kind', '')}")
    return _read_back(writer, before, number, position)


def _read_back(writer: Writer, before: int, number: int, position: int) -> Written:
    for commit in log.commits(writer.target, before + 1, log.latest_version(writer.target)):
        if commit.txn.get(writer.app_id) == number:
            return Written(commit.version, sum(f.rows for f in commit.added), sum(f.bytes for f in commit.added))
    raise _skipped(writer, position)


def _skipped(writer: Writer, position: int) -> FeedStopped:
    return FeedStopped(
        f"{writer.target}: the write at {position} was skipped: another writer of {writer.app_id} is ahead",
        hint="console retry takes the feed over",
        code="E_SKIPPED",
    )


def nothing(session: Any, target: str) -> Any:
    """No rows in the target's schema, without a Python worker and without reading a file."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(log.schema_json(target)))
    columns = ", ".join(f"CAST(NULL AS {f.dataType.simpleString()}) AS {_quoted(f.name)}" for f in schema.fields)
    return session.sql(f"SELECT {columns} WHERE 1 = 0")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
