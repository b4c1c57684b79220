"""Rows and feed position in one commit, exactly once: the only writer of a version's rows (docs/design.md, rules 1, 2)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.transaction import AddAction

from console import crash
from console.agent.errors import RivalWriter, WriteSkipped
from console.agent.feeds import app_ids, exact_appends, foreign_commits
from console.agent.object_store.object_path import in_bucket
from console.agent.rows.arrow import arrow_table
from console.agent.session_on_demand import opened
from console.agent.store import commits, log, open_tables, spark_files, write_lock
from console.agent.store.file_action import FileAction
from console.errors import FeedStopped, RegionError
from console.model import created
from console.model.live import TableState
from console.model.schema import quoted

LOCK_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class FeedWriter:
    """The right to write for one feed: its app id, the epoch taken by this process, and the position reached.

    target  absolute path
    seen    version of the target's log up to which no foreign rewrite was found
    source  Delta id of the table that the feed reads, recorded in each commit; "" for none

    Taking a feed over commits an empty append with the next epoch. From then on, late commits of earlier writers carry
    smaller numbers, which Delta skips.
    """

    app_id: str
    target: str
    epoch: int
    position: int
    seen: int = -1
    source: str = ""

    def noted(self, note: dict[str, Any]) -> dict[str, Any]:
        """A commit's note as stored in its userMetadata."""
        return {**note, "source": self.source} if self.source else note


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Version, rows and bytes of one commit. version is -1 if nothing had to be written."""

    version: int
    rows: int
    bytes: int


def create(session: Any, state: TableState, path: str, keep_hours: float) -> None:
    """Create an empty version; does nothing if it exists already.

    keep_hours  as in `created.table_settings`; for releases of 0.1.0 and landing tables, which record no settings
    raises      RegionError E_OTHER_TABLE if a table with other columns is there
    """
    if log.exists(path):
        commits.own(path)
        names = [(f["name"]) for f in json.loads(open_tables.schema_json(path))["fields"]]
        if names != [column.name for column in state.version.columns]:
            raise RegionError(
                f"{path} exists with other columns than planned", hint="console discard", code="E_OTHER_TABLE"
            )
        return
    types = ", ".join(f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in state.version.columns)
    empty_rows = session.sql(f"SELECT {types} WHERE 1 = 0")
    properties = dict(state.version.settings or created.table_settings(keep_hours))
    note = json.dumps({"kind": "create", "content": state.version.content})
    crash.point("before-commit-create")
    schema = empty_rows.schema.json()
    if exact_appends.is_plain(json.loads(schema)) or in_bucket(path):
        commits.create(path, Schema.from_json(schema), list(state.version.partition_by), properties, note)
    else:
        writer = (
            empty_rows.write.format("delta")
            .mode("errorifexists")
            .options(**properties, **created.OFF, userMetadata=note)
        )
        writer.partitionBy(*state.version.partition_by).save(path)
    crash.point("after-commit-create")


def open_feed(session: Any, app_id: str, target: str, start: int, source: str = "") -> FeedWriter:
    """Take a feed over, or open it at `start` if nothing was committed under its id yet.

    source  Delta id of the table that the position refers to; "" for a history, whose app id names its fence
    raises  FeedStopped E_REPLACED if the feed has read another table so far;
            E_NO_POSITION if the target holds rows but no position (never taken as 0);
            E_FOREIGN if rows of the target were removed by others since the feed's last commit;
            E_TXN_RETENTION if the target's positions may expire; E_RIVAL if another process keeps writing
    """

    def take_over(writer: FeedWriter) -> CommitResult:
        note = {"kind": "take-over", "feed": app_id, "read": writer.seen}
        return _commit_position(session, writer, writer.position, note)

    return _taken_over(app_id, target, start, source, take_over)


def _taken_over(
    app_id: str, target: str, start: int, source: str, take_over: Callable[[FeedWriter], CommitResult]
) -> FeedWriter:
    """As `open_feed`. take_over: commits the writer's epoch, and what it has read of the log, where no rival was found"""
    commits.own(target)
    log.check_intact(target)
    foreign_commits.check_retains_positions(target)
    for _ in range(8):
        seen = log.latest_version(target)
        epoch, position = _last_position(target, app_id, seen, start, source)
        writer = FeedWriter(app_id=app_id, target=target, epoch=epoch + 1, position=position, seen=seen, source=source)
        try:
            result = take_over(writer)
        except WriteSkipped:
            continue  # a rival took the feed over in the meantime
        if not any(app_id in commit.txn for commit in log.commits(target, seen + 1, result.version - 1)):
            return writer
    raise RivalWriter(f"{target}: another process keeps writing under {app_id}", hint="console follow --stop")


