"""The state of a screen between sessions: cursor, order, filter, theme, and the time of the last visit."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from console.record import dataclass

MAX_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class FleetMemory:
    """The operator's place on the fleet screen."""

    cursor: str = ""
    order: str = "waves"
    filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenPlace:
    """The state to restore on a screen.

    pane    the id of the focused pane, "" for none;  zoomed  "yes" if it is shown alone
    filter  words of the log's filter;  lines  which of its lines, see `rollout.log.LINES`
    """

    screen: str = "fleet"
    region: str = ""
    pane: str = ""
    zoomed: str = ""
    filter: str = ""
    lines: str = ""


class ScreenMemory:
    """One small file of this user; if it is damaged or cannot be written, only this memory is lost.

    path  None stores nothing
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        kept = _read(path) if path else {}
        looked = kept.get("looked")
        self.looked = float(looked) if isinstance(looked, int | float) else 0.0
        self.theme = _text(kept.get("theme"))
        self.fleet = FleetMemory(**_texts(kept.get("fleet"), FleetMemory))
        self.place = ScreenPlace(**_texts(kept.get("place"), ScreenPlace))

    def save(self, fleet: FleetMemory, place: ScreenPlace, looked: float, theme: str) -> None:
        if self._path is None:
            return
        text = json.dumps({"looked": looked, "theme": theme, "fleet": asdict(fleet), "place": asdict(place)})
        beside = self._path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside.touch(mode=0o600)
            beside.write_text(text, encoding="utf-8")
            beside.replace(self._path)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            kept = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _texts(kept: object, kind: type[FleetMemory] | type[ScreenPlace]) -> dict[str, str]:
    given = kept if isinstance(kept, dict) else {}
    return {field.name: _text(given[field.name]) for field in fields(kind) if field.name in given}


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""
