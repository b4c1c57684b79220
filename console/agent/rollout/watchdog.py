"""The watchdog of a rollout: pauses it when its console has left, discards it when a failure is not repaired, and warns
before files that it still reads may be deleted.
"""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from console.agent.clock import Clock, WallClock
from console.agent.rollout.ownership import OwnedPipeline
from console.model.event import RUNNING, Accepted, Event, Expiring, Paused
from console.model.identity import AgentReason, agent_reason, by_agent
from console.model.status import Status, Verb

ATTACHED_SECONDS = 10.0
HOUR = 3600.0
SOON, LAST = 24 * HOUR, HOUR  # before files that a rollout still reads may be deleted
STEPPED_SECONDS = 60.0  # a larger change between wall clock and monotonic clock is a step, not drift


class ControlledPipeline(OwnedPipeline, Protocol):
    """The part of a pipeline's controller that the watchdog uses."""

    def control(self, verb: Verb, by: str) -> Status: ...


@dataclass(slots=True)
class Watchdog:
    """Checks one pipeline's rollout once a second.

    keep_failed_hours  how long a failed rollout keeps what it built (P7)
    attached           the rollout pauses when no console watches it
    """

    keep_failed_hours: float
    attached: bool = False
    clock: Clock = field(default_factory=WallClock)
    _started: float = field(init=False)  # monotonic
    _watched: float = field(init=False)  # monotonic: when it last had a watcher
    _ahead: float = field(init=False)  # wall clock − monotonic clock, seconds
    _failure: tuple[str, int] = field(default=("", 0), init=False)  # rollout and number of its last event
    _seen: float = field(default=0.0, init=False)  # monotonic: when the failure was first seen …
    _age: float = field(default=0.0, init=False)  # … and its age then, seconds
    _action: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self._watched = self.clock.elapsed()
        self._ahead = self.clock.now() - self._started

    def tick(self, controller: ControlledPipeline, running: bool) -> None:
        """Warn of files that expire, and start the action that is due, in a thread of its own: another operation may
        hold the pipeline's lock for long.

        running  whether the executor is alive
        """
        recorder = controller.recorder
        if warning := expiring(recorder.status, self.clock.now()):
            with suppress(Exception):  # a warning that cannot be stored must not end the agent
                recorder.store(warning)
        status = recorder.status
        due = self.due(status, bool(recorder.watchers), running)
        if due and (self._action is None or not self._action.is_alive()):
            self._action = threading.Thread(target=self._act, args=(controller, status, *due), daemon=True)
            self._action.start()

    def due(self, status: Status, watched: bool, running: bool) -> tuple[Literal["pause", "discard"], str] | None:
        """The action that is due and its recorded author; None for none."""
        if self._kept_long(status):
            return "discard", by_agent(AgentReason.FAILED_LONG_AGO, f"{self.keep_failed_hours:g} h")
        now = self.clock.elapsed()
        if watched or not self.attached or not running:
            self._watched = now
        elif now - self._watched > ATTACHED_SECONDS:
            self._watched = now  # due again later if it cannot be stored
            return "pause", by_agent(AgentReason.CONSOLE_LEFT)
        return None

    def _kept_long(self, status: Status) -> bool:
        """Whether the failure is older than `keep_failed_hours`; a step of the wall clock does not age it, and nothing
        is due in the agent's first hour.
        """
        if status.held != "failed":
            return False
        now, elapsed = self.clock.now(), self.clock.elapsed()
        failure = status.rollout, status.seq
        if failure != self._failure:
            self._failure, self._seen, self._age = failure, elapsed, max(0.0, now - status.changed)
        if abs(now - elapsed - self._ahead) > STEPPED_SECONDS:
            self._ahead, self._age = now - elapsed, 0.0
        return self._age + elapsed - self._seen > self.keep_failed_hours * HOUR and elapsed - self._started >= HOUR

    def _act(self, controller: ControlledPipeline, seen: Status, verb: Literal["pause", "discard"], by: str) -> None:
        """Execute the due action, unless a decision or another rollout came before the lock was free."""
        with controller.lock:
            status = controller.recorder.status
            if status.rollout != seen.rollout:
                return
            if verb == "discard" and status.seq == seen.seq:
                controller.control(verb, by)
            alone = self.attached and not controller.recorder.watchers
            if verb == "pause" and alone and status.state in RUNNING and not status.held:
                controller.control(verb, by)
                self.attached = False


def is_attached(events: Iterable[Event]) -> bool:
    """Whether a rollout is still attached to its console. After a pause because the console left it stays detached.

    events  all stored events of the rollout, oldest first
    """
    attached = False
    for event in events:
        match event:
            case Accepted():
                attached = event.attached
            case Paused(by) if agent_reason(by) is AgentReason.CONSOLE_LEFT:
                attached = False
    return attached


def expiring(status: Status, now: float) -> Expiring | None:
    """The warning that is due, once per level: 1 a day before, 2 an hour before, 3 too late; earlier if the rollout
    would be too late at its measured rate.

    now  seconds since 1970, UTC
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
            message = f"files of its history may have been deleted since {when}: resume at once, or {end}"
        case 2 if needed > left:
            message = f"at its rate it ends after {when}, when files of its history may be deleted: raise delta.deletedFileRetentionDuration of its sources, or {end}"
        case _:
            go = "console resume before" if status.held == "paused" else "it must have read them by"
            message = f"files of its history may be deleted from {when} on: {go} then"
    return Expiring(until, level, message)
