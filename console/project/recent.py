"""The planner's cache between runs: one file of the cache directory. A damaged or foreign file counts as empty.

source  the planner reads no file; it is handed a mapping (`console.planning.Memory`) and checks each entry's own checksum
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path

import console
from console import paths

MOST_BYTES = 32 * 1024 * 1024
_NAME = "compiled.tsv"


class Remembered(MutableMapping[str, str]):
    """Entries by key, read at the first access; entries used in this run are evicted last.

    mark  first line of the file: entries of a planner with other source code are ignored
    """

    def __init__(self, path: Path, mark: Callable[[], str]) -> None:
        self._path = path
        self._mark = mark
        self._used: dict[str, None] = {}
        self._new = False

    @cached_property
    def _entries(self) -> dict[str, str]:
        return _read(self._path, self._mark())

    def __getitem__(self, key: str) -> str:
        value = self._entries[key]
        self._used[key] = None
        return value

    def __setitem__(self, key: str, value: str) -> None:
        self._new = self._new or self._entries.get(key) != value
        self._entries[key] = value
        self._used[key] = None

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def save(self) -> None:
        """Rewrite the file if there are new entries; a failure to write only loses the cache."""
        if not self._new:
            return
        self._new = False
        lines, room = [self._mark()], MOST_BYTES
        for key in [*self._used, *(key for key in self._entries if key not in self._used)]:
            line = f"{key}\t{self._entries[key]}"
            room -= len(line) + 1
            if room < 0:
                break
            lines.append(line)
        with suppress(OSError):
            handle, written = tempfile.mkstemp(prefix=f".{_NAME}.", dir=self._path.parent)
            try:
                with open(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
                    file.write("\n".join(lines) + "\n")
                os.replace(written, self._path)
            except BaseException:
                os.unlink(written)
                raise


def _read(path: Path, mark: str) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + len(mark) + 1)
    except OSError:
        return {}
    first, *lines = data.decode("utf-8", "replace").split("\n")
    if first != mark:
        return {}
    return {key: value for key, separator, value in (line.partition("\t") for line in lines) if separator}


@cache
def planner() -> str:
    """Fingerprint of the planner's source: an edited planner must not use results of an older one."""
    root = Path(console.__file__).parent
    source = hashlib.sha256()
    for path in sorted([*(root / "planning").rglob("*.py"), *(root / "model").rglob("*.py")]):
        source.update(path.read_bytes())
    return f"console {console.__version__} {source.hexdigest()}"


def opened() -> Remembered:
    """This machine's cache; the caller saves it after an addition."""
    try:
        path = paths.cache_dir() / _NAME
    except OSError:
        path = Path(os.devnull) / _NAME
    return Remembered(path, planner)


@contextmanager
def remembered() -> Iterator[Remembered]:
    """The same, saved at the end."""
    memory = opened()
    try:
        yield memory
    finally:
        memory.save()
