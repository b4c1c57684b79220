"""The feeds of a pipeline that the follower moves: those of the kept releases, and of a new one that has caught up."""

from dataclasses import dataclass

from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, feeds_to_follow, followed_with, ranked
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.rebind import Resolve
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases
from console.model.status import Status
from console.model.step import CatchUp


@dataclass(slots=True, kw_only=True)
class FollowedFeeds:
    """Chooses the followed feeds of one pipeline from its release table and its rollout.

    resolve   version path → absolute path
    building  the context of the running executor, whose feed objects are followed; None while none runs
    """

    pipeline: str
    releases: Releases
    recorder: Recorder
    follower: FeedFollower
    resolve: Resolve
    building: RolloutContext | None = None

    def refollow(self) -> None:
        """Follow live, previous, and the release being built once it has caught up; a shared version is fed by the
        first of them by rank.
        """
        releases: list[tuple[LiveFeed, ...]] = []
        status, stored_releases = self.recorder.status, ranked(self.releases.all())
        live = next((stored.release for stored in stored_releases if stored.row.state == "live"), None)
        for stored in stored_releases:
            built = stored.row.id == status.release and stored.row.state == "preview" and self._is_built(status)
            if built and (context := self.building) is not None:
                releases.append(context.live_feeds_in_order())
            elif built or stored.row.state in ("live", "previous"):
                releases.append(followed_with(live, stored.release, self.resolve, guarded=built))
        self.follower.follow(self.pipeline, feeds_to_follow(releases))

    def release(self) -> None:
        """Wait until the follower uses no version of a release that is no longer kept."""
        self.refollow()
        self.follower.finish_tick()

    def _is_built(self, status: Status) -> bool:
        """Whether the rollout's release has history and live rows, and so must be kept current."""
        if status.state != "catching-up":
            return status.state in ("validating", "awaiting-confirmation", "promoting")
        steps = self.recorder.plan.steps if self.recorder.plan else ()
        catching_up = {step.id for step in steps if isinstance(step, CatchUp)}
        return bool(status.steps) and all(step.state == "done" for step in status.steps if step.id in catching_up)
