"""Who steers a rollout: the console that began it, until another takes it over; from then on the first one only looks.

It binds consoles that carry a rollout (`apply`, the screen, `attach --take-over`), each of which has an id of its own.
A command that a person types for one deed has none and is always theirs to give.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from console.errors import Conflict
from console.model.event import ENDED, Accepted, Ended, Event, Paused, Promoted, Resumed, RolledBack, TakenOver
from console.model.status import Status

if TYPE_CHECKING:
    from console.agent.pipeline import PipelineController


@contextmanager
def steered(controller: "PipelineController", console: str) -> Iterator["PipelineController"]:
    """The line, for one deed of a console; nobody takes over in the middle of it.

    raises  Conflict E_TAKEN_OVER naming who steers, since when
    """
    with controller.guard:
        status = controller.recorder.status
        if console and status.console and console != status.console and moving(status):
            raise Conflict(f"{status.rollout}: {told(status)}", hint="console attach --take-over", code="E_TAKEN_OVER")
        yield controller


def take_over(controller: "PipelineController", console: str, by: str, host: str) -> Status:
    """From now on this console steers; all who watch are told. Taking over again what one steers changes nothing.

    raises  Conflict where nothing is under way
    """
    with controller.guard:
        status = controller.recorder.status
        if not moving(status):
            raise Conflict(f"{controller.pipeline}: nothing is under way", hint="console status", code="E_STATE")
        if status.console != console:
            controller.recorder.store(TakenOver(by, host, console))
        return controller.recorder.status


def moving(status: Status) -> bool:
    return status.state not in (*ENDED, "none")


def told(status: Status) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(status.taken_at))
    return f"{status.taken_by} took it over at {when}; this console only looks"


def last_word(status: Status, events: Sequence[Event]) -> str:
    """Who was the last to decide on the rollout, to be said behind its state; "" where nobody did: it failed, or there is none."""
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
