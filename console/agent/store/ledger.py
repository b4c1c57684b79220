"""The region's own tables `releases` and `rollouts`: written through deltalake, by the agent only."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table
from deltalake import CommitProperties, DeltaTable, QueryBuilder
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from console import crash
from console.agent.errors import LogDamaged
from console.agent.object_store.object_path import in_bucket
from console.agent.store import bucket_rows, commits, log, log_files
from console.agent.store.side_files import SideFiles
from console.errors import Conflict, DataError
from console.model import codec
from console.model.event import Accepted, Event, Promoted, Recorded, RolledBack
from console.model.live import Release, ReleaseRow, ReleaseState
from console.model.plan import Plan
from console.model.rollout_id import newest_rollout, release_number, rollout_number
from console.model.status import Status, replay

_RELEASE_COLUMNS = {
    "id": DataType.utf8(),
    "state": DataType.utf8(),
    "manifest": DataType.utf8(),
    "rollout": DataType.utf8(),
    "at": DataType.float64(),
    "by": DataType.utf8(),
    "host": DataType.utf8(),
}
_EVENT_COLUMNS = {
    "rollout": DataType.utf8(),
    "seq": DataType.int64(),
    "at": DataType.float64(),
    "event": DataType.utf8(),
    "plan": DataType.utf8(),
}


def select_rows(table: DeltaTable, select: str) -> list[dict[str, Any]]:
    """The rows of a SELECT over the table, which is named `t` in it."""
    if in_bucket(table.table_uri):
        return bucket_rows.select(table, select)
    rows = QueryBuilder().register("t", table).execute(select).read_all()
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def open_table(path: Path) -> DeltaTable | None:
    """The table, or None if nothing was written yet.

    raises  RegionError E_LOG_DAMAGED, E_LOG_EMPTY
    """
    try:
        table = DeltaTable(str(path))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        first = str(error).strip().splitlines()[0][:200]
        raise LogDamaged(f"{path}: its log cannot be read: {first}", hint="console doctor") from None
    log.check_intact(str(path))
    return table


def _append(path: Path, columns: dict[str, Any], *rows: dict[str, Any]) -> None:
    """Append rows in one commit."""
    data = Table.from_pydict({name: Array([row[name] for row in rows], kind) for name, kind in columns.items()})
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        commits.append(str(path), data)
    except Exception:
        if not _is_stored(path, rows[0]):  # on a full disk the commit may have succeeded and only its checkpoint failed
            raise


def _is_stored(path: Path, row: dict[str, Any]) -> bool:
    table = open_table(path)
    return table is not None and row in select_rows(table, f"SELECT * FROM t WHERE at = {row['at']!r}")


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A stored release: its row, its manifest, and the rollout that built it."""

    row: ReleaseRow
    release: Release
    rollout: str


