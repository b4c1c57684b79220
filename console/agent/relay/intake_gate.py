"""A gate for writes to a pipeline's landing tables, closed by a promotion while these switch versions."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.errors import CheckFailed


class IntakeGate:
    """Any number of senders may pass concurrently; while it is closed, they wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passing = 0
        self._paused = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Context of one batch, from the lookup of its target version to its commit."""
        with self._changed:
            self._changed.wait_for(lambda: not self._paused)
            self._passing += 1
        try:
            yield
        finally:
            with self._changed:
                self._passing -= 1
                self._changed.notify_all()

    @contextmanager
    def paused(self, seconds: float) -> Iterator[None]:
        """Close the gate; entered once the last batch in progress is written.

        raises  CheckFailed E_LAG if a batch is still being written after `seconds`
        """
        with self._changed:
            self._paused = True
            empty = self._changed.wait_for(lambda: not self._passing, timeout=seconds)
        try:
            if not empty:
                message = f"a batch of lines was still being written after {seconds:.0f} s"
                raise CheckFailed(message, hint="try again", code="E_LAG")
            yield
        finally:
            with self._changed:
                self._paused = False
                self._changed.notify_all()
