"""Feeds that make no progress, as the region's status reports them."""

from collections.abc import Iterable

from console.agent.feeds.live_feed import LiveFeed, downstream
from console.errors import ConsoleError
from console.model.event import Ailing
from console.text import redacted, safe_text


def failing(feeds: Iterable[LiveFeed]) -> tuple[Ailing, ...]:
    """The feeds whose last attempt failed, with the tables downstream of them. feeds: upstream before downstream"""
    feeds = tuple(feeds)
    return tuple(_of_health(feed, feeds) for feed in feeds if feed.health.tries or feed.health.standing)


def _of_health(feed: LiveFeed, feeds: tuple[LiveFeed, ...]) -> Ailing:
    health = feed.health
    return ailing(
        feed, feeds, health.standing or health.last_error, tries=health.tries, standing=health.standing is not None
    )


def ailing(
    feed: LiveFeed, feeds: tuple[LiveFeed, ...], error: ConsoleError | str, *, tries: int, standing: bool
) -> Ailing:
    """A feed with the reason why it makes no progress, without secrets and control characters."""
    known = error if isinstance(error, ConsoleError) else None
    return Ailing(
        feed=feed.spec.materialization,
        target=feed.spec.target,
        path=feed.target.version.path,
        tries=tries,
        standing=standing,
        why=safe_text(redacted(str(error))),
        hint=safe_text(redacted(known.hint)) if known else "",
        code=known.code if known else "",
        below=downstream(feed, feeds),
    )
