"""Difference between two answers of one call: rows that only one of them has, and their order. Pure.

Rows are compared as multisets. Doubles are equal within the tolerance of `recount/doubles`, estimates as in the
comparison of tables.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from console.agent.compared.comparison import SLACK, TOLERANCE
from console.agent.recount.doubles import nearly_equal
from console.model.recorded_call import AnswerForm

PAIRED = 200  # groups of rows equal but for doubles, up to this size, are matched pairwise

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The answer of a call. columns: (name, Spark type); cut: it has more rows than were read"""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference between the live release's answer and the new one's.

    only_live, only_new  rows without an equal one in the other answer
    reordered  the rows are equal but in another order, although the query orders them
    tied       all differing rows tie with the last row before the LIMIT, so either result is correct
    lacking    columns that the new answer lacks;  retyped  those of another type
    """

    only_live: int = 0
    only_new: int = 0
    reordered: bool = False
    tied: bool = False
    lacking: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return not (self.only_live or self.only_new or self.reordered or self.lacking or self.retyped)


def difference(live: CallAnswer, new: CallAnswer, form: AnswerForm) -> Difference:
    """Compare by the columns that the live answer has; the new one may have more."""
    theirs = {name: at for at, (name, _) in enumerate(new.columns)}
    kinds = dict(new.columns)
    lacking = tuple(name for name, _ in live.columns if name not in theirs)
    retyped = tuple(name for name, kind in live.columns if name in kinds and kinds[name] != kind)
    names = [(at, name) for at, (name, _) in enumerate(live.columns) if name in theirs and name not in form.volatile]
    near = _Near([name for _, name in names], {**dict(live.columns), **kinds}, form)
    old_rows = [tuple(row[at] for at, _ in names) for row in live.rows]
    new_rows = [tuple(row[theirs[name]] for _, name in names) for row in new.rows]
    only_live, only_new = near.unmatched(old_rows, new_rows)
    by = [at for at, (_, name) in enumerate(names) if name in form.order]
    return Difference(
        only_live=len(only_live),
        only_new=len(only_new),
        reordered=not (only_live or only_new) and not near.ordered(old_rows, new_rows, by),
        tied=form.limited
        and len(only_live) == len(only_new)
        and near.last(old_rows, only_live, by)
        and near.last(new_rows, only_new, by),
        lacking=lacking,
        retyped=retyped,
    )


class _Near:
    """Equality of rows whose columns have these names and types."""

    def __init__(self, names: Sequence[str], kinds: Mapping[str, str], form: AnswerForm) -> None:
        estimated = {name for name in names if name in form.estimates}
        self._estimated = [at for at, name in enumerate(names) if name in estimated]
        self._doubles = [
            at for at, name in enumerate(names) if kinds[name] in ("double", "float") and name not in estimated
        ]

    def unmatched(self, old: Sequence[Row], new: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        """Rows of either side without an equal one on the other."""
        groups: defaultdict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        for side, rows in enumerate((old, new)):
            for row in rows:
                groups[self._exactly(row)][side].append(row)
        only_old: list[Row] = []
        only_new: list[Row] = []
        for ours, theirs in groups.values():
            left, right = self._paired(ours, theirs)
            only_old += left
            only_new += right
        return only_old, only_new

    def _exactly(self, row: Row) -> str:
        """The columns of a row that must be exactly equal, as text."""
        loose = {*self._estimated, *self._doubles}
        return json.dumps([_plain(value) for at, value in enumerate(row) if at not in loose])

    def _paired(self, ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        if not (self._estimated or self._doubles):
            both = min(len(ours), len(theirs))
            return [*ours[both:]], [*theirs[both:]]
        ours, theirs = sorted(ours, key=self._loosely), sorted(theirs, key=self._loosely)
        if len(ours) > PAIRED or len(theirs) > PAIRED:
            return self._merged(ours, theirs)
        left: list[Row] = []
        right = [*theirs]
        for row in ours:
            at = next((at for at, each in enumerate(right) if self._equal(row, each)), None)
            if at is None:
                left.append(row)
            else:
                del right[at]
        return left, right

    def _merged(self, ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        """The same for many rows, in one pass over both sorted lists."""
        left: list[Row] = []
        right: list[Row] = []
        i = j = 0
        while i < len(ours) and j < len(theirs):
            if self._equal(ours[i], theirs[j]):
                i, j = i + 1, j + 1
            elif self._loosely(ours[i]) <= self._loosely(theirs[j]):
                left.append(ours[i])
                i += 1
            else:
                right.append(theirs[j])
                j += 1
        return [*left, *ours[i:]], [*right, *theirs[j:]]

    def _loosely(self, row: Row) -> list[tuple[int, float, str]]:
        """Sort key of the rows of a group: NULL first, values that are not numbers last."""
        return [_rank(row[at]) for at in (*self._doubles, *self._estimated)]

    def _equal(self, a: Row, b: Row, columns: Sequence[int] | None = None) -> bool:
        for at in range(len(a)) if columns is None else columns:
            if at in self._doubles:
                same = nearly_equal(a[at], b[at])
            elif at in self._estimated and _number(a[at]) and _number(b[at]):
                same = abs(float(a[at]) - float(b[at])) <= TOLERANCE * abs(float(a[at])) + SLACK
            else:
                same = bool(_plain(a[at]) == _plain(b[at]))
            if not same:
                return False
        return True

    def ordered(self, old: Sequence[Row], new: Sequence[Row], by: Sequence[int]) -> bool:
        """Whether equal rows are in the same order, as far as the query defines it."""
        return all(self._equal(a, b, by) for a, b in zip(old, new, strict=True))

    def last(self, rows: Sequence[Row], some: Sequence[Row], by: Sequence[int]) -> bool:
        """Whether these rows tie with the last one in the query's order."""
        return all(self._equal(row, rows[-1], by) for row in some)


def _rank(value: Any) -> tuple[int, float, str]:
    if value is None:
        return 0, 0.0, ""
    if _number(value) and not math.isnan(value):
        return 1, float(value), ""
    return 2, 0.0, json.dumps(_plain(value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A value as JSON; different Spark values have different texts."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return repr(value)
        case dict():
            return sorted([json.dumps(_plain(key)), _plain(item)] for key, item in value.items())
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes() | bytearray():
            return bytes(value).hex()
    return f"{type(value).__name__} {value}"
