"""Results shared by plans: the regions of a fleet have one pipeline, and most of them one release."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, MutableMapping
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

Memory = MutableMapping[str, str]
P = ParamSpec("P")
R = TypeVar("R")
_LIMIT = 8192
_Entries = OrderedDict[Any, tuple[tuple[object, ...], Any]]  # key → inputs by identity, and the result


class _Kinds(dict[object, _Entries]):
    """Entries by kind. Two threads that ask for a new kind get the same ones."""

    def __missing__(self, kind: object) -> _Entries:
        return self.setdefault(kind, OrderedDict())


class Memo(Generic[R]):
    """One kind of result, as a key of every cache. limit: how many of them are kept; the oldest is evicted first"""

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit


class PlannerCache:
    """Results that planning one region computes and planning the next needs again.

    The caller creates one for a fleet's or a command's life and passes it to each plan. Threads may share it: they get the
    same object for the same question, computed once. Its results are functions of their inputs, so a plan is the same with
    any cache. (Meanings of type names are cached separately, for the process: `sql.tree.kind` and similar functions.)

    memory  queries compiled by earlier runs, extended by this one; empty by default
    lock    held while a result is computed; also for saving `memory`
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory: Memory = {} if memory is None else memory
        self.lock = RLock()  # one for all kinds, since results are made from each other
        self._results = _Kinds()

    def by_identity(self, memo: Memo[R], make: Callable[[], R], *inputs: object) -> R:
        """The result for these very objects: hashing a pipeline of 500 tables costs more than planning half of it.

        inputs  frozen, and referenced for as long as their result is cached, so that no identity is reused
        """
        key = tuple(map(id, inputs))
        known = self._results[memo].get(key)
        return known[1] if known is not None else self._made(memo, memo.limit, key, make, inputs)

    def by_value(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a module's pure function for equal arguments."""
        key = (args, *kwargs.items()) if kwargs else args
        known = self._results[function].get(key)
        if known is not None:
            result: R = known[1]
            return result
        return self._made(function, _LIMIT, key, lambda: function(*args, **kwargs))

    def one_of(self, memo: Memo[R], value: R, key: Hashable) -> R:
        """One object for all equal ones, so that results cached by identity serve them all.

        key  everything in which two values can differ, as plain tuples and text
        """
        entries = self._results[memo]
        with self.lock:
            entry = entries.setdefault(key, ((), value))
            while len(entries) > memo.limit:
                entries.popitem(last=False)
        known: R = entry[1]
        return known

    def _made(
        self, kind: object, limit: int, key: Hashable, make: Callable[[], R], inputs: tuple[object, ...] = ()
    ) -> R:
        """The result, computed by the first thread that asks."""
        with self.lock:
            entries = self._results[kind]
            if (entry := entries.get(key)) is None:
                entry = entries[key] = (inputs, make())
                while len(entries) > limit:
                    entries.popitem(last=False)
        result: R = entry[1]
        return result
