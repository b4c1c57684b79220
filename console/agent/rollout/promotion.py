"""Promotion and rollback: another release becomes live in one commit, and shared tables switch sources with it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from console.agent.feeds.follower import FeedFollower
from console.agent.relay import switch
from console.agent.relay.intake_gate import IntakeGate
from console.agent.rollout import rebind
from console.agent.rollout.ownership import in_progress
from console.agent.rollout.recorder import Recorder
from console.agent.rows.release_files import ReleaseFiles
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases, Rollouts, StoredRelease
from console.errors import CheckFailed, Conflict
from console.model.consent import NO_RULES
from console.model.event import Entered, Promoted, RolledBack
from console.model.gate import gate_of, refusal
from console.model.live import Release
from console.model.status import Status

INTAKE_SECONDS = 30.0  # for batches in progress when the intake is held


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """Changes the live release of one pipeline. The caller holds the pipeline's lock.

    resolve   version path → absolute path
    refollow  makes the follower move the feeds required by the release table and the rollout
    intake    of the pipeline's landing tables
    kept_files  whether the files of a release exist
    """

    pipeline: str
    releases: Releases
    rollouts: Rollouts
    recorder: Recorder
    spark: SparkHandle
    follower: FeedFollower
    resolve: rebind.Resolve
    refollow: Callable[[], None]
    intake: IntakeGate
    kept_files: ReleaseFiles

    def promote(self, rollout: str, live: str, by: str, host: str) -> Promoted:
        """Open the gate of a rollout: its release becomes live.

        live    id of the release that the operator believes to be live; "" for none
        raises  Conflict E_PROMOTED naming who was first, E_STATE if the rollout is not at its gate, E_STALE if another
                release is live; CheckFailed E_CHECK if a check found a difference, E_LAG if the feeds do not catch up;
                AtGate if its gate is closed otherwise (`model.gate.refusal`)
        """
        status = self.recorder.status
        self._check_gate(status, rollout)
        with self._level(status.release):
            self.recorder.store(Entered("promoting", by=by))
            try:
                version = self.releases.swap(live, status.release, by, host)
            except Conflict:
                self.recorder.store(Entered("awaiting-confirmation"))
                raise
            event = Promoted(release=status.release, was=live, by=by, host=host, version=version)
            self.recorder.store(event)
            self.refollow()
            return event

    def rollback(self, live: str, by: str, host: str) -> RolledBack:
        """Make the previous release live again.

        live    id of the release that the operator believes to be live
        raises  Conflict E_UNDER_WAY during a rollout, E_NO_PREVIOUS if there is no previous release, E_STALE if another
                release is live; CheckFailed E_LAG if the feeds do not catch up, E_WAY_BACK if data files are gone
        """
        status = self.recorder.status
        if in_progress(status):
            raise Conflict(f"{status.rollout} is under way ({status.shown})", hint="console cancel", code="E_UNDER_WAY")
        previous = self.releases.in_state("previous")
        if previous is None:
            raise Conflict(f"{self.pipeline}: nothing to go back to", hint="console status", code="E_NO_PREVIOUS")
        self._check_files(previous.release, self.releases.in_state("live"))
        with self._level(previous.row.id):
            version = self.releases.swap(live, previous.row.id, by, host)
            event = RolledBack(release=previous.row.id, was=live, by=by, host=host, version=version)
            self.recorder.store(event)
            self.refollow()
            return event

    def _check_files(self, release: Release, live: StoredRelease | None) -> None:
        """Files of versions that live has as well are no reason to stay with it."""
        shared = {state.version.path for state in live.release.tables} if live else set[str]()
        own = {state.table.name for state in release.tables if state.version.path not in shared}
        _, findings = self.kept_files.look(release)
        if gone := [finding for finding in findings if finding.state == "failed" and finding.table in own]:
            more = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise CheckFailed(
                f"{self.pipeline}: {release.id} cannot become live again: {gone[0]}{more}",
                hint=f"restore the file, or build the older definition again: check out the files of {release.id}, console apply",
                code="E_WAY_BACK",
            )

    def _check_gate(self, status: Status, rollout: str) -> None:
        decided = self.rollouts.decision()
        if isinstance(decided, Promoted) and (status.rollout != rollout or status.state == "live"):
            raise self._already_promoted(decided)
        if status.rollout != rollout or status.shown != "awaiting-confirmation":
            raise Conflict(f"{rollout} is not at the gate: {status.shown}", hint="console status", code="E_STATE")
        plan = self.recorder.plan
        if closed := refusal(gate_of(status, plan.gate if plan else NO_RULES), plan.region if plan else self.pipeline):
            raise closed

    def _already_promoted(self, decided: Promoted) -> Conflict:
        row = next((stored.row for stored in self.releases.all() if stored.row.id == decided.release), None)
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(row.at)) if row else "?"
        return Conflict(
            f"{decided.release} was already promoted by {decided.by} from {decided.host} at {when}",
            hint="console status",
            code="E_PROMOTED",
        )

    @contextmanager
    def _level(self, to: str) -> Iterator[None]:
        """Context of the swap. The feeds of release `to` have reached one landing position before it, and none of the pipeline moves
        until it is done: readers would see fewer rows of the next live release than of this one. Landing tables switch
        versions, and shared tables switch to the version of their source that `to` uses.
        """
        stored = self.releases.all()
        rebindings = rebind.rebindings_for(stored, to, self.resolve)
        switches = switch.switches_for(stored, to, self.resolve)
        moving = bool(rebindings or switches)
        try:
            # one hold for all of it: between two, the follower would move each feed once more
            with rebind.level(self.follower, self.pipeline, stored, to, self.resolve, all_feeds=moving):
                if not moving:
                    yield
                    return
                switched = partial(self._switched, switches) if switches else None
                with rebind.rebound(self.spark, self.follower, self.pipeline, rebindings, self.refollow, switched):
                    yield
        except BaseException:
            self.refollow()  # the live release's definitions of its feeds apply again
            raise

    @contextmanager
    def _switched(self, switches: Sequence[switch.Switch], session: Any) -> Iterator[None]:
        """Hold the intake, and move the remaining rows of old landing versions through their relays.

        The relays move most rows before the hold, so that senders wait for the last commits only.
        """
        for each in switches:
            switch.drain(session, self.follower, self.pipeline, each.there)
        with self.intake.paused(INTAKE_SECONDS):
            try:
                for each in switches:
                    switch.turn(session, self.follower, self.pipeline, each)
                yield
            except BaseException:
                self.refollow()
                raise
            finally:
                for live_feed in self.follower.feeds(self.pipeline):
                    if live_feed.health.stopped is switch.TURNING:
                        live_feed.health.reset()
