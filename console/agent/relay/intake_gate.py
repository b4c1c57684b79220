"""The intake of a pipeline's landing tables, which a promotion holds while they change their version."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.errors import CheckFailed


class IntakeGate:
    """Senders pass it in any number at once; while it is held they wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passing = 0
        self._held = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Around one batch, from the question where it is to be written to its commit."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)
            self._passing += 1
        try:
            yield
        finally:
            with self._changed:
                self._passing -= 1
                self._changed.notify_all()

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """Let nobody pass any more; entered when the last batch is written.

        raises  CheckFailed E_LAG if a batch is still being written after `seconds`
        """
        with self._changed:
            self._held = True
            empty = self._changed.wait_for(lambda: not self._passing, timeout=seconds)
        try:
            if not empty:
                message = f"a batch of lines was still being written after {seconds:.0f} s"
                raise CheckFailed(message, hint="try again", code="E_LAG")
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()
