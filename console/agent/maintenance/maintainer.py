"""Maintenance of a region's tables: a pass over one pipeline on request; compaction also automatically, every hour."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Any, Literal

from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.errors import CompactionDiffers, MergeDiffers
from console.agent.failure import cause, message
from console.agent.feeds.exact_appends import supports_small_appends
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import followed_with
from console.agent.maintenance import bucket_tables
from console.agent.maintenance.compaction import MANY, Crowd, compact, crowded
from console.agent.maintenance.merge import Merge, merge
from console.agent.maintenance.mergeable import Mergeable, NotMergeable, Readers, mergeable
from console.agent.maintenance.retention import cutoff, expire, expired
from console.agent.maintenance.vacuum import Need, blocking_need, kept_hours, vacuum
from console.agent.object_store.object_path import in_bucket
from console.agent.pipeline import PipelineController
from console.agent.spark_session import SparkHandle
from console.agent.store import commits, log, write_lock
from console.errors import Conflict, ConsoleError, DataError, RegionError
from console.model.event import ENDED, Fenced
from console.model.live import Release, TableState

EVERY_SECONDS = 3600.0
ASLEEP_SECONDS = 24 * 3600.0  # while Spark sleeps, which is not woken each hour for compactions
LOCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class MaintenanceRequest:
    """An operator's request.

    expire   also delete rows past their table's declared retention
    many     number of small files from which on a partition is compacted
    """

    dry_run: bool = False
    expire: bool = False
    many: int = MANY


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """One action taken, or planned in a dry run; `left`: one not taken, and why."""

    table: str
    what: Literal["compacted", "merged", "expired", "vacuumed", "left", "accepted"]
    detail: str


class Maintainer:
    """One maintenance pass at a time per region, in the caller's thread, concurrently with the follower.

    report            called with (pipeline, level, text)
    failed_pipelines  pipelines that failed to load, and so may be missing among the controllers
    """

    def __init__(
        self,
        spark: SparkHandle,
        controllers: Callable[[], Iterable[PipelineController]],
        report: Callable[[str, str, str], None],
        failed_pipelines: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._spark = spark
        self._controllers = controllers
        self._report = report
        self._failed_pipelines = failed_pipelines
        self._reported_failed = ""  # the last failed pipelines that were reported to block VACUUM
        self._busy = threading.Lock()
        self._last = time.monotonic()
        self._spoiled: dict[str, RegionError] = {}  # tables damaged by a compaction: not touched again
        self._unmerged: dict[
            str, RegionError
        ] = {}  # tables whose states did not unite to the same values: compacted alone

    def run(self, controller: PipelineController, request: MaintenanceRequest) -> tuple[MaintenanceResult, ...]:
        """Run one pass. raises  Conflict E_BUSY if another is running; RegionError E_COMPACTION if rows were lost or added,
        E_MERGE if merged states would have had other values"""
        if not self._busy.acquire(blocking=False):
            raise Conflict("maintenance is running already", hint="try again later", code="E_BUSY")
        try:
            done: list[MaintenanceResult] = []
            for path, state in owned_tables(controller).items():
                if request.expire:
                    done += self._expire(controller, path, state, request)
                done += self._compact(controller, path, state, request)
                if not request.dry_run and path not in self._spoiled:  # a restore needs their old files
                    done += self._vacuum(controller, path, state)
            for path, state in fed_tables(controller).items():
                done += self._compact(controller, path, state, request)
            return tuple(done)
        finally:
            self._busy.release()

    @property
    def running(self) -> bool:
        return self._busy.locked()

    def tick(self) -> None:
        """Called every second: start a compaction when it is due, never during a rollout. A Spark that sleeps is woken after
        a day, and only if there is something to compact."""
        every = ASLEEP_SECONDS if self._spark.asleep_since else EVERY_SECONDS
        if time.monotonic() - self._last < every:
            return
        self._last = time.monotonic()
        threading.Thread(target=self._compact_in_background, name="maintenance", daemon=True).start()

    def _compact_in_background(self) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            for controller in self._controllers():
                if not under_way(controller):
                    self._compact_all(controller)
        finally:
            self._busy.release()

    def _compact_all(self, controller: PipelineController) -> None:
        try:
            for path, state in {**owned_tables(controller), **fed_tables(controller)}.items():
                if path in self._spoiled:
                    continue
                for done in self._compact(controller, path, state, MaintenanceRequest()):
                    self._report(controller.pipeline, "info", f"{done.table}: {done.what} {done.detail}")
        except ConsoleError as error:
            self._report(controller.pipeline, "error", f"maintenance: {message(error)}")
        except Exception as error:  # tried again in an hour; the feeds work without it
            self._report(controller.pipeline, "warning", f"maintenance: {cause(error)}")

    def _compact(
        self, controller: PipelineController, path: str, state: TableState, request: MaintenanceRequest
    ) -> list[MaintenanceResult]:
        """Compact crowded partitions; those of an aggregate are merged instead, where that is shown to change no value."""
        if error := self._spoiled.get(path):
            return [MaintenanceResult(state.table.name, "left", message(error))]
        crowds = crowded(path, request.many)
        if state.newest is not None and under_way(controller):
            # it removes rows that a newer one of their key replaces, and the receipts count what the batches have written
            why = "a rollout is under way, whose rows are still to be counted"
            return [MaintenanceResult(state.table.name, "left", f"{crowd.label}: {why}") for crowd in crowds]
        done = []
        for crowd in crowds:
            merging = self._mergeable(controller, path)
            why = f"; its states are not merged: {merging.why}" if isinstance(merging, NotMergeable) else ""
            if request.dry_run:
                what: Literal["merged", "compacted"] = "merged" if isinstance(merging, Mergeable) else "compacted"
                done.append(MaintenanceResult(state.table.name, what, f"{crowd.label}: {crowd.files} files{why}"))
                continue
            session = self._spark.build_session()
            if isinstance(merging, Mergeable) and (
                merged := self._merge(session, controller, path, state, crowd, merging)
            ):
                done.append(merged)
                continue
            try:
                compacted = compact(session, path, crowd, self._spark.build_tasks, state)
            except CompactionDiffers as error:
                self._spoiled[path] = error
                raise
            detail = f"{crowd.label}: {crowd.files} files to {compacted.files} in version {compacted.version}{why}"
            done.append(MaintenanceResult(state.table.name, "compacted", detail))
        return done

    def _mergeable(self, controller: PipelineController, path: str) -> Mergeable | NotMergeable | None:
        if error := self._unmerged.get(path):
            return NotMergeable(message(error))
        try:
            return mergeable(controller, path, self._readers(path))
        except ConsoleError as error:  # a position that cannot be read
            return NotMergeable(message(error))

    def _readers(self, path: str) -> Readers:
        controllers = tuple(self._controllers())
        kept = [
            (each, (*_kept_releases(each), *(s.plan.release for s in each.sandboxes.opened()))) for each in controllers
        ]
        return Readers(
            kept=kept, needs=needs(controllers).get(path, ()), failed=tuple(sorted(self._failed_pipelines()))
        )

    def _merge(
        self,
        session: Any,
        controller: PipelineController,
        path: str,
        state: TableState,
        crowd: Crowd,
        found: Mergeable,
    ) -> MaintenanceResult | None:
        """Merge the states of a partition; None if there is nothing to merge in it."""

        def refused() -> str:
            now = self._mergeable(controller, path)
            still = isinstance(now, Mergeable) and now.merging == found.merging and now.passed >= found.passed
            return "" if still else getattr(now, "why", "its readers have changed meanwhile")

        wanted = Merge(
            table=path, crowd=crowd, state=state, merging=found.merging, passed=found.passed,
            tasks=self._spark.build_tasks, refused=refused,
        )  # fmt: skip
        try:
            merged = merge(session, wanted)
        except MergeDiffers as error:
            self._unmerged[path] = error
            raise
        except Conflict as error:
            return MaintenanceResult(state.table.name, "left", message(error))
        if merged is None:
            return None
        return MaintenanceResult(
            state.table.name,
            "merged",
            f"{crowd.label}: {merged.files} files to {merged.new_files}, {merged.rows:,} states to {merged.new_rows:,},"
            f" in version {merged.version}",
        )

    def _expire(
        self, controller: PipelineController, path: str, state: TableState, request: MaintenanceRequest
    ) -> list[MaintenanceResult]:
        keep = cutoff(state, datetime.now(UTC).date())
        if keep is None:
            return []
        if under_way(controller):
            return [MaintenanceResult(state.table.name, "left", f"rows before {keep}: a rollout is under way")]
        if in_bucket(path) and not supports_small_appends(path):
            why = "in a bucket deltalake deletes, which writes some of its columns otherwise than Spark"
            return [MaintenanceResult(state.table.name, "left", f"rows before {keep}: {why}")]
        session = self._spark.session()
        rows = expired(session, path, state, keep) if request.dry_run else expire(session, path, state, keep)
        return [MaintenanceResult(state.table.name, "expired", f"{rows:,} rows before {keep}")] if rows else []

    def _vacuum(self, controller: PipelineController, path: str, state: TableState) -> list[MaintenanceResult]:
        if failed := self._unloaded(controller):
            return [
                MaintenanceResult(state.table.name, "left", f"{failed} has failed to load and may need its old files")
            ]
        try:
            need = blocking_need(path, needs(self._controllers()).get(path, ()))
        except ConsoleError as error:
            return [MaintenanceResult(state.table.name, "left", str(error))]
        if need is not None:
            return [
                MaintenanceResult(
                    state.table.name, "left", f"its old files are still needed: {need.why}, version {need.version}"
                )
            ]
        if in_bucket(path):
            bucket_tables.vacuum(path)
        else:
            vacuum(self._spark.session(), path)
        return [
            MaintenanceResult(
                state.table.name, "vacuumed", f"but for what was removed in the last {kept_hours(path):.0f} h"
            )
        ]

    def _unloaded(self, controller: PipelineController) -> str:
        """Pipelines that failed to load, whose feeds and fences are unknown; reported once. "" for none."""
        failed = ", ".join(sorted(self._failed_pipelines()))
        if failed and failed != self._reported_failed:
            self._report(
                controller.pipeline, "warning", f"maintenance: nothing is vacuumed while {failed} fails to load"
            )
        self._reported_failed = failed
        return failed


def under_way(controller: PipelineController) -> bool:
    return controller.recorder.status.state not in (*ENDED, "none")


def owned_tables(controller: PipelineController) -> dict[str, TableState]:
    """The kept releases' tables that only the agent writes, by path. Foreign landing tables are never touched.

    A version shared by several releases has the longest retention of them.
    """
    tables: dict[str, TableState] = {}
    for release in _kept_releases(controller):
        for state in release.tables:
            path = controller.path(state.version.path)
            managed = state.table.kind != "landing" or state.table.managed
            if managed and state.version.path and log.exists(path):
                tables[path] = _longer(tables[path], state) if path in tables else state
    return tables


def fed_tables(controller: PipelineController) -> dict[str, TableState]:
    """The tables into which live rows of sandboxes flow, by path: many small files. They are compacted alone: rows past
    their retention and old files go with the sandbox."""
    feeds, opened = controller.sandboxes.feeds, controller.sandboxes.opened()
    targets = (feed for each in opened if each.order.name in feeds.fed for feed in feeds.of(each.plan))
    return {feed.target_path: feed.target for feed in targets}


def _longer(one: TableState, other: TableState) -> TableState:
    """The declaration with the longer retention; without retention if their time columns differ."""
    if one.stored_time != other.stored_time:
        return replace(one, table=replace(one.table, retention_days=None))
    longest = inf if one.table.retention_days is None else one.table.retention_days
    return one if other.table.retention_days is not None and other.table.retention_days <= longest else other


def needs(controllers: Iterable[PipelineController]) -> dict[str, list[Need]]:
    """Table path → needs of its readers: of feeds, everything after their position; of a rollout, its fences."""
    needs_of: dict[str, list[Need]] = defaultdict(list)
    for controller in controllers:
        live = controller.releases.in_state("live")
        for release in _kept_releases(controller):
            for feed in followed_with(live.release if live else None, release, controller.path):
                reason = f"{controller.pipeline}: {feed.spec.materialization} into {feed.spec.target} of {release.id}"
                reached = feed.committed() if log.exists(feed.target_path) else -1  # it may need everything
                needs_of[feed.source_path].append(Need(reached, reason))
        if under_way(controller):
            for fence in controller.recorder.events(Fenced):
                for release in _kept_releases(controller):
                    if state := release.table(fence.source):
                        reason = f"{controller.pipeline}: the fence of {fence.step}"
                        needs_of[controller.path(state.version.path)].append(Need(fence.version, reason))
        for path, need in _needs_of_sandboxes(controller):
            needs_of[path].append(need)
    return needs_of


def _needs_of_sandboxes(controller: PipelineController) -> Iterator[tuple[str, Need]]:
    """Their fences, from which a rollout may continue, in any version of the source in a kept release or in theirs; and what
    their feeds have not read yet."""
    for sandbox in controller.sandboxes.opened():
        if sandbox.order.follows:
            for feed in controller.sandboxes.feeds.of(sandbox.plan):
                reason = f"{controller.pipeline}: {feed.spec.materialization} into {feed.spec.target} of preview {sandbox.order.name}"
                reached = feed.committed() if log.exists(feed.target_path) else -1
                yield feed.source_path, Need(reached, reason)
        releases = (*_kept_releases(controller), sandbox.plan.release)
        for fence in sandbox.recorder.events(Fenced):
            reason = f"{controller.pipeline}: the fence of {fence.step} of preview {sandbox.order.name}"
            for state in filter(None, (release.table(fence.source) for release in releases)):
                yield controller.path(state.version.path), Need(fence.version, reason)


def accept(controller: PipelineController, follower: FeedFollower, table: str, by: str) -> int:
    """Let the feeds that fill or read a table continue past the commit that stopped them.

    returns  version of the table with the note that allows it; -1 for a table that no feed fills
    raises   DataError if the pipeline neither keeps nor reads such a table; Conflict E_BUSY
    """
    import pyarrow as pa

    paths = [
        path
        for path, state in owned_tables(controller).items()
        if state.table.name == table and state.table.kind != "landing"
    ]
    feeds = [feed for feed in follower.feeds(controller.pipeline) if table in (feed.spec.source, feed.spec.target)]
    if not paths and not feeds:
        raise DataError(f"{controller.pipeline} keeps no table {table!r:.60}", hint="console status")
    note = {"kind": log.ACCEPTED, "by": by}

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        no_rows = pa.schema(table.schema().to_arrow()).empty_table()
        write_deltalake(table, no_rows, mode="append", commit_properties=properties)

    for path in paths:
        with write_lock.exclusive(path, seconds=LOCK_SECONDS) as locked:
            if not locked:
                raise Conflict(f"{path}: Spark is writing it", hint="try again", code="E_BUSY")
            commits.commit(path, write, note=note)
    for feed in feeds:
        if feed.health.stopped or feed.target_path in paths:
            feed.writer = None
            feed.health.reset()
    return log.latest_version(paths[0]) if paths else -1


def _kept_releases(controller: PipelineController) -> tuple[Release, ...]:
    """Releases that are fed, and those on hold, which may be restored."""
    held = {each.release for each in controller.cleaning.held()}
    return tuple(
        stored.release for stored in controller.releases.all() if stored.row.state != "retired" or stored.row.id in held
    )
