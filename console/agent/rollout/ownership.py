"""Ownership of a rollout: the console that began it controls it until another one takes it over; then it only watches.

Ownership binds the consoles that run a rollout (`apply`, the screen, `attach --take-over`); each has an id of its own.
A single command (`console pause`, `console promote`) has no console id and is always accepted.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from console.agent.rollout.recorder import Recorder
from console.errors import Conflict
from console.model.event import ENDED, Accepted, Ended, Event, Paused, Promoted, Resumed, RolledBack, TakenOver
from console.model.status import Status


class OwnedPipeline(Protocol):
    """The part of a pipeline's controller that ownership uses."""

    @property
    def pipeline(self) -> str: ...

    @property
    def recorder(self) -> Recorder: ...

    @property
    def lock(self) -> threading.RLock:
        """Lock held for one operation on the pipeline."""
        ...


P = TypeVar("P", bound=OwnedPipeline)


@contextmanager
def owned(controller: P, console: str) -> Iterator[P]:
    """Hold the pipeline's lock for one operation of a console, so that no other console takes over during it.

    console  the console's id; "" for a single command
    raises   Conflict E_TAKEN_OVER naming the owner and the time, if another console owns the rollout
    """
    with controller.lock:
        status = controller.recorder.status
        if console and status.console and console != status.console and in_progress(status):
            raise Conflict(
                f"{status.rollout}: {_taken_over(status)}", hint="console attach --take-over", code="E_TAKEN_OVER"
            )
        yield controller


def take_over(controller: OwnedPipeline, console: str, by: str, host: str) -> Status:
    """Make a console the owner of the rollout and notify all watchers; no effect for the current owner.

    console  the new owner's id
    raises   Conflict E_STATE if no rollout is in progress
    """
    with controller.lock:
        status = controller.recorder.status
        if not in_progress(status):
            raise Conflict(f"{controller.pipeline}: nothing is under way", hint="console status", code="E_STATE")
        if status.console != console:
            controller.recorder.store(TakenOver(by, host, console))
        return controller.recorder.status


def in_progress(status: Status) -> bool:
    """Whether the rollout has begun and not ended; paused and failed ones are in progress too."""
    return status.state not in (*ENDED, "none")


def last_decision(status: Status, events: Sequence[Event]) -> str:
    """The author of the last decision on the rollout, as a suffix to its state; "" after a failure or without a rollout.

    events  all stored events of the rollout, oldest first
    """
    for event in () if status.held == "failed" else reversed(events):
        match event:
            case Paused(by) | Ended(by=by):
                return f" by {by}"
            case Resumed(by):
                return f", resumed by {by}"
            case Promoted(by=by, host=host):
                return f", promoted by {by} from {host}"
            case RolledBack(by=by, host=host):
                return f" by {by} from {host}"
            case Accepted(by=by, host=host):
                return f", begun by {by} from {host}"
    return ""


def _taken_over(status: Status) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(status.taken_at))
    return f"{status.taken_by} took it over at {when}; this console only watches"
