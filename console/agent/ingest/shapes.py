"""The shapes of a landing table's lines, for tables whose files distinguish them (`accepts`).

A line has the newest shape that claims it, by a marker key or the shape name sent with it; else the one before the
oldest of these: that of a release without `accepts`, or the part of it that the live release still stores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from console.agent.ingest.shape import Row, Shape, shape_of
from console.errors import DataError
from console.model.live import TableState
from console.model.schema import Accepts


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """All shapes that a table accepts.

    live    the live release's shape; the only one if shapes are not distinguished
    marked  newest first;  older: for lines that none of these claims, None if they are refused
    until   the day that ended the older shape, "" if none did
    """

    live: Shape
    marked: tuple[tuple[Accepts, Shape], ...] = ()
    older: Shape | None = None
    until: str = ""

    @property
    def plain(self) -> bool:
        """Whether every value is stored in the column of the same name."""
        return not self.marked and self.live.plain

    @property
    def all(self) -> tuple[Shape, ...]:
        others = (shape for _, shape in self.marked)
        return (self.live, *others, *((self.older,) if self.older else ()))

    def key(self) -> list[object]:
        """As JSON, to tell shapes apart: a validation against these does not hold for others."""
        distinguished = [[accepts.marker, accepts.shape, *shape.key()] for accepts, shape in self.marked]
        return (
            [*self.live.key(), distinguished, self.older.key() if self.older else self.until]
            if distinguished
            else self.live.key()
        )

    def of(self, row: Row, number: int, sent: str) -> Shape:
        """The shape of one line.

        sent    the shape name sent with the lines, "" for none
        raises  DataError for a line of a shape that is not accepted, or with keys that its shape lacks
        """
        if not self.marked:
            return self.live
        claimed = (shape for accepts, shape in self.marked if _claims(accepts, row, sent))
        shape = next(claimed, self.older)
        if shape is None:
            raise self._ended(number)
        if unknown := [name for name in row if name not in shape.stored]:
            raise DataError(
                f"line {number} has the key {unknown[0]!r:.60}, which lines of its shape do not have", hint=self._how()
            )
        return shape

    def _ended(self, number: int) -> DataError:
        accepts = self.marked[0][0]
        lacks = f"does not give {accepts.marker!r:.60}" if accepts.marker else f"was not sent as shape {accepts.shape}"
        then = f"were taken until {self.until}" if self.until else "are no longer accepted: their release is cleaned up"
        return DataError(f"line {number} {lacks}, and lines of the older shape {then}", hint=self._how())

    def _how(self) -> str:
        accepts = self.marked[0][0]
        if accepts.marker:
            return f"a line that gives {accepts.marker} is of the newer shape, any other of the older"
        return f"lines of the newer shape are sent with --shape {accepts.shape}, and those of the older without"

    def check_name(self, sent: str, table: str) -> None:
        """raises  DataError for the name of a shape that no kept release has"""
        names = [accepts.shape for accepts, _ in self.marked if accepts.shape]
        if sent and sent not in names:
            known = f"it has {', '.join(names)}" if names else "its lines are not distinguished by a name"
            raise DataError(
                f"{table} has no shape {sent:.60}; {known}", hint="leave --shape out, or `accepts: {shape: …}`"
            )


def _claims(accepts: Accepts, row: Row, sent: str) -> bool:
    return row.get(accepts.marker) is not None if accepts.marker else sent == accepts.shape


def shapes_of(live: TableState, kept: Sequence[TableState], real: Sequence[str], today: str = "") -> Shapes:
    """kept: the table in the live and in other kept releases, newest first; real, today: as of `shape_of`"""
    others = [state for state in kept if state is not live]
    whole = shape_of(live, others, real, today)
    distinguished = list(dict.fromkeys(state.table.accepts for state in kept if state.table.accepts))
    if not distinguished:
        return Shapes(live=whole)
    groups = {
        accepts: [state for state in kept if state.table.accepts == accepts] for accepts in (*distinguished, None)
    }
    claimed = tuple((accepts, _shape(groups[accepts], live, real, today)) for accepts in distinguished)
    ends = live.table.accepts_until if live.table.accepts else ""
    if ends and today >= ends:
        return Shapes(live=claimed[0][1], marked=claimed, until=ends)
    if plain := groups[None]:
        return Shapes(live=claimed[0][1], marked=claimed, older=_shape(plain, live, real, ""))
    return Shapes(live=claimed[0][1], marked=claimed, older=_kept_shape(live, real) if ends else None)


def _shape(states: Sequence[TableState], live: TableState, real: Sequence[str], today: str) -> Shape:
    head = next((state for state in states if state is live), states[0])
    return shape_of(head, [state for state in states if state is not head], real, today)


def _kept_shape(live: TableState, real: Sequence[str]) -> Shape | None:
    """The shape before the live one, after its release was cleaned up."""
    existing = set(real)
    stored = {each.column: each.stored for each in live.unmarked if existing >= set(each.stored)}
    return Shape(tuple(stored), stored) if stored else None
