"""Opens the gate of a rollout whose policy is `auto`, once nothing is left to a person's judgement."""

import socket
import threading
from dataclasses import dataclass, field
from typing import Protocol

from console.agent import failure
from console.agent.clock import Clock, WallClock
from console.agent.rollout.ownership import OwnedPipeline
from console.model.event import Promoted
from console.model.gate import gate_of
from console.model.identity import AgentReason, by_agent
from console.model.plan import Plan
from console.model.status import Status

RETRY_SECONDS, MOST_SECONDS = 5.0, 300.0  # between two attempts


class PromotedPipeline(OwnedPipeline, Protocol):
    """The part of a pipeline's controller that opens its gate."""

    def promote(self, rollout: str, live: str, by: str, host: str) -> Promoted: ...


@dataclass(slots=True)
class SelfOpeningGate:
    """Checks one pipeline's gate once a second. A failed attempt is repeated after growing pauses."""

    clock: Clock = field(default_factory=WallClock)
    _again: float = field(default=0.0, init=False)  # monotonic: no attempt before
    _pause: float = field(default=RETRY_SECONDS, init=False)
    _attempt: threading.Thread | None = field(default=None, init=False)

    def tick(self, controller: PromotedPipeline) -> None:
        """Promote if it is due, in a thread of its own: the feeds are drained first."""
        status = controller.recorder.status
        if status.state == "promoting":
            return  # this attempt, or a person's
        if not due(status, controller.recorder.plan):
            self._again, self._pause = 0.0, RETRY_SECONDS
        elif self.clock.elapsed() >= self._again and (self._attempt is None or not self._attempt.is_alive()):
            self._attempt = threading.Thread(target=self._open, args=(controller, status), daemon=True)
            self._attempt.start()

    def _open(self, controller: PromotedPipeline, status: Status) -> None:
        by = by_agent(AgentReason.POLICY)
        try:
            with controller.lock:  # a person may have decided, or a check may have changed, since
                now = controller.recorder.status
                if now.rollout == status.rollout and due(now, controller.recorder.plan):
                    controller.promote(now.rollout, now.was, by, socket.gethostname())
        except Exception as error:
            self._again, self._pause = self.clock.elapsed() + self._pause, min(2 * self._pause, MOST_SECONDS)
            why = f"its gate did not open, as its policy says it should: {failure.cause(error)}"
            controller.recorder.log(why, "warning")


def due(status: Status, plan: Plan | None) -> bool:
    """Whether the agent may promote: each condition passed by itself. History without any check is never promoted so."""
    if plan is None or not plan.gate.auto or status.shown != "awaiting-confirmation":
        return False
    unchecked = not status.checks and any(step.history for step in status.steps)
    return not unchecked and gate_of(status, plan.gate).opens_itself
