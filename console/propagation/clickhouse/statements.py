"""A generic migration as ClickHouse statements, including the materialized views that depend on the table.

The statements are the remaining work, computed from the store's current state: after a kill they are computed again. Views
are replaced by name: the new view is created beside the old one as `<view>__next`, the two swap names in one EXCHANGE, and the
old one is dropped. So every row passes through at least one of them, and a target that merges by key keeps one row.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from console.propagation.clickhouse.dependents import checks
from console.propagation.clickhouse.quoting import on_cluster
from console.propagation.clickhouse.replacing import replace_column
from console.propagation.clickhouse.swap import Swap
from console.propagation.clickhouse.table_migration import TableMigration
from console.propagation.clickhouse.widening import Widening
from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Migration,
    ReplaceColumn,
    SwapColumns,
)
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import StoreStatement, Translation


def translate(migration: Migration, table: StoreTable, mark: str) -> Translation:
    """The remaining statements of a migration.

    table   its current state, with the views that it feeds (also those named `…__next`)
    mark    the migration's own name, put into comments where the columns alone do not show its progress
    raises  DataError for a change that needs a person
    """
    work = TableMigration(table, mark)
    checks.refuse_overlay(table)
    match migration.operation:
        case AddColumn() as operation:
            steps = list(work.add(operation))
        case DropColumn(name=name):
            steps = list(work.drop(name))
        case SwapColumns(columns=pairs):
            steps = list(Swap(work, dict(pairs)).steps())
        case ChangeColumn() as operation:
            steps = list(change(work, operation))
        case ReplaceColumn() as operation:
            steps = list(replace_column(work, operation))
        case _:
            assert_never(migration.operation)
    everywhere = tuple(replace(step, sql=on_cluster(step.sql, table.cluster)) for step in steps)
    return Translation(everywhere, tuple(dict.fromkeys(work.warnings)))


def change(work: TableMigration, operation: ChangeColumn) -> Iterator[StoreStatement]:
    """raises DataError"""
    widening = Widening(work, operation)
    yield from widening.steps()
    yield from widening.plain()