def _last_position(target: str, app_id: str, seen: int, start: int, source: str) -> tuple[int, int]:
    """Epoch and position of a feed as of version `seen` of its target.

    A rival may have committed between the version that the last take-over read and the take-over itself. That commit
    counts, although the take-over repeats the position before it: its process may have died before it could check.
    """
    number = open_tables.position(target, app_id, as_of=seen)
    if number is None:
        if start < 0:
            raise FeedStopped(
                f"{target}: no position under {app_id}",
                hint="the table was replaced or cloned; `console plan` rebuilds it",
                code="E_NO_POSITION",
            )
        foreign_commits.check_unclaimed(target, app_id)
        return 0, start
    epoch, position = app_ids.split(number)
    last = foreign_commits.last_own(target, app_id, seen)
    if last is not None and source and (recorded := last.note.get("source", source)) != source:
        raise FeedStopped(
            f"{target}: {app_id} has read table {recorded}, but {source} is in its place: the table was dropped and recreated",
            hint="compare it with its copies, then rebuild the tables downstream of it",
            code="E_REPLACED",
        )
    # a take-over had read the log up to there
    if last is not None and (read := last.note.get("read")) is not None:
        rivals = [c.txn[app_id] for c in log.commits(target, int(read) + 1, last.version - 1) if app_id in c.txn]
        position = max([position, *(app_ids.split(rival)[1] for rival in rivals)])
    return epoch, position


def close_feed(session: Any, app_id: str, target: str) -> int:
    """Commit a final position with a new epoch: late writers conflict with it or are skipped. Returns the position."""
    return open_feed(session, app_id, target, -1).position


def place_feed(session: Any, app_id: str, target: str, position: int, note: dict[str, Any]) -> None:
    """Commit the position at which an inactive feed will begin, whatever its position was before.

    raises  FeedStopped E_SKIPPED if another process writes under its id
    """
    commits.own(target)
    epoch = _next_epoch(target, app_id)
    _commit_position(session, FeedWriter(app_id=app_id, target=target, epoch=epoch, position=position), position, note)


def _next_epoch(target: str, app_id: str) -> int:
    number = open_tables.position(target, app_id)
    return app_ids.split(number)[0] + 1 if number is not None else 1


class _Apart(Exception):
    """Two positions need two commits: Spark has to make them."""


def replace_feed(session: Any, old: str, new: str, target: str, position: int) -> None:
    """Close one feed of a table and place another, as `close_feed` and `place_feed`, in one commit unless Spark has to make it.

    old, new  their app ids
    position  at which the new feed will begin
    raises    as `open_feed`
    """
    note = {"kind": "rebind", "feed": new, "after": old}

    def take_over(writer: FeedWriter) -> CommitResult:
        number = app_ids.number(_next_epoch(target, new), position)
        noted = {**note, "closed": writer.position, "read": writer.seen}
        result = _commit_unattended(writer, writer.position, noted, (Transaction(new, number),))
        if result is None:
            raise _Apart
        return result

    try:
        _taken_over(old, target, -1, "", take_over)
    except _Apart:
        closed = close_feed(session, old, target)
        place_feed(session, new, target, position, {**note, "closed": closed})


