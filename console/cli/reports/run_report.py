"""A run as a value: each region's verdict, plan, course, checks and receipts, from the views that the screens draw. Pure.

It holds keys, days, counts and reasons; no value of a row is in any of the records that it is made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from console.cli.reports.timeline import Course, course
from console.errors import AtGate, ConsoleError, Problem, Problems, RegionError
from console.model.consent import NO_CONSENT, Consent
from console.model.event import Checked, Recorded
from console.model.gate import acceptance_of, unaccepted
from console.model.plan import Plan
from console.model.receipt import Past, Receipt
from console.model.status import Status
from console.runner import after_promotion
from console.runner.actions import gate
from console.runner.flips import Flips
from console.runner.view import Outcome, RegionView
from console.runner.watch import under_way
from console.text import redacted

NOT_BEGUN = "not begun"


class RegionVerdict(Enum):
    """The outcome of a region's part; the value is the text for people."""

    PASSED = "passed"
    AT_GATE = "at its gate"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"
    UNFINISHED = "not finished"
    SKIPPED = "skipped"


class RunState(Enum):
    """The outcome of the run itself; the value is the text for people."""

    RUNNING = "not finished when this was written"
    ENDED = "ended"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedError:
    """An error without its class. kind: the class's name;  problems: all of its findings, where it has several"""

    kind: str
    message: str
    hint: str = ""
    code: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionReport:
    """One region's part in a run.

    state     the word of the status, or of the outcome where the run did not reach its rollout
    plan      the accepted one, else the one that would run; None where there is none
    consent   what people declared at its gate
    past      its stored events and receipts;  past_missing: why they are missing
    percent   of its history; 100 only when nothing is left
    """

    region: str
    environment: str
    wave: int
    verdict: RegionVerdict
    state: str
    release: str
    was: str
    rollout: str
    rows_done: int
    rows_total: int
    percent: int
    error: ReportedError | None
    plan: Plan | None
    checks: tuple[Checked, ...]
    consent: Consent
    course: Course
    events: tuple[Recorded, ...]
    receipts: tuple[Receipt, ...]
    past_missing: str = ""

    def accepted(self, check: Checked) -> str:
        """`accepted by ada: late rows`, or "" for a check that nobody accepted."""
        by = acceptance_of(self.consent, check)
        return f"accepted by {by.by}: {by.reason}" if by else ""

    @property
    def passed_checks(self) -> int:
        return sum(check.ok is True for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A whole run.

    began, at  seconds since 1970, UTC
    exit_code  None while it runs;  error: the reason that it ended as a whole
    flips      the outcome of a promotion of several regions at once
    """

    pipeline: str
    command: str
    by: str
    tool: str
    began: float
    at: float
    state: RunState
    exit_code: int | None
    error: ReportedError | None
    regions: tuple[RegionReport, ...]
    flips: Flips | None = None

    def count(self, *verdicts: RegionVerdict) -> int:
        return sum(region.verdict in verdicts for region in self.regions)


def reported(error: ConsoleError) -> ReportedError:
    """An error for a report, without secrets."""
    problems = error.problems if isinstance(error, Problems) else ()
    return ReportedError(
        kind=type(error).__name__,
        message=redacted(str(error)),
        hint=redacted(error.hint),
        code=error.code,
        problems=problems,
    )


def region_report(
    view: RegionView, plan: Plan | None, outcome: Outcome | None, past: Past | None, now: float, *, ended: bool
) -> RegionReport:
    """One region's part.

    plan     the one that was shown before the run, if there is one
    outcome  None if the run has none for it
    past     None if it was not asked, or gave no answer: then the view's own events are used
    ended    the run is over
    """
    status, ours = view.status, _ours(view, plan, outcome)
    error = outcome.error if outcome else _standing_error(view) if ours else None
    events = (past.events if past else view.events) if ours else ()
    return RegionReport(
        region=view.region.name,
        environment=view.region.environment,
        wave=view.region.wave,
        verdict=_verdict(view, outcome, ours=ours, ended=ended),
        state=outcome.state if outcome else status.shown if ours else NOT_BEGUN,
        release=status.release if ours else view.live,
        was=status.was if ours else "",
        rollout=status.rollout if ours else "",
        rows_done=status.rows_done if ours else 0,
        rows_total=status.rows_total if ours else 0,
        percent=status.percent if ours else 0,
        error=reported(error) if error else None,
        plan=(view.accepted if ours else None) or plan,
        checks=status.checks if ours else (),
        consent=status.consent if ours else NO_CONSENT,
        course=course(events, now),
        events=events,
        receipts=past.receipts if past and ours else (),
        past_missing="" if past or not ours else "the region was not asked for its receipts",
    )


def _standing_error(view: RegionView) -> ConsoleError | None:
    """The error that stopped a rollout for which no run waits."""
    status = view.status
    if status.held == "failed":
        return RegionError(f"{view.region.name}: {status.why}", region=view.region.name, hint=status.hint)
    if status.state == "awaiting-confirmation" and not status.held:
        return gate(view, yes=True)
    return after_promotion.held(view)


def _ours(view: RegionView, plan: Plan | None, outcome: Outcome | None) -> bool:
    """Whether the region's rollout is part of the run: a rollout that ended before the run began is not."""
    status = view.status
    if not status.rollout or plan is None or under_way(status):
        return bool(status.rollout)
    carried = outcome is not None and outcome.error is None and outcome.state == status.shown
    return carried or status.plan == plan.digest()


def status_report(view: RegionView, error: ConsoleError | None, past: Past | None, now: float) -> RegionReport:
    """The current state of a region, without a run. error: why it gave no answer, or its failure"""
    name, outcome = view.region.name, None
    if error:
        outcome = Outcome(name, "unreachable" if view.link == "unreachable" else view.status.shown, error)
    elif not view.status.rollout:
        outcome = Outcome(name, "no rollout")
    return region_report(view, None, outcome, past, now, ended=False)


def planned_report(region: str, environment: str, wave: int, plan: Plan | None, state: RunState) -> RegionReport:
    """A region before its run, or one whose plan was refused."""
    refusals = plan.refusals if plan else ()
    unfinished = state in (RunState.RUNNING, RunState.INTERRUPTED)
    calm = RegionVerdict.UNFINISHED if unfinished else RegionVerdict.SKIPPED
    return RegionReport(
        region=region,
        environment=environment,
        wave=wave,
        verdict=RegionVerdict.FAILED if refusals else calm,
        state="refused" if refusals else "planned" if plan else "not planned",
        release="",
        was=plan.live if plan else "",
        rollout="",
        rows_done=0,
        rows_total=0,
        percent=0,
        error=reported(Problems.of(refusals)) if refusals else None,
        plan=plan,
        checks=(),
        consent=NO_CONSENT,
        course=course((), 0.0),
        events=(),
        receipts=(),
    )


def _verdict(view: RegionView, outcome: Outcome | None, *, ours: bool, ended: bool) -> RegionVerdict:
    if outcome is None:
        return _standing(view) if ours else RegionVerdict.SKIPPED if ended else RegionVerdict.UNFINISHED
    match outcome.error:
        case None if outcome.state in ("skipped", "behind"):
            return RegionVerdict.SKIPPED
        case None:
            return RegionVerdict.PASSED
        case AtGate():
            return _at_gate(view.status)
        case _:
            return RegionVerdict.FAILED


def _standing(view: RegionView) -> RegionVerdict:
    """The state of a region's rollout without a run."""
    status = view.status
    if status.held == "failed" or any(check.ok is False for check in status.checks):
        return RegionVerdict.FAILED
    if status.state == "awaiting-confirmation" and not status.held:
        return _at_gate(status)
    return RegionVerdict.UNFINISHED if under_way(status) else RegionVerdict.PASSED


def _at_gate(status: Status) -> RegionVerdict:
    return RegionVerdict.INCONCLUSIVE if unaccepted(status) else RegionVerdict.AT_GATE


def ordered(regions: Sequence[RegionReport]) -> tuple[RegionReport, ...]:
    """Regions that need attention first, the others in the order of the run."""
    pressing: Mapping[RegionVerdict, int] = {RegionVerdict.FAILED: 0, RegionVerdict.INCONCLUSIVE: 1}
    return tuple(sorted(regions, key=lambda region: pressing.get(region.verdict, 2)))
