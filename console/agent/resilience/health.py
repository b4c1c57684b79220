"""How a feed that fails is treated: what may pass is tried again after ever longer rests, what cannot stops it."""

import random
import time
from dataclasses import dataclass
from math import inf

from console.agent.resilience.failure import Kind, cause, kind
from console.errors import ConsoleError, FeedStopped, Unreachable

# Each try takes the feed over, which is a commit: so the rests grow, less up to a half, that feeds which broke together
# do not come back together.
FIRST_SECONDS, LAST_SECONDS = 1.0, 60.0
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 180.0, 3600.0  # at one that stopped for a reason that may be gone
TRIES = 5  # in a row, before who waits for the feed is told
UNSURE = 3  # tries before Spark's word for a change or a missing file is final: a commit beside ours reads the same
HEALS = frozenset(("E_SKIPPED", "E_RIVAL", "E_LOG_DAMAGED", "E_LOG_EMPTY", "E_TXN_RETENTION"))


@dataclass(slots=True)
class Health:
    """Of one feed.

    stopped  why it no longer moves; a person decides, or the reason goes away (`HEALS`)
    tries    that failed, one after the other
    trouble  what the last of them ended with
    """

    stopped: ConsoleError | None = None
    tries: int = 0
    trouble: str = ""
    _rests_until: float = 0.0

    @property
    def standing(self) -> ConsoleError | None:
        """Why nobody should wait for the feed: it is stopped, or has failed so often that it may stay so."""
        if self.stopped or self.tries < TRIES:
            return self.stopped
        return FeedStopped(
            f"{self.trouble} ({self.tries} tries)", hint="the agent goes on trying; the cause has to go", code="E_FEED"
        )

    def due(self) -> bool:
        """Whether it is to be moved now."""
        return time.monotonic() >= self._rests_until

    def fine(self) -> None:
        """It moves, or is to be tried as if nothing had been."""
        self.stopped, self.tries, self.trouble, self._rests_until = None, 0, "", 0.0

    def stop(self, why: ConsoleError) -> None:
        again = self.stopped is not None and self.stopped.code == why.code
        self.stopped, self.tries = why, self.tries + 1 if again else 1
        self._rests_until = inf
        if why.code in HEALS:
            self._rest(FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS)

    def fails(self, error: Exception, target: str) -> None:
        """A try ended with an error.

        target  the logical table that the feed fills
        """
        what = kind(error)
        if isinstance(error, ConsoleError) and not isinstance(error, Unreachable):
            self.stop(error)
        elif what in ("value", "day") or (what in ("drift", "gone") and self.tries + 1 >= UNSURE):
            self.stop(_stopped(what, target, cause(error)))
        else:
            self.tries, self.trouble = self.tries + 1, f"{target}: {cause(error)}"
            self._rest(FIRST_SECONDS, LAST_SECONDS)

    def _rest(self, first: float, last: float) -> None:
        seconds = min(first * 2.0 ** min(self.tries - 1, 20), last) * (1 - random.random() / 2)
        self._rests_until = time.monotonic() + seconds


def _stopped(what: Kind, target: str, why: str) -> FeedStopped:
    """What cannot pass, in words that the operator can act on."""
    match what:
        case "value":
            return FeedStopped(
                f"{target}: a value of a live row does not convert: {why}",
                hint=f"try_cast with a default in the query that feeds {target}, then console apply",
                code="C301",
            )
        case "day":
            return FeedStopped(
                f"{target}: a live row belongs to no day that a partition can have: {why}",
                hint=f"leave such rows out in the query that feeds {target}, then console apply",
                code="C301",
            )
        case "gone":
            return FeedStopped(
                f"{target}: files with its live rows are gone: {why}",
                hint="something deleted them (VACUUM, log clean-up); rebuild the table (`console plan`)",
                code="E_FILES_GONE",
            )
        case _:
            return FeedStopped(
                f"{target}: a table is no longer as its release has it: {why}",
                hint=f"console plan shows what has changed there; put it back and `console maintain --accept {target}`",
                code="E_DRIFT",
            )
