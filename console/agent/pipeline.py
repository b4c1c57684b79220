"""One pipeline of the region: its releases, its rollout, and what an operator may ask of them."""

import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

from console.agent.feeds import planted_bugs
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, live_feeds_of
from console.agent.rollout import ownership, rebind
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.executor import SPARE_HOURS, PlanExecutor
from console.agent.rollout.recorder import Recorder
from console.agent.rollout.recover import settle
from console.agent.rollout.watchdog import Watchdog, tied
from console.agent.spark_session import Settings, SparkHandle
from console.agent.store import housekeeping, log
from console.agent.store.ledger import Releases, Rollouts
from console.agent.store.survey import drop_version, resolve
from console.errors import CheckFailed, Conflict, RegionError
from console.model.created import table_settings
from console.model.event import ENDED, Accepted, Ended, Entered, Paused, Promoted, Resumed, RolledBack, StepStarted
from console.model.fleet import FleetWaves
from console.model.live import Release
from console.model.plan import Plan, numbered
from console.model.status import Status
from console.model.step import Backfill


class PipelineController:
    """Serialises everything that changes a pipeline's releases or rollout."""

    def __init__(
        self,
        warehouse: Path,
        pipeline: str,
        spark: SparkHandle,
        follower: FeedFollower,
        settings: Settings,
    ) -> None:
        self.warehouse = warehouse
        self.pipeline = pipeline
        self.releases = Releases(warehouse, pipeline)
        self.rollouts = Rollouts(warehouse, pipeline)
        self.recorder = Recorder(self.rollouts)
        self._spark = spark
        self._follower = follower
        self._settings = settings
        self._guard = threading.RLock()
        self._executor: PlanExecutor | None = None
        self.watchdog = Watchdog(settings.keep_failed_hours)

    def resume(self) -> None:
        """Go on after a start of the agent: follow what is to be followed, carry what was being carried."""
        with self._guard:
            self._refollow()
            self._settle()
            self.watchdog.attached = tied(self.recorder.progress())
            status = self.recorder.status
            if status.state not in ENDED and status.state != "none" and not status.held:
                self._start_executor()

    @property
    def guard(self) -> threading.RLock:
        """Held while a deed is done, so that what it rests on cannot change meanwhile."""
        return self._guard

    def path(self, version_path: str) -> str:
        return resolve(self.warehouse, version_path)

    def live(self) -> Release:
        """raises RegionError if nothing is live yet"""
        held = self.releases.in_state("live")
        if held is None:
            raise RegionError(f"{self.pipeline}: no release is live here yet", hint="console apply")
        return held.release

    # -- a rollout's life

    def accept(self, plan: Plan, by: str, host: str, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        """Store the plan and begin; the same plan again only names its rollout.

        raises  Conflict if the live release is not the plan's, or another rollout is under way
        """
        with self._guard:
            status = self.recorder.status
            under_way = status.state not in ENDED and status.state != "none"
            if under_way and self._same(plan):
                return self.recorder.rollout
            if under_way:
                raise Conflict(
                    f"{self.pipeline}: {status.rollout} by {status.by} is under way ({status.shown})",
                    hint="`console status`; then promote it, or `console cancel` and plan again",
                    code="E_UNDER_WAY",
                )
            self._check_base(plan)
            number = self._next_number()
            rollout = f"{self.pipeline}-{number}"
            created_with = table_settings(self._settings.rollback_window_hours + SPARE_HOURS)
            plan_digest, plan = plan.digest(), numbered(plan, number, created_with)
            steps = tuple((s.id, s.rows if isinstance(s, Backfill) else 0) for s in plan.steps)
            self.releases.propose(plan.release, rollout, by, host)
            event = Accepted(plan.release.id, plan.live, plan_digest, by, host, steps, plan.allowed, attached, fleet)
            self.recorder.accept(rollout, plan, event)
            self.watchdog.attached = attached
            self._start_executor()
            return rollout

    def _same(self, plan: Plan) -> bool:
        """Whether this is the change already being carried; figures in a plan move with every row, so they do not count."""
        carried = self.recorder.plan
        return carried is not None and (carried.desired, carried.live) == (plan.desired, plan.live)

    def _check_base(self, plan: Plan) -> None:
        live = self.releases.in_state("live")
        if (live.row.id if live else "") != plan.live:
            now = f"{live.row.id}, promoted by {live.row.by} from {live.row.host}" if live else "no release"
            raise Conflict(
                f"the plan starts from {plan.live or 'no release'}, but live is {now}",
                hint="console plan, against what is live now",
                code="E_STALE",
            )
        for state in plan.release.tables:
            if state.version.path and not log.exists(self.path(state.version.path)) and state.table.kind != "landing":
                raise Conflict(
                    f"{state.version.path} is gone since the plan was made", hint="console plan", code="E_STALE"
                )

    def _next_number(self) -> int:
        known = [int(held.row.id[1:]) for held in self.releases.all()]
        last = self.rollouts.latest()
        return max([0, *known, int(last.rpartition("-")[2]) if last else 0]) + 1

    def control(self, verb: str, by: str) -> Status:
        """pause, resume, retry, cancel or discard the rollout.

        raises  Conflict where the verb does not fit the state
        """
        with self._guard:
            status = self.recorder.status
            fits = {
                "pause": status.state not in ENDED and status.state != "none" and not status.held,
                "resume": status.held == "paused",
                "retry": status.held == "failed" or (status.state == "awaiting-confirmation" and not status.held),
                "cancel": status.state not in ENDED and status.state != "none",
                "discard": status.state not in ENDED and status.state != "none",
            }
            if verb == "pause" and status.held == "paused":
                return status
            if not fits.get(verb, False):
                told = f"{status.shown}{ownership.last_word(status, self.recorder.progress())}"
                raise Conflict(f"{verb} does not fit: {self.pipeline} is {told}", hint="console status", code="E_STATE")
            match verb:
                case "pause":
                    self._stop_executor()
                    self.recorder.store(Paused(by))
                case "resume" | "retry":
                    self._again(status, verb, by)
                case _:
                    self._abandon("cancelled" if verb == "cancel" else "discarded", by)
            return self.recorder.status

    def _again(self, status: Status, verb: str, by: str) -> None:
        if verb == "retry" and status.state in ("validating", "awaiting-confirmation"):
            self._stop_executor()
            self.recorder.store(Entered("validating"))  # anew: its old checks no longer count
            self.recorder.store(StepStarted("validate"))
        self.recorder.store(Resumed(by))
        self._start_executor()

    def _abandon(self, state: str, by: str) -> None:
        """Live is untouched; what was built for this rollout alone is dropped at once."""
        self._stop_executor()
        release = self.recorder.status.release
        self.recorder.store(Ended("cancelled" if state == "cancelled" else "discarded", by))
        self._refollow()
        self._drop(release)

    def _stop_executor(self) -> None:
        if self._executor is not None:
            self._executor.stop()
            self._executor.join()
            self._executor = None

    def _start_executor(self) -> None:
        self._stop_executor()
        if self.recorder.status.state == "awaiting-confirmation" and not self.recorder.status.held:
            self._refollow()
            return
        keep = self._settings.rollback_window_hours
        context = RolloutContext(self.warehouse, self._spark, self.releases, self.recorder, self._follower, keep)
        self._executor = PlanExecutor(context, self._refollow)
        self._executor.start()

    def mind(self) -> None:
        """Once a second: is the rollout left alone for too long, or did a full disk break off what it was at?"""
        carrying = self._executor is not None and self._executor.is_alive()
        status, standing = self.recorder.status, {*ENDED, "none", "awaiting-confirmation"}
        idle = status.state not in standing and not status.held and not carrying
        if idle and not self._spark.lost and self._guard.acquire(blocking=False):
            try:
                self.resume()
            finally:
                self._guard.release()
        self.watchdog.mind(self, carrying)

    def halt(self) -> None:
        """Stop carrying because the agent ends; the rollout's state stays as it is."""
        with self._guard:
            self._stop_executor()

    # -- promotion and back

    def promote(self, rollout: str, live: str, by: str, host: str) -> Promoted:
        """Open the gate: one commit.

        raises  Conflict naming the winner; CheckFailed if a check found a difference; Conflict if it is not at the gate
        """
        with self._guard:
            status = self.recorder.status
            decided = self.rollouts.decision()
            if isinstance(decided, Promoted) and (status.rollout != rollout or status.state == "live"):
                raise self._too_late(decided)
            if status.rollout != rollout or status.shown != "awaiting-confirmation":
                raise Conflict(f"{rollout} is not at the gate: {status.shown}", hint="console status", code="E_STATE")
            failed = [check for check in status.checks if check.ok is False]
            if failed:
                raise CheckFailed(
                    f"{failed[0].table}: {failed[0].check}: {failed[0].detail}",
                    hint="console status shows all checks; `console discard` drops the new version",
                    code="E_CHECK",
                )
            if not planted_bugs.early():
                self._drain(status.release)
            with self._across(status.release):
                self.recorder.store(Entered("promoting"))
                return self._swap(status.release, live, by, host)

    def _swap(self, release: str, live: str, by: str, host: str) -> Promoted:
        try:
            version = self.releases.swap(live, release, by, host)
        except Conflict:
            self.recorder.store(Entered("awaiting-confirmation"))
            raise
        event = Promoted(release, live, by, host, version)
        self.recorder.store(event)
        self._refollow()
        return event

    def _across(self, to: str) -> AbstractContextManager[None]:
        """Around the swap: what `to` feeds from another version of its source moves there while all else stands still."""
        changing = rebind.moves(self.releases.all(), to, self.path)
        return rebind.moved(self._spark, self._follower, self.pipeline, changing, self._refollow)

    def _too_late(self, decided: Promoted) -> Conflict:
        found = next((h.row for h in self.releases.all() if h.row.id == decided.release), None)
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(found.at)) if found else "?"
        return Conflict(
            f"{decided.release} was already promoted by {decided.by} from {decided.host} at {when}",
            hint="console status",
            code="E_PROMOTED",
        )

    def _drain(self, to: str) -> None:
        """Bring the release that is to answer to one landing position; the gate stays shut while it cannot get there."""
        try:
            rebind.drain(self._follower, self.pipeline, self.releases.all(), to, self.path)
        except BaseException:
            self._refollow()  # live's own word counts again
            raise

    def _settle(self) -> None:
        if settle(self.recorder, self.releases, self.rollouts):
            self._refollow()

    def rollback(self, live: str, by: str, host: str) -> RolledBack:
        """Back to the previous release: the same one commit.

        raises  Conflict if there is none to go back to, or another release is live
        """
        with self._guard:
            status = self.recorder.status
            if status.state not in ENDED and status.state != "none":
                raise Conflict(
                    f"{status.rollout} is under way ({status.shown})", hint="console cancel", code="E_UNDER_WAY"
                )
            previous = self.releases.in_state("previous")
            if previous is None:
                raise Conflict(f"{self.pipeline}: nothing to go back to", hint="console status", code="E_NO_PREVIOUS")
            self._drain(previous.row.id)
            with self._across(previous.row.id):
                version = self.releases.swap(live, previous.row.id, by, host)
                event = RolledBack(previous.row.id, live, by, host, version)
                self.recorder.store(event)
                self._refollow()
                return event

    # -- what is followed, and what may go
    def _refollow(self) -> None:
        """Follow live, the release being built once it has caught up, and previous; what they share, for the first."""
        edges: list[tuple[LiveFeed, ...]] = []
        status = self.recorder.status
        built = status.state in ("validating", "awaiting-confirmation", "promoting") or self._caught_up(status)
        for held in rebind.ranked(self.releases.all()):
            building = held.row.id == status.release and built and status.state not in ENDED
            if held.row.state in ("live", "previous"):
                edges.append(live_feeds_of(held.release, self.path))
            elif building and self._executor is not None:
                edges.append(self._executor.context.live_feeds_in_order())
            elif building:
                edges.append(live_feeds_of(held.release, self.path))
        self._follower.follow(self.pipeline, rebind.owned(edges))

    def _caught_up(self, status: Status) -> bool:
        steps = [step for step in status.steps if step.id.startswith("catch-up/")]
        return bool(status.steps) and all(step.state == "done" for step in steps) and status.state == "catching-up"

    def cleanup(self, by: str, *, dry_run: bool, previous: bool) -> tuple[str, ...]:
        """Drop versions that no kept release names; with `previous`, also the one a rollback would return to."""
        with self._guard:
            status = self.recorder.status
            building = "" if status.state in ENDED else status.release
            doomed, paths = housekeeping.superseded(self.releases, previous=previous, building=building)
            if dry_run:
                return paths
            if previous and status.state in ENDED - {"cleaned"}:
                self.recorder.store(Ended("cleaned", by))
            for held in doomed:
                self.releases.mark(held.row.id, "retired")
            self._refollow()
            self._follower.finish_tick()
            dropped = tuple(path for path in paths if drop_version(self.warehouse, path))
            for held in doomed:  # forgotten last, so that whoever goes on after a death still knows what is to go
                self.releases.drop(held.row.id)
            return dropped

    def _drop(self, release: str) -> None:
        """Forget a release that never became live, and what was built for it alone."""
        held = next((h for h in self.releases.all() if h.row.id == release and h.row.state == "preview"), None)
        if held is None:
            return
        paths = housekeeping.own_versions(self.releases, held.release, {release})
        self._follower.finish_tick()
        for path in paths:
            drop_version(self.warehouse, path)
        self.releases.drop(release)
