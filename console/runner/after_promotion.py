"""The checks that continue after a promotion: their wording in every face, and whether the next wave may begin. Pure."""

from collections.abc import Iterator, Sequence
from typing import Literal

from console.errors import ConsoleError, RegionError
from console.model.breach import Breach, breach_text, watch_text
from console.model.codec import encode
from console.record import dataclass
from console.runner.view import RegionView


@dataclass(frozen=True, slots=True)
class WatchLine:
    """One sentence. text: contains text from regions; draw it through `safe`"""

    text: str
    tone: Literal["quiet", "good", "warn", "bad"]


def is_watched(view: RegionView) -> bool:
    """Whether a region is live and its accepted plan keeps its checks running."""
    plan, status = view.accepted, view.status
    return status.state == "live" and plan is not None and plan.gate.watch > 0 and not status.watched.ended


def lines(view: RegionView, now: float) -> Iterator[WatchLine]:
    """The sentences about the watch of a region's last rollout; none without a watch. now: seconds since 1970, UTC"""
    status = view.status
    taken_back = status.state == "rolled-back"
    for breach in status.watched.breaches:
        open_still = not breach.answered and status.state in ("live", "rolled-back")
        yield WatchLine(breach_text(breach, taken_back=taken_back), "bad" if open_still else "warn")
    if status.state != "live":
        return
    if status.watched.held_by:
        yield WatchLine(
            f"watch paused by {status.watched.held_by}: no automatic rollback, and the next wave is held", "warn"
        )
    if status.watch is not None:
        yield WatchLine(watch_text(status.watch, now), "warn" if status.watch.unable else "quiet")
    elif is_watched(view) and view.attended is False:
        yield WatchLine("no agent runs: its checks after the promotion stand still, and the next wave waits", "warn")
    if status.watched.ended:
        some = ", ".join(status.watched.unclear)
        text = "the checks after its promotion have ended"
        yield WatchLine(f"{text}; inconclusive then: {some}" if some else text, "warn" if some else "good")


def watch_data(view: RegionView) -> dict[str, object] | None:
    """For `--output json`; None for a rollout that is not watched and never was."""
    status = view.status
    if not is_watched(view) and not status.watched.breaches and not status.watched.ended:
        return None
    return {
        "goes_on": is_watched(view),
        "progress": encode(status.watch),
        "on_breach": view.accepted.gate.on_breach if view.accepted else None,
        "holds_next_wave": holds(view),
        "held_by": status.watched.held_by,
        "breaches": [{"name": breach.name, **encode(breach)} for breach in status.watched.breaches],
        "taken_back": status.state == "rolled-back" and bool(status.watched.breaches),
        "ended": status.watched.ended or None,
        "inconclusive": list(status.watched.unclear),
    }


def waits_text(names: Sequence[str]) -> str:
    """The message after the promotion of regions whose checks continue."""
    return f"{', '.join(names)}: the checks continue; the next wave waits for their end: console status"


def unsettled(view: RegionView) -> Breach | None:
    """The breach that needs a person: one that holds the next wave, was rolled back, or was reported while the watch
    continues.
    """
    status = view.status
    if status.state not in ("live", "rolled-back") or not status.watched.breaches:
        return None
    reported = [
        each for each in status.watched.breaches if each.action == "tell" and is_watched(view) and not each.answered
    ]
    return next(iter((*status.watched.open, *reported)), None)


def holds(view: RegionView) -> str:
    """Why no later wave may begin after a live region; "" once its checks have ended without an open breach."""
    if view.status.state != "live":
        return ""
    return view.status.watched.holds or ("its checks continue" if is_watched(view) else "")


def held(view: RegionView) -> ConsoleError | None:
    """The error with which a run stops behind a region; None if the next wave may begin."""
    status, name = view.status, view.region.name
    if status.state == "rolled-back" and status.watched.breaches:
        breach = status.watched.breaches[-1]
        why = f"{name}: {status.release} was rolled back by {status.decided_by}: {breach.name}: {breach.detail}"
        return RegionError(why, region=name, hint=f"console status --region {name}", code="E_BREACH")
    if status.state == "live" and status.watched.holds:
        hint = f"console rollback --region {name}; or, once it is understood: console resume --region {name}"
        why = f"{name}: the next wave is held: {status.watched.holds}"
        return RegionError(why, region=name, hint=hint, code="E_BREACH")
    return None
