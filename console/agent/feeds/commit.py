"""Rows and their position in one commit, exactly once: the only place that writes to a version (docs/design.md, rules 1, 2)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake

from console import crash
from console.agent.feeds import foreign_commits
from console.agent.store import days, log, write_lock
from console.errors import FeedStopped, RegionError
from console.model import created
from console.model.live import Feed, TableState
from console.model.schema import quoted

EPOCH_BITS = 40
POSITION = (1 << EPOCH_BITS) - 1
_PLAIN = {
    "string", "byte", "short", "integer", "long", "float", "double", "boolean", "binary", "date", "timestamp",
}  # fmt: skip
_NULLS = ("", "__HIVE_DEFAULT_PARTITION__")  # texts of a partition that Spark writes as NULL
_SPELLED = {"float", "double", "binary"}


@dataclass(slots=True)
class FeedWriter:
    """One feed's right to write: its app id, the epoch this process took, and the position it has reached.

    Whoever takes a feed over commits an empty append with the next epoch; from then on every late commit of
    an earlier writer carries a smaller number, which Delta skips.
    """

    app_id: str
    target: str  # absolute path
    epoch: int
    position: int
    seen: int = -1  # up to which version of the target's log no foreign hand was found
    source: str = ""  # Delta's id of the table that it reads, which each commit names; "" where none does

    def told(self, note: dict[str, Any]) -> str:
        """A commit's note as it is stored."""
        return json.dumps({**note, "source": self.source} if self.source else note)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What one commit did. version is -1 where nothing had to be written."""

    version: int
    rows: int
    bytes: int


def live_id(target: str, feed: Feed, source: str = "") -> str:
    """Positions in two versions of one source are two feeds: one that moved has the id of its source in its name.

    source  absolute path of the version that it reads; needed where the feed has moved
    """
    own = f"live/{log.table_id(target)}/{feed.materialization}"
    return f"{own}/{log.table_id(source)}" if feed.moved else own


def history_id(target: str, materialization: str, fence: int) -> str:
    return f"history/{log.table_id(target)}/{materialization}@{fence}"


def split(number: int) -> tuple[int, int]:
    """Epoch and position of a committed number."""
    return number >> EPOCH_BITS, number & POSITION


def create(session: Any, state: TableState, path: str, keep_hours: float) -> None:
    """Create a version, empty; a second call finds it and does nothing.

    keep_hours  as `created.table_settings`, for a version whose release says nothing of its settings: 0.1.0's and landing tables
    raises      RegionError if something else is there
    """
    if log.exists(path):
        found = [(f["name"]) for f in json.loads(log.schema_json(path))["fields"]]
        if found != [column.name for column in state.version.columns]:
            raise RegionError(
                f"{path} exists with other columns than planned", hint="console discard", code="E_OTHER_TABLE"
            )
        return
    types = ", ".join(f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in state.version.columns)
    nothing = session.sql(f"SELECT {types} WHERE 1 = 0")
    properties = dict(state.version.settings or created.table_settings(keep_hours))
    note = json.dumps({"kind": "create", "content": state.version.content})
    crash.point("before-commit-create")
    schema = nothing.schema.json()
    if _plain(json.loads(schema)):
        own = CommitProperties(custom_metadata={"userMetadata": note})
        by = list(state.version.partition_by)
        DeltaTable.create(path, Schema.from_json(schema), "error", by, configuration=properties, commit_properties=own)
    else:
        writer = (
            nothing.write.format("delta").mode("errorifexists").options(**properties, **created.OFF, userMetadata=note)
        )
        writer.partitionBy(*state.version.partition_by).save(path)
    crash.point("after-commit-create")


def open_feed(session: Any, app_id: str, target: str, start: int, source: str = "") -> FeedWriter:
    """Take a feed over, or open it at `start` where nobody has written under its id yet.

    source  Delta's id of the table that the feed's position is in; "" for a history, whose id names its fence
    raises  FeedStopped E_REPLACED if that is not the table which the feed has read so far;
            E_NO_POSITION if the target holds rows but no position: never taken for 0;
            E_FOREIGN if somebody took rows of the target away since the feed's last commit;
            E_TXN_RETENTION if the target may forget positions
    """
    log.whole(target)
    foreign_commits.keeps_positions(target)
    for _ in range(8):
        seen = log.latest_version(target)
        epoch, position = _reached(target, app_id, seen, start, source)
        writer = FeedWriter(app_id, target, epoch + 1, position, seen, source)
        note = {"kind": "take-over", "feed": app_id, "read": seen}
        try:
            done = _commit_nothing(session, writer, position, note)
        except FeedStopped as error:
            if error.code != "E_SKIPPED":
                raise
            continue  # a rival took it over while we did
        if not any(app_id in between.txn for between in log.commits(target, seen + 1, done.version - 1)):
            return writer
    raise FeedStopped(
        f"{target}: somebody else keeps writing under {app_id}", hint="console follow --stop", code="E_RIVAL"
    )


def _reached(target: str, app_id: str, seen: int, start: int, source: str) -> tuple[int, int]:
    """Epoch and position of a feed as of version `seen` of its target.

    A rival's commit between what a take-over read and the take-over itself counts too, although the take-over repeats
    the position before it: whoever made that take-over may have died before it could look.
    """
    number = log.position(target, app_id, as_of=seen)
    if number is None:
        if start < 0:
            raise FeedStopped(
                f"{target}: no position under {app_id}",
                hint="the table was replaced or cloned; `console plan` rebuilds it",
                code="E_NO_POSITION",
            )
        foreign_commits.unclaimed(target, app_id)
        return 0, start
    epoch, position = split(number)
    last = foreign_commits.last_own(target, app_id, seen)
    if last is not None and source and (was := last.note.get("source", source)) != source:
        raise FeedStopped(
            f"{target}: {app_id} has read table {was}, and {source} stands in its place: it was dropped and written anew",
            hint="compare it with its copies, then rebuild what hangs below it",
            code="E_REPLACED",
        )
    if last is not None and last.note.get("kind") == "take-over":
        read = int(last.note.get("read", last.version))
        rivals = [c.txn[app_id] for c in log.commits(target, read + 1, last.version - 1) if app_id in c.txn]
        position = max([position, *(split(rival)[1] for rival in rivals)])
    return epoch, position


def close_feed(session: Any, app_id: str, target: str) -> int:
    """Commit a final position with a new epoch, that any late writer collides with or is skipped by."""
    return open_feed(session, app_id, target, -1).position


def place_feed(session: Any, app_id: str, target: str, position: int, note: dict[str, Any]) -> None:
    """Commit where a feed will begin that nobody moves now, whatever position it had before.

    raises  FeedStopped E_SKIPPED if somebody else writes under its id
    """
    number = log.position(target, app_id)
    epoch = split(number)[0] + 1 if number is not None else 1
    _commit_nothing(session, FeedWriter(app_id, target, epoch, position), position, note)


def append(session: Any, rows: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult:
    """Append rows and move the feed to `position`, in one commit that is read back.

    rows      a DataFrame with the target's stored columns
    raises    FeedStopped E_SKIPPED if Delta skipped the write because another writer is ahead
    """
    _in_order(writer, position)
    done = _commit(session, rows, writer, position, note)
    writer.position = position
    return done


def heartbeat(session: Any, writer: FeedWriter, position: int) -> None:
    """Commit a position reached over commits without rows."""
    _in_order(writer, position)
    _commit_nothing(session, writer, position, {"kind": "position"})
    writer.position = position


def append_small(rows: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult | None:
    """As `append`, for rows that fit in memory: Spark computes them, deltalake commits them.

    A fifth of the processor time: the JVM rebuilds a table's state before each append (docs/decisions/0005).

    returns  None, with nothing written, where Spark must write them: one of its writes is under way on the table,
             Arrow has no exact way into the table's columns, or a partition cannot have the day of a row
    raises   FeedStopped E_SKIPPED as `append`; here nothing was written
    """
    _in_order(writer, position)
    done = _by_deltalake(rows.toArrow(), writer, position, note)
    if done is not None:
        writer.position = position
    return done


def _by_deltalake(data: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult | None:
    """data: an Arrow table, or None for no rows"""
    import pyarrow as pa

    number = writer.epoch << EPOCH_BITS | position
    with write_lock.alone(writer.target) as ours:
        if not ours:
            return None
        table = DeltaTable(writer.target)
        before = table.version()
        if (table.transaction_version(writer.app_id) or 0) >= number:
            raise _skipped(writer, position)
        schema = pa.schema(table.schema().to_arrow())
        try:
            data = schema.empty_table() if data is None else data.cast(schema)
        except (pa.ArrowException, ValueError):  # the plain one: somebody added a column, which Spark fills with NULL
            return None
        by = table.metadata().partition_columns
        if not all(days.nameable(data.column(name)) for name in by):
            return None
        data = _blank_is_null(data, by)
        crash.point(f"before-commit-{note.get('kind', '')}")
        properties = CommitProperties(
            custom_metadata={"userMetadata": writer.told(note)}, app_transactions=[Transaction(writer.app_id, number)]
        )
        write_deltalake(table, data, mode="append", commit_properties=properties)
        crash.point(f"after-commit-{note.get('kind', '')}")
    return _read_back(writer, before, number, position)


def _blank_is_null(data: Any, by: Sequence[str]) -> Any:
    """Empty text in the partition columns as Spark writes it: deltalake would spell it out in the log, where it is no value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(data.schema):
        if field.name in by and field.type in (pa.string(), pa.large_string()):
            held = data.column(at)
            data = data.set_column(
                at, field, pc.if_else(pc.is_in(held, pa.array(_NULLS, held.type)), pa.scalar(None, field.type), held)
            )
    return data


