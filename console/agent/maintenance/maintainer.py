"""What a region's tables need from time to time: one pass over one pipeline, on request or, for compaction, by itself."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Literal

from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.feeds import foreign_commits
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import live_feeds_of
from console.agent.maintenance.compaction import MANY, SPOILED, compact, crowded
from console.agent.maintenance.retention import cutoff, expire, expired
from console.agent.maintenance.vacuum import Need, in_the_way, kept_hours, vacuum
from console.agent.pipeline import PipelineController
from console.agent.resilience.failure import cause, message
from console.agent.spark_session import SparkHandle
from console.agent.store import log, write_lock
from console.errors import Conflict, ConsoleError, DataError, RegionError
from console.model.event import ENDED, Fenced
from console.model.live import Release, TableState

EVERY_SECONDS = 3600.0
TURN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class MaintenanceRequest:
    """What an operator asks for.

    expire   also delete rows past their table's declared retention
    many     small files in one partition from which on it is compacted
    """

    dry_run: bool = False
    expire: bool = False
    many: int = MANY


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """One thing that was done, or would be."""

    table: str
    what: Literal["compacted", "expired", "vacuumed", "left", "accepted"]
    detail: str


class Maintainer:
    """One pass at a time a region, in the caller's thread; the follower goes on beside it."""

    def __init__(
        self,
        spark: SparkHandle,
        lines: Callable[[], Iterable[PipelineController]],
        said: Callable[[str, str, str], None],
        down: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._spark = spark
        self._lines = lines
        self._said = said  # (pipeline, level, text)
        self._down = down  # pipelines that cannot be taken up: they may be missing among the lines
        self._awaited = ""  # those that VACUUM waited for when it last was asked, as they were said
        self._busy = threading.Lock()
        self._last = time.monotonic()
        self._spoiled: dict[str, RegionError] = {}  # tables that a compaction changed: none of ours touches them again

    def keep(self, line: PipelineController, wish: MaintenanceRequest) -> tuple[MaintenanceResult, ...]:
        """raises  Conflict E_BUSY if a pass is under way; RegionError E_COMPACTION if a compaction did not keep every row"""
        if not self._busy.acquire(blocking=False):
            raise Conflict("the region's tables are being kept already", hint="try again later", code="E_BUSY")
        try:
            done: list[MaintenanceResult] = []
            for path, state in ours(line).items():
                if wish.expire:
                    done += self._expire(line, path, state, wish)
                done += self._compact(path, state, wish)
                if not wish.dry_run and path not in self._spoiled:  # whose old files are what it is restored from
                    done += self._vacuum(line, path, state)
            return tuple(done)
        finally:
            self._busy.release()

    def mind(self) -> None:
        """Once a second: is it time to compact? Only where Spark runs anyway, and never beside a rollout."""
        if time.monotonic() - self._last < EVERY_SECONDS or not self._spark.started:
            return
        self._last = time.monotonic()
        threading.Thread(target=self._by_itself, name="upkeep", daemon=True).start()

    def _by_itself(self) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            for line in self._lines():
                if not under_way(line):
                    self._compact_all(line)
        finally:
            self._busy.release()

    def _compact_all(self, line: PipelineController) -> None:
        try:
            for path, state in ours(line).items():
                if path in self._spoiled:
                    continue
                for done in self._compact(path, state, MaintenanceRequest()):
                    self._said(line.pipeline, "info", f"{done.table}: {done.what} {done.detail}")
        except ConsoleError as error:
            self._said(line.pipeline, "error", f"upkeep: {message(error)}")
        except Exception as error:  # tried again in an hour; the feeds do not need it
            self._said(line.pipeline, "warning", f"upkeep: {cause(error)}")

    def _compact(self, path: str, state: TableState, wish: MaintenanceRequest) -> list[MaintenanceResult]:
        tasks = max(1, self._spark.slots - 1)
        if found := self._spoiled.get(path):
            return [MaintenanceResult(state.table.name, "left", message(found))]
        done = []
        for crowd in crowded(path, wish.many):
            if wish.dry_run:
                done.append(MaintenanceResult(state.table.name, "compacted", f"{crowd.label}: {crowd.files} files"))
                continue
            session = self._spark.session(spark__sql__files__maxPartitionNum=str(tasks))
            try:
                made = compact(session, path, crowd, tasks, state)
            except RegionError as error:
                if error.code == SPOILED:
                    self._spoiled[path] = error
                raise
            detail = f"{crowd.label}: {crowd.files} files to {made.files} in version {made.version}"
            done.append(MaintenanceResult(state.table.name, "compacted", detail))
        return done

    def _expire(
        self, line: PipelineController, path: str, state: TableState, wish: MaintenanceRequest
    ) -> list[MaintenanceResult]:
        keep = cutoff(state, datetime.now(UTC).date())
        if keep is None:
            return []
        if under_way(line):
            return [MaintenanceResult(state.table.name, "left", f"rows before {keep}: a rollout is under way")]
        session = self._spark.session()
        rows = expired(session, path, state, keep) if wish.dry_run else expire(session, path, state, keep)
        return [MaintenanceResult(state.table.name, "expired", f"{rows:,} rows before {keep}")] if rows else []

    def _vacuum(self, line: PipelineController, path: str, state: TableState) -> list[MaintenanceResult]:
        if down := self._unread(line):
            return [
                MaintenanceResult(state.table.name, "left", f"{down} cannot be taken up, and may need its old files")
            ]
        try:
            need = in_the_way(path, needs(self._lines()).get(path, ()))
        except ConsoleError as error:
            return [MaintenanceResult(state.table.name, "left", str(error))]
        if need is not None:
            return [
                MaintenanceResult(
                    state.table.name, "left", f"its old files are still needed: {need.why}, version {need.version}"
                )
            ]
        vacuum(self._spark.session(), path)
        return [
            MaintenanceResult(
                state.table.name, "vacuumed", f"but for what was removed in the last {kept_hours(path):.0f} h"
            )
        ]

    def _unread(self, line: PipelineController) -> str:
        """Pipelines that may have feeds and fences which nobody knows now, said once; "" for none."""
        down = ", ".join(sorted(self._down()))
        if down and down != self._awaited:
            self._said(line.pipeline, "warning", f"upkeep: nothing is vacuumed while {down} cannot be taken up")
        self._awaited = down
        return down


def under_way(line: PipelineController) -> bool:
    return line.recorder.status.state not in (*ENDED, "none")


def ours(line: PipelineController) -> dict[str, TableState]:
    """The tables of the kept releases that the agent alone writes, by path. Foreign landing tables are never touched.

    A version that several releases share keeps its rows for as long as any of them says.
    """
    found: dict[str, TableState] = {}
    for release in _kept(line):
        for state in release.tables:
            path = line.path(state.version.path)
            managed = state.table.kind != "landing" or state.table.managed
            if managed and state.version.path and log.exists(path):
                found[path] = _longer(found[path], state) if path in found else state
    return found


def _longer(one: TableState, other: TableState) -> TableState:
    """Whichever of two declarations of one version keeps rows longer; for ever where they tell age by two columns."""
    if one.table.time != other.table.time:
        return replace(one, table=replace(one.table, retention_days=None))
    longest = inf if one.table.retention_days is None else one.table.retention_days
    return one if other.table.retention_days is not None and other.table.retention_days <= longest else other


def needs(lines: Iterable[PipelineController]) -> dict[str, list[Need]]:
    """Who still reads what of which table: feeds what comes after their position, a rollout its fences."""
    found: dict[str, list[Need]] = defaultdict(list)
    for line in lines:
        for release in _kept(line):
            for edge in live_feeds_of(release, line.path):
                why = f"{line.pipeline}: {edge.spec.materialization} into {edge.spec.target} of {release.id}"
                reached = edge.committed() if log.exists(edge.target_path) else -1  # it may want everything
                found[edge.source_path].append(Need(reached, why))
        if under_way(line):
            for fence in line.recorder.events(Fenced):
                for release in _kept(line):
                    if state := release.table(fence.source):
                        why = f"{line.pipeline}: the fence of {fence.step}"
                        found[line.path(state.version.path)].append(Need(fence.version, why))
    return found


def accept(line: PipelineController, follower: FeedFollower, table: str, by: str) -> int:
    """Let the feeds of a table, and those that read it, go on over what they stand still by; returns the version of the
    table that says so, -1 for one that nothing feeds.

    raises  DataError if the pipeline keeps no such table and reads none
    """
    import pyarrow as pa

    paths = [path for path, state in ours(line).items() if state.table.name == table and state.table.kind != "landing"]
    edges = [edge for edge in follower.feeds(line.pipeline) if table in (edge.spec.source, edge.spec.target)]
    if not paths and not edges:
        raise DataError(f"{line.pipeline} keeps no table {table!r:.60}", hint="console status")
    note = {"userMetadata": json.dumps({"kind": foreign_commits.ACCEPTED, "by": by})}
    for path in paths:
        with write_lock.exclusive(path, seconds=TURN_SECONDS) as ours_now:
            if not ours_now:
                raise Conflict(f"{path}: Spark is writing it", hint="try again", code="E_BUSY")
            opened = DeltaTable(path)
            none = pa.schema(opened.schema().to_arrow()).empty_table()
            write_deltalake(opened, none, mode="append", commit_properties=CommitProperties(custom_metadata=note))
    for edge in edges:
        if edge.health.stopped or edge.target_path in paths:
            edge.writer = None
            edge.health.reset()
    return log.latest_version(paths[0]) if paths else -1


def _kept(line: PipelineController) -> tuple[Release, ...]:
    return tuple(held.release for held in line.releases.all() if held.row.state != "retired")
