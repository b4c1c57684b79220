"""The word, symbol and tone that a region's state is shown by. Pure; the tone only repeats what the word says."""

from dataclasses import dataclass
from typing import Literal, assert_never

from console.model.event import ENDED, RUNNING
from console.model.status import StepStatus
from console.runner.view import RegionView

Tone = Literal["quiet", "busy", "good", "warn", "bad"]
STYLES: dict[Tone, str] = {
    "quiet": "$text-muted",
    "busy": "$text-primary",
    "good": "$text-success",
    "warn": "$text-warning",
    "bad": "$text-error",
}


@dataclass(frozen=True, slots=True)
class Label:
    """`▶ backfilling`. text may come from outside: draw it through `said`."""

    symbol: str
    text: str
    tone: Tone

    @property
    def style(self) -> str:
        return STYLES[self.tone]


def change_pending(view: RegionView) -> bool:
    """A change is planned that a rollout could begin with."""
    return view.plan is not None and bool(view.plan.changes) and not view.plan.refusals


def idle(view: RegionView) -> bool:
    """No rollout is under way, nor one that stands."""
    return not view.status.held and (view.status.state == "none" or view.status.state in ENDED)


def working(view: RegionView) -> bool:
    """The region's agent is at work on a rollout now."""
    return not view.status.held and view.status.state in RUNNING


def under_way(view: RegionView) -> bool:
    """A rollout moves or stands: the region has figures to show."""
    return not idle(view)


def state_label(view: RegionView) -> Label:
    """The one word for one region; what a person must act on comes before what goes by itself."""
    status = view.status
    if view.link == "unreachable":
        return Label("!", "unreachable", "warn")
    if status.held:
        return Label("✗", "failed", "bad") if status.held == "failed" else Label("‖", "paused", "warn")
    if view.note and idle(view):
        return Label("…", view.note, "busy")
    match status.state:
        case "awaiting-confirmation":
            return Label("◆", "at the gate", "warn")
        case "planned" | "preparing" | "backfilling" | "catching-up" | "validating" | "promoting":
            return Label("▶", status.state, "busy")
        case "none" | "live" | "cancelled" | "discarded" | "rolled-back" | "cleaned":
            return _idle_label(view)
        case _:
            assert_never(status.state)


def _idle_label(view: RegionView) -> Label:
    if feeds := view.status.standing:
        return Label("✗", "feed stopped" if len(feeds) == 1 else "feeds stopped", "bad")
    if view.problem:
        return Label("✗", "no plan", "bad")
    if view.plan is None:
        return Label("…", "reading", "quiet")
    if view.plan.refusals:
        return Label("✗", "refused", "bad")
    if not view.plan.changes:
        return Label("✓", "live" if view.live else "up to date", "good")
    match view.status.state:
        case "rolled-back":
            return Label("↶", "rolled back", "warn")
        case "cancelled" | "discarded":
            return Label("-", view.status.state, "quiet")
        case _:
            return Label("○", "change waiting", "busy")


def feed_trouble(view: RegionView) -> str:
    """Why live rows do not flow, the worst feed first; "" where all do."""
    feeds = sorted(view.status.ailing, key=lambda feed: not feed.standing)
    if not feeds:
        return ""
    more = f" (and {len(feeds) - 1} more)" if len(feeds) > 1 else ""
    does = "stands still" if feeds[0].standing else f"fails, try {feeds[0].tries}"
    return f"feed {feeds[0].feed} {does}{more}: {feeds[0].why}"


def done_fraction(view: RegionView) -> float:
    """How much of the rollout is done, 0…1: by rows where rows move, else by steps. Past validation it is 1."""
    status = view.status
    if status.state in ("awaiting-confirmation", "promoting", "live"):
        return 1.0
    if status.rows_total:
        return status.fraction
    return sum(step.state == "done" for step in status.steps) / len(status.steps) if status.steps else 0.0


def running_fraction(view: RegionView) -> float:
    """The share of the rollout that its running batches have done so far, 0…1; an estimate, beside `fraction`."""
    status = view.status
    return status.rows_running / status.rows_total if status.rows_total and working(view) else 0.0


def running_step(view: RegionView) -> StepStatus | None:
    """The step whose batch is running, the latest of them."""
    return next((step for step in reversed(view.status.steps) if step.state == "running" and step.batch), None)


def release_text(view: RegionView) -> str:
    """`r1 → r2` during a rollout, `r1 → next` while a change waits, `r1` otherwise; `—` where nothing is live."""
    live = view.live or "—"
    if under_way(view) and view.status.release:
        return f"{view.status.was or live} → {view.status.release}"
    return f"{live} → next" if change_pending(view) else live
