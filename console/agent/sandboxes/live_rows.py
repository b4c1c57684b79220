"""Live rows of sandboxes: their rebuilt tables are fed like those of a release, by a follower of their own.

Live tables never wait for it, and an alignment or a promotion never for a feed of a sandbox that has stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, followed_with
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases
from console.model.plan import Plan
from console.model.region import Follow
from console.model.sandbox import SandboxFeeding
from console.model.sandbox_plan import created

JOIN_SECONDS = 20.0


@dataclass(slots=True, kw_only=True)
class SandboxFeeds:
    """The sandboxes of one pipeline that are fed. Their thread starts with the first of them.

    releases of the pipeline
    resolve  version path → absolute path
    report   called with (level, text)
    """

    spark: SparkHandle
    tick_seconds: float
    pace: Follow
    releases: Releases
    resolve: Callable[[str], str]
    report: Callable[[str, str], None]
    _follower: FeedFollower | None = field(default=None, init=False)
    _fed: set[str] = field(default_factory=set, init=False)

    def feed(self, name: str, plan: Plan) -> None:
        """Feed a sandbox from the positions on that its build has stored in the tables' logs."""
        if self._follower is None:
            self._follower = FeedFollower(self.spark, self.tick_seconds, self._tell, self.pace)
            self._follower.start()
        self._follower.follow(name, self.of(plan))
        self._fed.add(name)

    def end(self, name: str) -> None:
        """Stop feeding a sandbox: when this returns, nothing writes its versions. No effect on one that is not fed."""
        if name in self._fed and self._follower is not None:
            self._follower.follow(name, ())
            self._follower.finish_tick()
            self._fed.discard(name)

    @property
    def fed(self) -> frozenset[str]:
        """Names of the sandboxes that are fed."""
        return frozenset(self._fed)

    def state(self, name: str) -> SandboxFeeding | None:
        """The lag of a sandbox's feeds; None if it is not fed."""
        if self._follower is None or name not in self._fed:
            return None
        lag = self._follower.lag(name)
        stopped = next((feed for feed in lag.ailing if feed.standing), None)
        return SandboxFeeding(lag.rows, lag.seconds, f"{stopped.target}: {stopped.why}" if stopped else "")

    def of(self, plan: Plan) -> tuple[LiveFeed, ...]:
        """The feeds of the plan's rebuilt tables, upstream before downstream; into another version of a landing table, of the rows
        that arrive in live's."""
        built = set(created(plan))
        live = next((stored.release for stored in self.releases.all() if stored.row.id == plan.live), None)
        feeds = followed_with(live, plan.release, self.resolve, guarded=True)
        return tuple(feed for feed in feeds if feed.spec.target in built)

    @property
    def last_used(self) -> float:
        """Monotonic: when a feed last needed Spark; 0 for never."""
        return self._follower.last_used if self._follower is not None else 0.0

    def let_go(self, idle_seconds: float) -> bool:
        """As of `FeedFollower.let_go`."""
        return self._follower is None or self._follower.let_go(idle_seconds)

    def stop(self) -> None:
        """End the thread because the agent ends; the next agent continues from the positions in the logs."""
        if self._follower is not None:
            self._follower.stop()
            self._follower.join(JOIN_SECONDS)

    def _tell(self, name: str, level: str, text: str) -> None:
        self.report(level, f"preview {name}: {text}")
