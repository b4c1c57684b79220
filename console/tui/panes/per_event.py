"""Results computed once per stored event and kept as long as the event: of a rollout's hundreds, a repaint finds a few new ones."""

from collections.abc import Callable
from typing import Generic, TypeVar

from console.model.event import Recorded

T = TypeVar("T")


class PerEvent(Generic[T]):
    """One result per event, in the order of the events."""

    def __init__(self, make: Callable[[Recorded], T]) -> None:
        self._make = make
        self._events: tuple[Recorded, ...] = ()
        self._made: tuple[T, ...] = ()

    def of(self, events: tuple[Recorded, ...]) -> tuple[T, ...]:
        if events is not self._events:
            kept = self._kept(events)
            fresh = map(self._make, events[len(kept) :])
            self._events, self._made = events, (*kept, *fresh)
        return self._made

    def _kept(self, events: tuple[Recorded, ...]) -> tuple[T, ...]:
        """Earlier results for the events with which these begin: the previous events, possibly without the oldest."""
        if not events or not self._events:
            return ()
        first, last = events[0], self._events[-1]
        new = next((number for number, each in enumerate(reversed(events)) if each is last), len(events))
        at = len(self._events) - (len(events) - new)
        return self._made[at:] if 0 <= at < len(self._events) and self._events[at] is first else ()
