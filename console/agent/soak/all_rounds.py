"""The rounds of checks of a region: at the gates of its pipelines, and after their promotions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from console.agent.pipeline import PipelineController
from console.agent.soak.after_promotion import WatchRounds
from console.agent.soak.at_gate import GateRounds


@dataclass(slots=True, kw_only=True)
class CheckRounds:
    """One for all pipelines of a region. report: called with (pipeline, level, text)"""

    controllers: Callable[[], Iterable[PipelineController]]
    report: Callable[[str, str, str], None]
    _gate: GateRounds = field(init=False)
    _watch: WatchRounds = field(init=False)

    def __post_init__(self) -> None:
        self._gate = GateRounds(controllers=self.controllers, report=self.report)
        self._watch = WatchRounds(controllers=self.controllers, report=self.report)

    @property
    def running(self) -> bool:
        return self._gate.running or self._watch.running

    def tick(self) -> None:
        """Called every second."""
        self._gate.tick()
        self._watch.tick()

    def stop(self) -> None:
        """End running rounds, because the agent ends."""
        self._gate.stop()
        self._watch.stop()
