"""Appends events to a managed landing table, each exactly once: batches by id, files by the lines that have landed.

Written through deltalake and not through Spark: a batch costs milliseconds of one core instead of half a second
(docs/decisions/0002). The table's write lock keeps Spark and deltalake from writing it at the same time.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console import crash
from console.agent.errors import CommitGone
from console.agent.ingest import loads
from console.agent.ingest.shape import Shape, in_stored_columns, shape_of
from console.agent.ingest.values import parse_lines, spread_over, typed
from console.agent.pipeline import PipelineController
from console.agent.store import log, write_lock
from console.errors import DataError, RegionError, SchemaMoved
from console.model.live import Release, TableState
from console.model.load import EventRun, Landed, LoadState, valid_name

LOCK_WAIT_SECONDS = 60.0
MARKS = "lineMarks"  # key in the commit info, beside our note: long, and read only where a file differs
MAX_ENDS = 2000  # in one answer, so that it fits into a frame


class LandingWriter:
    """The only writer of a pipeline's managed landing tables."""

    def __init__(self, controller: PipelineController) -> None:
        self._controller = controller

    def append(self, table: str, batch: str, lines: Sequence[str], run: EventRun | None = None) -> dict[str, Any]:
        """Append lines, matched by column name; a batch id that is already committed is acknowledged, not repeated.

        run     which lines of a file these are; they are deduplicated by that, whatever the batch id
        raises  DataError naming the first line that is not a JSON object or has a value that does not fit its column;
                Conflict E_LOAD_MOVED, E_SCHEMA_MOVED where the sender has to read the state of the load again
        """
        target = self._target(table)
        with self._locked(target.path) as path:
            opened = DeltaTable(path)
            table_id, numbers = str(opened.metadata().id), _numbers(run, lines)
            note: dict[str, Any] = {"kind": "landing", "batch": batch}
            more: dict[str, str] = {}
            if run is None:
                app_id, number = f"ingest/{table_id}/{batch}", 0
                here = opened.transaction_version(app_id) is not None
            else:
                end, marks = _end(run, lines)
                app_id, number = loads.app_id(table_id, end), end.rows
                here = not loads.of(path).place(run, end)
                note |= {"load": run.load, "lines": [run.at[0][0], end.line], "hash": end.chain, "rows": end.rows}
                more[MARKS] = b64encode(marks).decode()
            if here:
                return {"rows": 0, "already": True}
            shape = target.shape(opened)
            if run is not None and run.schema not in ("", schema_id(opened, shape)):
                raise SchemaMoved(
                    f"{table}: its columns have changed since the lines were checked", hint="send the file again"
                )
            rows = _rows(opened, shape, lines, numbers)
            note["rows_in"] = len(rows)
            properties = CommitProperties(
                custom_metadata={"userMetadata": json.dumps(note), **more},
                app_transactions=[Transaction(app_id, number)],
            )
            columns = typed(opened, rows, numbers, shape.labels)
            crash.point("before-commit-landing")
            write_deltalake(path, columns, mode="append", commit_properties=properties)
            crash.point("after-commit-landing")
            written = log.position(path, app_id)
        if written is None:
            raise DataError(f"batch {batch} was not committed to {path}", hint="send it again: a batch counts once")
        return {"rows": len(rows), "already": False}

    def check(self, table: str, lines: Sequence[str], at: Sequence[tuple[int, int]]) -> dict[str, str]:
        """Check these lines of a file as `append` would, without writing: {"schema": id of the schema that they fit}.

        raises  DataError naming the first line that does not fit
        """
        target = self._target(table)
        path = target.path
        log.check_intact(path)
        opened, numbers = DeltaTable(path), _lines(at, len(lines))
        shape = target.shape(opened)
        typed(opened, _rows(opened, shape, lines, numbers), numbers, shape.labels)
        return {"schema": schema_id(opened, shape)}

    def load_state(self, table: str, load: str, first: str, *, named: bool, batch: str, after: int) -> LoadState:
        """How far the loads that a file may belong to have landed.

        load   name of the load, chosen by a person if `named`, else only proposed
        first  chain of the file's first event
        batch  id under which a console without loads would have sent the file
        after  list the commits of `load` beyond this event
        """
        path = self._target(table).path
        log.check_intact(path)
        return loads.of(path).state_for(load, first, named=named, batch=batch, after=after, most=MAX_ENDS)

    def marks(self, table: str, load: str, rows: int) -> dict[str, str]:
        """Marks (base64) of the events of the commit that brought a load to `rows` rows; "" where they are gone."""
        path = self._target(table).path
        for version in range(log.latest_version(path), -1, -1):
            try:
                commit = log.commit(path, version)
            except CommitGone:
                break
            if (commit.note.get("load"), commit.note.get("rows")) == (load, rows):
                return {"marks": _marks(path, version)}
        return {"marks": ""}

    @contextmanager
    def _locked(self, path: str) -> Iterator[str]:
        with write_lock.exclusive(path, seconds=LOCK_WAIT_SECONDS) as locked:
            if not locked:
                raise RegionError(f"{path}: locked by Spark for {LOCK_WAIT_SECONDS:.0f} s", hint="send it again")
            log.check_intact(path)
            yield path

    def _target(self, table: str) -> "_Target":
        """The table that the live release has under a name, or had when an older one was live.

        raises  DataError for a table that takes no lines
        """
        releases = self._controller.releases.all()
        live = next((each.release for each in releases if each.row.state == "live"), None) or self._controller.live()
        older = [each.release for each in reversed(releases) if each.row.state in ("previous", "retired")]
        state = live.table(table) or _continued(live, older, table)
        if state is None or state.table.kind != "landing":
            raise DataError(f"{table} is not a landing table of release {live.id}")
        if not state.table.managed:
            raise DataError(
                f"{table} is not managed: its own producers write it", hint="set `managed: true`", code="P_MANAGED"
            )
        others = [other for release in older for other in release.tables if other.version.path == state.version.path]
        return _Target(self._controller.path(state.version.path), state, tuple(others))


