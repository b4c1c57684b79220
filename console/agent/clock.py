"""The clock of an agent; tests replace it."""

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
        """Wait, at most until `halt` is set."""
        ...


class WallClock:
    """The clock of the region's host."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.monotonic()

    def wait(self, halt: threading.Event, seconds: float) -> None:
        halt.wait(seconds)


def span(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02} min"
