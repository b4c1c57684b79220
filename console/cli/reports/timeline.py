"""A rollout's states over time, its interruptions, and its account of time, from its stored events. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from console.model.account import Account, account
from console.model.calendar import StepDays, calendar
from console.model.event import (
    Accepted,
    Ended,
    Entered,
    Failed,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
    State,
)

Phase = State | Literal["paused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """A time in one state. since, until: seconds since 1970, UTC; open: it had not ended when this was read"""

    phase: Phase
    since: float
    until: float
    open: bool = False

    @property
    def seconds(self) -> float:
        return self.until - self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of one rollout; everything is empty before it was accepted."""

    spans: tuple[PhaseSpan, ...]
    account: Account
    days: tuple[StepDays, ...]

    @property
    def seconds(self) -> float:
        return sum(span.seconds for span in self.spans)

    @property
    def busy_seconds(self) -> float:
        """The duration without the time at its gate, which depends on a person."""
        return sum(span.seconds for span in self.spans if span.phase != "awaiting-confirmation")


def course(events: Sequence[Recorded], now: float) -> Course:
    """The course of the rollout that these stored events belong to; now: seconds since 1970, UTC"""
    return Course(spans=_spans(events, now), account=account(events, now), days=calendar(events))


def _spans(events: Iterable[Recorded], now: float) -> tuple[PhaseSpan, ...]:
    spans: list[PhaseSpan] = []
    phase: Phase = "planned"  # to which a resumed rollout returns
    for recorded in events:
        match recorded.event:
            case Accepted():
                _begin(spans, "planned", recorded.at)
            case Entered(state):
                phase = state
                _begin(spans, state, recorded.at)
            case Paused():
                _begin(spans, "paused", recorded.at)
            case Failed():
                _begin(spans, "failed", recorded.at)
            case Resumed():
                _begin(spans, phase, recorded.at)
            case Promoted() | RolledBack() | Ended():
                _close(spans, recorded.at)
                return _without_empty(spans)
            case _:
                pass
    if spans:
        spans[-1] = replace(spans[-1], until=max(now, spans[-1].since), open=True)
    return _without_empty(spans)


def _begin(spans: list[PhaseSpan], phase: Phase, at: float) -> None:
    _close(spans, at)
    since = spans[-1].until if spans else at
    spans.append(PhaseSpan(phase=phase, since=since, until=since))


def _close(spans: list[PhaseSpan], at: float) -> None:
    """A clock that was set back makes a span empty, never negative."""
    if spans:
        spans[-1] = replace(spans[-1], until=max(at, spans[-1].since))


def _without_empty(spans: Sequence[PhaseSpan]) -> tuple[PhaseSpan, ...]:
    return tuple(span for span in spans if span.seconds > 0 or span.open)
