"""The lag of a pipeline's live feeds while no agent runs, from the logs alone: no Spark, no lock."""

import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deltalake.exceptions import DeltaError

from console import paths
from console.agent.feeds import app_ids, ranges
from console.agent.feeds.ailing import ailing
from console.agent.feeds.live_feed import LiveFeed, feeds_to_follow, followed_with, ranked
from console.agent.feeds.recent_number import recent_number
from console.agent.store import log
from console.agent.store.ledger import StoredRelease
from console.errors import ConsoleError, RegionError
from console.model.event import Ailing, Lagging

READERS = 8  # feeds whose logs are read at once


def resting(warehouse: Path, releases: Iterable[StoredRelease]) -> Lagging:
    """The lag of the feeds of the live and the previous release. A feed with waiting rows is ailing, since no agent
    moves them; so is one that an agent would stop at once, with that reason.
    """
    kept = [stored for stored in ranked(releases) if stored.row.state in ("live", "previous")]
    live = next((stored.release for stored in kept if stored.row.state == "live"), None)
    live_feeds = feeds_to_follow(
        followed_with(live, stored.release, lambda path: paths.version_path(warehouse, path)) for stored in kept
    )
    with ThreadPoolExecutor(READERS) as readers:  # deltalake leaves the other cores to the others while it parses a log
        measured = list(readers.map(_waiting, live_feeds))
    commits, rows, seconds = 0, 0, 0.0
    stopped: list[Ailing] = []
    for live_feed, more in zip(live_feeds, measured, strict=True):
        if isinstance(more, ConsoleError):
            stopped.append(ailing(live_feed, live_feeds, more, tries=0, standing=True))
        elif more is not None:
            commits, rows, seconds = commits + more[0], rows + more[1], max(seconds, more[2])
            waiting = f"{_count(more[0], 'commit')} ({_count(more[1], 'row')}) of {live_feed.spec.source}"
            stopped.append(ailing(live_feed, live_feeds, _no_agent(waiting, warehouse), tries=0, standing=True))
    return Lagging(commits=commits, rows=rows, seconds=seconds, ailing=tuple(stopped))


def _waiting(live_feed: LiveFeed) -> tuple[int, int, float] | ConsoleError | None:
    """Commits, rows and seconds that wait for a feed; None if there are none, the error if that cannot be measured."""
    try:
        end, position = log.latest_version(live_feed.source_path), _position(live_feed)
        if position < 0 or not _waits(live_feed, position, end):
            return None
        return ranges.pending(live_feed.source_path, position, end)
    except ConsoleError as error:
        return error
    except (DeltaError, OSError) as error:
        return RegionError(f"its lag cannot be measured: {error}")


def _position(live_feed: LiveFeed) -> int:
    """As `committed`, mostly without the target's whole log: here nothing is written or deleted by it."""
    number = recent_number(live_feed.target_path, live_feed.spec)
    return live_feed.committed() if number is None else app_ids.split(number)[1]


def _waits(live_feed: LiveFeed, position: int, end: int) -> bool:
    """Whether there are commits with rows for the feed after `position`, up to `end`.

    raises  FeedStopped at a commit that stops the feed
    """
    while part := ranges.next_range(
        live_feed.source_path, position, end, rows_limit=1, policy=live_feed.source.table.on_rewrite
    ):
        if part.files:
            return True
        position = part.last
    return False


def _no_agent(waiting: str, warehouse: Path) -> RegionError:
    """The message with the command that works without project files, which may be on another host."""
    hint = f"on the region's host: console follow --warehouse {shlex.quote(str(warehouse))}"
    return RegionError(f"no agent runs, and {waiting} wait", hint=hint, code="E_NO_AGENT")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
