"""What is made of each stored event, kept while the event is: of a rollout's hundreds, a repaint finds a few new ones."""

from collections.abc import Callable
from typing import Generic, TypeVar

from console.model.event import Recorded

T = TypeVar("T")


class PerEvent(Generic[T]):
    """One result an event, in their order."""

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
        """What was made of the events with which these begin: all but the oldest of the last ones."""
        if not events or not self._events:
            return ()
        first, last = events[0], self._events[-1]
        new = next((number for number, each in enumerate(reversed(events)) if each is last), len(events))
        at = len(self._events) - (len(events) - new)
        return self._made[at:] if 0 <= at < len(self._events) and self._events[at] is first else ()
