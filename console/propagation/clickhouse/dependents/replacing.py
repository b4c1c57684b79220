"""A name that stands for another column from one instant on, in a ClickHouse table, its views and their targets.

The views stop reading the column that goes; then each table drops it and renames the other in one ALTER, the source before
the targets, each with its views, as in any renaming: a query of the name meets the one column or the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from console.errors import DataError
from console.propagation.clickhouse.dependents import checks
from console.propagation.clickhouse.dependents.checks import Deed
from console.propagation.clickhouse.quoting import literal, qualified, quoted
from console.propagation.clickhouse.swap import Swap
from console.propagation.clickhouse.views import reads
from console.propagation.migration import ReplaceColumn
from console.propagation.tables import Dependent
from console.propagation.translate.operations import MARK, StoreStatement, unprepared

if TYPE_CHECKING:
    from console.propagation.clickhouse.statements import TableMigration


def replacing(work: "TableMigration", operation: ReplaceColumn) -> Iterator[StoreStatement]:
    """What is left of a replacement. raises DataError"""
    name, source, table = operation.name, operation.taker, work.table
    swap = Swap(work, {source: name})
    left = [(view, work.query(view)) for view in work.views]
    if (taker := table.column(source)) is not None:
        _allowed(work, name, source)
        marked = []
        for view, query in left:
            select = query.without(name) if query.reads(name) else view.select
            columns = tuple(
                replace(column, comment=work.mark_of_drop) if column.name in query.carried(name) else column
                for column in view.columns
            )
            marked.append((replace(view, select=select, columns=columns), replace(query, select=select)))
        yield from _unread(work, name, source)
        left = marked
        comment = f", COMMENT COLUMN {quoted(name)} {literal(MARK + work.mark)}" if operation.source is None else ""
        gone = f"DROP COLUMN {quoted(name)}, " if table.column(name) is not None else ""
        sql = f"ALTER TABLE {qualified(table.name)} {gone}RENAME COLUMN {quoted(source)} TO {quoted(name)}{comment}"
        yield StoreStatement(sql, f"{name} is what was {taker.name} from here on, in one statement")
    elif operation.source is None and not any(c.name == name and c.comment == MARK + work.mark for c in table.columns):
        raise unprepared(table, operation)
    elif table.column(name) is None:
        raise DataError(f"{table.name} has no column {source}", hint="console schema verify shows what differs")
    for view, query in left:
        yield from swap.follow(view, query, source, name)


def _allowed(work: "TableMigration", name: str, source: str) -> None:
    """raises DataError"""
    table = work.table
    checks.uncomputed(table, (name, source), "replaced")
    checks.unshown(table, (name, source), Deed.RENAMED)
    for column, deed in ((name, Deed.DROPPED), (source, Deed.RENAMED)):
        work.free(column)
        checks.unused(table, column, deed)
    work.unread(table.name, (source,), f"renamed to {name}")
    there, taker = table.column(name), table.column(source)
    other = there is not None and taker is not None and there.type != taker.type
    if other:
        work.unread(table.name, (name,), "of another type: a view keeps the types that its columns had")
    for view in work.views:
        query = work.query(view)
        if not (query.reads(name) or query.reads(source)):
            continue
        if not query.row_by_row or query.computes_with(name):
            raise DataError(
                f"the view {view.name} computes with {name}, which is to be another column",
                hint=f"make {view.name} anew without {name} first, then apply again",
            )
        if (handed := query.carried(name)) and not (handed == (name,) and source in query.carried(source)):
            raise DataError(
                f"the view {view.name} hands on {name}, and not {source}, which is to take its place",
                hint=f"hand on both in {view.name} under their own names, or neither, then apply again",
            )
        _target_allowed(work, view, name, source, other=other)


def _target_allowed(work: "TableMigration", view: Dependent, name: str, source: str, *, other: bool) -> None:
    below = work.under(view).table
    checks.unshown(below, (name, source), Deed.RENAMED)
    for column, deed in ((name, Deed.DROPPED), (source, Deed.RENAMED)):
        if column in view.key:
            raise DataError(
                f"{view.target} is ordered or partitioned by {column}", hint="build a new table and switch to it"
            )
        checks.unused(below, column, deed)
    work.unread(view.target, (source, *((name,) if other else ())), "another column from then on")
    for lower in below.dependents:
        if reads(lower.name, lower.select, {view.target, view.name}, (name,)):
            raise DataError(
                f"the view {lower.name} reads {view.target}.{name}, which is to be another column",
                hint=f"make {lower.name} anew without {name} first, then apply again",
            )


def _unread(work: "TableMigration", name: str, source: str) -> Iterator[StoreStatement]:
    """The views stop writing the column that goes, which is marked in their targets."""
    for view in work.targets([view for view in work.views if work.query(view).reads(name)]):
        there = view.column(name)
        if there is not None and there.comment != work.mark_of_drop:
            sql = f"ALTER TABLE {qualified(view.target)} COMMENT COLUMN {quoted(name)} {literal(work.mark_of_drop)}"
            yield StoreStatement(sql, "a mark, so that an interrupted replacement is finished")
    for view in work.views:
        query = work.query(view)
        yield from work.replaced(view, query.without(name) if query.reads(name) else view.select)
