"""Whether the checks of a promoted release continue, and the effect of `pause` and `resume` on them. Pure."""

from console.model.breach import WatchSteered
from console.model.plan import Plan
from console.model.status import Status, Verb


def is_watched(status: Status, plan: Plan | None) -> bool:
    """Whether the checks of a rollout continue after its promotion, by its own plan."""
    return status.state == "live" and plan is not None and plan.gate.watch > 0 and not status.watched.ended


def steering(status: Status, plan: Plan | None, verb: Verb, by: str) -> WatchSteered | None:
    """The effect of a verb on a watched release; None if it has none.

    pause   the agent no longer rolls it back, and the next wave is held; until the watch has ended
    resume  the next wave may begin in spite of what has failed so far; also after the watch
    """
    if status.state != "live":
        return None
    if verb == "pause" and is_watched(status, plan):
        return WatchSteered(by=by, verb="pause")
    if verb == "resume" and status.watched.holds:
        return WatchSteered(by=by, verb="resume")
    return None
