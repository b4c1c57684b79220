"""A host's clocks in a test's hand."""

import threading
from dataclasses import dataclass


@dataclass
class ManualClock:
    """Seconds: the wall clock may be set to anything, the monotonic one only grows."""

    wall: float = 1_800_000_000.0
    steady: float = 5000.0

    def now(self) -> float:
        return self.wall

    def elapsed(self) -> float:
        return self.steady

    def wait(self, halt: threading.Event, seconds: float) -> None:
        self.go(seconds)

    def go(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds
