"""The status of a rollout: a fold over its events, and nothing else."""

from collections.abc import Iterable
from dataclasses import field
from functools import reduce
from typing import Any, Literal, assert_never

from console.model.breach import NOT_WATCHED, Breached, Watched, WatchEnded, WatchProgress, WatchSteered
from console.model.codec import BESIDE, QUIET
from console.model.consent import NO_CONSENT, Approved, CheckAccepted, Consent, TicketNamed
from console.model.erased import ErasedRows
from console.model.event import (
    ENDED,
    Accepted,
    Ailing,
    BatchDone,
    BatchStarted,
    Checked,
    DriverLost,
    Ended,
    Entered,
    Expiring,
    Failed,
    Fenced,
    Lagging,
    Logged,
    Paused,
    Progress,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
    State,
    StepDone,
    StepStarted,
    TakenOver,
    Waiting,
)
from console.model.fleet import FleetWaves
from console.model.following import Following
from console.model.held_release import HeldRelease
from console.model.incident import Incident, SparkBack, TryFailed, WaitBegan, WaitEnded
from console.model.logline import logline
from console.model.note import NOTES_KEPT, Note, Noted
from console.model.sandbox import Sandbox
from console.model.share import progress_percent
from console.model.soak import SoakProgress
from console.model.step_id import PROMOTE
from console.model.step_status import StepStatus
from console.model.tuning import AS_PLANNED, Tuned, Tuning
from console.model.watcher import Watcher
from console.model.way_back import WayBackProof
from console.record import dataclass, replace

Verb = Literal["pause", "resume", "retry", "cancel", "discard"]  # a person's commands to a rollout

