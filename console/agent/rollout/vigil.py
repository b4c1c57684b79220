"""What the agent does with a rollout that nobody looks after: pause it, or drop what it built."""

import time
from dataclasses import dataclass, field
from typing import Literal

from console.model.status import Status

ATTACHED_SECONDS = 10.0


@dataclass(slots=True)
class Vigil:
    """Asked once a second.

    attached           tied to a console: without a watcher the rollout pauses
    keep_failed_hours  how long a failed rollout keeps what it built (P7)
    """

    keep_failed_hours: float
    attached: bool = False
    _watched: float = field(default_factory=time.monotonic)

    def due(self, status: Status, watched: bool, carrying: bool) -> tuple[Literal["pause", "discard"], str] | None:
        """What is due now, and in whose name; None for nothing."""
        if status.held == "failed" and time.time() - status.changed > self.keep_failed_hours * 3600:
            return "discard", f"the agent, {self.keep_failed_hours:g} h after the failure"
        if watched or not self.attached or not carrying:
            self._watched = time.monotonic()
        elif time.monotonic() - self._watched > ATTACHED_SECONDS:
            self.attached = False
            return "pause", "the agent, since its console left"
        return None
