"""The condition of a region, with its symbol, text and tone. Pure; the tone only repeats the text."""

from enum import Enum, auto
from typing import Literal, assert_never

from console.model.event import ENDED, RUNNING, State
from console.model.status import Status
from console.model.step_status import StepStatus
from console.record import dataclass
from console.runner.view import RegionView
from console.tui.times import FRESH_SECONDS, age

Tone = Literal["quiet", "busy", "good", "warn", "bad"]
STYLES: dict[Tone, str] = {
    "quiet": "$text-muted",
    "busy": "$text-primary",
    "good": "$text-success",
    "warn": "$text-warning",
    "bad": "$text-error",
}


ALMOST = 0.999  # drawn instead of 1 while a slice or a feed is open


@dataclass(frozen=True, slots=True)
class Label:
    """`▶ backfilling`. text may come from outside: draw it through `safe`."""

    symbol: str
    text: str
    tone: Tone

    @property
    def style(self) -> str:
        return STYLES[self.tone]


class Condition(Enum):
    """The states of a region that the screens distinguish."""

    UNREACHABLE = auto()
    FAILED = auto()
    PAUSED = auto()
    NOTED = auto()  # at rest, with a note from outside the rollout
    AT_GATE = auto()
    RUNNING = auto()
    FEED_STOPPED = auto()
    NO_PLAN = auto()
    READING = auto()
    REFUSED = auto()
    LIVE = auto()
    UP_TO_DATE = auto()
    ROLLED_BACK = auto()
    ENDED = auto()  # cancelled or discarded, and a change is pending again
    CHANGE_PENDING = auto()


ACTIVE = frozenset((Condition.AT_GATE, Condition.RUNNING, Condition.PAUSED, Condition.FAILED))


def followed(view: RegionView, now: float) -> bool:
    """An agent was heard within ten seconds, and no live feed has stopped."""
    return now - view.heard <= FRESH_SECONDS and view.attended is not False and not view.status.standing


def change_pending(view: RegionView) -> bool:
    """A change is planned, and a rollout of it could start."""
    return view.plan is not None and bool(view.plan.changes) and not view.plan.refusals


def idle(view: RegionView) -> bool:
    """No rollout is running, paused, failed or at its gate."""
    return not view.status.held and (view.status.state == "none" or view.status.state in ENDED)


def resumes(view: RegionView) -> bool:
    """Whether `p` resumes something: a paused rollout, or the waves behind a release that was promoted."""
    return view.status.held == "paused" or (view.status.state == "live" and bool(view.status.watched.holds))


def working(view: RegionView) -> bool:
    """The region's agent is working on a rollout now."""
    return not view.status.held and view.status.state in RUNNING


def moving(view: RegionView) -> bool:
    """The agent is working and not waiting, as far as it is heard: the time left can be estimated from the rate so far."""
    return working(view) and not view.status.why and view.link != "unreachable"


def under_way(view: RegionView) -> bool:
    """A rollout is running, paused, failed or at its gate: there are figures to show."""
    return not idle(view)


def condition(view: RegionView) -> Condition:
    """The single condition of a region; conditions that need a person take precedence over those that proceed by themselves."""
    status = view.status
    if view.link == "unreachable":
        return Condition.UNREACHABLE
    if status.held:
        return Condition.FAILED if status.held == "failed" else Condition.PAUSED
    if view.note and idle(view):
        return Condition.NOTED
    match status.state:
        case "awaiting-confirmation":
            return Condition.AT_GATE
        case "planned" | "preparing" | "backfilling" | "catching-up" | "validating" | "promoting":
            return Condition.RUNNING
        case "none" | "live" | "cancelled" | "discarded" | "rolled-back" | "cleaned":
            return _idle_condition(view)
        case _:
            assert_never(status.state)


def _idle_condition(view: RegionView) -> Condition:
    if view.status.standing:
        return Condition.FEED_STOPPED
    if view.problem:
        return Condition.NO_PLAN
    if view.plan is None:
        return Condition.READING
    if view.plan.refusals:
        return Condition.REFUSED
    if not view.plan.changes:
        return Condition.LIVE if view.live else Condition.UP_TO_DATE
    match view.status.state:
        case "rolled-back":
            return Condition.ROLLED_BACK
        case "cancelled" | "discarded":
            return Condition.ENDED
        case _:
            return Condition.CHANGE_PENDING


