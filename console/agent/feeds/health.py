"""The health of a feed: transient failures are retried after growing pauses, permanent ones stop the feed."""

import random
import time
from dataclasses import dataclass
from math import inf

from console.agent.errors import HEALING, PASSING
from console.agent.failure import Kind, cause, kind
from console.errors import ConsoleError, FeedStopped, Unreachable

# Each attempt takes the feed over, which is a commit, so pauses grow. They are shortened at random by up to a half, so
# that feeds that failed together are not retried together.
FIRST_SECONDS, LAST_SECONDS = 1.0, 60.0
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 180.0, 3600.0  # between retries of a stopped feed whose cause may be gone
TRIES = 5  # failures in a row, after which nothing waits for the feed
UNSURE = 3  # tries before a changed schema or missing file is final: a concurrent commit looks the same


@dataclass(slots=True)
class Health:
    """The health of one feed.

    stopped     the error that stopped it; a person decides, or the cause disappears by itself (`HEALING`)
    tries       failed in a row
    last_error  the message of the last one
    """

    stopped: ConsoleError | None = None
    tries: int = 0
    last_error: str = ""
    _paused_until: float = 0.0

    @property
    def standing(self) -> ConsoleError | None:
        """Why nothing should wait for the feed: it is stopped, or failed too often in a row. None if it moves."""
        if self.stopped or self.tries < TRIES:
            return self.stopped
        return FeedStopped(
            f"{self.last_error} ({self.tries} tries)",
            hint="the agent keeps retrying; remove the cause",
            code="E_FEED",
        )

    def due(self) -> bool:
        """Whether the feed should be moved now."""
        return time.monotonic() >= self._paused_until

    def reset(self) -> None:
        """Forget all failures: the feed has moved, or will be retried at once."""
        self.stopped, self.tries, self.last_error, self._paused_until = None, 0, "", 0.0

    def stop(self, why: ConsoleError) -> None:
        """Stop the feed. If its cause may go away, it is due again after growing pauses."""
        again = type(self.stopped) is type(why)
        self.stopped, self.tries = why, self.tries + 1 if again else 1
        self._paused_until = inf
        if isinstance(why, HEALING):
            self._pause(FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS)

    def record_failure(self, error: Exception, target: str, query: str = "") -> None:
        """Count a failed attempt, which may stop the feed.

        target  the logical table that the feed fills;  query: the one that an operator would correct, in words; "" for
                the one that feeds that table
        """
        what = kind(error)
        if isinstance(error, ConsoleError) and not isinstance(error, (Unreachable, *PASSING)):
            self.stop(error)
        elif what in ("value", "day") or (what in ("drift", "gone") and self.tries + 1 >= UNSURE):
            self.stop(_stopped(what, target, cause(error), query or f"the query that feeds {target}"))
        else:
            self.tries, self.last_error = self.tries + 1, f"{target}: {cause(error)}"
            self._pause(FIRST_SECONDS, LAST_SECONDS)

    def _pause(self, first: float, last: float) -> None:
        seconds = min(first * 2.0 ** min(self.tries - 1, 20), last) * (1 - random.random() / 2)
        self._paused_until = time.monotonic() + seconds


def _stopped(what: Kind, target: str, why: str, query: str) -> FeedStopped:
    """A permanent failure, with a hint for the operator."""
    match what:
        case "value":
            return FeedStopped(
                f"{target}: a value of a live row does not convert: {why}",
                hint=f"try_cast with a default in {query}, then console apply",
                code="C301",
            )
        case "day":
            return FeedStopped(
                f"{target}: a live row belongs to no day that a partition can have: {why}",
                hint=f"leave such rows out in {query}, then console apply",
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
