"""The pace of a rollout's batches, and the times of its other steps, as measured from its events. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field

from console.model.event import (
    BatchDone,
    BatchStarted,
    DriverLost,
    Failed,
    Logged,
    Paused,
    Recorded,
    StepDone,
    StepStarted,
)
from console.model.incident import WaitEnded
from console.model.status import Status
from console.model.step_id import CATCH_UP, VALIDATE, StepId
from console.record import dataclass
from console.runner.outlook.between import NOTHING, Between

KEPT = 12  # newest batches of a step that count
WINDOWS, LEAST = 3, 2  # groups of consecutive batches that are compared, and batches in one
WARM = 3  # with this many others, batches in which a JVM starts and compiles do not count
FEW = Between(0.5, 1.25)  # of the mean of fewer batches than can be compared: the first is slower than those after it
VARY = Between(0.8, 1.25)  # of the fastest and of the slowest group: the host may become less busy, or busier
FIXED = Between(1.5, 10.0)  # seconds of a batch that its rows do not change (planning, the commit), at most all of it
ROW_SECONDS = 1e-4  # that a row takes at most: in a batch of few rows most of the time is fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """One step's batches. per_row: seconds for a row of history; running: seconds of the current batch, at most its expected
    duration; seconds, done: of all measured batches, rows of which; of: all rows of the step; rows_each: of a batch"""

    per_row: Between
    running: float
    seconds: float
    done: int
    of: int
    rows_each: float

    def rows(self, number: int) -> Between:
        """Seconds for a number of rows."""
        return self.per_row.times(number)

    def job(self, rows: int, times: Between, share: Between) -> Between:
        """Seconds of a job over these rows, after the batches have carried them. How much of a batch's time is fixed is not
        known: both ends count.

        times  of a batch's fixed time;  share: of the time of all batches that depends on their rows
        """
        if not rows:
            return NOTHING
        batch, batches = self.per_row.middle * self.rows_each, rows / self.rows_each
        least = max(FIXED.low, batch - ROW_SECONDS * self.rows_each)
        parts = [(fixed, batches * (batch - fixed)) for fixed in (min(each, batch) for each in (least, FIXED.high))]
        return Between(
            min(times.low * fixed + share.low * work for fixed, work in parts),
            max(times.high * fixed + share.high * work for fixed, work in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRollout:
    """Figures of one rollout so far.

    paces       by step; together: of all batches, None before the first
    closings    seconds from the last batch to the end of each finished step;  catch_ups: seconds of each finished one
    validating  seconds since the checks began; 0 before
    waits       cause → the longest one that has ended, seconds
    """

    batches: int
    seconds: float
    paces: Mapping[str, Pace]
    together: Pace | None
    closings: tuple[float, ...]
    catch_ups: tuple[float, ...]
    validating: float
    bytes_per_row: float
    waits: Mapping[str, float]


@plain_dataclass(frozen=True, slots=True)
class _Batch:
    rows: int
    seconds: float
    cold: bool


@plain_dataclass(slots=True)
class _Sweep:
    """The state after the events so far."""

    batches: dict[str, list[_Batch]] = field(default_factory=lambda: defaultdict(list))
    began: dict[str, float] = field(default_factory=dict)  # running step → its start
    closings: list[float] = field(default_factory=list)
    catch_ups: list[float] = field(default_factory=list)
    running: tuple[str, float, int] | None = None  # step, since, estimated rows
    last: tuple[str, float] | None = None  # the batch that ended just now: its step, and when
    waits: dict[str, float] = field(default_factory=dict)
    cold: bool = True

    def take(self, recorded: Recorded) -> None:
        at, event = recorded.at, recorded.event
        match event:
            case BatchStarted(step=step, rows=rows):
                since = self.last[1] if self.last and self.last[0] == step else at
                self.running, self.last = (step, since, rows), None
            case BatchDone(step=step, rows_in=rows):
                if self.running and self.running[0] == step and rows:
                    cold = self.cold or not self.batches[step]
                    self.batches[step].append(_Batch(rows, max(0.0, at - self.running[1]), cold))
                    self.cold = False
                self.running, self.last = None, (step, at)
            case StepStarted(step):
                self.began[step], self.running, self.last = at, None, None
            case StepDone(step):
                if self.last and self.last[0] == step:
                    self.closings.append(max(0.0, at - self.last[1]))
                if StepId.parse(step).kind == CATCH_UP and step in self.began:
                    self.catch_ups.append(max(0.0, at - self.began[step]))
                self.last = None
            case DriverLost():
                self.running, self.last, self.cold = None, None, True
            case Failed() | Paused():
                self.running = self.last = None
            case Logged(incident=incident) if incident is not None:
                self.running = self.last = None
                if isinstance(incident, WaitEnded):
                    self.waits[incident.cause] = max(incident.seconds, self.waits.get(incident.cause, 0.0))


def measured(status: Status, events: Iterable[Recorded], now: float) -> MeasuredRollout:
    """The figures of a rollout. A step whose batches are not among the events has those of its status.

    events  of this rollout, oldest first;  now: seconds since 1970, UTC
    """
    sweep = _Sweep()
    for recorded in events:
        if recorded.seq:
            sweep.take(recorded)
    paces: dict[str, Pace] = {}
    for step in status.steps:
        batches = sweep.batches.get(step.id) or _as_one_batch(step.rows_done, step.seconds)
        if batches:
            paces[step.id] = _pace(batches, _running(sweep, step.id, now), step.rows_total)
    together = [batch for step in paces for batch in sweep.batches.get(step, ())]
    rows = sum(step.rows_done for step in status.steps)
    validating = sweep.began.get(str(VALIDATE))
    return MeasuredRollout(
        batches=len(together) or len(paces),
        seconds=sum(pace.seconds for pace in paces.values()),
        paces=paces,
        together=_pace(together, 0.0, 0) if together else next(iter(paces.values()), None),
        closings=tuple(sweep.closings),
        catch_ups=tuple(sweep.catch_ups),
        validating=max(0.0, now - validating) if validating else 0.0,
        bytes_per_row=sum(step.bytes for step in status.steps) / rows if rows else 0.0,
        waits=sweep.waits,
    )


def _as_one_batch(rows: int, seconds: float) -> list[_Batch]:
    return [_Batch(rows, seconds, cold=True)] if rows and seconds else []


def _running(sweep: _Sweep, step: str, now: float) -> tuple[float, int]:
    if sweep.running is None or sweep.running[0] != step:
        return 0.0, 0
    return max(0.0, now - sweep.running[1]), sweep.running[2]


def _pace(batches: Sequence[_Batch], running: "tuple[float, int] | float", of: int) -> Pace:
    warm = [batch for batch in batches if not batch.cold]
    per_row = _per_row(warm if len(warm) >= WARM else batches)
    elapsed, rows = running if isinstance(running, tuple) else (running, 0)
    done = sum(batch.rows for batch in batches)
    return Pace(
        per_row=per_row,
        running=min(elapsed, per_row.middle * rows),
        seconds=sum(batch.seconds for batch in batches),
        done=done,
        of=of,
        rows_each=done / len(batches),
    )


def _per_row(batches: Sequence[_Batch]) -> Between:
    """Between the fastest and the slowest group of consecutive batches, and a quarter more or less."""
    newest = batches[-KEPT:]
    mean = _mean(newest)
    size = max(LEAST, -(-len(newest) // WINDOWS))
    groups = [_mean(newest[max(0, end - size) : end]) for end in range(len(newest), LEAST - 1, -size)]
    if len(newest) < 2 * LEAST:
        return FEW.times(mean)
    return Between(VARY.low * min(groups), VARY.high * max(groups))


def _mean(batches: Sequence[_Batch]) -> float:
    return sum(batch.seconds for batch in batches) / sum(batch.rows for batch in batches)
