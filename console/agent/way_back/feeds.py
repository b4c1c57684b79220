"""Whether the feeds of the previous release have brought it to live's position, from the follower's own state."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from console.agent.failure import message
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, followed_with
from console.model.live import Release
from console.model.way_back import KeptFeed, WayBackFinding, judge_feed
from console.text import redacted, safe_text


@dataclass(slots=True)
class ReleaseFeeds:
    """The feeds of one pipeline's previous release. resolve: version path → absolute path"""

    pipeline: str
    follower: FeedFollower
    resolve: Callable[[str], str]
    _before: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def look(self, live: Release, previous: Release) -> tuple[int, tuple[WayBackFinding, ...]]:
        """The number of its feeds, and the findings against them. The caller holds the pipeline's lock."""
        feeds = tuple(self._kept(live, previous))
        return len(feeds), tuple(finding for feed in feeds if (finding := judge_feed(feed)) is not None)

    def _kept(self, live: Release, previous: Release) -> Iterator[KeptFeed]:
        followed = self.follower.feeds(self.pipeline)
        aligned = self.follower.is_aligned(self.pipeline)
        behind = {figures.key: figures.behind for figures in self.follower.figures(self.pipeline)}
        lives = {feed.key for feed in followed_with(previous, live, self.resolve)}
        of_live = {feed.source_path: feed.seen for feed in followed if feed.key in lives}
        for wanted in followed_with(live, previous, self.resolve):
            # a version that live shares is fed once, by live's feed, whose source may have another name
            feeding = [feed for feed in followed if feed.target_path == wanted.target_path]
            own = next((feed for feed in feeding if feed.key == wanted.key), None) or next(iter(feeding), None)
            if own is None:
                yield KeptFeed(name=wanted.spec.materialization, target=wanted.spec.target, followed=False)
                continue
            yield self._of(own, aligned=aligned, behind=behind.get(own.key, 0), live=of_live.get(own.source_path))
            self._before[own.key] = own.seen

    def _of(self, feed: LiveFeed, *, aligned: bool, behind: int, live: int | None) -> KeptFeed:
        standing = feed.health.standing
        why = message(standing) if standing else feed.health.last_error
        return KeptFeed(
            name=feed.spec.materialization,
            target=feed.spec.target,
            followed=True,
            aligned=aligned,
            position=feed.seen,
            before=self._before.get(feed.key, -1),
            live=live,
            behind=behind,
            tries=feed.health.tries,
            stopped=standing is not None,
            why=safe_text(redacted(why), 300),
        )
