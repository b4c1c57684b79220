"""Portions and records of one table's comparison, so that a killed one resumes where it stopped."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from console.model.compared import ComparedColumn
from console.model.live import Day
from console.model.slices import Slice, cut
from console.record import dataclass

WHOLE = cut(())
PORTION_BATCHES = 8  # reading costs a fraction of a history batch
PORTION_ROWS = 20_000_000  # if the rollout has no limit
MOST_PORTIONS = 16
INEXACT_SHARE = 0.05  # limit of rows in files that span days: portions would read each other's files


def _store_nothing(records: Sequence[ComparedColumn]) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRound:
    """One comparison of a table at two versions, whichever agents take part in it.

    portions   consecutive slices of the table by its time, which together contain every row
    done       its existing records
    store      called with the records of each portion as soon as it is compared
    left_out   rows of the old version that history left out of the new one, as a DataFrame; None for none, or if they
               cannot be computed
    """

    portions: tuple[tuple[Slice, ...], ...] = (WHOLE,)
    done: tuple[ComparedColumn, ...] = ()
    store: Callable[[Sequence[ComparedColumn]], None] = _store_nothing
    left_out: Any = field(default=None, compare=False)

    def recorded(self, portion: int) -> tuple[ComparedColumn, ...]:
        """The records of a portion, counted from 1; () if it has not been compared."""
        return tuple(record for record in self.done if record.portion == portion)


WHOLE_TABLE = ComparisonRound()


def portions(days: Sequence[Day], rows_limit: int | None) -> tuple[tuple[Slice, ...], ...]:
    """A table's days in portions of some batches each; one portion if its files are not separated by day.

    days        of the new version, from its log: the same at every resume, since the version is pinned
    rows_limit  of a batch of the rollout
    """
    total, inexact = sum(day.rows for day in days), sum(day.rows for day in days if not day.exact)
    if not total or inexact > total * INEXACT_SHARE:
        return (WHOLE,)
    most = max(-(-total // MOST_PORTIONS), PORTION_BATCHES * rows_limit if rows_limit else PORTION_ROWS)
    parts: defaultdict[int, list[Slice]] = defaultdict(list)
    before = 0
    for piece in cut(days):
        parts[min(before, total - 1) // most].append(
            piece
        )  # rows without a time, the last slice, do not form a portion of their own
        before += piece.rows
    return tuple(tuple(part) for part in parts.values()) if len(parts) > 1 else (WHOLE,)
