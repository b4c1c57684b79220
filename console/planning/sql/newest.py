"""Tables that keep one row of each key: the fingerprint of their rows, and the read that merges them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import sqlglot
from sqlglot import exp

from console.model.newest import ROW_HASH, Newest, hashed, listed
from console.model.schema import Column, Table
from console.planning.sql.aggregates import STORED
from console.planning.sql.reads import in_later_rows
from console.planning.sql.relation import mix
from console.planning.sql.tree import DIALECT, name, render


def newest_of(table: Table) -> Newest | None:
    """How a declared table is merged; None for other kinds."""
    if not table.key:
        return None
    tie = tuple(sorted(column.name for column in table.columns))
    plain = Newest(key=table.key, order=table.order_by, tie=tie, bucket=not table.partition_by, merged="")
    return replace(plain, merged=_merged(plain, tuple(c.name for c in (*table.columns, *plain.added))))


def _merged(newest: Newest, stored: tuple[str, ...]) -> str:
    """The row of each key with the greatest order. Ties can differ only in columns that were added later, which then decide."""
    order = f"struct({listed((*newest.order, ROW_HASH))}, {hashed(stored)})"
    kept = f"max_by(struct({listed(stored)}), {order}) AS newest"
    sql = f"SELECT newest.* FROM (SELECT {kept} FROM {STORED} GROUP BY {listed(newest.key)})"
    return render(sqlglot.parse_one(sql, read=DIALECT))


def stored_as(newest: Newest, places: Mapping[str, str], stored: Iterable[Column]) -> Newest:
    """The same where columns are stored under other names. stored: all columns of the version"""
    key, order, tie = (tuple(places[each] for each in names) for names in (newest.key, newest.order, newest.tie))
    plain = replace(newest, key=key, order=order, tie=tie)
    return replace(plain, merged=_merged(plain, tuple(column.name for column in stored)))


def merged_rows(rows: str, table: Table, values: Mapping[str, str]) -> str:
    """The fingerprint of the merged rows, which depends on key and order as well."""
    key, order = (sorted(values[c] for c in table.key), [values[c] for c in table.order_by])
    return mix("newest", rows, "key", *key, "order", *order)


def merged_read(newest: Newest, shown: tuple[Column, ...]) -> str:
    """The read over the view `stored`. shown: the stored columns that it shows"""
    columns = ", ".join(f"{name(c.name).sql(DIALECT)} AS {name(c.name).sql(DIALECT)}" for c in shown)
    return render(sqlglot.parse_one(f"SELECT {columns or 1} FROM ({newest.merged}) AS `kept`", read=DIALECT))


def over_merged(read: str, newest: Newest) -> str:
    """A read of stored columns, over the newest row of each key."""
    tree, merged = (sqlglot.parse_one(each, read=DIALECT) for each in (read, merged_read(newest, ())))
    tree.set("from_", merged.args["from_"])
    return render(tree)


@lru_cache(4096)  # regions with one release have the same reads
def stored_names(read: str) -> Mapping[str, str]:
    """Shown column → the stored one, for columns shown unchanged, if not in all rows then in those that a flag tells apart."""
    parts = sqlglot.parse_one(read, read=DIALECT).expressions
    flagged = {part.alias_or_name: in_later_rows(part.unalias()) for part in parts}
    places = {part.alias_or_name: flagged[part.alias_or_name] or part.unalias() for part in parts}
    return MappingProxyType({column: place.name for column, place in places.items() if isinstance(place, exp.Column)})
