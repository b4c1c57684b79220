"""Answers longer than a line of the protocol, kept until their last part was sent."""

import threading
import time
from collections import OrderedDict
from typing import Any
from uuid import uuid4

from console.model.parts import packed

KEPT, SECONDS = 8, 60.0  # answers that are kept at once, and for how long each


class LongAnswers:
    """Belongs to a connection; its methods run in any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    def begin(self, text: str) -> dict[str, Any]:
        """The first part of a result's JSON, the number of all, and the name under which the others are kept."""
        parts = packed(text)
        name, now = uuid4().hex, time.monotonic()
        with self._guard:
            for old in [old for old, (at, _) in self._kept.items() if now - at > SECONDS]:
                del self._kept[old]
            if len(parts) > 1:
                self._kept[name] = now, parts
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return {"of": name, "parts": len(parts), "text": parts[0]}

    def part(self, of: str, number: int) -> dict[str, str]:
        """A part, counted from 0; "" if the answer is not kept any more. The last one ends its keeping."""
        with self._guard:
            _, parts = self._kept.get(of, (0.0, ()))
            if number == len(parts) - 1:
                del self._kept[of]
        return {"text": parts[number] if 0 <= number < len(parts) else ""}
