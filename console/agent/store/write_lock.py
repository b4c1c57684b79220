"""Write locks of tables: Spark and deltalake never write to the same table at the same time.

Each library arbitrates between its own writers. On a local disk, however, Delta in the JVM checks for the next version's
file and then renames its own over it, so a commit made by another library in between would be lost (docs/design.md, P4).
Both write from this one process, which holds the region's lock, so a lock per table is enough (docs/decisions/0002, 0005).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _TableLock:
    """One table's lock: shared by Spark writers, exclusive for one deltalake writer."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.spark_writers = 0


_locks: dict[str, _TableLock] = {}
_locks_guard = threading.Lock()


def _lock_of(table: str) -> _TableLock:
    with _locks_guard:
        return _locks.setdefault(table, _TableLock())


@contextmanager
def shared(table: str) -> Iterator[None]:
    """Lock for a write through Spark; several may be in progress at once.

    If the call fails without an answer from the JVM, its job may continue and commit later. The lock is then never released:
    until the agent restarts, this table is written through Spark only.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    lock = _lock_of(table)
    with lock.changed:
        lock.spark_writers += 1
    try:
        yield
    except (Py4JJavaError, PySparkException):
        _release(lock)
        raise
    _release(lock)


def _release(lock: _TableLock) -> None:
    with lock.changed:
        lock.spark_writers -= 1
        lock.changed.notify_all()


@contextmanager
def exclusive(table: str, *, seconds: float = 0.0) -> Iterator[bool]:
    """Lock for a write through deltalake.

    yields  False if a Spark write is still in progress after `seconds`: the caller must not write
    """
    lock = _lock_of(table)
    with lock.changed:
        yield lock.changed.wait_for(lambda: lock.spark_writers == 0, timeout=seconds) if lock.spark_writers else True
