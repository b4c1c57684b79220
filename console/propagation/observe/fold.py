"""The net changes of one transaction: renamings folded into swaps, changes that are undone left out."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from console.errors import Problem
from console.propagation.migration import (
    CLASSIFICATIONS,
    FACETS,
    KEPT,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    ReplaceColumn,
    SwapColumns,
    default_phase,
)
from console.propagation.observe.events import Event, Firm, Observed, ObservedChange, Refilled, Remark


@dataclass(kw_only=True)
class _Column:
    """One column in the course of a transaction.

    origin  its name before the transaction; None for an added column
    rank    the index of its first change
    filled  which rows got a value of it after it was added: `every` or `some`
    times   how often its type, nullability or default changes: only after two changes can it be as before
    """

    origin: str | None
    name: str
    rank: int
    where: str
    added: AddColumn | None = None
    changed: ChangeColumn | None = None
    dropped: bool = False
    filled: Literal["", "some", "every"] = ""
    times: int = 0


def fold(transaction: Iterable[Event]) -> list[Observed]:
    """Migrations in an order in which they can be applied, each in its default phase.

    A column that takes a name which another gives up waits for it: its phase is never the earlier one.
    """
    observed: list[tuple[int, Observed]] = []
    for (schema, table), columns in _followed(transaction).items():
        for rank, operation, where in _ordered(_operations(columns)):
            migration = Migration(default_phase(operation), schema, table, operation)
            observed.append((rank, Observed(migration, where)))
    return settled(_merged(observed))


def refused(transaction: Iterable[Event]) -> list[Problem]:
    """Problems for names that pass to other columns in a way that consumers of rows cannot recognize."""
    problems = []
    for (schema, table), columns in _followed(transaction).items():
        if (column := tangled(columns)) is not None:
            message = (
                f"not understood: {schema}.{table}: {column.origin} takes the name {column.name} of a column that is dropped,"
                f" and another takes the name {column.origin}: the names may be the same before and after"
            )
            hint = "split it into two transactions, and apply each before the next"
            problems.append(Problem(code="S401", message=message, where=column.where, hint=hint))
    return problems


def lost(transaction: Iterable[Event]) -> list[Remark]:
    """Remarks on values that arrive with a transaction before the stores have a column for them.

    A column that takes a name which another gives up is added after the application's migration; its values come with it.
    """
    remarks = []
    for (schema, table), columns in _followed(transaction).items():
        taken = {column.origin for column in columns if column.origin is not None and not column.dropped}
        for column in columns:
            if column.added is None or column.dropped or not column.filled or column.name not in taken:
                continue
            full = f"{schema}.{table}"
            message = (
                f"{full}.{column.name} is a new column from here on: the values that UPDATE gives it in this transaction"
                f" arrive before the stores have a column for them; afterwards: UPDATE {table} SET {column.name} = {column.name}"
            )
            remarks.append(Remark(column.where, message, full))
    return remarks


def rejoined(migrations: Iterable[Observed]) -> list[Remark]:
    """Remarks on columns that one transaction drops and a later one adds: values that arrive before the drop is applied go with it."""
    dropped: set[tuple[str, str]] = set()
    remarks = []
    for observed in migrations:
        migration = observed.migration
        full = f"{migration.schema}.{migration.table}"
        match migration.operation:
            case DropColumn(name=name):
                dropped.add((full, name))
            case AddColumn(name=name) if (full, name) in dropped:
                message = (
                    f"{full}.{name} is dropped and added again: apply the drop before the application adds it again"
                )
                remarks.append(Remark(observed.where, message, full))
    return remarks


def _followed(transaction: Iterable[Event]) -> dict[tuple[str, str], list[_Column]]:
    tables: dict[tuple[str, str], list[_Column]] = {}
    for rank, event in enumerate(transaction):
        if isinstance(event, ObservedChange):
            _follow(tables.setdefault((event.schema, event.table), []), event, rank)
        elif isinstance(event, Refilled):
            for column in tables.get((event.schema, event.table), ()):
                if column.added is not None and not column.dropped and column.filled != "every":
                    column.filled = "every" if column.name in event.columns else "some"
        elif isinstance(event, Firm):
            for column in tables.get((event.schema, event.table), ()):
                if column.name in event.columns and not column.dropped:
                    _tighten(column)
    return tables


def _tighten(column: _Column) -> None:
    """Undo an earlier change of the transaction that made a column nullable."""
    if column.changed is not None and column.changed.to.nullable is True:
        firm = ChangeColumn(column.name, Facets(nullable=False), Facets(), "safe")
        column.changed = _both(column.changed, firm)
        column.times += 1


def settled(migrations: list[Observed]) -> list[Observed]:
    """Move a `pre` migration that builds on a `post` one into `post`."""
    late: set[tuple[str, str, str]] = set()
    result = []
    for observed in migrations:
        migration = observed.migration
        touched = {(migration.schema, migration.table, name) for name in migration.columns}
        if touched & late:
            migration = migration.in_phase("post")
        if migration.phase == "post":
            late |= touched
        result.append(replace(observed, migration=migration))
    return result


def _merged(ranked: list[tuple[int, Observed]]) -> list[Observed]:
    """By rank across tables; within one table the order that `_ordered` chose."""
    left: dict[tuple[str, str], list[tuple[int, Observed]]] = {}
    for rank, observed in ranked:
        left.setdefault((observed.migration.schema, observed.migration.table), []).append((rank, observed))
    result = []
    while left:
        first = min(left, key=lambda table: left[table][0][0])
        result.append(left[first].pop(0)[1])
        if not left[first]:
            del left[first]
    return result


def _follow(columns: list[_Column], change: ObservedChange, rank: int) -> None:
    def find(name: str) -> _Column:
        for column in columns:
            if column.name == name and not column.dropped:
                return column
        columns.append(_Column(origin=name, name=name, rank=rank, where=change.where))
        return columns[-1]

    match change.operation:
        case AddColumn() as added:
            columns.append(_Column(origin=None, name=added.name, rank=rank, where=change.where, added=added))
        case DropColumn(name=name):
            column = find(name)
            column.dropped = True
            column.rank, column.where = (rank, change.where) if column.origin is not None else (column.rank, "")
        case SwapColumns(columns=pairs):
            for column, new in [(find(old), new) for old, new in pairs]:
                column.name, column.where = new, change.where
        case ChangeColumn(name=name) as changed:
            column = find(name)
            if column.added is not None:
                column.added = _added(column.added, changed.to)
            else:
                column.changed = changed if column.changed is None else _both(column.changed, changed)
                column.times += 1


def _added(added: AddColumn, to: Facets) -> AddColumn:
    """The column after a change, with the default that it was added with: older rows have that one."""
    return AddColumn(
        added.name,
        added.data_type if to.data_type is KEPT else to.data_type,
        added.nullable if to.nullable is KEPT else to.nullable,
        added.default,
    )


def _both(first: ChangeColumn, second: ChangeColumn) -> ChangeColumn:
    """Two changes as one, with the worse of the two classifications, since values passed through both."""
    to, was = first.to, first.was
    for facet in FACETS:
        new = getattr(second.to, facet)
        if new is not KEPT:
            if getattr(first.to, facet) is KEPT:
                was = replace(was, **{facet: getattr(second.was, facet)})
            to = replace(to, **{facet: new})
    worse = max(first.classification, second.classification, key=CLASSIFICATIONS.index)
    return ChangeColumn(second.name, to, was, worse)


def _operations(columns: list[_Column]) -> list[tuple[int, Operation, str]]:
    operations: list[tuple[int, Operation, str]] = []
    renamed: dict[str, _Column] = {}
    again = {str(gone.origin): column for column in columns if (gone := _remade(column, columns)) is not None}
    takers = {} if tangled(columns) else _takers(columns)
    for column in columns:
        if column.dropped:
            if column.origin is None:
                continue
            if (new := again.get(column.origin)) is not None:
                operations.append((column.rank, _changed(new), column.where))
            elif (new := takers.get(column.origin)) is not None:
                operations.append((max(column.rank, new.rank), _replaced(new), new.where))
            else:
                operations.append((column.rank, DropColumn(column.origin), column.where))
            continue
        if column in again.values() or (column.added is not None and column in takers.values()):
            continue
        if column.added is not None:
            operations.append((column.rank, replace(column.added, name=column.name), column.where))
            continue
        if column.origin is not None and column.origin != column.name and column not in takers.values():
            renamed[column.origin] = column
        changed = column.changed
        if changed is not None and (column.times == 1 or changed.to != _known(changed.was, changed.to)):
            operations.append((column.rank, replace(changed, name=column.name), column.where))
    return [*operations, *_swaps(renamed)]


def _remade(column: _Column, columns: list[_Column]) -> _Column | None:
    """The dropped column whose name this one has now, if every row got a value of it.

    To the stores the two are one column whose values all change: to drop it later would drop the values that came.
    """
    if column.added is None or column.dropped or column.filled != "every":
        return None
    return next((gone for gone in columns if gone.dropped and gone.origin == column.name), None)


def _takers(columns: list[_Column]) -> dict[str, _Column]:
    """Names of dropped columns → the columns that have them afterwards."""
    gone = {column.origin for column in columns if column.dropped and column.origin is not None}
    return {column.name: column for column in columns if not column.dropped and column.name in gone}


def tangled(columns: list[_Column]) -> _Column | None:
    """A column that takes a dropped column's name while another takes its own: the list of names may be unchanged."""
    live = {column.name for column in columns if not column.dropped}
    takers = (column for column in _takers(columns).values() if _remade(column, columns) is None)
    return next((column for column in takers if column.origin is not None and column.origin in live), None)


