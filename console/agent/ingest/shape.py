"""The names that lines for a landing table may use, and the stored columns for their values.

Lines of a formerly live release's shape are accepted as well, until it is cleaned up: producers do not switch at the
instant of a promotion. The newest release that knows a name decides, the live one first.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from console.errors import DataError
from console.model.landing import is_reserved
from console.model.live import TableState

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The names and columns of one shape.

    names   those declared by the live release;  stored  name → stored columns, narrowest type first
    ended   names of older shapes that were accepted until a day;  until  that day, "" if still to come
    """

    names: tuple[str, ...]
    stored: Mapping[str, tuple[str, ...]]
    ended: frozenset[str] = frozenset()
    until: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """Stored column → the name that the live release has for it."""
        return {place: name for name in reversed(self.names) for place in self.stored.get(name, ()) if place != name}

    @property
    def plain(self) -> bool:
        """Whether every value is stored in the column of the same name."""
        return all(places == (name,) for name, places in self.stored.items())

    def key(self) -> list[Any]:
        """As JSON, to tell shapes apart: a validation against one does not hold for another."""
        names = [] if self.plain else sorted([name, *places] for name, places in self.stored.items())
        return [*names, self.until] if self.until else names


def shape_of(live: TableState, others: Iterable[TableState], real: Sequence[str], today: str = "") -> Shape:
    """live, others: the table in the live and in other kept releases; real: its stored columns; today: `2026-12-01`"""
    others, declared = tuple(others), {column.name for column in live.table.columns}
    until = live.table.accepts_until if live.table.accepts_until and today >= live.table.accepts_until else ""
    kept = {each.column for each in live.older} if live.table.accepts_until else set()
    older = {column.name for state in others for column in state.table.columns} | kept
    ended = frozenset(older - declared) if until else frozenset()
    stored: dict[str, tuple[str, ...]] = {}
    for state in (live, *(() if until else others)):
        for column in state.table.columns:
            places, known = state.stored_in(column.name), stored.get(column.name)
            # a rollback does not end the acceptance of values that only the newer release shows
            if known is None or places[: len(known)] == known:
                stored[column.name] = places
    for each in live.older if live.table.accepts_until and not until else ():
        stored.setdefault(each.column, each.stored)
    existing = {name.lower(): name for name in real}
    stored = {
        name: tuple(existing[place.lower()] for place in places)
        for name, places in stored.items()
        if all(place.lower() in existing for place in places)
    }
    taken = {place for name, places in stored.items() for place in places}
    for name in real:  # a column that no release declares any more: producers may still send it
        if name not in taken and name not in ended and not is_reserved(name):
            stored.setdefault(name, (name,))
    return Shape(tuple(column.name for column in live.table.columns), stored, ended, until)


Place = Callable[[tuple[str, ...], Any], Row]  # selects the columns of a chain that store a value


def in_stored_columns(shape: Shape, rows: Sequence[Row], numbers: Sequence[int], place: Place) -> list[Row]:
    """Rows of lines as rows of stored columns, values still as in JSON.

    raises  DataError for a line that has one column twice
    """
    moved = []
    for number, row in zip(numbers, rows, strict=True):
        stored: Row = {}
        names: dict[str, str] = {}
        for name, value in row.items():
            places = shape.stored[name]
            if (other := names.setdefault(places[0], name)) != name:
                raise DataError(
                    f"line {number} gives {other} and {name}, which are one column", hint="give one of them"
                )
            stored |= place(places, value) if len(places) > 1 and value is not None else {places[0]: value}
        moved.append(stored)
    return moved


@dataclass(frozen=True, slots=True)
class Reading:
    """read: a value in a column's type, or None if it does not fit; as_stored: the value that the column would return."""

    read: Callable[[Any], Any]
    single: bool = False  # four bytes

    def as_stored(self, value: Any) -> Any:
        return struct.unpack("<f", struct.pack("<f", value))[0] if self.single else value


def spread(value: Any, readings: Sequence[Reading]) -> list[bool]:
    """The columns of a chain that store a value: each that can hold it, unless a narrower one returns the same.

    readings  of the columns, narrowest first
    """
    takes: list[bool] = []
    shown: Any = None
    for reading in readings:
        stored = reading.read(value)
        if stored is None or (shown is not None and _same(shown, reading.as_stored(stored))):
            takes.append(False)
            continue
        takes.append(True)
        shown = reading.as_stored(stored)
    return takes


def _same(narrow: Any, wide: Any) -> bool:
    """Whether the narrower value, cast, equals the wider one. Never for text: a cast may spell it differently."""
    if isinstance(narrow, date) and not isinstance(narrow, datetime) and isinstance(wide, datetime):
        return datetime.combine(narrow, time(), UTC) == wide
    return not isinstance(wide, str) and type(narrow) is not bool and bool(narrow == wide)
