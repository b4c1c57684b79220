"""The switch of a landing table to another version: the new one gets all rows of the old one, and the relay feed is reversed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from console.agent.failure import fresh_copy
from console.agent.feeds import commit
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, relay_feeds
from console.agent.store import log
from console.agent.store.ledger import StoredRelease
from console.errors import CheckFailed, FeedStopped

TURNING = FeedStopped("its landing table changes its version", code="E_MOVING")


@dataclass(frozen=True, slots=True)
class Switch:
    """One landing table with a different version in each of two releases.

    there  the relay feed into the version that becomes live;  back  the one in the opposite direction, used from then on
    """

    there: LiveFeed
    back: LiveFeed


def switches_for(releases: Iterable[StoredRelease], to: str, resolve: Callable[[str], str]) -> tuple[Switch, ...]:
    """The landing tables that switch versions when release `to` becomes live.

    to       a release's id
    resolve  version path → absolute path
    """
    stored = tuple(releases)
    was = next((each.release for each in stored if each.row.state == "live"), None)
    now = next((each.release for each in stored if each.row.id == to), None)
    if was is None or now is None:
        return ()
    back = {live_feed.target_path: live_feed for live_feed in relay_feeds(now, was, resolve)}
    return tuple(Switch(there, back[there.source_path]) for there in relay_feeds(was, now, resolve))


def drain(session: Any, follower: FeedFollower, pipeline: str, live_feed: LiveFeed) -> LiveFeed:
    """Move a followed feed to the end of its source, which no longer has writers. The follower is held.

    returns  the feed object that the follower moves
    raises   the error that stopped the feed, or stops it now; CheckFailed E_LAG if it is not followed
    """
    followed = next((each for each in follower.feeds(pipeline) if each.key == live_feed.key), None)
    if followed is None:
        raise CheckFailed(
            f"{live_feed.target_path} is not fed from {live_feed.source_path} yet",
            hint="try again; `console status` shows the lag",
            code="E_LAG",
        )
    if followed.health.standing:
        raise fresh_copy(followed.health.standing)
    end = log.latest_version(followed.source_path)
    try:
        while followed.seen < end and followed.step(session, end) >= 0:
            pass
    except Exception as error:
        followed.writer = None  # its last commit may or may not be in the log
        followed.health.record_failure(error, followed.spec.target, followed.own_query)
        if followed.health.standing:
            raise fresh_copy(followed.health.standing) from None
        raise
    return followed


def turn(session: Any, follower: FeedFollower, pipeline: str, switch: Switch) -> int:
    """Close the relay feed `there`, and place `back` after the commit of the new log at which both versions have the same rows.

    If the swap fails, the closed feed is reopened at its position, and the placed one stays unused until it is placed again.

    returns  that version
    """
    there, back = switch.there, switch.back
    followed = drain(session, follower, pipeline, there)
    followed.health.stop(TURNING)
    followed.writer = None
    closed = commit.close_feed(session, there.app_id, there.target_path)
    at = log.latest_version(there.target_path)
    note = {"kind": "relay", "feed": back.app_id, "after": there.app_id, "closed": closed, "at": at}
    commit.place_feed(session, back.app_id, back.target_path, at, note)
    return at