class Releases:
    """`_console/<pipeline>/releases`: one row per release; a promotion is one commit (P3).

    written  how many times releases were added or dropped through this object, in vain included
    """

    def __init__(self, warehouse: Path, pipeline: str) -> None:
        self.path = warehouse / "_console" / pipeline / "releases"
        self.written = 0
        self._side_files = SideFiles(self.path.parent)
        self._manifests: dict[str, Release] = {}
        self._known: tuple[int, log_files.Stamp, tuple[StoredRelease, ...]] | None = None

    def version(self) -> int:
        table = open_table(self.path)
        return table.version() if table else -1

    def all(self) -> tuple[StoredRelease, ...]:
        """All releases that were not dropped, oldest first, from one snapshot: every batch of the intake asks for them."""
        path = str(self.path)
        if self._known is not None:
            version, stamp, unchanged = self._known
            if log_files.stamp(path, version) == stamp and log_files.stamp(path, version + 1) is None:
                return unchanged
        table = open_table(self.path)
        if table is None:
            return ()
        stored = []
        self._side_files.look()
        for row in select_rows(table, "SELECT * FROM t"):
            if row["id"] not in self._manifests:
                self._manifests[row["id"]] = codec.decode(Release, self._side_files.joined(row["id"], row["manifest"]))
            digest = self._manifests[row["id"]].digest
            known = {name: row[name] for name in ("id", "state", "at", "by", "host")}
            stored.append(StoredRelease(ReleaseRow(**known, digest=digest), self._manifests[row["id"]], row["rollout"]))
        found = tuple(sorted(stored, key=lambda h: release_number(h.row.id)))
        version = int(table.version())
        newest = log_files.stamp(path, version)
        self._known = None if newest is None else (version, newest, found)
        return found

    def in_state(self, state: ReleaseState) -> StoredRelease | None:
        return next((stored for stored in self.all() if stored.row.state == state), None)

    def propose(self, release: Release, rollout: str, by: str, host: str) -> None:
        """Store a release to be built, as `preview`; does nothing if it is stored already."""
        if any(stored.row.id == release.id for stored in self.all()):
            return
        manifest = self._side_files.split(plain_id(release.id), release)
        row = {"id": release.id, "state": "preview", "manifest": manifest, "rollout": rollout}
        crash.point("before-propose")
        try:
            _append(self.path, _RELEASE_COLUMNS, {**row, "at": time.time(), "by": by, "host": host})
        finally:
            self.written += 1
        crash.point("after-propose")

    def swap(self, live: str, to: str, by: str, host: str) -> int:
        """Make `to` live in place of `live` ("" for none), in one conditional commit; `live` becomes previous.

        returns  version of the release table
        raises   Conflict E_MOVED naming who promoted another release meanwhile; E_NO_RELEASE if `to` is not stored here
        """
        table = open_table(self.path)
        stored = self.all()
        current = next((each for each in stored if each.row.state == "live"), None)
        if table is None or (current.row.id if current else "") != live:
            raise _moved_error(live, current)
        if to not in {each.row.id for each in stored if each.row.state != "live"}:
            missing = f"release {to} is not in this region, or live already"
            raise Conflict(missing, hint="console status", code="E_NO_RELEASE")
        state = f"CASE WHEN id = '{plain_id(to)}' THEN 'live' WHEN id = '{plain_id(live)}' THEN 'previous' WHEN state = 'previous' THEN 'retired' ELSE state END"
        is_target, at = f"id = '{plain_id(to)}'", time.time()
        changes = {
            "state": state,
            "at": f"CASE WHEN {is_target} THEN {at!r} ELSE at END",
            "by": f"CASE WHEN {is_target} THEN {sql_text(by)} ELSE by END",
            "host": f"CASE WHEN {is_target} THEN {sql_text(host)} ELSE host END",
        }
        if in_bucket(str(self.path)):
            return self._swap_in_bucket(live, changes)
        if table.version() != self.version():
            raise _moved_error(live, self.in_state("live"))
        crash.point("before-swap")
        try:
            table.update(updates=changes)
        except CommitFailedError:
            raise _moved_error(live, self.in_state("live")) from None
        except Exception:
            current = self.in_state("live")
            if current is None or (current.row.id, current.row.at) != (to, at):
                raise
            # the commit succeeded, as in `_append`
            table.update_incremental()
        crash.point("after-swap")
        return int(table.version())

    def _swap_in_bucket(self, live: str, changes: dict[str, str]) -> int:
        """The swap as one fenced commit, which decides by the table from which it is written."""

        def write(table: DeltaTable, properties: CommitProperties) -> None:
            rows = select_rows(table, "SELECT id FROM t WHERE state = 'live'")
            if [row["id"] for row in rows] != ([live] if live else []):
                raise _moved_error(live, self.in_state("live"))
            table.update(updates=changes, commit_properties=properties)

        crash.point("before-swap")
        version = 1 + commits.commit(str(self.path), write)
        crash.point("after-swap")
        return version

    def accept_until(self, release: str, days: Mapping[str, str]) -> None:
        """Change the days that end older shapes of lines; the release's row does not change. days: table → day or "" """
        table, stored = open_table(self.path), next(each for each in self.all() if each.row.id == release)
        assert table is not None
        moved = stored.release.accepting_until(days)
        (row,) = select_rows(table, f"SELECT manifest FROM t WHERE id = '{plain_id(release)}'")
        crash.point("before-accept-until")
        self._side_files.rewrite(plain_id(release), moved, row["manifest"])
        crash.point("after-accept-until")
        self._manifests[release], self._known = moved, None

    def mark(self, release: str, state: ReleaseState) -> None:
        table = open_table(self.path)
        if table is not None:
            changes, which = {"state": f"'{state}'"}, f"id = '{plain_id(release)}' AND state <> 'live'"
            crash.point("before-retire")
            if not in_bucket(str(self.path)):
                table.update(updates=changes, predicate=which)
            elif select_rows(table, f"SELECT id FROM t WHERE {which}"):
                commits.commit(str(self.path), lambda t, p: t.update(changes, predicate=which, commit_properties=p))
            crash.point("after-retire")

    def drop(self, release: str) -> None:
        """Delete a release whose versions were dropped."""
        table = open_table(self.path)
        if table is not None:
            which = f"id = '{plain_id(release)}' AND state NOT IN ('live')"
            crash.point("before-forget")
            try:
                if not in_bucket(str(self.path)):
                    table.delete(which)
                elif select_rows(table, f"SELECT id FROM t WHERE {which}"):
                    commits.commit(str(self.path), lambda t, p: t.delete(which, commit_properties=p))
            finally:
                self.written += 1
            crash.point("after-forget")
            self._side_files.forget(plain_id(release))