def takes_small(target: str) -> bool:
    """Whether deltalake writes every column of the table as Spark would.

    Of a partition column it spells a negative decimal `-1.-25`, which nobody reads, bytes as `\\u0061`, which is other bytes, and 1e300
    in so many digits that no folder can have them for a name.
    """
    opened = DeltaTable(target)
    schema, by = json.loads(opened.schema().to_json()), opened.metadata().partition_columns
    spelled = [field["type"] for field in schema["fields"] if field["name"] in by]
    return _plain(schema) and not any(kind in _SPELLED or kind.startswith("decimal(") for kind in spelled)


def _plain(kind: Any) -> bool:
    """kind: a type of Delta's schema, as its JSON says it"""
    match kind:
        case {"type": "struct", "fields": fields}:
            return all(_plain(field["type"]) for field in fields)
        case {"type": "array", "elementType": element}:
            return _plain(element)
        case {"type": "map", "keyType": key, "valueType": value}:
            return _plain(key) and _plain(value)
        case str():
            return kind in _PLAIN or kind.startswith("decimal(")
    return False


def _in_order(writer: FeedWriter, position: int) -> None:
    if position <= writer.position:
        raise FeedStopped(
            f"{writer.target}: position {position} is not after {writer.position}", code="E_ORDER", hint="console retry"
        )
    latest = log.latest_version(writer.target)
    foreign_commits.check(writer.target, writer.seen + 1, latest)
    writer.seen = latest


