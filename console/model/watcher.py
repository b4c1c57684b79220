"""Watchers of a pipeline: consoles that are connected to its agent now. Never stored."""

from collections.abc import Sequence

from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """One console. since: seconds since 1970, UTC; console: its id, by which it recognises itself"""

    name: str
    host: str
    since: float
    console: str = ""

    @property
    def shown(self) -> str:
        """`ada@laptop`, with the host if the name does not have it."""
        return self.name if not self.host or f"@{self.host}" in self.name else f"{self.name} on {self.host}"


def watchers_text(watchers: Sequence[Watcher]) -> str:
    """`bob@tower since 11:58Z, eve@desk since 12:01Z`; a repeated watcher is named once."""
    first: dict[str, Watcher] = {}
    for watcher in sorted(watchers, key=lambda watcher: watcher.since):
        first.setdefault(watcher.shown, watcher)
    return ", ".join(f"{name} since {_minute(watcher.since)}" for name, watcher in first.items())


def _minute(at: float) -> str:
    minute = int(at) // 60 % 1440
    return f"{minute // 60:02}:{minute % 60:02}Z"
