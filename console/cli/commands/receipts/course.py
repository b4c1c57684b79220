"""The course of one rollout from its stored events: slices, failed tries, waits, losses of Spark, and the account of time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from console.cli.format import count, span
from console.model.account import Account, Part, account
from console.model.calendar import StepDays, calendar
from console.model.codec import encode
from console.model.event import (
    BatchStarted,
    DriverLost,
    Ended,
    Failed,
    Logged,
    Paused,
    Promoted,
    Recorded,
    RolledBack,
    StepStarted,
)
from console.model.incident import SparkBack, TryFailed, WaitBegan, WaitEnded
from console.model.share import percent_shown
from console.text import safe_text

_USES = {
    "batches": "batches",
    "tries": "failed tries",
    "spark": "Spark lost",
    "away": "no agent",
    "paused": "paused",
    "failed": "failed, until a retry",
    "gate": "at its gate",
    "other": "other steps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A wait, or a time without Spark: seconds since 1970, UTC. until: 0 while it lasts"""

    step: str
    cause: str
    why: str
    since: float
    until: float = 0.0


def course_data(events: Sequence[Recorded], now: float) -> dict[str, Any]:
    """For `--output json`."""
    divided = account(events, now)
    return {
        "seconds": round(divided.seconds, 3),
        "account": [_part_data(part, divided) for part in divided.parts],
        "slices": [_step_data(step) for step in calendar(events)],
        "tries": [{"at": at, **_plain(failed)} for at, failed in failed_tries(events)],
        "waits": [_interval_data(wait) for wait in waits(events)],
        "spark_losses": [_interval_data(loss) for loss in losses(events)],
    }


def course_text(events: Sequence[Recorded], now: float) -> Iterator[str]:
    """A line with the account of time, and one for each failed try."""
    divided = account(events, now)
    if divided.seconds:
        yield f"  {span(divided.seconds)}: {', '.join(_part_text(part, divided) for part in divided.parts if part.seconds)}"
    for _, failed in failed_tries(events):
        smaller = f"; next at most {count(failed.rows_next, 'row')}" if failed.rows_next else ""
        tried = f"{failed.step} {failed.label}: try {failed.number} of {failed.of} failed after {span(failed.seconds)}"
        yield f"  {safe_text(f'{tried}: {failed.why}')}{smaller}"


def failed_tries(events: Sequence[Recorded]) -> tuple[tuple[float, TryFailed], ...]:
    """Time and cause of each failed try."""
    lines = ((recorded.at, recorded.event) for recorded in events)
    return tuple((at, e.incident) for at, e in lines if isinstance(e, Logged) and isinstance(e.incident, TryFailed))


def waits(events: Sequence[Recorded]) -> tuple[Interval, ...]:
    """Every stored wait; a wait without a stored end ends with the next event that implies its end."""
    intervals: list[Interval] = []
    for recorded in events:
        match recorded.event:
            case Logged(incident=WaitBegan(step=step, cause=cause, why=why, since=since)):
                _close(intervals, since)
                intervals.append(Interval(step=step, cause=cause, why=why, since=since))
            case StepStarted(away_since=away_since) if away_since:
                _close(intervals, away_since)
            case (
                Logged(incident=WaitEnded())
                | StepStarted()
                | BatchStarted()
                | Paused()
                | Failed()
                | DriverLost()
                | Promoted()
                | RolledBack()
                | Ended()
            ):
                _close(intervals, recorded.at)
    return tuple(intervals)


def losses(events: Sequence[Recorded]) -> tuple[Interval, ...]:
    """Every loss of Spark, until it was back or a batch ran again."""
    intervals: list[Interval] = []
    for recorded in events:
        match recorded.event:
            case DriverLost(step, why):
                _close(intervals, recorded.at)
                intervals.append(Interval(step=step, cause="spark", why=why, since=recorded.at))
            case Logged(incident=SparkBack()) | BatchStarted() | Failed() | Promoted() | RolledBack() | Ended():
                _close(intervals, recorded.at)
    return tuple(intervals)


def _close(intervals: list[Interval], at: float) -> None:
    if intervals and not intervals[-1].until:
        intervals[-1] = replace(intervals[-1], until=max(at, intervals[-1].since))


def _part_text(part: Part, divided: Account) -> str:
    name = f"waited ({safe_text(part.cause)})" if part.use == "waiting" else _USES[part.use]
    times = f", {part.times} times" if part.times > 1 and part.use not in ("batches", "gate") else ""
    return f"{name} {percent_shown(part.seconds / divided.seconds):.0f} % ({span(part.seconds)}{times})"


def _part_data(part: Part, divided: Account) -> dict[str, Any]:
    share = percent_shown(part.seconds / divided.seconds, 1) if divided.seconds else 0.0
    return {
        "use": part.use,
        "cause": part.cause,
        "seconds": round(part.seconds, 3),
        "percent": share,
        "times": part.times,
    }


def _step_data(step: StepDays) -> dict[str, Any]:
    days = [
        {
            "label": day.label,
            "state": day.state,
            "estimated_rows": day.rows,
            "slices": day.last - day.first + 1,
            "slices_done": day.done,
            "tries": day.tries,
            "seconds": round(step.took(day)[0], 3),
            "seconds_estimated": step.took(day)[1],
            "hours": [{"label": label, "state": state} for label, state in day.hours],
            "causes": list(day.causes),
            "batch": day.batch.label if day.batch else None,
        }
        for day in step.days
    ]
    return {"step": step.step, "source": step.source, "version": step.version, "days": days}


def _interval_data(interval: Interval) -> dict[str, Any]:
    seconds = round(interval.until - interval.since, 3) if interval.until else None
    return {**_plain(interval), "until": interval.until or None, "seconds": seconds}


def _plain(record: object) -> dict[str, Any]:
    return {key: value for key, value in encode(record).items() if key != "type"}
