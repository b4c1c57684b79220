"""Folders and objects of a bucket as paths, so that code for a folder on a disk reads a bucket as well.

Only what a bucket can do is there. Everything else of a path raises, since its text would name a folder of this machine.
"""

import io
import os
from collections.abc import Callable, Generator
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import Any, NoReturn

from console.agent.object_store.s3 import ClientRetries, Listed, S3Access, S3Objects
from console.errors import RegionError

SCHEME = "s3"
_PREFIXES = (f"{SCHEME}://", "s3a://")


def in_bucket(place: str) -> bool:
    """Whether a path or URI leads into a bucket."""
    return place.startswith(_PREFIXES)


def place(text: str) -> Path:
    """The folder or file at a path or URI; `s3a` is `s3`."""
    return ObjectPath(f"{SCHEME}://{text.partition('://')[2]}") if in_bucket(text) else Path(text)


class ObjectPath(PosixPath):
    """A folder or an object, `s3://bucket/key`. A folder exists as long as objects lie below it.

    Objects are written whole, and read as of one moment. raises  StoreUnreachable
    """

    __slots__ = ()

    def __str__(self) -> str:
        return super().__str__().replace(f"{SCHEME}:/", f"{SCHEME}://", 1)

    def __fspath__(self) -> NoReturn:
        raise RegionError(
            f"{self}: this is not possible in a bucket",
            hint="docs/stores.md lists what a region on a bucket can do",
            code="E_STORE",
        )

    @property
    def bucket(self) -> str:
        return self.parts[1]

    @property
    def key(self) -> str:
        return "/".join(self.parts[2:])

    @property
    def objects(self) -> S3Objects:
        """Of its bucket, by their whole keys."""
        return _bucket(self.bucket)

    def as_uri(self) -> str:
        return str(self)

    def resolve(self, strict: bool = False) -> "ObjectPath":
        return self

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        return self.objects.head(self.key) is not None

    def is_dir(self) -> bool:
        return bool(self.objects.names(self.key) or self.objects.folders(self.key))

    def listed(self, after: str = "") -> list[Listed]:
        """All objects below it, by their keys. after: a name in it; only those behind it"""
        return self.objects.listed(f"{self.key}/", f"{self.key}/{after}" if after else "")

    def glob(self, pattern: str) -> Generator["ObjectPath", None, None]:
        """pattern: a name with wildcards, or folders with wildcards and then one"""
        first, _, rest = pattern.partition("/")
        names = [*(() if rest else self.objects.names(self.key)), *self.objects.folders(self.key)]
        for name in sorted(names):
            if fnmatch(name, first):
                yield from (self / name).glob(rest) if rest else (self / name,)

    def iterdir(self) -> Generator["ObjectPath", None, None]:
        return self.glob("*")

    def read_bytes(self) -> bytes:
        """raises  FileNotFoundError"""
        data = self.objects.read(self.key)
        if data is None:
            raise FileNotFoundError(str(self))
        return data

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def write_bytes(self, data: Any) -> int:
        self.objects.put(self.key, bytes(data))
        return len(data)

    def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> int:
        return self.write_bytes(data.encode())

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """A folder needs no making: it is there with its first object."""

    def touch(self, mode: int = 0o666, exist_ok: bool = True) -> None:
        if not self.is_file():
            self.write_bytes(b"")

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(str(self))
        self.objects.delete((self.key,))

    def delete_below(self, check: Callable[[], None] = lambda: None) -> bool:
        """Delete all objects below it, those of a Delta log first: without its log a folder is no table any more.

        check    called before each request
        returns  whether there were any
        """
        keys = [entry.key for entry in self.listed()]
        log = f"{self.key}/_delta_log/"
        self.objects.delete((key for key in keys if key.startswith(log)), check)
        self.objects.delete((key for key in keys if not key.startswith(log)), check)
        return bool(keys)

    def open(self, *args: Any, **kwargs: Any) -> Any:
        """For reading bytes; parts of a large object are read as they are asked for."""
        if (args, kwargs) != (("rb",), {}):
            self.__fspath__()
        return io.BufferedReader(_Reader(self), buffer_size=1 << 16)


class _Reader(io.RawIOBase):
    def __init__(self, path: ObjectPath) -> None:
        found = path.objects.head(path.key)
        if found is None:
            raise FileNotFoundError(str(path))
        self._path, self._size, self._at = path, found.bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(f"{self._path}: there is nothing before its beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        data = self._path.objects.read_range(self._path.key, self._at, length)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


@lru_cache(maxsize=16)
def _bucket(name: str) -> S3Objects:
    return S3Objects(name, "", S3Access.of(os.environ), ClientRetries.SOME)
