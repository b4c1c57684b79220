"""Values of stored rows under keys that version 0.1.0 does not know, in small files beside the tables."""

import hashlib
import json
from pathlib import Path
from typing import Any

from console.agent.errors import LogDamaged
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import small_files
from console.errors import DataError
from console.model import beside, codec


class SideFiles:
    """Files in `_console/<pipeline>/beside`: values of the tables' rows under keys that 0.1.0 does not know.

    0.1.0 refuses rows with unknown keys and does not open this folder, so it can still read, follow and roll back. A
    file is written before its row, and contains the digest of its row's text.
    """

    def __init__(self, pipeline: Path) -> None:
        self._folder = pipeline / "beside"
        self._listed: frozenset[str] | None = None  # names in a bucket, as of `look`

    def split(self, name: str, value: object) -> str:
        """A value's text for its row; the file with the other keys is on disk when this returns.

        name  `r7`, `web-7` of an accepted plan, `web-7.12` of an event
        """
        data, rest = beside.split(value)
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        if rest:
            self._write(name, text, rest)
        return text

    def rewrite(self, name: str, value: object, text: str) -> None:
        """Replace the keys beside a stored row. text: the row's unchanged text"""
        if rest := beside.split(value)[1]:
            self._write(name, text, rest)
        else:
            self._path(name, text).unlink(missing_ok=True)

    def _write(self, name: str, text: str, rest: beside.Rest) -> None:
        data = {"format_version": 1, "of": _digest(text), "rest": rest}
        small_files.replace(self._path(name, text), json.dumps(data, allow_nan=False))

    def _path(self, name: str, text: str) -> Path:
        """In a bucket a former agent may still write, so rows of other texts have other files there."""
        digest = f".{_digest(text)[:16]}" if isinstance(self._folder, ObjectPath) else ""
        return self._folder / f"{name}{digest}.json"

    def look(self) -> None:
        """List a bucket's files once, before many rows are joined: most rows have none."""
        if isinstance(self._folder, ObjectPath):
            self._listed = frozenset(entry.key.rpartition("/")[2] for entry in self._folder.listed())

    def joined(self, name: str, text: str) -> Any:
        """The data of a row, with the keys from its file.

        raises  RegionError E_LOG_DAMAGED
        """
        data, path = codec.loads(text), self._path(name, text)
        if self._listed is not None and path.name not in self._listed:
            return data
        try:
            stored = json.loads(path.read_text())
            return beside.join(data, stored["rest"]) if stored["of"] == _digest(text) else data
        except FileNotFoundError:
            return data
        except (ValueError, KeyError, TypeError, DataError):
            message = f"{self._folder}/{name}.json cannot be read"
            raise LogDamaged(message, hint="console doctor") from None

    def forget(self, name: str) -> None:
        """Forget a release's file. name: without a dot"""
        if isinstance(self._folder, ObjectPath):
            for path in self._folder.glob(f"{name}.*.json"):
                path.unlink(missing_ok=True)
            return
        (self._folder / f"{name}.json").unlink(missing_ok=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
