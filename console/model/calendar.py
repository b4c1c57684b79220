"""The days of a rollout's backfills, with the state of each, from the rollout's stored events. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from console.model.event import BatchDone, BatchStarted, Fenced, Logged, Recorded, StepStarted
from console.model.incident import TryFailed
from console.model.slices import HOURS
from console.record import dataclass

SliceState = Literal["waiting", "running", "retried", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCell:
    """One day, or one run of days, of a backfill.

    label         as in `SlicedDay`
    rows          estimate
    first, last   its slices, numbered as in a batch
    done          number of committed slices
    running       whether the running batch includes some of them;  runs  the first and the last slice of that batch
    tries         failed tries of batches that included some of them;  causes  their kinds, oldest first;  tried  their slices
    batch         the last committed batch that included some of them; None before that
    at            when that batch was stored, seconds since 1970, UTC; 0 before
    """

    label: str
    rows: int
    first: int
    last: int
    done: int = 0
    running: bool = False
    runs: tuple[int, int] = (0, 0)
    tries: int = 0
    causes: tuple[str, ...] = ()
    tried: tuple[tuple[int, int], ...] = ()
    batch: BatchDone | None = None
    at: float = 0.0

    @property
    def state(self) -> SliceState:
        if self.done == self.last - self.first + 1:
            return "retried" if self.tries else "done"
        return "running" if self.running else "waiting"

    @property
    def hours(self) -> tuple[tuple[str, SliceState], ...]:
        """(label, state) of each hour, newest first; () for a day that is one slice."""
        if self.last - self.first + 1 != HOURS:
            return ()
        return tuple((f"{self.label}T{HOURS - 1 - at:02}", self._hour_state(at)) for at in range(HOURS))

    def _hour_state(self, at: int) -> SliceState:
        number = self.first + at
        if at < self.done:
            return "retried" if any(first <= number <= last for first, last in self.tried) else "done"
        return "running" if self.running and self.runs[0] <= number <= self.runs[1] else "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDays:
    """The days of one backfill, newest first. days: () if its agent was too old to list them

    source, version  the table that is read, and the Delta version at which history ends
    """

    step: str
    source: str
    version: int
    days: tuple[DayCell, ...]

    def took(self, day: DayCell) -> tuple[float, bool]:
        """Seconds of the day's batch, and whether they are estimated: by rows, if the batch included other days."""
        if day.batch is None:
            return 0.0, False
        rows = sum(other.rows for other in self.days if other.batch is day.batch)
        alone = rows <= day.rows
        return (day.batch.seconds if alone else day.batch.seconds * day.rows / rows), not alone


def calendar(events: Iterable[Recorded]) -> tuple[StepDays, ...]:
    """The days of each backfill that has a fence, in the order of the fences.

    events  stored ones of one rollout, oldest first; fleeting ones are ignored
    """
    steps: dict[str, StepDays] = {}
    for recorded in events:
        match recorded.event:
            case Fenced(step=step) as fenced if recorded.seq:
                days = _cells(fenced)
                steps[step] = StepDays(step=step, source=fenced.source, version=fenced.version, days=days)
            case BatchStarted(step=step, first=first, last=last) if step in steps:
                steps[step] = _begun(_still(steps[step]), first, last)
            case BatchDone(step=step) as done if step in steps:
                steps[step] = _with_batch(_still(steps[step]), done, recorded.at)
            case Logged(incident=TryFailed(step=step) as failed) if step in steps:
                steps[step] = _with_try(_still(steps[step]), failed)
            case StepStarted(step=step) if step in steps:  # by another agent: its batch has ended
                steps[step] = _still(steps[step])
    return tuple(steps.values())


def _cells(fenced: Fenced) -> tuple[DayCell, ...]:
    cells, first = [], 1
    for day in fenced.days:
        cells.append(DayCell(label=day.label, rows=day.rows, first=first, last=first + day.slices - 1))
        first += day.slices
    return tuple(cells)


def _still(step: StepDays) -> StepDays:
    """The days without a running batch."""
    return replace(step, days=tuple(replace(day, running=False) if day.running else day for day in step.days))


def _begun(step: StepDays, first: int, last: int) -> StepDays:
    days = (replace(day, running=True, runs=(first, last)) if _touches(day, first, last) else day for day in step.days)
    return replace(step, days=tuple(days))


def _with_try(step: StepDays, failed: TryFailed) -> StepDays:
    days = (
        replace(
            day,
            tries=day.tries + 1,
            causes=(*day.causes, failed.cause),
            tried=(*day.tried, (failed.first, failed.last)),
        )
        if _touches(day, failed.first, failed.last)
        else day
        for day in step.days
    )
    return replace(step, days=tuple(days))


def _with_batch(step: StepDays, done: BatchDone, at: float) -> StepDays:
    """The days with a committed batch, which ends at its position and begins after the previous one."""
    days = []
    for day in step.days:
        reached = min(done.position, day.last) - day.first + 1
        days.append(replace(day, done=reached, batch=done, at=at) if reached > day.done else day)
    return replace(step, days=tuple(days))


def _touches(day: DayCell, first: int, last: int) -> bool:
    return day.first <= last and first <= day.last
