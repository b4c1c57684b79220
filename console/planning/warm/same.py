"""Results kept for the very same inputs: a fleet's regions share one pipeline, and most of them one release."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Once(Generic[R]):
    """Computes a function once for the same objects, told apart by identity: hashing a pipeline of 500 tables costs more
    than planning half of it. The inputs are frozen, and held as long as their result, so that no identity is reused.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._held: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], R]] = OrderedDict()

    def of(self, make: Callable[[], R], *inputs: object) -> R:
        key = tuple(map(id, inputs))
        if (held := self._held.get(key)) is None:
            held = self._held[key] = (inputs, make())
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return held[1]


class Same(Generic[T]):
    """One object for all that are equal, so that what is kept by identity serves them all.

    bucket  a cheap key that equal ones share; only those within it are compared in full
    """

    def __init__(self, bucket: Callable[[T], Hashable], most: int = 256) -> None:
        self._bucket = bucket
        self._most = most
        self._held: OrderedDict[Hashable, list[T]] = OrderedDict()

    def of(self, value: T) -> T:
        known = self._held.setdefault(self._bucket(value), [])
        for other in known:
            if other is value or other == value:
                return other
        known.append(value)
        while sum(map(len, self._held.values())) > self._most:
            self._held.popitem(last=False)
        return value
