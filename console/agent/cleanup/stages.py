"""Cleanup of one pipeline: at once, or in two stages, a hold and then the drop."""

import threading
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from console.agent.cleanup.hold_store import HoldStore
from console.agent.resilience.quarantine import Quarantine
from console.agent.rollout.followed_feeds import FollowedFeeds
from console.agent.rollout.recorder import Recorder
from console.agent.sandboxes.store import SandboxStore
from console.agent.store import housekeeping
from console.agent.store.housekeeping import Superseded
from console.agent.store.ledger import Releases
from console.errors import Conflict
from console.model.event import ENDED, Ended
from console.model.held_release import HeldRelease
from console.model.live import ReleaseState

HOUR = 3600.0


@dataclass(slots=True, kw_only=True)
class Cleanup:
    """Deletes versions that no kept release names. The caller holds the pipeline's lock, except for `held` and `due`."""

    warehouse: Path
    pipeline: str
    releases: Releases
    recorder: Recorder
    feeds: FollowedFeeds
    sandboxes: SandboxStore
    holds: HoldStore = field(init=False)
    _held: tuple[HeldRelease, ...] | None = field(default=None, init=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False)  # the file and what was read from it

    def __post_init__(self) -> None:
        self.holds = HoldStore(self.warehouse, self.pipeline)

    def held(self) -> tuple[HeldRelease, ...]:
        """The releases on hold; read once, since only this process changes them.

        raises  RegionError E_LOG_DAMAGED
        """
        with self._guard:
            if self._held is None:
                self._held = self.holds.all()
            return self._held

    def remove(self, by: str, *, dry_run: bool, previous: bool, let_go: Sequence[str] = ()) -> tuple[str, ...]:
        """Delete versions that no kept release names; those of releases on hold only with `previous`.

        dry_run   only name them
        previous  include the release to which a rollback would return
        let_go    landing tables whose versions are deleted even if they hold values or rows that no other version has
        returns   their paths, relative to the warehouse
        raises    Conflict E_LAST_COPY
        """
        spare = frozenset() if previous else frozenset(each.release for each in self.held())
        removable = self._removable(previous=previous, let_go=let_go, staying=spare)
        if dry_run:
            return removable.versions
        if previous:
            self._record_end(by)
        return self._drop(removable)

    def hold(self, by: str, hours: float, *, dry_run: bool, let_go: Sequence[str] = ()) -> tuple[str, ...]:
        """Begin the cleanup of the previous release: no longer fed, dropped after these hours, restorable until then.

        returns  paths that are going to be deleted
        raises   Conflict E_NO_PREVIOUS, E_HOLD, E_LAST_COPY
        """
        live, previous = self.releases.in_state("live"), self.releases.in_state("previous")
        if live is None or previous is None:
            raise Conflict(
                f"{self.pipeline}: there is no previous release to hold", hint="console status", code="E_NO_PREVIOUS"
            )
        if relays := (*live.release.relays, *previous.release.relays):
            raise Conflict(
                f"{self.pipeline}: {previous.row.id} has another version of {relays[0].table}, which cannot be put on hold",
                hint="console cleanup --previous, without --hold, drops it at once",
                code="E_HOLD",
            )
        others = frozenset(each.row.id for each in self.releases.all()) - {previous.row.id}
        removable = self._removable(previous=True, let_go=let_go, staying=others)
        if not dry_run:
            at = time.time()
            self._put(
                HeldRelease(
                    release=previous.row.id, live=live.row.id, at=at, due=at + hours * HOUR, by=by, let_go=tuple(let_go)
                )
            )
            self._retire(previous.row.id)
        return removable.versions

    def restore(self) -> str:
        """Make the newest release on hold the previous one again; its feeds continue where they stood. Returns its id.

        raises  Conflict E_NO_HOLD if there is none, or its time is over; E_HOLD if another release was promoted since
        """
        if not self.held():
            raise Conflict(f"{self.pipeline}: no release is on hold", hint="console status", code="E_NO_HOLD")
        held = self.held()[-1]
        if self._state(held.release) is None:  # cleaned up by an agent of 0.1.0, which knows no holds
            self._forget(held.release)
            raise Conflict(f"{self.pipeline}: {held.release} was dropped", hint="console status", code="E_NO_HOLD")
        if held.over(time.time()):
            raise Conflict(
                f"{self.pipeline}: the hold of {held.release} is over, and its files are dropped",
                hint="console status",
                code="E_NO_HOLD",
            )
        if not self._can_return(held):
            live = self.releases.in_state("live")
            raise Conflict(
                f"{self.pipeline}: {held.release} cannot be restored: {live.row.id if live else 'nothing'} is live, and"
                f" {held.live} was when it was put on hold",
                hint="console status",
                code="E_HOLD",
            )
        self._put(replace(held, restoring=True))
        self._return(held)
        return held.release

    def resume(self) -> None:
        """Finish a hold or a restore that a dead agent had only written down, and forget holds of dropped releases."""
        for held in self.held():
            match self._state(held.release):
                case None:
                    self._forget(held.release)
                case "previous" | "retired" if held.restoring and self._can_return(held):
                    self._return(held)
                case "retired" if held.restoring:  # another release was promoted before the restore was complete
                    self._put(replace(held, restoring=False))
                case _ if held.restoring:
                    self._forget(held.release)
                case "previous":
                    self._retire(held.release)
                case _:
                    pass

    def due(self, now: float) -> bool:
        """Whether `tick` has anything to do.

        raises  RegionError E_LOG_DAMAGED
        """
        return any(held.over(now) for held in self.held())

    def tick(self, now: float) -> tuple[str, ...]:
        """Drop the releases whose hold is over. Returns their ids."""
        over = tuple(held for held in self.held() if held.over(now))
        for held in over:
            others = frozenset(each.row.id for each in self.releases.all()) - {held.release}
            self._drop(self._removable(previous=False, let_go=held.let_go, staying=others))
            if self.releases.in_state("previous") is None:
                self._record_end(held.by)
            self._forget(held.release)
        return tuple(held.release for held in over)

    # -- parts

    def _removable(self, *, previous: bool, let_go: Sequence[str], staying: Set[str]) -> Superseded:
        """raises  Conflict E_LAST_COPY, with `previous`"""
        status = self.recorder.status
        removable = housekeeping.superseded(
            self.releases,
            previous=previous,
            building="" if status.state in ENDED else status.release,
            let_go=let_go,
            left_out=Quarantine(self.warehouse / "_console" / self.pipeline).copies(),
            spared=self.sandboxes.paths(),
            staying=staying,
        )
        if previous and (kept := removable.kept):
            allowed = " ".join(f"--allow-destructive {table}" for table in sorted({each.table for each in kept}))
            raise Conflict(
                f"{'; '.join(map(str, kept))}, and no other release does",
                hint=f"console cleanup --previous {allowed} drops them for good",
                code="E_LAST_COPY",
            )
        return removable

    def _state(self, release: str) -> ReleaseState | None:
        """The state of a release; None if it has no row any more."""
        return next((each.row.state for each in self.releases.all() if each.row.id == release), None)

    def _can_return(self, held: HeldRelease) -> bool:
        """Whether the release that was live when the hold began still is, and no other one is the previous one."""
        live, previous = self.releases.in_state("live"), self.releases.in_state("previous")
        return live is not None and live.row.id == held.live and (previous is None or previous.row.id == held.release)

    def _return(self, held: HeldRelease) -> None:
        """Safe to repeat: the hold is forgotten last."""
        self.releases.mark(held.release, "previous")
        self._forget(held.release)
        self.feeds.refollow()

    def _drop(self, removable: Superseded) -> tuple[str, ...]:
        gone = {stored.row.id for stored in removable.releases}
        for held in self.held():
            if held.release in gone:  # a restore after a crash in the middle would find only some of its files
                self._put(replace(held, dropping=True, restoring=False))
        dropped = housekeeping.clean_up(self.warehouse, self.releases, removable, self.feeds.release)
        for stored in removable.releases:
            self._forget(stored.row.id)
        return dropped

    def _record_end(self, by: str) -> None:
        if self.recorder.status.state in ENDED - {"cleaned"}:
            self.recorder.store(Ended("cleaned", by))

    def _retire(self, release: str) -> None:
        self.releases.mark(release, "retired")
        self.feeds.release()

    def _put(self, held: HeldRelease) -> None:
        with self._guard:
            self.holds.put(held)
            self._held = self.holds.all()

    def _forget(self, release: str) -> None:
        with self._guard:
            self.holds.forget(release)
            self._held = self.holds.all()
