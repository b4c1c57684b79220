"""One column taking the name of another that is dropped, in a ClickHouse table, its views and their targets.

First the views stop reading the dropped column. Then each table drops it and renames the other in one ALTER, the source
before the targets, each with its views, as in any renaming: a query of the name reads one column or the other, never none.
"""

from collections.abc import Iterator
from dataclasses import replace

from console.errors import DataError
from console.propagation.clickhouse.dependents import checks
from console.propagation.clickhouse.dependents.checks import ColumnEffect
from console.propagation.clickhouse.quoting import literal, qualified, quoted
from console.propagation.clickhouse.swap import Swap
from console.propagation.clickhouse.table_migration import TableMigration
from console.propagation.clickhouse.views import reads
from console.propagation.migration import ReplaceColumn
from console.propagation.tables import Dependent
from console.propagation.translate.operations import MARK, StoreStatement, unprepared


def replace_column(work: TableMigration, operation: ReplaceColumn) -> Iterator[StoreStatement]:
    """The remaining steps of a replacement. raises DataError"""
    name, source, table = operation.name, operation.taker, work.table
    swap = Swap(work, {source: name})
    left = [(view, work.query(view)) for view in work.views]
    if (taker := table.column(source)) is not None:
        _refuse(work, name, source)
        marked = []
        for view, query in left:
            select = query.without(name) if query.reads(name) else view.select
            columns = tuple(
                replace(column, comment=work.mark_of_drop) if column.name in query.outputs_of(name) else column
                for column in view.columns
            )
            marked.append((replace(view, select=select, columns=columns), replace(query, select=select)))
        yield from _stop_reading(work, name)
        left = marked
        comment = f", COMMENT COLUMN {quoted(name)} {literal(MARK + work.mark)}" if operation.source is None else ""
        gone = f"DROP COLUMN {quoted(name)}, " if table.column(name) is not None else ""
        sql = f"ALTER TABLE {qualified(table.name)} {gone}RENAME COLUMN {quoted(source)} TO {quoted(name)}{comment}"
        yield StoreStatement(sql, f"{taker.name} becomes {name}, in one statement")
    elif operation.source is None and not any(c.name == name and c.comment == MARK + work.mark for c in table.columns):
        raise unprepared(table, operation)
    elif table.column(name) is None:
        raise DataError(f"{table.name} has no column {source}", hint="console schema verify shows what differs")
    for view, query in left:
        yield from swap.follow(view, query, source, name)


def _refuse(work: TableMigration, name: str, source: str) -> None:
    """raises DataError"""
    table = work.table
    checks.refuse_computed(table, (name, source), "replaced")
    checks.refuse_shown(table, (name, source), ColumnEffect.RENAMED)
    for column, effect in ((name, ColumnEffect.DROPPED), (source, ColumnEffect.RENAMED)):
        work.refuse_key(column)
        checks.refuse_used(table, column, effect)
    work.refuse_read(table.name, (source,), f"renamed to {name}")
    there, taker = table.column(name), table.column(source)
    other = there is not None and taker is not None and there.type != taker.type
    if other:
        work.refuse_read(table.name, (name,), "of another type: a view keeps the types that its columns had")
    for view in work.views:
        query = work.query(view)
        if not (query.reads(name) or query.reads(source)):
            continue
        if not query.row_by_row or query.computes_with(name):
            raise DataError(
                f"the view {view.name} computes with {name}, which is to be another column",
                hint=f"recreate {view.name} without {name} first, then apply again",
            )
        if (handed := query.outputs_of(name)) and not (handed == (name,) and source in query.outputs_of(source)):
            raise DataError(
                f"the view {view.name} passes on {name}, but not {source}, which is to take its place",
                hint=f"pass on both in {view.name} under their own names, or neither, then apply again",
            )
        _refuse_target(work, view, name, source, other=other)


def _refuse_target(work: TableMigration, view: Dependent, name: str, source: str, *, other: bool) -> None:
    below = work.under(view).table
    checks.refuse_shown(below, (name, source), ColumnEffect.RENAMED)
    for column, effect in ((name, ColumnEffect.DROPPED), (source, ColumnEffect.RENAMED)):
        if column in view.key:
            raise DataError(
                f"{view.target} is ordered or partitioned by {column}", hint="build a new table and switch to it"
            )
        checks.refuse_used(below, column, effect)
    work.refuse_read(view.target, (source, *((name,) if other else ())), "another column from then on")
    for lower in below.dependents:
        if reads(lower.name, lower.select, {view.target, view.name}, (name,)):
            raise DataError(
                f"the view {lower.name} reads {view.target}.{name}, which is to be another column",
                hint=f"recreate {lower.name} without {name} first, then apply again",
            )


def _stop_reading(work: TableMigration, name: str) -> Iterator[StoreStatement]:
    """The views stop writing the dropped column, which is marked in their targets."""
    for view in work.targets([view for view in work.views if work.query(view).reads(name)]):
        there = view.column(name)
        if there is not None and there.comment != work.mark_of_drop:
            sql = f"ALTER TABLE {qualified(view.target)} COMMENT COLUMN {quoted(name)} {literal(work.mark_of_drop)}"
            yield StoreStatement(sql, "a mark by which an interrupted replacement is finished")
    for view in work.views:
        query = work.query(view)
        yield from work.replaced(view, query.without(name) if query.reads(name) else view.select)