LOG_LINES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One region's rollout, shown by both faces and rebuilt from the region's events on resume.

    state   its state;  held  whether it is paused by a person or has failed in it
    checks  latest validation, one entry per check
    checked_at  seconds since 1970, UTC, of its last check; 0 before the first
    ailing  live feeds that currently fail
    until   seconds since 1970, UTC: when files of its first fence may be deleted; 0 if unknown.  expiring  urgency, 0 … 3
    quarantined  rows that do not convert and were left out
    console, taken_by, taken_at  who took the rollout over from the console that started it; "" for nobody
    fleet   the waves that the rollout is part of
    waiting the open wait: stored as begun and not as ended
    tuned   the limits that were changed since the plan was accepted, and by whom last; None for none
    notes   left by operators since the rollout was accepted, oldest first, the last ones only
    watchers  consoles that watch it now; None if its agent does not name them, or none runs
    log_dropped  log lines that are no longer kept
    spark_lost  since when its Spark is lost (seconds since 1970, UTC); 0 while it runs
    sandboxes   of the pipeline, independent of its rollout; () if an older agent does not report them
    way_back    the newest proof that a rollback would work; None without one, and if no agent runs
    on_hold     releases whose cleanup has begun, oldest first
    erased      kept files that may hold rows which were erased from live; None if no agent reports them
    soak        the checks that continue at the gate; None elsewhere, from an older agent, and if no agent runs
    consent     accepted checks, approvals and the ticket of its promotion
    watch       the checks that continue after its promotion; None elsewhere, from an older agent, and if no agent runs
    watched     what these have led to
    following   how its agent follows; None from an older agent, and if no agent runs
    taken_back  the release that the agent rolled back before this rollout, so that only a person may promote it; "" for none
    """

    rollout: str = ""
    release: str = ""
    was: str = ""
    plan: str = ""
    by: str = ""
    state: State | Literal["none"] = "none"
    held: Literal["", "paused", "failed"] = ""
    why: str = ""
    hint: str = ""
    seq: int = 0
    started: float = 0.0
    changed: float = 0.0
    steps: tuple[StepStatus, ...] = ()
    checks: tuple[Checked, ...] = ()
    lag_commits: int = 0
    lag_rows: int = 0
    lag_seconds: float = 0.0
    decided_by: str = ""  # who opened its gate, rolled back or cancelled
    log: tuple[str, ...] = ()
    until: float = field(default=0.0, metadata=QUIET)
    quarantined: int = field(default=0, metadata=QUIET)
    expiring: int = field(default=0, metadata=QUIET)
    console: str = field(default="", metadata=QUIET)
    taken_by: str = field(default="", metadata=QUIET)
    taken_at: float = field(default=0.0, metadata=QUIET)
    fleet: FleetWaves | None = field(default=None, metadata=BESIDE)
    ailing: tuple[Ailing, ...] = field(default=(), metadata=BESIDE)
    waiting: WaitBegan | None = field(default=None, metadata=BESIDE)
    spark_lost: float = field(default=0.0, metadata=BESIDE)
    tuned: Tuned | None = field(default=None, metadata=BESIDE)
    checked_at: float = field(default=0.0, metadata=BESIDE)
    log_dropped: int = field(default=0, metadata=BESIDE)
    notes: tuple[Note, ...] = field(default=(), metadata=BESIDE)
    watchers: tuple[Watcher, ...] | None = field(default=None, metadata=BESIDE)
    sandboxes: tuple[Sandbox, ...] = field(default=(), metadata=BESIDE)
    way_back: WayBackProof | None = field(default=None, metadata=BESIDE)
    on_hold: tuple[HeldRelease, ...] = field(default=(), metadata=BESIDE)
    erased: tuple[ErasedRows, ...] | None = field(default=None, metadata=BESIDE)
    soak: SoakProgress | None = field(default=None, metadata=BESIDE)
    consent: Consent = field(default=NO_CONSENT, metadata=BESIDE)
    watch: WatchProgress | None = field(default=None, metadata=BESIDE)
    following: Following | None = field(default=None, metadata=BESIDE)
    watched: Watched = field(default=NOT_WATCHED, metadata=BESIDE)
    taken_back: str = field(default="", metadata=BESIDE)

    @property
    def tuning(self) -> Tuning:
        """Changes of the accepted plan's limits."""
        return self.tuned.tuning if self.tuned else AS_PLANNED

    @property
    def shown(self) -> str:
        """The word shown by the faces."""
        return self.held or self.state

    @property
    def reads_until(self) -> float:
        """Seconds since 1970, UTC, by which it must have read its history; 0 if it reads none, or has finished reading."""
        return self.until if self.state in ("preparing", "backfilling", "catching-up") else 0.0

    @property
    def standing(self) -> tuple[Ailing, ...]:
        """Live feeds that have stopped or are not expected to recover."""
        return tuple(feed for feed in self.ailing if feed.standing)

    @property
    def rows_done(self) -> int:
        """Rows of history in finished batches, as counted by their receipts."""
        return sum(step.rows_done for step in self.steps if step.history)

    @property
    def rows_total(self) -> int:
        return sum(max(step.rows_total, step.rows_done) for step in self.steps if step.history)

    @property
    def fraction(self) -> float:
        """The completed part of the history, 0…1. Steps are weighted by the plan's prices, so that it never falls,
        whatever their fences say."""
        steps = [(max(1, step.planned), step.fraction) for step in self.steps if step.history]
        return sum(weight * part for weight, part in steps) / sum(weight for weight, _ in steps) if steps else 0.0

    @property
    def percent(self) -> int:
        """The completed part of the history in whole percent; 100 only once it is closed."""
        return 100 if self.closed else min(99, progress_percent(self.fraction))

    @property
    def closed(self) -> bool:
        """Whether every slice of its history is committed and every feed of a rebuilt table has caught up."""
        steps = [step for step in self.steps if step.closes]
        return any(step.history for step in steps) and all(step.state == "done" for step in steps)

    @property
    def rows_running(self) -> int:
        """Rows of the running batches so far, estimated by their jobs' progress; not in `rows_done`."""
        return sum(step.batch_rows for step in self.steps if step.history)

    @property
    def rate(self) -> float:
        """Rows per second over the finished batches; 0 before the first."""
        timed = [step for step in self.steps if step.seconds]
        return sum(step.rows_done for step in timed) / sum(step.seconds for step in timed) if timed else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Time to the end of the backfill at the measured rate; None if nothing was measured. Never negative."""
        left = self.rows_total - self.rows_done - self.rows_running
        return max(0.0, left / self.rate) if self.rate else None


def fold(status: Status, recorded: Recorded) -> Status:
    """Apply one event. The only place where a status changes; a stored event that arrives twice counts once."""
    if recorded.seq and recorded.seq <= status.seq and recorded.rollout == status.rollout:
        return status
    after = _folded(status, recorded)
    line = logline(recorded.event, recorded.at)
    if not line:
        return after
    dropped = after.log_dropped + (len(after.log) >= LOG_LINES)
    return replace(after, log=(*after.log, line)[-LOG_LINES:], log_dropped=dropped)


def _folded(status: Status, recorded: Recorded) -> Status:
    seq = recorded.seq or status.seq
    changed = max(status.changed, recorded.at) if _is_change(status, recorded) else status.changed
    status = replace(status, seq=seq, changed=changed)
    match recorded.event:
        case Accepted(release=release, was=was, plan=plan, by=by, host=_, steps=steps):
            waiting = tuple(StepStatus(id=id, rows_total=rows, planned=rows) for id, rows in steps)
            return Status(
                rollout=recorded.rollout, release=release, was=was, plan=plan, by=by, state="planned", seq=seq, started=recorded.at,
                changed=recorded.at, steps=waiting, fleet=recorded.event.fleet, watchers=status.watchers,
                sandboxes=status.sandboxes, way_back=status.way_back, on_hold=status.on_hold,
                erased=status.erased, following=status.following,
                taken_back=recorded.event.taken_back,
            )  # fmt: skip
        case Fenced() | StepStarted() | BatchStarted() | Progress() | BatchDone() | StepDone() as moved:
            return _moved(status, moved)
        case Promoted() | RolledBack() | Ended() as decided:
            return replace(_decided(status, decided), waiting=None, spark_lost=0.0)
        case Entered() as entered:
            return _entered(status, entered)
        case Checked() as check:
            return _checked(status, check, recorded.at)
        case Waiting(why):
            return status if status.held else replace(status, why=why)
        case Lagging() as lagging:
            return _lagging(status, lagging)
        case Paused(by):
            return replace(status, held="paused", why=f"paused by {by}", waiting=None)
        case Resumed():
            return replace(status, held="", why="", hint="")
        case Failed(_, why, hint):
            return replace(status, held="failed", why=why, hint=hint, waiting=None)
        case Expiring() | DriverLost() | TakenOver() | Logged() as notice:
            return _informed(status, notice, recorded.at)
        case _:
            assert_never(recorded.event)


def _entered(status: Status, event: Entered) -> Status:
    back = event.state == "awaiting-confirmation"  # where nobody has opened the gate yet
    status = replace(
        status, state=event.state, why="", waiting=None, decided_by=event.by or ("" if back else status.decided_by)
    )
    if event.state != "validating":
        return status
    return replace(status, checks=(), consent=status.consent.voided("the checks ran again"), soak=None)


def _checked(status: Status, check: Checked, at: float) -> Status:
    """Another result than before voids what people declared about it; figures of a check that passes may change."""
    before = next((c for c in status.checks if (c.table, c.check) == (check.table, check.check)), None)
    checks = (*(c for c in status.checks if c is not before), check)
    same = before and before.ok is check.ok and (check.ok or before.detail == check.detail)
    why = f"{check.table}: {check.check} has another result"
    consent = status.consent if same else status.consent.voided(why, check.table, check.check)
    return replace(status, checks=checks, checked_at=at, consent=consent)


def _lagging(status: Status, lagging: Lagging) -> Status:
    """The status with a lag report. Unchanged values stay the same objects, so that faces can compare by identity."""
    same = lagging.watchers is None or lagging.watchers == status.watchers
    known = lagging.sandboxes is None or lagging.sandboxes == status.sandboxes
    return replace(
        status,
        lag_commits=lagging.commits,
        lag_rows=lagging.rows,
        lag_seconds=lagging.seconds,
        ailing=status.ailing if lagging.ailing == status.ailing else lagging.ailing,
        watchers=status.watchers if same else lagging.watchers,
        sandboxes=status.sandboxes if known else lagging.sandboxes or (),
        way_back=status.way_back if lagging.way_back == status.way_back else lagging.way_back,
        on_hold=status.on_hold if lagging.on_hold is None or lagging.on_hold == status.on_hold else lagging.on_hold,
        erased=status.erased if lagging.erased is None or lagging.erased == status.erased else lagging.erased,
        soak=status.soak if lagging.soak == status.soak else lagging.soak,
        watch=status.watch if lagging.watch == status.watch else lagging.watch,
        following=status.following if lagging.following == status.following else lagging.following,
    )


def _is_change(status: Status, recorded: Recorded) -> bool:
    """Whether an event restarts the age of a failure or a promotion: not a lag report, a note or changed limits."""
    match recorded.event:
        case Logged(incident=Noted() | Tuned() | CheckAccepted() | Approved() | TicketNamed()):
            return False
        case Logged(incident=Breached() | WatchSteered() | WatchEnded()):
            return False
        case Checked() if status.state in ENDED:
            return False
        case _:
            return bool(recorded.seq)


def _informed(status: Status, event: Expiring | DriverLost | TakenOver | Logged, at: float) -> Status:
    """Folds events whose main effect is a line in the operator's log."""
    match event:
        case Expiring(_, level, message):
            return replace(status, expiring=level, hint=status.hint if status.held == "failed" else message)
        case TakenOver(by, host, console):
            return replace(status, console=console, taken_by=f"{by} on {host}", taken_at=at)
        case DriverLost():
            return replace(status, spark_lost=at, waiting=None)
        case Logged():
            return _with_incident(status, event.incident, at)
        case _:
            assert_never(event)


