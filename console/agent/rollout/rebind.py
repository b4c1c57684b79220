"""Feeds that move from one version of their source to another at a promotion or a rollback, and who feeds what."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from console.agent.feeds import commit, planted_bugs
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, live_feeds_of
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.agent.store.ledger import StoredRelease
from console.errors import CheckFailed, FeedStopped
from console.model.live import ReleaseState

Resolve = Callable[[str], str]
ALIGN_SECONDS = 120.0
_MOVING = FeedStopped("its table moves to another version of the source", code="E_MOVING")
_OWNERS: tuple[ReleaseState, ...] = ("live", "preview", "previous", "retired")


@dataclass(frozen=True, slots=True)
class Rebinding:
    """One table that both releases share and feed from different versions of its source."""

    old: LiveFeed
    new: LiveFeed


def moves(releases: Iterable[StoredRelease], to: str, resolve: Resolve) -> tuple[Rebinding, ...]:
    """What changes hands besides the release itself when `to` follows the one that is live."""
    held = tuple(releases)
    was = next((h.release for h in held if h.row.state == "live"), None)
    now = next((h.release for h in held if h.row.id == to), None)
    if was is None or now is None or not any(feed.moved for release in (was, now) for feed in release.feeds):
        return ()
    before = {
        (live_feed.target_path, live_feed.spec.materialization): live_feed for live_feed in live_feeds_of(was, resolve)
    }
    pairs = [(before.get((e.target_path, e.spec.materialization)), e) for e in live_feeds_of(now, resolve)]
    return tuple(Rebinding(old, new) for old, new in pairs if old is not None and old.source_path != new.source_path)


def ranked(releases: Iterable[StoredRelease]) -> tuple[StoredRelease, ...]:
    """The order in which releases own the versions that they share."""
    return tuple(sorted(releases, key=lambda held: _OWNERS.index(held.row.state)))


def owned(releases: Iterable[tuple[LiveFeed, ...]]) -> tuple[LiveFeed, ...]:
    """The feeds to be followed of several releases, given in their rank: each version is fed by one release alone.

    Else a table below a rebuilt one would get every row from both versions of it.
    """
    owners: dict[str, int] = {}
    found = []
    for place, live_feeds in enumerate(releases):
        for live_feed in live_feeds:
            if owners.setdefault(live_feed.target_path, place) == place:
                found.append(live_feed)
    return tuple(found)


def drain(follower: FeedFollower, pipeline: str, releases: Iterable[StoredRelease], to: str, resolve: Resolve) -> None:
    """Bring the feeds of a release to one landing position, by what that release itself says of them.

    A feed that only others have may stand still: what replaces it is how it is mended.

    raises  the reason for which a feed of the release stands still; CheckFailed E_LAG while one cannot keep up
    """
    release = next((held.release for held in releases if held.row.id == to), None)
    live_feeds = {live_feed.key: live_feed for live_feed in live_feeds_of(release, resolve)} if release else {}
    follower.redefine(pipeline, live_feeds.values())
    with follower.hold(pipeline, ALIGN_SECONDS, needed=lambda live_feed: live_feed.key in live_feeds):
        pass


@contextmanager
def moved(
    spark: SparkHandle,
    follower: FeedFollower,
    pipeline: str,
    changing: tuple[Rebinding, ...],
    refollow: Callable[[], None],
) -> Iterator[None]:
    """Take shared tables from the old version of their source to the new one, around the swap of the releases.

    The follower is held meanwhile, old and new source at one landing position, and the table has everything of the old
    one: it goes on after the version that the new source has reached. The old feed is closed, so that no late commit of
    it counts, and the new one's position is committed before the release changes hands. If it never does, the old feed
    is opened anew where it was closed, and the new position lies there until it is committed again.

    refollow  says what is followed from now on, as the release table has it; before that neither feed may move
    raises    what a feed stands still by; CheckFailed E_LAG if the feeds do not come to one landing position
    """
    if not changing:
        yield
        return
    with follower.hold(pipeline, ALIGN_SECONDS, aligned=not planted_bugs.early()):
        session = spark.session()
        try:
            for move in changing:
                _move(session, follower, pipeline, move)
            yield
        finally:
            refollow()
            for live_feed in follower.feeds(pipeline):
                if live_feed.health.stopped is _MOVING:
                    live_feed.health.fine()


def _move(session: Any, follower: FeedFollower, pipeline: str, move: Rebinding) -> None:
    old, new = move.old, move.new
    start = log.latest_version(new.source_path)
    followed = next((live_feed for live_feed in follower.feeds(pipeline) if live_feed.key == old.key), None)
    if (followed is None or _left(followed)) and not planted_bugs.early():
        raise CheckFailed(
            f"{old.target_path} has not taken everything of {old.source_path} yet",
            hint="try again; `console status` shows the lag",
            code="E_LAG",
        )
    if followed is not None:  # it takes the closed feed over anew, should the old release stay
        followed.health.stop(_MOVING)
        followed.writer = None
    closed = commit.close_feed(session, old.app_id, old.target_path)
    note = {"kind": "rebind", "feed": new.app_id, "after": old.app_id, "closed": closed}
    commit.place_feed(session, new.app_id, new.target_path, start, note)


def _left(live_feed: LiveFeed) -> bool:
    """Whether the source has rows that the edge has not passed; what maintenance committed since does not count."""
    found = log.commits(live_feed.source_path, live_feed.seen + 1, log.latest_version(live_feed.source_path))
    return any(commit.kind == "append" for commit in found)
