"""A migration applied to a copy of a table's newest partition, which is dropped afterwards."""

import time
from dataclasses import dataclass

from console.errors import CheckFailed, RegionError
from console.propagation.migration import ChangeColumn
from console.propagation.translate.operations import StoreOperation
from console.stores.apply import MOST_STEPS, Translate, staged_of
from console.stores.files import MigrationFile
from console.stores.protocol import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """The outcome of a migration on a copy. rows: of the newest partition, before and after."""

    steps: tuple[StoreOperation, ...]
    warnings: tuple[str, ...]
    rows_before: int
    rows_after: int
    seconds: float


def rehearse(store: Store, place: str, change: MigrationFile, translate: Translate) -> Rehearsed:
    """Apply a migration to a copy of a table's newest partition; the copy is dropped afterwards.

    raises  the store's refusal; CheckFailed if rows, or values of a changed column, were lost
    """
    with store.rehearsal_copy(place) as (copy, there):
        table = copy.describe([there])[there]
        rows, warnings = copy.count(table), translate(change, table).warnings
        changed = change.migration.operation
        column = changed.name if isinstance(changed, ChangeColumn) else ""
        values = copy.count(table, column)
        began = time.monotonic()
        done: list[StoreOperation] = []
        if (staged := staged_of(change)) is not None:
            while steps := translate(staged, table).steps:
                copy.run(table, steps if copy.atomic else steps[:1], staged.id)
                table = copy.describe([there])[there]
        while steps := () if copy.marked(there, change.id) else translate(change, table).steps:
            now = steps if copy.atomic else steps[:1]
            copy.run(table, now, change.id)
            done += now
            table = copy.describe([there])[there]
            if len(done) > MOST_STEPS:
                raise RegionError(f"{store.name}: {change.id} still has steps left after {MOST_STEPS} of them")
        lost = values - copy.count(table, column)
        rehearsed = Rehearsed(
            steps=tuple(done),
            warnings=warnings,
            rows_before=rows,
            rows_after=copy.count(table),
            seconds=time.monotonic() - began,
        )
    if rehearsed.rows_after != rehearsed.rows_before:
        raise CheckFailed(
            f"{store.name}: {change.id} on a copy of {place}: {rehearsed.rows_before} rows became {rehearsed.rows_after}"
        )
    if lost:
        raise CheckFailed(
            f"{store.name}: {change.id} on a copy of {place}: {lost} of {values} values of {column} do not survive",
            hint="add a new column, fill it, and swap the two",
        )
    return rehearsed
