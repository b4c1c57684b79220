"""The table after a migration, as ClickHouse would describe it: the next migration is planned for it.

Migrations run one after another, but are shown, refused and confirmed together, before the first one runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from console.propagation.clickhouse import statements
from console.propagation.clickhouse.dependents.column_types import type_after
from console.propagation.clickhouse.swap import Swap, groups, interim_name
from console.propagation.clickhouse.table_migration import TableMigration
from console.propagation.clickhouse.types import is_nullable
from console.propagation.migration import AddColumn, ChangeColumn, DropColumn, Migration, ReplaceColumn, SwapColumns
from console.propagation.tables import Dependent, StoreColumn, StoreTable

Columns = tuple[StoreColumn, ...]


def after(migration: Migration, table: StoreTable, mark: str) -> StoreTable:
    """A table after all steps of a migration; comments are left unchanged.

    raises  DataError as `translate` does
    """
    statements.translate(migration, table, mark)
    work = TableMigration(table, mark)
    match migration.operation:
        case AddColumn() as operation:
            return _added(work, operation)
        case DropColumn(name=name):
            return _dropped(work, name)
        case SwapColumns(columns=pairs):
            return _renamed(work, dict(pairs))
        case ChangeColumn() as operation:
            return _changed(work, operation)
        case ReplaceColumn() as operation:
            return _replaced(work, operation)
        case _:
            assert_never(migration.operation)


def _named(columns: Columns, names: Mapping[str, str]) -> Columns:
    return tuple(replace(column, name=names.get(column.name, column.name)) for column in columns)


def _below(view: Dependent, columns: Columns) -> StoreTable | None:
    return None if view.below is None else replace(view.below, columns=columns)


def _with(columns: Columns, new: StoreColumn) -> Columns:
    return columns if new.name in {column.name for column in columns} else (*columns, new)


def _added(work: TableMigration, operation: AddColumn) -> StoreTable:
    word = work.type_to_add(operation)
    new, mirrors = StoreColumn(name=operation.name, type=word, nullable=is_nullable(word)), work.mirrors(operation.name)
    fed = {view.target for view in mirrors}
    views = []
    for view in work.views:
        query = work.query(view)
        handed = view in mirrors and not query.outputs_of(operation.name)
        seen = view
        if view.target in fed:
            below = _added(work.under(view), operation)
            seen = replace(view, columns=_with(view.columns, new), below=view.below and below)
        if handed:
            seen = replace(seen, select=query.with_column(operation.name), own=_with(view.own, new))
        views.append(seen)
    return replace(work.table, columns=_with(work.table.columns, new), dependents=tuple(views))


def _dropped(work: TableMigration, name: str) -> StoreTable:
    affected = [view for view in work.views if work.query(view).reads(name)]
    marked = {c.name for view in work.views for c in view.columns if c.comment == work.mark_of_drop}
    views = []
    for view in work.views:
        gone = {
            c for other in affected if other.target == view.target for c in work.query(other).outputs_of(name)
        } | marked
        columns = tuple(column for column in view.columns if column.name not in gone)
        own = tuple(column for column in view.own if column.name not in gone)
        select = work.query(view).without(name) if view in affected else view.select
        views.append(replace(view, columns=columns, own=own, select=select, below=_below(view, columns)))
    columns = tuple(column for column in work.table.columns if column.name != name)
    return replace(work.table, columns=columns, dependents=tuple(views))


def _renamed(work: TableMigration, names: Mapping[str, str]) -> StoreTable:
    """Rename columns with their types; only its marks distinguish a completed ring from one not begun."""
    table, views = work.table, work.views
    for group in groups(names):
        swap = Swap(work, group)
        if set(group) == set(group.values()):
            views = [_in_ring(swap, view) for view in views]
            table = replace(table, columns=_round(swap, table.columns))
        else:
            order, there = swap.names(), {column.name for column in table.columns}
            free = next(rank for rank, name in enumerate(order) if name not in there)
            # the views of the last renaming may still be unchanged
            views = _in_chain(work, views, _steps(order, max(free - 1, 0)))
            table = replace(table, columns=_named(table.columns, _steps(order, free)))
    return replace(table, dependents=tuple(views))


def _replaced(work: TableMigration, operation: ReplaceColumn) -> StoreTable:
    """Drop one column and rename the other; if the table is done already, its views may not be."""
    names = {operation.taker: operation.name}
    table = work.table
    if table.column(operation.taker) is not None:
        table = _dropped(work, operation.name)
        table = replace(table, columns=_named(table.columns, names))
    return replace(table, dependents=tuple(_in_chain(work, table.dependents, names)))


def _steps(order: Sequence[str], first: int) -> dict[str, str]:
    return dict(zip(order[first + 1 :], order[first:], strict=False))


def _round(swap: Swap, columns: Columns) -> Columns:
    """The columns of the table, or of a target with the whole ring, after a ring."""
    match swap.state(columns):
        case "before":
            return _named(columns, swap.pairs)
        case "between":
            home = {interim_name(old, new): new for old, new in swap.pairs.items()}
            return _named(tuple(column for column in columns if column.name not in swap.pairs), home)
        case _:
            return columns


def _in_ring(swap: Swap, view: Dependent) -> Dependent:
    query, there = swap.work.query(view), {column.name for column in view.columns}
    home = {interim_name(old, new): new for old, new in swap.pairs.items()}
    concerned = any(map(query.reads, (*swap.pairs, *home)))
    whole = set(swap.pairs) <= there or set(home) <= there
    select = query.renamed(home, keep_outputs=True) if any(map(query.reads, home)) else view.select
    columns = _round(swap, view.columns) if concerned and whole else view.columns
    return replace(view, select=select, columns=columns, below=_below(view, columns))


def _in_chain(work: TableMigration, views: Sequence[Dependent], names: Mapping[str, str]) -> list[Dependent]:
    moved: dict[str, dict[str, str]] = {}
    for view in views:
        query, there = work.query(view), {column.name for column in view.columns}
        passed_on = {old: new for old, new in names.items() if old in query.outputs_of(old) and old in there}
        moved.setdefault(view.target, {}).update(passed_on)
    renamed = []
    for view in views:
        query = work.query(view)
        read = any(map(query.reads, names))
        select = query.renamed(names, keep_outputs=False) if read else view.select
        names_there = moved[view.target]
        columns, own = _named(view.columns, names_there), _named(view.own, names_there)
        renamed.append(replace(view, select=select, columns=columns, own=own, below=_below(view, columns)))
    return renamed


def _changed(work: TableMigration, operation: ChangeColumn) -> StoreTable:
    def retyped(columns: Columns, chosen: Iterable[str]) -> Columns:
        words = {column.name: type_after(column, operation) for column in columns}
        return tuple(
            replace(c, type=words[c.name], nullable=is_nullable(words[c.name])) if c.name in chosen else c
            for c in columns
        )

    views = []
    for view in work.views:
        passed_on = work.query(view).outputs_of(operation.name)
        below = work.under(view).table
        for name in (name for name in passed_on if below.column(name) is not None):
            below = _changed(TableMigration(below, work.mark), replace(operation, name=name))
        own = retyped(view.own, passed_on)
        views.append(replace(view, columns=below.columns, own=own, below=view.below and below))
    return replace(work.table, columns=retyped(work.table.columns, (operation.name,)), dependents=tuple(views))
