"""The uses of a rollout's time, from its stored events. Pure."""

from collections.abc import Iterable
from typing import Literal, assert_never

from console.model.breach import Breached, WatchEnded, WatchSteered
from console.model.consent import Approved, CheckAccepted, TicketNamed
from console.model.event import (
    BatchDone,
    BatchStarted,
    Checked,
    DriverLost,
    Ended,
    Entered,
    Event,
    Failed,
    Logged,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
    StepDone,
    StepStarted,
)
from console.model.incident import Incident, SparkBack, TryFailed, WaitBegan, WaitEnded
from console.model.note import Noted
from console.model.tuning import Tuned
from console.record import dataclass

Use = Literal["batches", "waiting", "tries", "spark", "away", "paused", "failed", "gate", "other"]
ORDER: tuple[Use, ...] = ("batches", "waiting", "tries", "spark", "away", "paused", "failed", "gate", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The time spent on one use.

    use     batches: of batches that were committed, or run · waiting: for `cause` · tries: failed tries and the pauses
            after them · spark: until a lost Spark was back, its lost batch included · away: no agent ran ·
            paused, failed: until a person continued it · gate: waiting for a decision · other: steps without batches
    cause   of a wait: lag, hours, …; "" for the other uses
    times   batches, waits, tries, losses, pauses …; 0 for other
    """

    use: Use
    cause: str
    seconds: float
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The whole time from a rollout's acceptance to its end, or to now. parts: none of them empty; they sum to `seconds`"""

    began: float
    seconds: float
    parts: tuple[Part, ...]

    def of(self, use: Use, cause: str = "") -> Part:
        """The part of one use, or an empty one. cause: "" for all causes of waiting together"""
        spent = [part for part in self.parts if part.use == use and cause in ("", part.cause)]
        seconds, times = sum(part.seconds for part in spent), sum(part.times for part in spent)
        return Part(use=use, cause=cause, seconds=seconds, times=times)


def account(events: Iterable[Recorded], now: float) -> Account:
    """Divide the time of the rollout that these stored events belong to.

    events  of one rollout, oldest first, from its first; fleeting ones are ignored
    now     seconds since 1970, UTC; does not count once the rollout has ended. If clocks were set back, the time
            between two events is 0, so that the parts sum to the time accounted for
    """
    sweep = _Sweep()
    for recorded in events:
        if recorded.seq:
            sweep.take(recorded.at, recorded.event)
    return sweep.result(now)


_Key = tuple[Use, str]
_OTHER: _Key = ("other", "")


class _Sweep:
    """The time up to the last event, divided; `_use` is the known use of the time after it."""

    def __init__(self) -> None:
        self._began = self._at = 0.0
        self._started = self._ended = False
        self._use: _Key = _OTHER
        self._at_gate = False
        self._seconds: dict[_Key, float] = {}
        self._times: dict[_Key, int] = {}

    def take(self, at: float, event: Event) -> None:
        if not self._started:
            self._began = self._at = at
            self._started = True
        match event:
            case _ if self._ended:
                pass
            case Promoted() | RolledBack() | Ended():
                self._spend(at)
                self._ended = True
            case _ if self._use[0] in ("paused", "failed"):
                self._while_held(at, event)
            case Logged(incident=incident) if incident is not None:
                self._incident(at, incident)
            case _:
                self._moving(at, event)

    def result(self, now: float) -> Account:
        if self._started and not self._ended:
            self._spend(now)
        keys = self._seconds.keys() | {key for key, times in self._times.items() if times}
        ordered = sorted(keys, key=lambda key: (ORDER.index(key[0]), -self._seconds.get(key, 0.0), key[1]))
        parts = [
            Part(
                use=use,
                cause=cause,
                seconds=self._seconds.get((use, cause), 0.0),
                times=self._times.get((use, cause), 0),
            )
            for use, cause in ordered
        ]
        return Account(began=self._began, seconds=self._at - self._began, parts=tuple(parts))

    def _spend(self, until: float, use: _Key | None = None) -> None:
        """Count the time up to a moment; one before the last event has no effect."""
        if until > self._at:
            key = use or self._use
            self._seconds[key] = self._seconds.get(key, 0.0) + until - self._at
            self._at = until

    def _begin(self, use: Use, cause: str = "") -> None:
        self._use = (use, cause)
        self._count(self._use)

    def _count(self, key: _Key) -> None:
        self._times[key] = self._times.get(key, 0) + 1

    def _rest(self) -> None:
        self._use = ("gate", "") if self._at_gate else _OTHER

    def _while_held(self, at: float, event: Event) -> None:
        self._spend(at)
        match event:
            case Resumed():
                self._rest()
            case Paused() if self._use[0] != "paused":  # of a failed rollout
                self._begin("paused")
            case Failed() if self._use[0] != "failed":
                self._begin("failed")
            case Entered(state):  # a retry of the validation
                self._at_gate = state == "awaiting-confirmation"

    def _moving(self, at: float, event: Event) -> None:
        match event:
            case Paused():
                self._spend(at)
                self._begin("paused")
            case Failed():
                self._spend(at)
                self._begin("failed")
            case Entered(state):
                self._spend(at)
                self._at_gate = state == "awaiting-confirmation"
                self._rest()
                if self._at_gate:
                    self._count(self._use)
            case DriverLost():
                self._spend(at, ("spark", "") if self._use[0] == "batches" else None)
                self._begin("spark")
            case StepStarted(_, away_since):
                self._restarted(at, away_since)
            case BatchStarted():
                self._spend(at)
                self._use = ("batches", "")
            case BatchDone():
                self._spend(at)
                self._count(("batches", ""))
                self._rest()
            case StepDone() | Checked():
                self._spend(at)
                self._rest()
            case _:
                self._spend(at)

    def _restarted(self, at: float, away_since: float) -> None:
        if self._use[0] == "spark":  # the agent restarts to get a new JVM
            self._spend(at)
            return
        if away_since:
            self._spend(min(away_since, at))
            self._spend(at, ("away", ""))
            self._count(("away", ""))
        self._spend(at)
        self._rest()

    def _incident(self, at: float, incident: Incident) -> None:
        match incident:
            case TryFailed():
                self._spend(at, ("tries", "") if self._use[0] == "batches" else None)
                self._begin("tries")
            case WaitBegan(cause=cause, since=since):
                self._spend(min(since, at))
                self._begin("waiting", cause)
                self._spend(at)
            case WaitEnded():
                self._spend(at)
                self._rest()
            case SparkBack():
                self._spend(at)
                self._rest()
            case Tuned() | Noted() | CheckAccepted() | Approved() | TicketNamed():
                self._spend(at)
            case Breached() | WatchSteered() | WatchEnded():  # they follow the promotion, with which the account ends
                self._spend(at)
            case _:
                assert_never(incident)
