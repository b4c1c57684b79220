"""`_console/<pipeline>/holds.json`: the releases on hold. Console 0.1.0 does not open it: to it they are retired."""

import json
from pathlib import Path

from console.agent.errors import LogDamaged
from console.agent.store import small_files
from console.errors import DataError
from console.model import codec
from console.model.held_release import HeldRelease

_FILE = "holds.json"


class HoldStore:
    """The releases of one pipeline whose cleanup has begun. Read by a survey without a lock, written by the agent alone."""

    def __init__(self, warehouse: Path, pipeline: str) -> None:
        self._path = warehouse / "_console" / pipeline / _FILE

    def all(self) -> tuple[HeldRelease, ...]:
        """Oldest first.

        raises  RegionError E_LOG_DAMAGED
        """
        try:
            data = codec.loads(self._path.read_text())
            return tuple(codec.decode(HeldRelease, each) for each in data["held"])
        except FileNotFoundError:
            return ()
        except (ValueError, KeyError, TypeError, DataError):
            raise LogDamaged(f"{self._path} cannot be read", hint="console doctor") from None

    def put(self, held: HeldRelease) -> None:
        """Add a release, or change its entry."""
        known = self.all()
        if any(each.release == held.release for each in known):
            self._write(tuple(held if each.release == held.release else each for each in known))
        else:
            self._write((*known, held))

    def forget(self, release: str) -> None:
        kept = tuple(each for each in self.all() if each.release != release)
        if kept != self.all():
            self._write(kept)

    def _write(self, held: tuple[HeldRelease, ...]) -> None:
        data = {"format_version": 1, "held": [codec.encode(each) for each in held]}
        small_files.replace(self._path, json.dumps(data, allow_nan=False))
