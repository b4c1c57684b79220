"""Sums of an aggregate's rows before and after its states were merged, as the merging commits have them.

Receipts are sums over stored rows. A merge replaces rows by others of the same values, so its commit measures both with the
definition of its table's receipts: by their difference, rows of today are compared with a receipt of before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.agent.feeds.checksum import Sum
from console.agent.store import log
from console.errors import RegionError
from console.model.receipt import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedSums:
    """What one commit merged, by day. time, columns: the sums' definition, as in `Place`; old, new: day → sum"""

    time: str
    columns: tuple[tuple[str, str], ...]
    old: Mapping[str, Sum]
    new: Mapping[str, Sum]

    def noted(self) -> dict[str, Any]:
        """As stored in the commit's note: each sum as rows and its two halves."""
        return {
            "time": self.time,
            "columns": [list(column) for column in self.columns],
            "old": {day: [total.rows, total.low, total.high] for day, total in self.old.items()},
            "new": {day: [total.rows, total.low, total.high] for day, total in self.new.items()},
        }

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> "MergedSums | None":
        """Those of a merging commit's note; None if they were not stored."""
        match note.get("sums"):
            case {"time": str(time), "columns": list(columns), "old": dict(old), "new": dict(new)}:
                return cls(
                    time=time,
                    columns=tuple((str(name), str(kind)) for name, kind in columns),
                    old={day: Sum(*map(int, each)) for day, each in old.items()},
                    new={day: Sum(*map(int, each)) for day, each in new.items()},
                )
        return None


def unmeasured(path: str, place: Place) -> str:
    """Why the rows of today cannot be compared with those of a receipt; "" if every merge since has measured both."""
    try:
        found = _since(path, place, log.latest_version(path, missing_ok=True))
    except RegionError:
        return "its partial states may have been merged since"
    return "" if None not in found else "its partial states were merged since, and the sums of other columns were kept"


def as_written(path: str, place: Place, version: int, sums: Mapping[str, Sum]) -> dict[str, Sum]:
    """Sums of a later version, over the rows as they were before merges; a day without rows has none, as after its retention.

    returns  the sums as they are where a merge did not measure them: `unmeasured` says so
    """
    try:
        found = _since(path, place, version)
    except RegionError:
        return dict(sums)
    whole = dict(sums)
    for merged in filter(None, found):
        for day in whole.keys() & {*merged.old, *merged.new}:
            whole[day] = whole[day] - (merged.new.get(day, Sum()) - merged.old.get(day, Sum()))
    return whole


def _since(path: str, place: Place, last: int) -> list[MergedSums | None]:
    """What each merge after a receipt's version measured; None for one that did not measure the receipt's columns."""
    notes = (commit.note for commit in log.commits(path, place.version + 1, last))
    merges = [MergedSums.of(note) for note in notes if note.get("kind") == log.MERGE]
    return [each if each and (each.time, each.columns) == (place.time, place.columns) else None for each in merges]
