"""Appends events to a managed landing table, each exactly once: batches by id, files by the lines that have landed.

Written by deltalake, not Spark: a batch costs milliseconds of one core instead of half a second (docs/decisions/0002).
The table's write lock keeps Spark and deltalake from writing it at the same time.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console import crash
from console.agent.errors import CommitGone
from console.agent.ingest import loads
from console.agent.ingest.other_shapes import OtherShape, SentLines, ShapedTable, stored_rows
from console.agent.ingest.shapes import Shapes, shapes_of
from console.agent.pipeline import PipelineController
from console.agent.store import commits, log, open_tables, write_lock
from console.agent.store.landing_versions import has_taken, versions_of
from console.errors import DataError, RegionError, SchemaMoved
from console.model.live import Release, TableState
from console.model.load import EventRun, Landed, LoadState, valid_name

LOCK_WAIT_SECONDS = 60.0
_KEPT = ("live", "previous", "retired")
MARKS = "lineMarks"  # key in the commit info, beside our note: long, and read only if a file differs
MAX_ENDS = 2000  # in one response, so that it fits into a frame


class LandingWriter:
    """The only writer of a pipeline's managed landing tables."""

    def __init__(self, controller: PipelineController) -> None:
        self._controller = controller

    def append(
        self, table: str, batch: str, lines: Sequence[str], run: EventRun | None = None, shape: str = ""
    ) -> dict[str, Any]:
        """Append lines, matched by column name; a batch id that is already committed is acknowledged, not repeated.

        shape   name of their shape, if the table's `accepts` distinguishes lines by it
        run     the lines' place in their file, by which they are deduplicated, regardless of the batch id
        raises  DataError naming the first line that is not a JSON object or has a value that does not fit its column;
                Conflict E_LOAD_MOVED, E_SCHEMA_MOVED if the sender must read the load's state again
        """
        with self._controller.intake.passing():  # inside the gate, so that the live version cannot change
            sent = SentLines(table=table, events=lines, numbers=_numbers(run, lines), shape=shape)
            return self._append(self._target(table), batch, sent, run)

    def _append(self, target: "_Target", batch: str, sent: SentLines, run: EventRun | None) -> dict[str, Any]:
        path = target.path
        with self._locked(path), open_tables.opened(path) as opened:
            table_id = str(opened.metadata().id)
            note: dict[str, Any] = {"kind": "landing", "batch": batch}
            more: dict[str, str] = {}
            if run is None:
                app_id, number = f"ingest/{table_id}/{batch}", 0
                here = opened.transaction_version(app_id) is not None or target.has_taken(batch)
            else:
                end, marks = _end(run, sent.events)
                app_id, number = loads.app_id(table_id, end), end.rows
                here = not loads.of(path, target.others).place(run, end)
                note |= {"load": run.load, "lines": [run.at[0][0], end.line], "hash": end.chain, "rows": end.rows}
                more[MARKS] = b64encode(marks).decode()
            if here:
                return {"rows": 0, "already": True}
            version = target.version(opened)
            if run is not None and run.schema not in ("", schema_id(opened, version.shapes)):
                raise SchemaMoved(
                    f"{sent.table}: its columns have changed since the lines were checked", hint="send the file again"
                )
            rows = stored_rows(version, target.other_shapes(sent), sent, self._controller.spark.session)
            note["rows_in"] = len(sent.events)
            columns = clustered(rows, target.live)

            def write(table: DeltaTable, properties: CommitProperties) -> None:
                after = commits.hooks(table)
                write_deltalake(
                    table, columns, mode="append", commit_properties=properties, post_commithook_properties=after
                )

            crash.point("before-commit-landing")
            before = commits.commit(path, write, note=note, numbers=(Transaction(app_id, number),), more=more)
            crash.point("after-commit-landing")
            since = log.commits(path, before + 1, log.latest_version(path))
            written = any(app_id in each.txn for each in since)
        if not written:
            raise DataError(f"batch {batch} was not committed to {path}", hint="send it again: a batch counts once")
        return {"rows": len(sent.events), "already": False}

    def check(self, table: str, lines: Sequence[str], at: Sequence[tuple[int, int]], shape: str = "") -> dict[str, str]:
        """Validate lines of a file as `append` would, without writing: {"schema": id of the schema that they fit}.

        raises  DataError naming the first line that does not fit
        """
        target = self._target(table)
        path = target.path
        log.check_intact(path)
        version = target.version(DeltaTable(path))
        sent = SentLines(table=table, events=lines, numbers=_lines(at, len(lines)), shape=shape)
        stored_rows(version, target.other_shapes(sent), sent, None)
        return {"schema": schema_id(version.opened, version.shapes)}

    def load_state(self, table: str, load: str, first: str, *, named: bool, batch: str, after: int) -> LoadState:
        """The progress of the loads that a file may belong to.

        load   name of the load, chosen by a person if `named`, else only proposed
        first  chain of the file's first event
        batch  id under which a console without loads would have sent the file
        after  list the commits of `load` beyond this event
        """
        target = self._target(table)
        log.check_intact(target.path)
        return loads.of(target.path, target.others).state_for(
            load, first, named=named, batch=batch, after=after, most=MAX_ENDS
        )

    def marks(self, table: str, load: str, rows: int) -> dict[str, str]:
        """Marks (base64) of the events of the commit that brought a load to `rows` rows; "" if they are gone."""
        target = self._target(table)
        results = (_marks_of(path, load, rows) for path in (target.path, *target.others))
        return {"marks": next((marks for marks in results if marks), "")}

    @contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        with write_lock.exclusive(path, seconds=LOCK_WAIT_SECONDS) as locked:
            if not locked:
                raise RegionError(f"{path}: locked by Spark for {LOCK_WAIT_SECONDS:.0f} s", hint="send it again")
            log.check_intact(path)
            commits.own(path)
            yield

    def _target(self, table: str) -> "_Target":
        """The table that the live release, or an older one that was live, has under a name.

        raises  DataError for a table that does not accept lines
        """
        releases = self._controller.releases.all()
        live = next((each.release for each in releases if each.row.state == "live"), None) or self._controller.live()
        older = [each.release for each in reversed(releases) if each.row.state in ("previous", "retired")]
        manifests = [each.release for each in releases]
        state = live.table(table) or _continued(manifests, live, older, table)
        if state is None or state.table.kind != "landing":
            raise DataError(f"{table} is not a landing table of release {live.id}")
        if not state.table.managed:
            raise DataError(
                f"{table} is not managed: its own producers write it", hint="set `managed: true`", code="P_MANAGED"
            )
        there = [each.release for each in reversed(releases) if each.row.state in _KEPT]
        alike = versions_of(manifests, state.version.path, stored_alike=True)
        kept = [other for release in there for other in release.tables if other.version.path in alike]
        path, *others = map(self._controller.path, versions_of(manifests, state.version.path))
        return _Target(
            path=path,
            live=state,
            kept=tuple(kept if any(other is state for other in kept) else [state, *kept]),
            others=tuple(other for other in others if log.exists(other)),
            linked=tuple(_linked(there, state, self._controller.path)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A landing table.

    kept    its state in each release that is not cleaned up, including the live one, newest first
    others  paths of its other versions
    linked  other versions with different stored columns, whose lines are accepted
    """

    path: str
    live: TableState
    kept: tuple[TableState, ...]
    others: tuple[str, ...]
    linked: tuple["_Linked", ...] = ()

    def has_taken(self, batch: str) -> bool:
        """Whether another version has accepted a batch."""
        return any(has_taken(other, batch) for other in self.others)

    def version(self, opened: DeltaTable) -> ShapedTable:
        return ShapedTable(opened, _shapes(self.live, self.kept, opened))

    def other_shapes(self, sent: SentLines) -> tuple[OtherShape, ...]:
        """Shapes accepted beside the live one: none for lines that name their shape, nor from `accepts_until` on."""
        until = self.live.table.accepts_until
        if sent.shape or (until and _today() >= until):
            return ()
        return tuple(each.shape() for each in self.linked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Linked:
    """Another version of a landing table, with different stored columns.

    state, kept  as `live` and `kept` of `_Target`;  table, sql, keys, back  as of `OtherShape`
    """

    path: str
    state: TableState
    kept: tuple[TableState, ...]
    table: str
    sql: str
    keys: tuple[str, ...]
    back: str

    def shape(self) -> OtherShape:
        opened = DeltaTable(self.path)
        version = ShapedTable(opened, _shapes(self.state, self.kept, opened))
        return OtherShape(version=version, table=self.table, sql=self.sql, keys=self.keys, back=self.back)


def _shapes(state: TableState, kept: Sequence[TableState], opened: DeltaTable) -> Shapes:
    return shapes_of(state, kept, [field.name for field in opened.schema().fields], _today())


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _linked(releases: Sequence[Release], live: TableState, resolve: Callable[[str], str]) -> Iterator[_Linked]:
    """releases: the kept ones, newest first"""
    states: dict[str, list[TableState]] = {}
    for release in releases:
        for state in release.tables:
            states.setdefault(state.version.path, []).append(state)
    seen: set[str] = set()
    for release in releases:
        for relay in release.relays:
            newer = release.table(relay.table)
            if relay.stored_alike or newer is None or live.version.path not in (relay.older, newer.version.path):
                continue
            forward = live.version.path == newer.version.path
            path = relay.older if forward else newer.version.path
            if path in seen or path not in states or not log.exists(resolve(path)):
                continue
            seen.add(path)
            state, *_ = kept = states[path]
            sql, keys = (relay.forward, relay.keys) if forward else (relay.backward, ())
            back = relay.forward if relay.lost and not forward else ""
            yield _Linked(
                path=resolve(path), state=state, kept=tuple(kept), table=relay.table, sql=sql, keys=keys, back=back
            )


def _continued(releases: Sequence[Release], live: Release, older: Sequence[Release], table: str) -> TableState | None:
    """The live release's successor of a table that an older one has under this name."""
    known = next((state for release in older if (state := release.table(table))), None)
    paths = versions_of(releases, known.version.path) if known else ()
    return next((state for state in live.tables if state.version.path in paths), None)


def clustered(rows: Any, state: TableState) -> Any:
    """A batch (Arrow) sorted by the table's clustering columns; equal rows keep the order of their lines."""
    places = (state.stored_in(name)[0] for name in state.table.cluster_by)
    order = [(place, "ascending") for place in places if place in rows.column_names]
    return rows.sort_by(order) if order else rows


def schema_id(table: DeltaTable, shapes: Shapes) -> str:
    """A short digest of the schema, the partitioning and the names that lines are checked against."""
    schema = json.dumps([table.schema().to_json(), table.metadata().partition_columns, *shapes.key()])
    return hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()


def _end(run: EventRun, lines: Sequence[str]) -> tuple[Landed, bytes]:
    """The load's end after these lines, and a mark for each of them.

    raises  DataError for an invalid request, which no console sends
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


def _marks_of(path: str, load: str, rows: int) -> str:
    """The marks of the commit that brought a load to `rows` rows, "" if this version's log has none."""
    for version in range(log.latest_version(path), -1, -1):
        try:
            commit = log.commit(path, version)
        except CommitGone:
            break
        if (commit.note.get("load"), commit.note.get("rows")) == (load, rows):
            return _marks(path, version)
    return ""


def _marks(path: str, version: int) -> str:
    for action in map(json.loads, log.action_lines(path, version)):
        if "commitInfo" in action:
            return str(action["commitInfo"].get(MARKS, ""))
    return ""