def _replaced(column: _Column) -> ReplaceColumn:
    if column.added is None:
        return ReplaceColumn(column.name, column.origin)
    return ReplaceColumn(column.name, None, _facets(column.added))


def _facets(added: AddColumn) -> Facets:
    return Facets(added.data_type, added.nullable, added.default)


def _changed(column: _Column) -> ChangeColumn:
    assert column.added is not None
    return ChangeColumn(column.name, _facets(column.added), Facets(), "destructive")


def _known(was: Facets, to: Facets) -> Facets:
    """`was` without the facets that the change leaves alone."""
    return Facets(
        was.data_type if to.data_type is not KEPT else KEPT,
        was.nullable if to.nullable is not KEPT else KEPT,
        was.default if to.default is not KEPT else KEPT,
    )


def _swaps(renamed: dict[str, _Column]) -> list[tuple[int, Operation, str]]:
    """One swap for each group of columns that exchange names."""
    swaps: list[tuple[int, Operation, str]] = []
    left = dict(renamed)
    while left:
        group = {next(iter(left))}
        while True:
            names = group | {left[old].name for old in group}
            grown = {old for old, column in left.items() if old in names or column.name in names}
            if grown == group:
                break
            group = grown
        members = [left.pop(old) for old in sorted(group)]
        pairs = tuple(sorted((str(column.origin), column.name) for column in members))
        first = min(members, key=lambda column: column.rank)
        swaps.append((first.rank, SwapColumns(pairs), first.where))
    return swaps


def _ordered(operations: list[tuple[int, Operation, str]]) -> list[tuple[int, Operation, str]]:
    """By rank, but an operation that takes a name comes after the one that frees it."""
    left = sorted(operations, key=lambda entry: entry[0])
    result: list[tuple[int, Operation, str]] = []
    while left:
        ready = next(
            entry
            for entry in left
            if not any(_gives(other[1]) & _needs(entry[1]) for other in left if other is not entry)
        )
        left.remove(ready)
        result.append(ready)
    return result


def _gives(operation: Operation) -> set[str]:
    """Names that are free, or belong to another column, after the operation."""
    match operation:
        case DropColumn(name=name):
            return {name}
        case ReplaceColumn(name=name, source=source):
            return {name} if source is None else {name, source}
        case SwapColumns(columns=pairs):
            return {name for pair in pairs for name in pair}
        case _:
            return set()


def _needs(operation: Operation) -> set[str]:
    match operation:
        case AddColumn(name=name) | ChangeColumn(name=name):
            return {name}
        case SwapColumns(columns=pairs):
            return {new for _, new in pairs}
        case ReplaceColumn(name=name):
            return {name}
        case _:
            return set()
