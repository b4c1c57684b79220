"""The follower's rest between two ticks, as a function of how long ticks take."""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from console.model.region import FOLLOW, Follow

MAX_LOAD_FACTOR = 4.0
# By the default share a tick of four seconds and more is followed by the longest rest; by another share the longest rest
# changes in proportion, or a small share would have no effect on a slow machine.
MAX_REST_TICK_SECONDS = 4.0
REMEMBERED_TICKS = 8
ASLEEP_TICKS = 4  # between two looks at the logs of a region at rest
MIN_REST_SECONDS = 0.1  # with a lag that the machine cannot keep: other threads of the process still get their turn


def load_factor() -> float:
    """Runnable processes per core, between 1 and `MAX_LOAD_FACTOR`."""
    return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), MAX_LOAD_FACTOR)


@dataclass(slots=True, kw_only=True)
class Pacing:
    """The rests of one follower.

    After a tick it rests so long that following takes at most its share of a core from builds, queries and other
    processes: by the default of a quarter three times as long as the tick took, longer on an overloaded machine.

    tick_seconds  the shortest time between two ticks, without a lag
    load          by how much longer it rests than the share asks for
    """

    tick_seconds: float
    follow: Follow = FOLLOW
    load: Callable[[], float] = load_factor
    _ticks: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED_TICKS))

    def rest(self, took: float, *, awaited: bool = False, asleep: bool = False) -> float:
        """Seconds until the next tick, after one that took `took` seconds.

        awaited  a build or a promotion waits for the feeds
        asleep   Spark sleeps: the first row waits for its start anyway
        """
        self._ticks.append(took)
        by_share = self.tick_seconds if awaited else self._by_share(took)
        if asleep and not awaited:
            by_share = max(by_share, ASLEEP_TICKS * self.tick_seconds)
        return by_share if self.follow.lag_seconds is None else self._within(self.follow.lag_seconds, by_share)

    def _by_share(self, took: float) -> float:
        times = 1 / self.follow.share - 1
        return max(self.tick_seconds, min(took * times * self.load(), MAX_REST_TICK_SECONDS * times))

    def _within(self, lag: float, rest: float) -> float:
        """A rest cut so that a row is readable within `lag`, if the next tick takes no longer than the slowest of the last.

        A row that arrives just after a tick has looked waits for the rest of that tick, the rest, and the next tick.
        """
        return max(min(rest, lag - self._ticks[-1] - max(self._ticks)), min(self.tick_seconds, MIN_REST_SECONDS))