def state_label(view: RegionView, now: float = 0.0) -> Label:
    """How the region's condition is shown; the state of a rollout is shown as the view has it, and so is the kind of a note.

    now  seconds since 1970, UTC; 0 for the condition alone, regardless of the age of its figures
    """
    match current := condition(view):
        case Condition.UNREACHABLE:
            known = bool(now and view.heard)
            return Label("!", f"away {age(now - view.heard)}" if known else "unreachable", "warn")
        case Condition.FAILED:
            return Label("✗", "failed", "bad")
        case Condition.PAUSED:
            return Label("‖", "paused", "warn")
        case Condition.NOTED:
            return Label("…", view.notice, "busy")
        case Condition.AT_GATE:
            return Label("◆", "at the gate", "warn")
        case Condition.RUNNING:
            return Label("▶", view.status.state, "busy")
        case Condition.FEED_STOPPED:
            return Label("✗", "feed stopped" if len(view.status.standing) == 1 else "feeds stopped", "bad")
        case Condition.NO_PLAN:
            return Label("✗", "no plan", "bad")
        case Condition.READING:
            return Label("…", "reading", "quiet")
        case Condition.REFUSED:
            return Label("✗", "refused", "bad")
        case Condition.LIVE:
            if now and not followed(view, now):
                return Label("·", "live, not followed", "quiet")
            return Label("✓", "live", "good")
        case Condition.UP_TO_DATE:
            return Label("✓", "up to date", "good")
        case Condition.ROLLED_BACK:
            return Label("↶", "rolled back", "warn")
        case Condition.ENDED:
            return Label("-", view.status.state, "quiet")
        case Condition.CHANGE_PENDING:
            return Label("○", "change waiting", "busy")
        case _:
            assert_never(current)


def state_words(state: State | Literal["none"]) -> str:
    """The screens' name of a stored state."""
    match state:
        case "awaiting-confirmation":
            return "at the gate"
        case "rolled-back":
            return "rolled back"
        case _:
            return state


def status_label(status: Status) -> Label:
    """The state or outcome of a rollout, regardless of later changes of its region."""
    if status.held == "failed":
        return Label("✗", "failed", "bad")
    if status.held:
        return Label("‖", "paused", "warn")
    words = state_words(status.state)
    match status.state:
        case "awaiting-confirmation":
            return Label("◆", words, "warn")
        case "live":
            return Label("✓", words, "good")
        case "rolled-back":
            return Label("↶", words, "warn")
        case state if state in RUNNING:
            return Label("▶", words, "busy")
        case _:
            return Label("-", words, "quiet")


def feed_trouble(view: RegionView) -> str:
    """Why live rows are not flowing, the worst feed first; "" if all feeds work."""
    feeds = sorted(view.status.ailing, key=lambda feed: not feed.standing)
    if not feeds:
        return ""
    more = f" (and {len(feeds) - 1} more)" if len(feeds) > 1 else ""
    problem = "has stopped" if feeds[0].standing else f"is failing, attempt {feeds[0].tries}"
    return f"feed {feeds[0].feed} {problem}{more}: {feeds[0].why}"


def done_fraction(view: RegionView) -> float:
    """The completed share of the rollout, 0…1: by rows if rows are moved, else by steps. It is 1 only once every slice is
    committed and every feed has caught up."""
    status = view.status
    if status.state in ("awaiting-confirmation", "promoting", "live"):
        return 1.0
    if status.rows_total:
        return status.fraction if status.closed else min(status.fraction, ALMOST)
    return sum(step.state == "done" for step in status.steps) / len(status.steps) if status.steps else 0.0


def running_fraction(view: RegionView) -> float:
    """Share of the rollout that the running batches have done so far, 0…1; an estimate, not part of `done_fraction`."""
    status = view.status
    return status.rows_running / status.rows_total if status.rows_total and working(view) else 0.0


def running_step(view: RegionView) -> StepStatus | None:
    """The latest step with a running batch."""
    return next((step for step in reversed(view.status.steps) if step.state == "running" and step.batch), None)


def release_text(view: RegionView) -> str:
    """`r1 → r2` during a rollout, `r1 → next` while a change is pending, `r1` otherwise; `—` if nothing is live."""
    live = view.live or "—"
    if under_way(view) and view.status.release:
        return f"{view.status.was or live} → {view.status.release}"
    return f"{live} → next" if change_pending(view) else live
