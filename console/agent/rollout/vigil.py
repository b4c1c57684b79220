"""What the agent does with a rollout that nobody looks after: pause it, or drop what it built."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from console.model.event import Accepted, Event, Expiring, Paused
from console.model.status import Status

ATTACHED_SECONDS = 10.0
LEFT = "the agent, since its console left"
HOUR = 3600.0
SOON, LAST = 24 * HOUR, HOUR  # before files that a rollout still reads may be deleted


@dataclass(slots=True)
class Vigil:
    """Asked once a second.

    attached           tied to a console: without a watcher the rollout pauses
    keep_failed_hours  how long a failed rollout keeps what it built (P7)
    """

    keep_failed_hours: float
    attached: bool = False
    _watched: float = field(default_factory=time.monotonic)

    def due(self, status: Status, watched: bool, carrying: bool) -> tuple[Literal["pause", "discard"], str] | None:
        """What is due now, and in whose name; None for nothing."""
        if status.held == "failed" and time.time() - status.changed > self.keep_failed_hours * 3600:
            return "discard", f"the agent, {self.keep_failed_hours:g} h after the failure"
        if watched or not self.attached or not carrying:
            self._watched = time.monotonic()
        elif time.monotonic() - self._watched > ATTACHED_SECONDS:
            self.attached = False
            return "pause", LEFT
        return None


def tied(events: Iterable[Event]) -> bool:
    """Whether a rollout is still tied to its console, by its stored events: once it paused for that, whoever lets it go on
    lets it go on alone.
    """
    found = False
    for event in events:
        match event:
            case Accepted():
                found = event.attached
            case Paused(by) if by == LEFT:
                found = False
    return found


def expiring(status: Status, now: float) -> Expiring | None:
    """The warning that is due, once a level: a day before, an hour before, too late; earlier where even going on at the
    measured rate would come too late.

    now  seconds, UTC
    """
    until = status.reads_until
    left = until - now
    if not until:
        return None
    needed = status.eta_seconds or 0.0
    level = 3 if left <= 0 else 2 if left <= LAST or needed > left else 1 if left <= max(SOON, 2 * needed) else 0
    if level <= status.expiring:
        return None
    when = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(until))
    end = "console discard, then plan again"
    match level:
        case 3:
            told = f"files of its history may have been deleted since {when}: go on at once, or {end}"
        case 2 if needed > left > 0:
            told = f"at its rate it ends after {when}, when files of its history may be deleted: raise delta.deletedFileRetentionDuration of its sources, or {end}"
        case _:
            go = "console resume before" if status.held == "paused" else "it must have read them by"
            told = f"files of its history may be deleted from {when} on: {go} then"
    return Expiring(until, level, told)
