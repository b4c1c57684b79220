"""Generic migrations in the stores' words."""

from console.propagation.migration import Migration
from console.propagation.replication import Kind
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import Translation


def translate(kind: Kind, migration: Migration, table: StoreTable, mark: str) -> Translation:
    """What a migration has left to do on one table of a store of this kind, seen from the state it is in.

    mark    the migration's own name: no two have the same
    raises  DataError for what cannot be done without a person
    """
    from console.propagation.translate import clickhouse, lake

    if kind == "clickhouse":
        return clickhouse.translate(migration, table, mark)
    return lake.translate(migration, table, kind)
