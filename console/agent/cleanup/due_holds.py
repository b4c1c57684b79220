"""Drops the releases of one pipeline whose hold is over, beside the agent's other duties."""

import threading
from dataclasses import dataclass, field
from typing import Protocol

from console.agent.agent_log import describe, write_log
from console.agent.cleanup.stages import Cleanup
from console.agent.clock import Clock, WallClock
from console.agent.rollout.ownership import OwnedPipeline

RETRY_SECONDS = 60.0  # between two attempts


class HoldingPipeline(OwnedPipeline, Protocol):
    """The part of a pipeline's controller that drops due holds."""

    @property
    def cleaning(self) -> Cleanup: ...


@dataclass(slots=True)
class DueHolds:
    """Looks once a second. An attempt that fails is logged, and repeated a minute later.

    dropping  whether its thread holds the pipeline's lock
    """

    clock: Clock = field(default_factory=WallClock)
    dropping: bool = field(default=False, init=False)
    _ending: bool = field(default=False, init=False)
    _again: float = field(default=0.0, init=False)  # monotonic: no attempt before
    _attempt: threading.Thread | None = field(default=None, init=False)

    def tick(self, controller: HoldingPipeline) -> None:
        """Drop due releases, in a thread of its own: the drop waits for the feeds, and a release has many files. Never raises."""
        if self.clock.elapsed() < self._again or (self._attempt is not None and self._attempt.is_alive()):
            return
        try:
            due = controller.cleaning.due(self.clock.now())
        except Exception as error:
            self._failed(controller, error)
            return
        if due:
            self._attempt = threading.Thread(target=self._drop, args=(controller,), daemon=True)
            self._attempt.start()

    def end(self) -> None:
        """Begin no further drop. One that is under way ends with the process, and the next agent continues it."""
        self._ending = True

    def _drop(self, controller: HoldingPipeline) -> None:
        try:
            with controller.lock:
                if self._ending:
                    return
                self.dropping = True
                try:
                    dropped = controller.cleaning.tick(self.clock.now())
                finally:
                    self.dropping = False
        except Exception as error:
            self._failed(controller, error)
        else:
            for release in dropped:
                _tell(controller, "info", f"the hold of {release} is over: dropping it")

    def _failed(self, controller: HoldingPipeline, error: Exception) -> None:
        self._again = self.clock.elapsed() + RETRY_SECONDS
        _tell(controller, "warning", f"failed to drop a release whose hold is over; retrying: {describe(error)}")


def _tell(controller: HoldingPipeline, level: str, text: str) -> None:
    write_log(controller.pipeline, level, text)
    controller.recorder.log(text, level)
