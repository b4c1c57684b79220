"""Acceptance of a plan: the check against the live release, its number, and the events that begin its rollout."""

from collections.abc import Callable
from dataclasses import dataclass

from console.agent.rollout.ownership import in_progress
from console.agent.rollout.rebind import Resolve
from console.agent.rollout.recorder import Recorder
from console.agent.store import log
from console.agent.store.ledger import Releases, Rollouts
from console.errors import Conflict
from console.model.created import TableSettings
from console.model.event import Accepted
from console.model.fleet import FleetWaves
from console.model.identity import AgentReason, agent_reason
from console.model.plan import Plan, numbered
from console.model.rollout_id import release_number, rollout_id, rollout_number
from console.model.sandbox_plan import ContinuedPlan
from console.model.step import Backfill


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Begins the rollouts of one pipeline. The caller holds the pipeline's lock.

    resolve       version path → absolute path
    created_with  properties of the rollout's new tables
    continued     the plan, continued from the sandbox that holds a part of it
    """

    pipeline: str
    releases: Releases
    rollouts: Rollouts
    recorder: Recorder
    resolve: Resolve
    created_with: TableSettings
    continued: Callable[[Plan], ContinuedPlan] = ContinuedPlan

    def repeated(self, plan: Plan) -> str:
        """The rollout in progress, if it makes the same change as the plan; "" if none is in progress.

        raises  Conflict E_UNDER_WAY during the rollout of another change
        """
        status = self.recorder.status
        if not in_progress(status):
            return ""
        if self._is_same_change(plan):
            return self.recorder.rollout
        raise Conflict(
            f"{self.pipeline}: {status.rollout} by {status.by} is under way ({status.shown})",
            hint="`console status`; then promote it, or `console cancel` and plan again",
            code="E_UNDER_WAY",
        )

    def begin(self, plan: Plan, *, by: str, host: str, attached: bool, fleet: FleetWaves | None) -> str:
        """Propose the plan's release and store that it was accepted; returns the rollout's id.

        raises  Conflict E_STALE if the plan starts from another release
        """
        self._check_base(plan)
        number = self.next_number()
        rollout = rollout_id(self.pipeline, number)
        plan_digest, begun = plan.digest(), self.continued(plan)
        plan = numbered(begun.plan, number, self.created_with)
        steps = tuple((s.id, s.rows if isinstance(s, Backfill) else 0) for s in plan.steps)
        self.releases.propose(plan.release, rollout, by, host)
        event = Accepted(
            release=plan.release.id,
            was=plan.live,
            plan=plan_digest,
            by=by,
            host=host,
            steps=steps,
            allowed=plan.allowed,
            attached=attached,
            fleet=fleet,
            taken_back=self._taken_back(),
        )
        self.recorder.accept(rollout, plan, event, begun.events)
        return rollout

    def _taken_back(self) -> str:
        """The release that the agent rolled back, if that made the live release live; else ""."""
        live, previous = self.releases.in_state("live"), self.releases.in_state("previous")
        if live is None or agent_reason(live.row.by) is not AgentReason.BREACH:
            return ""
        return previous.row.id if previous else "its successor"

    def next_number(self) -> int:
        """One more than any release or rollout so far, so that no version's directory is used twice."""
        releases = [release_number(stored.row.id) for stored in self.releases.all()]
        last = self.rollouts.latest()
        return max([0, *releases, rollout_number(last) if last else 0]) + 1

    def _is_same_change(self, plan: Plan) -> bool:
        """Whether this change is already being rolled out; estimates move with every row, so they do not count."""
        accepted = self.recorder.plan
        return accepted is not None and (accepted.desired, accepted.live) == (plan.desired, plan.live)

    def _check_base(self, plan: Plan) -> None:
        live = self.releases.in_state("live")
        if (live.row.id if live else "") != plan.live:
            now = f"{live.row.id}, promoted by {live.row.by} from {live.row.host}" if live else "no release"
            raise Conflict(
                f"the plan starts from {plan.live or 'no release'}, but live is {now}",
                hint="console plan, for the releases that are live now",
                code="E_STALE",
            )
        for state in plan.release.tables:
            if (
                state.version.path
                and not log.exists(self.resolve(state.version.path))
                and state.table.kind != "landing"
            ):
                raise Conflict(
                    f"{state.version.path} is gone since the plan was made", hint="console plan", code="E_STALE"
                )