@dataclass(frozen=True, slots=True)
class _Target:
    """A landing table: live, and as older releases have it that are not cleaned up, newest first."""

    path: str
    live: TableState
    older: tuple[TableState, ...]

    def shape(self, opened: DeltaTable) -> Shape:
        today = datetime.now(UTC).date().isoformat()
        return shape_of(self.live, self.older, [field.name for field in opened.schema().fields], today)


def _continued(live: Release, older: Sequence[Release], table: str) -> TableState | None:
    """What the live release has in the place of a table that an older one calls so."""
    known = next((state for release in older if (state := release.table(table))), None)
    return next((state for state in live.tables if known and state.version.path == known.version.path), None)


def _rows(table: DeltaTable, shape: Shape, lines: Sequence[str], numbers: Sequence[int] | None) -> list[dict[str, Any]]:
    """Lines as rows of the table's stored columns."""
    known = tuple(shape.stored)
    rows = parse_lines(lines, known, numbers, shown=shape.names, ended=shape.ended, until=shape.until)
    if shape.plain:
        return rows
    return in_stored_columns(shape, rows, numbers or range(1, len(rows) + 1), spread_over(table, shape))


def schema_id(table: DeltaTable, shape: Shape) -> str:
    """A short digest of the schema, the partitioning and the names that lines are checked against."""
    schema = json.dumps([table.schema().to_json(), table.metadata().partition_columns, *shape.key()])
    return hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()


def _end(run: EventRun, lines: Sequence[str]) -> tuple[Landed, bytes]:
    """The load's end after these lines, and a mark for each of them.

    raises  DataError for a request that no console sends
    """
    if not lines or not all(isinstance(line, str) for line in lines) or not valid_name(run.load):
        raise DataError(f"load {run.load!r:.60}: no lines, or an invalid name")
    try:
        bytes.fromhex(run.first)
        return run.end(lines)
    except ValueError:
        raise DataError(f"load {run.load}: {run.before!r:.40} is not a hash") from None


def _numbers(run: EventRun | None, lines: Sequence[str]) -> Sequence[int] | None:
    return None if run is None else _lines(run.at, len(lines))


def _lines(at: Sequence[tuple[int, int]], count: int) -> Sequence[int]:
    """The line number of each event in its file."""
    if sum(many for _, many in at) != count or any(start < 1 or many < 1 for start, many in at):
        raise DataError(f"the numbers of {count:,} lines do not fit them", code="E_PROTOCOL")
    return [line for start, many in at for line in range(start, start + many)]


def _marks(path: str, version: int) -> str:
    for action in map(json.loads, log.action_lines(path, version)):
        if "commitInfo" in action:
            return str(action["commitInfo"].get(MARKS, ""))
    return ""
