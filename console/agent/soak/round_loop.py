"""What rounds at a gate and after a promotion have in common: a thread in which those that are due run, one after the other."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from console.agent.failure import cause
from console.agent.pipeline import PipelineController


class Dated(Protocol):
    """What is known of one rollout. due: monotonic: when its next round begins"""

    due: float


Known = TypeVar("Known", bound=Dated)


@dataclass(slots=True, kw_only=True)
class RoundLoop(ABC, Generic[Known]):
    """One for all pipelines of a region.

    report   called with (pipeline, level, text)
    name     of the thread;  trouble: what is reported of a round that failed
    """

    controllers: Callable[[], Iterable[PipelineController]]
    report: Callable[[str, str, str], None]
    _known: dict[str, Known] = field(default_factory=dict)
    _thread: threading.Thread | None = None
    _ending: threading.Event = field(default_factory=threading.Event)

    name: ClassVar[str]
    trouble: ClassVar[str]

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def tick(self) -> None:
        """Called every second: report how far each rollout is, and begin the rounds that are due."""
        checked = [controller for controller in self.controllers() if self._known_now(controller)]
        if self.running:
            return
        due = [controller for controller in checked if time.monotonic() >= self._known[controller.pipeline].due]
        if due and not self._ending.is_set():
            self._thread = threading.Thread(target=self._run, args=(due,), name=self.name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End a running round, because the agent ends."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(20)

    def _run(self, controllers: Iterable[PipelineController]) -> None:
        for controller in controllers:
            known = self._known.get(controller.pipeline)
            if known is None or self._ending.is_set():
                continue
            looked = 0.0
            try:
                looked = self.round(controller, known)
            except Exception as error:  # a full disk, for example: tried again
                self.report(controller.pipeline, "warning", f"{self.trouble}: {cause(error)}")
            known.due = time.monotonic() + self._pause(looked)

    @abstractmethod
    def round(self, controller: PipelineController, known: Known) -> float:
        """Check once.

        returns  seconds that it looked at logs
        """

    @abstractmethod
    def _known_now(self, controller: PipelineController) -> bool:
        """Whether the pipeline's rollout is to be checked; then `_known` has it."""

    @abstractmethod
    def _pause(self, looked: float) -> float:
        """Seconds until the next round."""
