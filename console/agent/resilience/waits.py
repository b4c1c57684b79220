"""The waits of a rollout as stored events: begun and ended, with a bound on their number however often they change."""

from dataclasses import dataclass, field
from typing import Protocol

from console.agent.rollout.clock import Clock, WallClock, span
from console.model.event import Event, Waiting
from console.model.incident import Incident, WaitBegan, WaitEnded

STORED_SECONDS = 3.0  # a shorter wait is not stored
# Within one wait another cause is stored once it has stood for so long, and twice as long each time: a wait of days whose
# cause flaps costs a commit every ten minutes.
FIRST_CHANGE_SECONDS, LAST_CHANGE_SECONDS = 10.0, 600.0


class WaitLog(Protocol):
    """Where a wait is stored and shown: the rollout's recorder."""

    def report(self, text: str, incident: Incident | None) -> None: ...

    def publish(self, event: Event) -> None: ...


@dataclass(slots=True, kw_only=True)
class Waits:
    """One wait, from its first moment to its end.

    Between two batches there is one wait at most, so that their number is bounded by that of batches. Whoever is killed
    in a wait leaves it open; the step's next start closes it.

    what  that waits, as the lines say it: `the backfill`
    """

    recorder: WaitLog
    clock: Clock = field(default_factory=WallClock)
    step: str = ""
    what: str = "it"
    _began: float | None = None  # monotonic
    _cause: str = ""  # that stands now …
    _since: float = 0.0  # … since then, seconds since 1970 …
    _steady: float = 0.0  # … and by the monotonic clock
    _stored: str = ""  # the cause that was stored last; "" before the first
    _stands: float = STORED_SECONDS  # how long a cause has to stand until it is stored

    def go_on(self, cause: str, why: str) -> None:
        """It still waits, for this cause: to be called about once a second."""
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
        """It waits no longer; nothing happens where it never did."""
        if self._began is None:
            return
        seconds = self.clock.elapsed() - self._began
        self.recorder.publish(Waiting(""))
        if self._stored:
            ended = WaitEnded(step=self.step, cause=self._stored, seconds=seconds)
            self.recorder.report(f"{self.what} continues after {span(seconds)}", ended)