def _with_incident(status: Status, incident: Incident | None, at: float) -> Status:
    match incident:
        case None:
            return status
        case TryFailed(step=step):
            return _step(status, step, tries=_find(status, step).tries + 1, job=None)
        case WaitBegan(why=why):
            return replace(status, waiting=incident, why=status.why if status.held else why)
        case WaitEnded():
            return replace(status, waiting=None, why=status.why if status.held else "")
        case SparkBack():
            return replace(status, spark_lost=0.0)
        case Tuned():
            return replace(status, tuned=incident)
        case Noted(by=by, host=host, text=text):
            note = Note(at=at, by=by, host=host, text=text)
            return replace(status, notes=(*status.notes, note)[-NOTES_KEPT:])
        case CheckAccepted() | Approved() | TicketNamed():
            return replace(status, consent=status.consent.after(incident, at))
        case Breached() | WatchSteered() | WatchEnded():
            return replace(status, watched=status.watched.after(incident, at))
        case _:
            assert_never(incident)


def _moved(status: Status, event: Fenced | StepStarted | BatchStarted | Progress | BatchDone | StepDone) -> Status:
    step_status = _find(status, event.step)
    match event:
        case Fenced(step=step, source=_, version=_, slices=slices, rows=rows, until=until):
            first = min(filter(None, (status.until, until)), default=0.0)
            return _step(replace(status, until=first), step, slices=slices, rows_total=rows)
        case StepStarted(step):
            # history has its receipts, and a feed that caught up is moved by the follower: only other steps are repeated
            done = step_status.closes and step_status.state == "done"
            status = replace(status, waiting=None)  # begun by an agent that was killed during it
            return status if done else _step(status, step, state="running")
        case BatchStarted(step=step, label=label, of=of):
            status = replace(status, waiting=None, spark_lost=0.0)
            return _step(status, step, state="running", batch=label, batch_rows=0, slices=of, job=None)
        case Progress(step=step, rows=rows, left=left, batch=batch, job=job):
            if step_status.state == "done" or (step_status.slices and batch != step_status.batch):
                return status  # a late report of a finished batch
            total = max(step_status.rows_total, rows + left) if left >= 0 else step_status.rows_total
            rows, job = max(step_status.batch_rows, rows), job or step_status.job
            return _step(status, step, state="running", batch_rows=rows, rows_total=total, job=job)
        case BatchDone() as done:
            return _batch_done(status, done)
        case StepDone(step):
            rows = step_status.rows_done
            return _step(status, step, state="done", batch="", batch_rows=0, rows_total=rows, job=None)
        case _:
            assert_never(event)