class Rollouts:
    """`_console/<pipeline>/rollouts`: accepted plans and every change of state, append only (P2)."""

    def __init__(self, warehouse: Path, pipeline: str) -> None:
        self.path = warehouse / "_console" / pipeline / "rollouts"
        self.pipeline = pipeline
        self._side_files = SideFiles(self.path.parent)

    def latest(self) -> str:
        """The id of the newest rollout, `web-7`, or ""."""
        table = open_table(self.path)
        return _newest_rollout(table) if table else ""

    def names(self) -> tuple[str, ...]:
        """The ids of all rollouts, newest first."""
        table = open_table(self.path)
        return tuple(sorted(_rollout_names(table), key=rollout_number, reverse=True)) if table else ()

    def events(self, rollout: str, after: int = 0) -> tuple[Recorded, ...]:
        table = open_table(self.path)
        return self._events(table, rollout, after) if table and rollout else ()

    def newest(self) -> tuple[Recorded, ...]:
        """The events of the newest rollout: of the thousands of files of older ones none is opened."""
        table = open_table(self.path)
        return self._events(table, _newest_rollout(table)) if table else ()

    def all_events(self) -> tuple[Recorded, ...]:
        """The stored events of all rollouts, in order, with one query."""
        table = open_table(self.path)
        return self._decoded(select_rows(table, "SELECT rollout, seq, at, event FROM t ORDER BY seq")) if table else ()

    def plan(self, rollout: str) -> Plan | None:
        table = open_table(self.path)
        if table is None or not rollout:
            return None
        rows = select_rows(table, f"SELECT plan FROM t WHERE rollout = '{plain_id(rollout)}' AND plan <> ''")
        self._side_files.look()
        return codec.decode(Plan, self._side_files.joined(rollout, rows[0]["plan"])) if rows else None

    def status(self) -> Status:
        return replay(self.newest())

    def append(self, rollout: str, seq: int, event: Event, plan: Plan | None = None) -> Recorded:
        """Store one event; it is on disk when this returns."""
        return self.append_together(rollout, seq, (event,), plan)[0]

    def append_together(
        self, rollout: str, seq: int, events: Sequence[Event], plan: Plan | None = None
    ) -> tuple[Recorded, ...]:
        """Store events in one commit, so that none is there without the others. seq: number of the first one"""
        recorded = tuple(Recorded(rollout, n, time.time(), event) for n, event in enumerate(events, seq))
        _append(self.path, _EVENT_COLUMNS, *(self._row(each, plan) for each in recorded))
        return recorded

    def _row(self, recorded: Recorded, plan: Plan | None) -> dict[str, Any]:
        name, event = plain_id(recorded.rollout), recorded.event
        plan_text = self._side_files.split(name, plan) if plan and isinstance(event, Accepted) else ""
        event_text = self._side_files.split(f"{name}.{recorded.seq}", event)
        where = {"rollout": recorded.rollout, "seq": recorded.seq, "at": recorded.at}
        return {**where, "event": event_text, "plan": plan_text}

    def decision(self) -> Promoted | RolledBack | None:
        """The last promotion or rollback of the newest rollout."""
        decisions = [r.event for r in self.newest() if isinstance(r.event, Promoted | RolledBack)]
        return decisions[-1] if decisions else None

    def _events(self, table: DeltaTable, rollout: str, after: int = 0) -> tuple[Recorded, ...]:
        if not rollout:
            return ()
        where = f"rollout = '{plain_id(rollout)}' AND seq > {int(after)}"
        return self._decoded(select_rows(table, f"SELECT rollout, seq, at, event FROM t WHERE {where} ORDER BY seq"))

    def _decoded(self, rows: list[dict[str, Any]]) -> tuple[Recorded, ...]:
        self._side_files.look()
        return tuple(
            codec.decode(
                Recorded, {**row, "event": self._side_files.joined(f"{row['rollout']}.{row['seq']}", row["event"])}
            )
            for row in rows
        )


def _newest_rollout(table: DeltaTable) -> str:
    return newest_rollout(_rollout_names(table))


def _rollout_names(table: DeltaTable) -> set[str]:
    """By the log's statistics, since most files hold one event; by all files where these name no single rollout."""
    stated = table.get_add_actions(flatten=True)
    columns = [
        stated.column(name).to_pylist() for name in ("min.rollout", "max.rollout") if name in stated.column_names
    ]
    if len(columns) == 2 and all(low and low == high for low, high in zip(*columns, strict=True)):
        return set(columns[0])
    return {row["rollout"] for row in select_rows(table, "SELECT DISTINCT rollout FROM t")}


def _moved_error(expected: str, current: StoredRelease | None) -> Conflict:
    if current is None:
        return Conflict(f"no release is live, not {expected}", hint="console plan", code="E_MOVED")
    when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(current.row.at))
    return Conflict(
        f"{current.row.id} is live, not {expected or 'none'}: promoted by {current.row.by} from {current.row.host} at {when}",
        hint="console plan, for the releases that are live now",
        code="E_MOVED",
    )


def plain_id(name: str) -> str:
    """The id, safe to be put into a query. raises  DataError for any other text"""
    if not all(char.isalnum() or char in "-_" for char in name):
        raise DataError(f"{name!r:.60} is no id")
    return name


def sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
