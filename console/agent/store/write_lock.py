"""Who may write to a table now: Spark and deltalake never write the same one at the same time.

Each of them arbitrates between its own writers, but on a local disk Delta in the JVM looks for the next version's file
and then renames its own over it, so a commit made by another library in between would be lost (docs/design.md, P4). Both write
in this one process, which holds the region's lock, so a turn a table is enough (docs/decisions/0002, 0005).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Turn:
    """One table's. Spark's writers share it; one deltalake writer has it alone."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.spark = 0


_turns: dict[str, _Turn] = {}
_guard = threading.Lock()


def _of(table: str) -> _Turn:
    with _guard:
        return _turns.setdefault(table, _Turn())


@contextmanager
def shared(table: str) -> Iterator[None]:
    """Around a write through Spark; several may be under way.

    If the call breaks without the JVM's own answer its job may go on and commit later, so the turn is never given back:
    until the agent starts anew, this table is written through Spark alone.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    turn = _of(table)
    with turn.changed:
        turn.spark += 1
    try:
        yield
    except (Py4JJavaError, PySparkException):
        _give_back(turn)
        raise
    _give_back(turn)


def _give_back(turn: _Turn) -> None:
    with turn.changed:
        turn.spark -= 1
        turn.changed.notify_all()


@contextmanager
def exclusive(table: str, *, seconds: float = 0.0) -> Iterator[bool]:
    """Around a write through deltalake. Yields False, and the caller must not write, if a write of Spark's is still
    under way after `seconds`."""
    turn = _of(table)
    with turn.changed:
        yield turn.changed.wait_for(lambda: turn.spark == 0, timeout=seconds) if turn.spark else True
