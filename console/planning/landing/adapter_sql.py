"""The text of a query, rewritten to read an adapter instead of the adapter's source."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.planning.sql.tree import DIALECT


def reading_through(sql: str, source: str, adapter: str) -> str | None:
    """The query as written, with `source` replaced by `adapter`, aliased to the old name so that qualified columns still resolve.

    returns  None where `source` is not the query's driving table, or is joined as well
    """
    try:
        tree = sqlglot.parse_one(sql, read=DIALECT)
    except SqlglotError:
        return None
    if any(each.alias_or_name == source for each in tree.find_all(exp.CTE)):
        return None
    read = [table for table in tree.find_all(exp.Table) if table.name == source and not table.db]
    if not read or any(isinstance(table.parent, exp.Join) for table in read):
        return None
    text = sql
    for table in sorted(read, key=lambda table: -table.this.meta.get("start", -1)):
        start, end = table.this.meta.get("start", -1), table.this.meta.get("end", -1)
        if start < 0:
            return None
        text = text[:start] + (adapter if table.alias else f"{adapter} AS {source}") + text[end + 1 :]
    return text


def reads(sql: str, source: str) -> bool:
    """Whether a query names a table at all."""
    try:
        return any(table.name == source for table in sqlglot.parse_one(sql, read=DIALECT).find_all(exp.Table))
    except SqlglotError:
        return False
