"""ClickHouse."""

from collections.abc import Mapping
from typing import Any, Final

from console.propagation.clickhouse.types import TYPES
from console.propagation.dialects.dialect import Dialect, WrongOption
from console.propagation.migration import Migration
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import Translation

_SYNC: Final = ("alter_sync", "mutations_sync")


class ClickHouseDialect(Dialect):
    """SQL statements, one at a time, for a table and everything that depends on it. Loads sqlglot when first asked."""

    __slots__ = ()

    def translate(self, migration: Migration, table: StoreTable, mark: str) -> Translation:
        from console.propagation.clickhouse.statements import translate

        return translate(migration, table, mark)

    def after(self, migration: Migration, table: StoreTable, mark: str) -> StoreTable:
        from console.propagation.clickhouse.after import after

        return after(migration, table, mark)

    def wrong_option(self, options: Mapping[str, Any]) -> WrongOption | None:
        for key in _SYNC:
            if key in options and (isinstance(options[key], bool) or options[key] not in (0, 1, 2)):
                return WrongOption(key, "0, 1 or 2", "2 waits for every replica")
        return None


CLICKHOUSE: Final = ClickHouseDialect(
    kind="clickhouse",
    title="ClickHouse",
    position=1,
    types=TYPES,
    options=frozenset(("url", "database", "cluster", "columns", *_SYNC)),
    defaults={"url": "env:CLICKHOUSE_URL"},
    nullable_types=True,
    keyed=True,
    column_storage=True,
)