def append(session: Any, rows: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult:
    """Append rows and move the feed to `position`, in one commit that is read back.

    rows    DataFrame with the target's stored columns
    raises  FeedStopped E_SKIPPED if Delta skipped the write because another writer is ahead
    """
    _check_order(writer, position)
    result = _commit(session, rows, writer, position, note)
    writer.position = position
    return result


def heartbeat(session: Any, writer: FeedWriter, position: int) -> None:
    """Commit a position without rows."""
    _check_order(writer, position)
    _commit_position(session, writer, position, {"kind": "position"})
    writer.position = position


def append_small(rows: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult | None:
    """As `append`, for rows that fit in memory: computed by Spark, committed by deltalake.

    It takes a fifth of the processor time: the JVM rebuilds the table's state before each append (docs/decisions/0005).

    returns  None, with nothing written, if Spark has to write the rows: a Spark write on the table is in progress,
             Arrow cannot convert exactly to the table's columns, or a row's day is no valid partition
    raises   FeedStopped E_SKIPPED as `append`; nothing was written
    """
    _check_order(writer, position)
    result = _append_by_deltalake(arrow_table(rows), writer, position, note)
    if result is not None:
        writer.position = position
    return result


def append_files(writer: FeedWriter, files: Sequence[FileAction], position: int, note: dict[str, Any]) -> CommitResult:
    """As `append`, for files that are already in the table's folder: the commit writes no data file.

    raises  RegionError E_BUSY if Spark is still writing the table; FeedStopped as `append`
    """
    _check_order(writer, position)
    result = _commit_files(writer, files, position, note)
    writer.position = position
    return result


def _commit_files(
    writer: FeedWriter,
    files: Sequence[FileAction],
    position: int,
    note: dict[str, Any],
    others: tuple[Transaction, ...] = (),
) -> CommitResult:
    """others: positions of other feeds, in the same commit"""
    number = app_ids.number(writer.epoch, position)
    adds = [AddAction(f.name, f.bytes, dict(f.values), f.modified, True, f.stats) for f in files]
    with write_lock.exclusive(writer.target, seconds=LOCK_SECONDS) as locked:
        if not locked:
            raise RegionError(f"{writer.target}: Spark is writing it", hint="console retry", code="E_BUSY")

        def write(table: DeltaTable, properties: CommitProperties) -> None:
            if (table.transaction_version(writer.app_id) or 0) >= number:
                raise _skipped(writer, position)
            crash.point(f"before-commit-{note.get('kind', '')}")
            _commit_actions(table, adds, properties)

        numbers = (Transaction(writer.app_id, number), *others)
        before = commits.commit(writer.target, write, note=writer.noted(note), numbers=numbers)
        crash.point(f"after-commit-{note.get('kind', '')}")
    return _read_back(writer, before, number, position)


def _commit_actions(table: DeltaTable, adds: Sequence[AddAction], properties: CommitProperties) -> None:
    """Commit files that are there, or none, without writing any."""
    table.create_write_transaction(
        list(adds),
        "append",
        table.schema(),
        table.metadata().partition_columns,
        commit_properties=properties,
        post_commithook_properties=commits.hooks(table),
    )


def _append_by_deltalake(
    data: Any, writer: FeedWriter, position: int, note: dict[str, Any], others: tuple[Transaction, ...] = ()
) -> CommitResult | None:
    """data: Arrow table, or None for no rows. others: as in `_commit_files`"""
    number = app_ids.number(writer.epoch, position)

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        if (table.transaction_version(writer.app_id) or 0) >= number:
            raise _skipped(writer, position)
        exact = None if data is None else exact_appends.as_stored(table, data)
        crash.point(f"before-commit-{note.get('kind', '')}")
        if exact is None:  # an agent at rest moves its feeds' positions so, and loads no Arrow for it
            _commit_actions(table, (), properties)
            return
        write_deltalake(
            table,
            exact,
            mode="append",
            commit_properties=properties,
            post_commithook_properties=commits.hooks(table),
        )

    with write_lock.exclusive(writer.target) as locked:
        if not locked:
            return None
        numbers = (Transaction(writer.app_id, number), *others)
        try:
            before = commits.commit(writer.target, write, note=writer.noted(note), numbers=numbers)
        except exact_appends.Inexact:
            return None
        crash.point(f"after-commit-{note.get('kind', '')}")
    return _read_back(writer, before, number, position)


def _check_order(writer: FeedWriter, position: int) -> None:
    if position <= writer.position:
        raise FeedStopped(
            f"{writer.target}: position {position} is not after {writer.position}", code="E_ORDER", hint="console retry"
        )
    latest = log.latest_version(writer.target)
    foreign_commits.check(writer.target, writer.seen + 1, latest)
    writer.seen = latest


def _commit_position(session: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult:
    """Commit a position without rows, by deltalake if it supports the table, else by Spark."""
    result = _commit_unattended(writer, position, note)
    if result is not None:
        return result
    session = opened(session)
    return _commit(session, empty_rows(session, writer.target), writer, position, note)


def _commit_unattended(
    writer: FeedWriter, position: int, note: dict[str, Any], others: tuple[Transaction, ...] = ()
) -> CommitResult | None:
    """Commit positions without rows and without Spark, in a bucket without a file; None where Spark has to do it."""
    if in_bucket(writer.target):
        return _commit_files(writer, (), position, note, others)
    if not exact_appends.supports_small_appends(writer.target):
        return None
    return _append_by_deltalake(None, writer, position, note, others)


def _commit(session: Any, rows: Any, writer: FeedWriter, position: int, note: dict[str, Any]) -> CommitResult:
    if in_bucket(writer.target):
        return _commit_files(writer, spark_files.write(session, rows, writer.target), position, note)
    before = log.latest_version(writer.target)
    number = app_ids.number(writer.epoch, position)
    options = {"txnAppId": writer.app_id, "txnVersion": str(number), "userMetadata": json.dumps(writer.noted(note))}
    with write_lock.shared(writer.target):
        crash.point(f"before-commit-{note.get('kind', '')}")
        rows.write.format("delta").mode("append").options(**options).save(writer.target)
        crash.point(f"after-commit-{note.get('kind', '')}")
    return _read_back(writer, before, number, position)


def _read_back(writer: FeedWriter, before: int, number: int, position: int) -> CommitResult:
    for commit in log.commits(writer.target, before + 1, log.latest_version(writer.target)):
        if commit.txn.get(writer.app_id) == number:
            return CommitResult(commit.version, sum(f.rows for f in commit.added), sum(f.bytes for f in commit.added))
    raise _skipped(writer, position)


def _skipped(writer: FeedWriter, position: int) -> WriteSkipped:
    return WriteSkipped(
        f"{writer.target}: the write at {position} was skipped: another writer of {writer.app_id} is ahead",
        hint="console retry, for a rollout; a live feed is taken over again within minutes",
    )


def empty_rows(session: Any, target: str) -> Any:
    """An empty DataFrame in the target's schema, made without a Python worker and without reading a file."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(open_tables.schema_json(target)))
    columns = ", ".join(f"CAST(NULL AS {f.dataType.simpleString()}) AS {quoted(f.name)}" for f in schema.fields)
    return session.sql(f"SELECT {columns} WHERE 1 = 0")
