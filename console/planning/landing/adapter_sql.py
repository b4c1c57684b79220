"""The text of a query, reading an adapter instead of the table that the adapter is fed from."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.planning.sql.tree import DIALECT


def reading_through(sql: str, source: str, adapter: str) -> str | None:
    """The query with `adapter` wherever it reads `source`, otherwise as written; columns go on being named by the old name.

    returns  None where the query does not drive itself by `source`, or reads a joined copy of it as well
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
