"""What the planner compiled, kept between runs: one file of the cache directory. A damaged or foreign one is a cold one.

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
    """Entries by key, read when the first is asked for; those met in this run are the last to be forgotten.

    mark  first line of the file: entries made by another source of the planner are none
    """

    def __init__(self, path: Path, mark: Callable[[], str]) -> None:
        self._path = path
        self._mark = mark
        self._met: dict[str, None] = {}
        self._new = False

    @cached_property
    def _held(self) -> dict[str, str]:
        return _read(self._path, self._mark())

    def __getitem__(self, key: str) -> str:
        value = self._held[key]
        self._met[key] = None
        return value

    def __setitem__(self, key: str, value: str) -> None:
        self._new = self._new or self._held.get(key) != value
        self._held[key] = value
        self._met[key] = None

    def __delitem__(self, key: str) -> None:
        del self._held[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def save(self) -> None:
        """Write the file anew, if there is something new; what cannot be written is not remembered, and that is all."""
        if not self._new:
            return
        self._new = False
        lines, room = [self._mark()], MOST_BYTES
        for key in [*self._met, *(key for key in self._held if key not in self._met)]:
            line = f"{key}\t{self._held[key]}"
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
    return {key: value for key, found, value in (line.partition("\t") for line in lines) if found}


@cache
def planner() -> str:
    """Names the planner's source: whoever edits it must not be answered by what an older one computed."""
    root = Path(console.__file__).parent
    source = hashlib.sha256()
    for path in sorted([*(root / "planning").rglob("*.py"), *(root / "model").rglob("*.py")]):
        source.update(path.read_bytes())
    return f"console {console.__version__} {source.hexdigest()}"


@contextmanager
def remembered() -> Iterator[Remembered]:
    """The machine's memory, saved at the end."""
    try:
        path = paths.cache_dir() / _NAME
    except OSError:
        path = Path(os.devnull) / _NAME
    memory = Remembered(path, planner)
    try:
        yield memory
    finally:
        memory.save()
