"""The time that a rollout goes by; tests give it another one."""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970, UTC: for the time of day."""
        ...

    def elapsed(self) -> float:
        """Monotonic seconds: for durations."""
        ...

    def wait(self, halt: threading.Event, seconds: float) -> None:
        """Wait, until `halt` is set at the longest."""
        ...


class WallClock:
    """The clock of the region's host."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.monotonic()

    def wait(self, halt: threading.Event, seconds: float) -> None:
        halt.wait(seconds)
