"""Lines of the shape of another version of a landing table, converted as the relay between the two converts stored rows."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltalake import DeltaTable

from console.agent.failure import cause, kind
from console.agent.ingest.parsing import parse_lines, spread_over, typed
from console.agent.ingest.shape import in_stored_columns
from console.agent.ingest.shapes import Shapes
from console.agent.query_over import query_over
from console.agent.rows.arrow import arrow_table
from console.errors import DataError

Session = Callable[[], Any]
_OR_LIVE = "or send the shape of the live release"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentLines:
    """The lines of one request. numbers: their numbers in the file; shape: the name of their shape"""

    table: str
    events: Sequence[str]
    numbers: Sequence[int] | None
    shape: str = ""

    @property
    def numbered(self) -> Sequence[int]:
        return self.numbers or range(1, len(self.events) + 1)

    def only(self, at: Sequence[int]) -> "SentLines":
        return replace(self, events=[self.events[i] for i in at], numbers=[self.numbered[i] for i in at])


@dataclass(frozen=True, slots=True)
class ShapedTable:
    """A version of a landing table, for the validation of lines."""

    opened: DeltaTable
    shapes: Shapes

    def rows(self, sent: SentLines) -> Any:
        """Lines as Arrow in its stored columns. raises  DataError naming the first line that does not fit"""
        return typed(self.opened, self._parsed(sent), sent.numbered, self.shapes.live.labels)

    def _parsed(self, sent: SentLines) -> list[dict[str, Any]]:
        shapes = self.shapes
        shapes.check_name(sent.shape, sent.table)
        live, known = shapes.live, dict.fromkeys(name for shape in shapes.all for name in shape.stored)
        rows = parse_lines(
            sent.events, tuple(known), sent.numbered, shown=live.names, ended=live.ended, until=live.until
        )
        if shapes.plain:
            return rows
        places = [(shape, spread_over(self.opened, shape)) for shape in shapes.all]
        stored: list[dict[str, Any]] = []
        for number, row in zip(sent.numbered, rows, strict=True):
            own = shapes.of(row, number, sent.shape)
            place = next(place for shape, place in places if shape is own)
            stored += in_stored_columns(own, [row], [number], place)
        return stored

    def fits(self, lines: SentLines) -> bool:
        try:
            self.rows(lines)
        except DataError:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherShape:
    """Another version whose lines are accepted as well.

    table  name of the view of its stored rows, from which `sql` computes the live version's columns
    keys   columns of the live version; a line that lacks one of them has this shape
    back   SQL that converts rows back to this version, if the live one cannot hold all of its values; else ""
    """

    version: ShapedTable
    table: str
    sql: str
    keys: tuple[str, ...]
    back: str = ""


def stored_rows(live: ShapedTable, others: Sequence[OtherShape], lines: SentLines, session: Session | None) -> Any:
    """Lines as Arrow in the live version's columns, each by the shape that it fits, the live one first.

    session  Spark session for conversions; None to validate only
    raises   DataError of the live shape, naming the first line that fits no shape
    """
    if not others:
        return live.rows(lines)
    shapes = [_shape_of(live, others, lines.only((at,))) for at in range(len(lines.events))]
    tables = [live.rows(lines.only([at for at, other in enumerate(shapes) if other is None]))]
    for other in others:
        of_it = [at for at, shape in enumerate(shapes) if shape is other]
        if of_it and session is not None:
            tables.append(_converted(session(), other, lines.only(of_it), tables[0].schema))
    import pyarrow as pa

    return pa.concat_tables(tables)


def _shape_of(live: ShapedTable, others: Sequence[OtherShape], line: SentLines) -> OtherShape | None:
    """The other shape that a line has; None for the live one, or for no shape."""
    fits, sent = live.fits(line), _keys(line.events[0])
    for other in others:
        lacks = not sent.issuperset(other.keys)
        if (lacks or not fits) and other.version.fits(line):
            return other
    return None


def _keys(line: str) -> frozenset[str]:
    """The keys of a line's object; none for a line that is not an object, which fits no shape."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(row) if isinstance(row, dict) else frozenset()


def _converted(session: Any, other: OtherShape, lines: SentLines, schema: Any) -> Any:
    """Lines of one shape as Arrow. raises DataError C301 if they do not convert, or would lose a value"""
    rows = other.version.rows(lines)
    try:
        converted = _queried(session, other, other.sql, rows).select(schema.names).cast(schema)
        again = _queried(session, other, other.back, converted) if other.back else rows
    except Exception as error:
        if kind(error) not in ("value", "day"):
            raise
        message = f"lines of the other shape do not convert: {cause(error)}"
        raise DataError(message, hint=f"nothing was written; correct them, {_OR_LIVE}", code="C301") from None
    _check_kept(rows, again, lines.numbered)
    return converted


def _check_kept(rows: Any, again: Any, numbers: Sequence[int]) -> None:
    """raises DataError C301 for a value that does not survive the round trip, since the other version is fed from the live one"""
    for name in rows.column_names:
        sent, kept = (values.column(name).to_pylist() for values in (rows, again))
        for number, value, kept_value in zip(numbers, sent, kept, strict=True):
            if value != kept_value and not (isinstance(value, float) and math.isnan(value)):
                message = (
                    f"line {number}: {name} has a value that the live release cannot hold, and no version would have it"
                )
                raise DataError(message, hint=f"nothing was written; keep the line, {_OR_LIVE}", code="C301")


def _queried(session: Any, other: OtherShape, sql: str, rows: Any) -> Any:
    return arrow_table(query_over(session, sql, {other.table: session.createDataFrame(rows)}))
