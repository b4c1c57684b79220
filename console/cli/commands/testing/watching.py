"""`console test --watch`: the tests run again whenever a file of the pipeline changes, on the Spark that is already running."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

_SECONDS = 0.5  # seconds between two polls

Stamps = dict[str, tuple[int, int]]


def stamps(folder: Path) -> Stamps:
    """Path → time of its last change and size, of every file below a folder."""
    stamps = {}
    for path in folder.rglob("*"):
        try:
            status = path.stat()
        except OSError:  # removed meanwhile
            continue
        if path.is_file():
            stamps[str(path)] = (status.st_mtime_ns, status.st_size)
    return stamps


def changes(look: Callable[[], Stamps], pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """One item immediately, and one after each change; never ends. A file that is still being written counts once it is stable."""
    before = look()
    yield
    while True:
        pause(_SECONDS)
        if (now := look()) == before:
            continue
        while True:
            pause(_SECONDS)
            if (later := look()) == now:
                break
            now = later
        before = now
        yield