def _commit_nothing(session: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult:
    """A position without rows."""
    small = _by_deltalake(None, writer, position, note) if takes_small(writer.target) else None
    return small or _commit(session, nothing(session, writer.target), writer, position, note)


def _commit(session: Any, rows: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult:
    before = log.latest_version(writer.target)
    number = writer.epoch << EPOCH_BITS | position
    once = {"txnAppId": writer.app_id, "txnVersion": str(number), "userMetadata": writer.told(note)}
    with write_lock.spark(writer.target):
        crash.point(f"before-commit-{note.get('kind', '')}")
        rows.write.format("delta").mode("append").options(**once).save(writer.target)
        crash.point(f"after-commit-{note.get('kind', '')}")
    return _read_back(writer, before, number, position)


def _read_back(writer: FeedWriter, before: int, number: int, position: int) -> CommitResult:
    for commit in log.commits(writer.target, before + 1, log.latest_version(writer.target)):
        if commit.txn.get(writer.app_id) == number:
            return CommitResult(commit.version, sum(f.rows for f in commit.added), sum(f.bytes for f in commit.added))
    raise _skipped(writer, position)


def _skipped(writer: FeedWriter, position: int) -> FeedStopped:
    return FeedStopped(
        f"{writer.target}: the write at {position} was skipped: another writer of {writer.app_id} is ahead",
        hint="console retry, for a rollout; a live feed is taken over again by itself within minutes",
        code="E_SKIPPED",
    )


def nothing(session: Any, target: str) -> Any:
    """No rows in the target's schema, without a Python worker and without reading a file."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(log.schema_json(target)))
    columns = ", ".join(f"CAST(NULL AS {f.dataType.simpleString()}) AS {quoted(f.name)}" for f in schema.fields)
    return session.sql(f"SELECT {columns} WHERE 1 = 0")