def _decided(status: Status, event: Promoted | RolledBack | Ended) -> Status:
    match event:
        case Promoted():
            status = _step(status, str(PROMOTE), state="done")
            state: State = "live"
        case RolledBack():
            state = "rolled-back"
        case Ended():
            state = event.state
        case _:
            assert_never(event)
    return replace(status, state=state, held="", why="", decided_by=event.by)


def replay(events: Iterable[Recorded], status: Status | None = None) -> Status:
    """The status after these events."""
    return reduce(fold, events, status or Status())


def _find(status: Status, step: str) -> StepStatus:
    return next((s for s in status.steps if s.id == step), StepStatus(id=step))


def _step(status: Status, id: str, **changes: Any) -> Status:
    steps = tuple(replace(s, **changes) if s.id == id else s for s in status.steps)
    return replace(status, steps=steps)


def _batch_done(status: Status, done: BatchDone) -> Status:
    step_status = _find(status, done.step)
    if step_status.slices and done.position <= step_status.slices_done:
        return status  # its slices have a receipt
    return _step(
        replace(status, quarantined=status.quarantined + done.quarantined), done.step, rows_done=step_status.rows_done + done.rows_in,
        slices_done=done.position, slices=done.of, batch="", batch_rows=0, job=None, seconds=step_status.seconds + done.seconds,
        bytes=step_status.bytes + done.bytes,
    )  # fmt: skip
