"""What the agent does with a rollout that nobody looks after: pause it, or drop what it built."""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from console.agent.resilience.throttle import Clock, WallClock
from console.model.event import RUNNING, Accepted, Event, Expiring, Paused
from console.model.status import Status

if TYPE_CHECKING:
    from console.agent.pipeline import PipelineController

ATTACHED_SECONDS = 10.0
LEFT = "the agent, since its console left"
HOUR = 3600.0
SOON, LAST = 24 * HOUR, HOUR  # before files that a rollout still reads may be deleted
STEPPED_SECONDS = 60.0  # between wall clock and monotonic clock: more is no drift


@dataclass(slots=True)
class Watchdog:
    """Asked once a second.

    attached           tied to a console: without a watcher the rollout pauses
    keep_failed_hours  how long a failed rollout keeps what it built (P7)
    """

    keep_failed_hours: float
    attached: bool = False
    clock: Clock = field(default_factory=WallClock)
    _started: float = field(init=False)
    _watched: float = field(init=False)
    _ahead: float = field(init=False)  # the wall clock, of the monotonic one
    _failure: tuple[str, int] = field(default=("", 0), init=False)  # rollout and number of its last event
    _seen: float = field(default=0.0, init=False)  # first, on the monotonic clock …
    _age: float = field(default=0.0, init=False)  # … and how old it was then, seconds
    _deed: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self._watched = self.clock.elapsed()
        self._ahead = self.clock.now() - self._started

    def mind(self, controller: "PipelineController", carrying: bool) -> None:
        """Warn of what expires and begin what is due: beside the agent's loop, since others may hold the guard for long."""
        recorder = controller.recorder
        if warning := expiring(recorder.status, self.clock.now()):
            with suppress(Exception):  # a disk that is full now must not end the agent for the sake of a warning
                recorder.store(warning)
        status = recorder.status
        due = self.due(status, bool(recorder.watchers), carrying)
        if due and (self._deed is None or not self._deed.is_alive()):
            self._deed = threading.Thread(target=self._do, args=(controller, status, *due), daemon=True)
            self._deed.start()

    def due(self, status: Status, watched: bool, carrying: bool) -> tuple[Literal["pause", "discard"], str] | None:
        """What is due now, and in whose name; None for nothing."""
        if self._kept_long(status):
            return "discard", f"the agent, {self.keep_failed_hours:g} h after the failure"
        now = self.clock.elapsed()
        if watched or not self.attached or not carrying:
            self._watched = now
        elif now - self._watched > ATTACHED_SECONDS:
            self._watched = now  # asked for again later if it cannot be stored
            return "pause", LEFT
        return None

    def _kept_long(self, status: Status) -> bool:
        """Whether it failed so long ago: no step of the wall clock makes it so, and none at the start of a host."""
        if status.held != "failed":
            return False
        now, elapsed = self.clock.now(), self.clock.elapsed()
        failure = status.rollout, status.seq
        if failure != self._failure:
            self._failure, self._seen, self._age = failure, elapsed, max(0.0, now - status.changed)
        if abs(now - elapsed - self._ahead) > STEPPED_SECONDS:
            self._ahead, self._age = now - elapsed, 0.0
        return self._age + elapsed - self._seen > self.keep_failed_hours * HOUR and elapsed - self._started >= HOUR

    def _do(self, controller: "PipelineController", seen: Status, verb: Literal["pause", "discard"], by: str) -> None:
        """What was due, if it still is: while the guard was waited for, somebody may have decided, or begun the next rollout."""
        with controller.guard:
            status = controller.recorder.status
            if status.rollout != seen.rollout:
                return
            if verb == "discard" and status.seq == seen.seq:
                controller.control(verb, by)
            alone = self.attached and not controller.recorder.watchers
            if verb == "pause" and alone and status.state in RUNNING and not status.held:
                controller.control(verb, by)
                self.attached = False


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
        case 2 if needed > left:
            told = f"at its rate it ends after {when}, when files of its history may be deleted: raise delta.deletedFileRetentionDuration of its sources, or {end}"
        case _:
            go = "console resume before" if status.held == "paused" else "it must have read them by"
            told = f"files of its history may be deleted from {when} on: {go} then"
    return Expiring(until, level, told)
