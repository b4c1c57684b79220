"""The order in which the steps of a plan run: the first batch of each table before the second batch of any. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from console.model.step import Backfill, Step
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a step. rehearsal: its first batch alone, the newest days of its table"""

    step: Step
    rehearsal: bool = False


def turns(steps: Sequence[Step]) -> Iterator[Turn]:
    """The steps in their order. Before backfills that follow each other, the first batch of each of their tables.

    A backfill that joins a rebuilt table comes after the catch-up of that table, and is not rehearsed before it. A single
    table needs no rehearsal: its own first batch is the newest.
    """
    for backfills, run in groupby(steps, lambda step: isinstance(step, Backfill)):
        group = tuple(run)
        if backfills:
            yield from _rehearsals(group)
        yield from (Turn(step) for step in group)


def _rehearsals(group: Sequence[Step]) -> Iterator[Turn]:
    first: dict[str, Backfill] = {}
    for step in group:
        if isinstance(step, Backfill):
            first.setdefault(step.target, step)
    if len(first) > 1:
        yield from (Turn(step, rehearsal=True) for step in first.values() if not step.linked)
