"""Rebinding: at a promotion or rollback, the feed of a shared table switches to another version of its source."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from console.agent.feeds import commit, planted_bugs
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, live_feeds_of
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.agent.store.ledger import StoredRelease
from console.errors import CheckFailed, FeedStopped

Resolve = Callable[[str], str]
ALIGN_SECONDS = 120.0
_REBINDING = FeedStopped("its table moves to another version of the source", code="E_MOVING")


@dataclass(frozen=True, slots=True)
class Rebinding:
    """One table that two releases share and feed from different versions of its source."""

    old: LiveFeed
    new: LiveFeed


def rebindings_for(releases: Iterable[StoredRelease], to: str, resolve: Resolve) -> tuple[Rebinding, ...]:
    """The feeds of shared tables that switch sources when release `to` becomes live.

    to       a release's id
    resolve  version path → absolute path
    """
    stored = tuple(releases)
    was = next((each.release for each in stored if each.row.state == "live"), None)
    now = next((each.release for each in stored if each.row.id == to), None)
    if was is None or now is None or not any(feed.moved for release in (was, now) for feed in release.feeds):
        return ()
    before = {(feed.target_path, feed.spec.materialization): feed for feed in live_feeds_of(was, resolve)}
    pairs = [(before.get((feed.target_path, feed.spec.materialization)), feed) for feed in live_feeds_of(now, resolve)]
    return tuple(Rebinding(old, new) for old, new in pairs if old is not None and old.source_path != new.source_path)


@contextmanager
def level(
    follower: FeedFollower,
    pipeline: str,
    releases: Iterable[StoredRelease],
    to: str,
    resolve: Resolve,
    *,
    all_feeds: bool = False,
) -> Iterator[None]:
    """Hold the follower with the feeds of release `to` at one landing position, under the definitions of that release.

    A feed that only other releases have may be stopped: promoting this release replaces it.

    all_feeds  those of the other releases must have reached the position as well: `rebound` follows
    raises  the error that stopped a feed of the release; CheckFailed E_LAG if one does not catch up in time
    """
    release = next((stored.release for stored in releases if stored.row.id == to), None)
    live_feeds = {live_feed.key: live_feed for live_feed in live_feeds_of(release, resolve)} if release else {}
    follower.redefine(pipeline, live_feeds.values())
    with follower.hold(
        pipeline,
        ALIGN_SECONDS,
        aligned=not planted_bugs.early(),
        needed=lambda live_feed: all_feeds or live_feed.key in live_feeds,
    ):
        yield


@contextmanager
def rebound(
    spark: SparkHandle,
    follower: FeedFollower,
    pipeline: str,
    rebindings: tuple[Rebinding, ...],
    refollow: Callable[[], None],
    switched: Callable[[Any], AbstractContextManager[object]] | None = None,
) -> Iterator[None]:
    """Context of the swap of the live release: shared tables switch from the old version of their source to the new one.

    Within `level` of all feeds: both sources are at one landing position, with every row of the old one in the table. The new
    feed starts after the version that its source has reached. The old feed is closed, so that a late commit of it does
    not count, and the new feed's position is committed before the swap. If the swap fails, the old feed is reopened at
    its position; the new position stays unused until it is committed again.

    refollow  makes the follower move the feeds that the release table now requires; until then neither feed may move
    switched  context, given a session, around the swap: landing tables switch versions, with their intake held. The new feeds
              are placed before it: at a common landing position the versions of a landing table hold the same rows
    raises    CheckFailed E_LAG if the old feed has rows left to take
    """
    session = spark.session()
    try:
        for rebinding in rebindings:
            _rebind(session, follower, pipeline, rebinding)
        with nullcontext() if switched is None else switched(session):
            yield
    finally:
        refollow()
        for live_feed in follower.feeds(pipeline):
            if live_feed.health.stopped is _REBINDING:
                live_feed.health.reset()


def _rebind(session: Any, follower: FeedFollower, pipeline: str, rebinding: Rebinding) -> None:
    old, new = rebinding.old, rebinding.new
    feeds = follower.feeds(pipeline)
    into, out_of = _between(feeds, old, new), _between(feeds, new, old)
    # a source with other writers is read up to the position that the table fed from it has reached
    start = out_of.seen if out_of is not None else log.latest_version(new.source_path)
    followed = next((live_feed for live_feed in feeds if live_feed.key == old.key), None)
    behind = followed is None or (_has_rows_left(followed) if into is None else followed.seen != into.seen)
    if behind and not planted_bugs.early():
        raise CheckFailed(
            f"{old.target_path} has not taken everything of {old.source_path} yet",
            hint="try again; `console status` shows the lag",
            code="E_LAG",
        )
    if followed is not None:  # if the old release stays live, it takes the closed feed over again
        followed.health.stop(_REBINDING)
        followed.writer = None
    commit.replace_feed(session, old.app_id, new.app_id, old.target_path, start)


def _between(feeds: Iterable[LiveFeed], above: LiveFeed, below: LiveFeed) -> LiveFeed | None:
    """The feed that fills the source of `below` from the source of `above`: that of an adapter in front of a landing table."""
    return next((f for f in feeds if (f.source_path, f.target_path) == (above.source_path, below.source_path)), None)


def _has_rows_left(live_feed: LiveFeed) -> bool:
    """Whether the source has rows that the feed has not moved; commits of maintenance do not count."""
    commits = log.commits(live_feed.source_path, live_feed.seen + 1, log.latest_version(live_feed.source_path))
    return any(commit.kind == "append" for commit in commits)
