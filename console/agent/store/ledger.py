"""The region's own two tables, `releases` and `rollouts`: written through deltalake, by the agent alone."""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from console import crash
from console.agent.store import log
from console.errors import Conflict, DataError, RegionError
from console.model import codec
from console.model.event import Accepted, Event, Promoted, Recorded, RolledBack
from console.model.live import Release, ReleaseRow, ReleaseState
from console.model.plan import Plan
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


def selected(table: DeltaTable, select: str) -> list[dict[str, Any]]:
    """The rows of one SELECT over a table called `t`."""
    found = QueryBuilder().register("t", table).execute(select).read_all()
    columns = {name: found.column(name).to_pylist() for name in found.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def opened(path: Path) -> DeltaTable | None:
    """The table, or None where nothing was written yet."""
    try:
        found = DeltaTable(str(path))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        first = str(error).strip().splitlines()[0][:200]
        raise RegionError(
            f"{path}: its log cannot be read: {first}", hint="console doctor", code="E_LOG_DAMAGED"
        ) from None
    log.check_intact(str(path))
    return found


def _append(path: Path, columns: dict[str, Any], row: dict[str, Any]) -> None:
    data = Table.from_pydict({name: Array([row[name]], kind) for name, kind in columns.items()})
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        write_deltalake(str(path), data, mode="append")
    except Exception:
        if not _stands(path, row):  # what a full disk broke off may be the checkpoint after every hundredth commit
            raise


def _stands(path: Path, row: dict[str, Any]) -> bool:
    table = opened(path)
    return table is not None and row in selected(table, f"SELECT * FROM t WHERE at = {row['at']!r}")


class Beside:
    """`_console/<pipeline>/beside`: what rows of the two tables mean besides, in words that came after 0.1.0.

    That version refuses a row with a key it does not know, and does not open this folder: so it goes on reading, following and
    going back. A file is written before its row, and is of that row alone whose text has its digest.
    """

    def __init__(self, pipeline: Path) -> None:
        self._folder = pipeline / "beside"

    def part(self, name: str, value: object) -> str:
        """A value as the text of a row; the rest of it is on disk when this returns.

        name  `r7`, `web-7` of an accepted plan, `web-7.12` of an event
        """
        data, rest = codec.parted(value)
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        if rest:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            whole, fresh = self._folder / f"{name}.json", self._folder / f".{name}.new"
            with fresh.open("w") as file:
                json.dump({"format_version": 1, "of": _digest(text), "rest": rest}, file, allow_nan=False)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(whole)
            _on_disk(self._folder)
        return text

    def whole(self, name: str, text: str) -> Any:
        """The data of a row, with what stands beside it.

        raises  RegionError E_LOG_DAMAGED
        """
        data = codec.loads(text)
        try:
            held = json.loads((self._folder / f"{name}.json").read_text())
            return codec.joined(data, held["rest"]) if held["of"] == _digest(text) else data
        except FileNotFoundError:
            return data
        except (ValueError, KeyError, TypeError, DataError):
            told = f"{self._folder}/{name}.json cannot be read"
            raise RegionError(told, hint="console doctor", code="E_LOG_DAMAGED") from None

    def forget(self, name: str) -> None:
        (self._folder / f"{name}.json").unlink(missing_ok=True)


def _on_disk(folder: Path) -> None:
    """A folder's names as durable as its files: after a power loss no row may stand without what is beside it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A release with its manifest and its place in the order of promotions."""

    row: ReleaseRow
    release: Release
    rollout: str


class Releases:
    """`_console/<pipeline>/releases`: one row a release; which one is live changes in one commit (P3)."""

    def __init__(self, warehouse: Path, pipeline: str) -> None:
        self.path = warehouse / "_console" / pipeline / "releases"
        self._beside = Beside(self.path.parent)
        self._manifests: dict[str, Release] = {}

    def version(self) -> int:
        table = opened(self.path)
        return table.version() if table else -1

    def all(self) -> tuple[StoredRelease, ...]:
        """Every release that was not dropped, oldest first, from one snapshot."""
        table = opened(self.path)
        if table is None:
            return ()
        held = []
        for row in selected(table, "SELECT * FROM t"):
            if row["id"] not in self._manifests:
                self._manifests[row["id"]] = codec.decode(Release, self._beside.whole(row["id"], row["manifest"]))
            digest = self._manifests[row["id"]].digest
            place = ReleaseRow(row["id"], row["state"], row["at"], row["by"], row["host"], digest)
            held.append(StoredRelease(place, self._manifests[row["id"]], row["rollout"]))
        return tuple(sorted(held, key=lambda h: int(h.row.id[1:])))

    def in_state(self, state: ReleaseState) -> StoredRelease | None:
        return next((held for held in self.all() if held.row.state == state), None)

    def propose(self, release: Release, rollout: str, by: str, host: str) -> None:
        """Store a release being built, as `preview`; once."""
        if any(held.row.id == release.id for held in self.all()):
            return
        manifest = self._beside.part(plain_id(release.id), release)
        row = {"id": release.id, "state": "preview", "manifest": manifest, "rollout": rollout}
        crash.point("before-propose")
        _append(self.path, _RELEASE_COLUMNS, {**row, "at": time.time(), "by": by, "host": host})
        crash.point("after-propose")

    def swap(self, live: str, to: str, by: str, host: str) -> int:
        """Make `to` live where `live` is ("" for none), in one conditional commit; what was live becomes previous.

        returns  the version of the release table
        raises   Conflict naming who changed it meanwhile, or E_NO_RELEASE where `to` is not there to become live
        """
        table = opened(self.path)
        held = self.all()
        now = next((each for each in held if each.row.state == "live"), None)
        if table is None or (now.row.id if now else "") != live:
            raise _lost(live, now)
        if to not in {each.row.id for each in held if each.row.state != "live"}:
            missing = f"release {to} is not in this region, or live already"
            raise Conflict(missing, hint="console status", code="E_NO_RELEASE")
        state = f"CASE WHEN id = '{plain_id(to)}' THEN 'live' WHEN id = '{plain_id(live)}' THEN 'previous' WHEN state = 'previous' THEN 'retired' ELSE state END"
        moved, at = f"id = '{plain_id(to)}'", time.time()
        changes = {
            "state": state,
            "at": f"CASE WHEN {moved} THEN {at!r} ELSE at END",
            "by": f"CASE WHEN {moved} THEN {_text(by)} ELSE by END",
            "host": f"CASE WHEN {moved} THEN {_text(host)} ELSE host END",
        }
        if table.version() != self.version():
            raise _lost(live, self.in_state("live"))
        crash.point("before-swap")
        try:
            table.update(updates=changes)
        except CommitFailedError:
            raise _lost(live, self.in_state("live")) from None
        except Exception:
            now = self.in_state("live")
            if now is None or (now.row.id, now.row.at) != (to, at):  # else it stands, as in `_append`
                raise
            table.update_incremental()
        crash.point("after-swap")
        return int(table.version())

    def mark(self, release: str, state: ReleaseState) -> None:
        table = opened(self.path)
        if table is not None:
            crash.point("before-retire")
            table.update(updates={"state": f"'{state}'"}, predicate=f"id = '{plain_id(release)}' AND state <> 'live'")
            crash.point("after-retire")

    def drop(self, release: str) -> None:
        """Forget a release whose versions are gone."""
        table = opened(self.path)
        if table is not None:
            crash.point("before-forget")
            table.delete(f"id = '{plain_id(release)}' AND state NOT IN ('live')")
            crash.point("after-forget")
            self._beside.forget(plain_id(release))


class Rollouts:
    """`_console/<pipeline>/rollouts`: accepted plans and every change of state, append only (P2)."""

    def __init__(self, warehouse: Path, pipeline: str) -> None:
        self.path = warehouse / "_console" / pipeline / "rollouts"
        self.pipeline = pipeline
        self._beside = Beside(self.path.parent)

    def latest(self) -> str:
        """The id of the newest rollout, `web-7`, or ""."""
        table = opened(self.path)
        return _newest(table) if table else ""

    def events(self, rollout: str, after: int = 0) -> tuple[Recorded, ...]:
        table = opened(self.path)
        return self._events(table, rollout, after) if table and rollout else ()

    def newest(self) -> tuple[Recorded, ...]:
        """The events of the newest rollout; the table is opened once."""
        table = opened(self.path)
        return self._events(table, _newest(table)) if table else ()

    def all_events(self) -> tuple[Recorded, ...]:
        """The stored events of every rollout, each in order; read at once."""
        table = opened(self.path)
        return self._recorded(selected(table, "SELECT rollout, seq, at, event FROM t ORDER BY seq")) if table else ()

    def plan(self, rollout: str) -> Plan | None:
        table = opened(self.path)
        if table is None or not rollout:
            return None
        rows = selected(table, f"SELECT plan FROM t WHERE rollout = '{plain_id(rollout)}' AND plan <> ''")
        return codec.decode(Plan, self._beside.whole(rollout, rows[0]["plan"])) if rows else None

    def status(self) -> Status:
        return replay(self.newest())

    def append(self, rollout: str, seq: int, event: Event, plan: Plan | None = None) -> Recorded:
        """Store one event; it is on disk when this returns."""
        recorded = Recorded(rollout, seq, time.time(), event)
        text = self._beside.part(plain_id(rollout), plan) if plan and isinstance(event, Accepted) else ""
        told = self._beside.part(f"{plain_id(rollout)}.{seq}", event)
        row = {"rollout": rollout, "seq": seq, "at": recorded.at, "event": told, "plan": text}
        _append(self.path, _EVENT_COLUMNS, row)
        return recorded

    def decision(self) -> Promoted | RolledBack | None:
        """The last promotion or rollback of the newest rollout."""
        found = [r.event for r in self.newest() if isinstance(r.event, Promoted | RolledBack)]
        return found[-1] if found else None

    def _events(self, table: DeltaTable, rollout: str, after: int = 0) -> tuple[Recorded, ...]:
        if not rollout:
            return ()
        where = f"rollout = '{plain_id(rollout)}' AND seq > {int(after)}"
        return self._recorded(selected(table, f"SELECT rollout, seq, at, event FROM t WHERE {where} ORDER BY seq"))

    def _recorded(self, rows: list[dict[str, Any]]) -> tuple[Recorded, ...]:
        return tuple(
            codec.decode(Recorded, {**row, "event": self._beside.whole(f"{row['rollout']}.{row['seq']}", row["event"])})
            for row in rows
        )


def _newest(table: DeltaTable) -> str:
    names = [row["rollout"] for row in selected(table, "SELECT DISTINCT rollout FROM t")]
    return max(names, key=lambda name: int(name.rpartition("-")[2]), default="")


def _lost(expected: str, now: StoredRelease | None) -> Conflict:
    if now is None:
        return Conflict(f"no release is live, not {expected}", hint="console plan", code="E_MOVED")
    when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now.row.at))
    return Conflict(
        f"{now.row.id} is live, not {expected or 'none'}: promoted by {now.row.by} from {now.row.host} at {when}",
        hint="console plan, against what is live now",
        code="E_MOVED",
    )


def plain_id(name: str) -> str:
    """The id itself. raises  DataError for what could be more than an id inside a query"""
    if not all(char.isalnum() or char in "-_" for char in name):
        raise DataError(f"{name!r:.60} is no id")
    return name


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
