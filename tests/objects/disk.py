"""Objects as files of a local disk, put if absent by a hard link."""

import os
import uuid
from pathlib import Path

from console.agent.errors import ObjectExists


class DiskObjects:
    """Files below a folder. A name appears with its whole content, or not at all."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def address(self) -> str:
        return str(self._root)

    def put_if_absent(self, key: str, data: bytes) -> None:
        written = self._written(key, data)
        try:
            os.link(written, self._root / key)
        except FileExistsError:
            raise ObjectExists(f"{self.address}/{key} exists") from None
        finally:
            written.unlink()

    def put(self, key: str, data: bytes) -> None:
        self._written(key, data).replace(self._root / key)

    def read(self, key: str) -> bytes | None:
        try:
            return (self._root / key).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            found = list((self._root / folder).iterdir())
        except FileNotFoundError:
            return []
        return sorted(path.name for path in found if path.is_file() and not path.name.startswith("."))

    def _written(self, key: str, data: bytes) -> Path:
        """A hidden file beside the key, with its content on the disk."""
        path = (self._root / key).parent / f".{uuid.uuid4().hex}"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        return path
