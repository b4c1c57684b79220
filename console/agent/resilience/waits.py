"""The waits of a rollout as stored events: begun and ended, bounded in number however often causes change."""

from dataclasses import dataclass, field
from typing import Protocol

from console.agent.clock import Clock, WallClock, span
from console.model.event import Event, Waiting
from console.model.incident import Incident, WaitBegan, WaitEnded

STORED_SECONDS = 3.0  # a shorter wait is not stored
# Within one wait another cause is stored once it has lasted this long, twice as long each time: a wait of days with a
# flapping cause costs a commit every ten minutes.
FIRST_CHANGE_SECONDS, LAST_CHANGE_SECONDS = 10.0, 600.0


class WaitLog(Protocol):
    """The store of a wait's events: the rollout's recorder."""

    def report(self, text: str, incident: Incident | None) -> None: ...

    def publish(self, event: Event) -> None: ...


@dataclass(slots=True, kw_only=True)
class Waits:
    """One wait, from its first moment to its end.

    There is at most one wait between two batches, so their number is bounded by that of batches. A kill during a wait
    leaves it open; the step's next start closes it.

    what  the waiting operation, as named in log lines: `the backfill`
    """

    recorder: WaitLog
    clock: Clock = field(default_factory=WallClock)
    step: str = ""
    what: str = "it"
    _began: float | None = None  # monotonic
    _cause: str = ""  # the current cause …
    _since: float = 0.0  # … since then, seconds since 1970 …
    _steady: float = 0.0  # … and by the monotonic clock
    _stored: str = ""  # the last stored cause; "" before the first
    _stands: float = STORED_SECONDS  # how long a cause must last before it is stored

    def go_on(self, cause: str, why: str) -> None:
        """Continue the wait, for this cause; called about once a second."""
        now = self.clock.elapsed()
        if self._began is None:
            self._began = now
        if cause != self._cause:
            self._cause, self._since, self._steady = cause, self.clock.now(), now
        if cause != self._stored and now - self._steady >= self._stands:
            first = not self._stored
            self._stored = cause
            self._stands = FIRST_CHANGE_SECONDS if first else min(2 * self._stands, LAST_CHANGE_SECONDS)
            began = WaitBegan(step=self.step, cause=cause, why=why, since=self._since)
            self.recorder.report(f"{self.what} waits: {why}", began)

    def end(self) -> None:
        """End the wait; without one, nothing happens."""
        if self._began is None:
            return
        seconds = self.clock.elapsed() - self._began
        self.recorder.publish(Waiting(""))
        if self._stored:
            ended = WaitEnded(step=self.step, cause=self._stored, seconds=seconds)
            self.recorder.report(f"{self.what} continues after {span(seconds)}", ended)
