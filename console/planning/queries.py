"""Queries over a release's logical tables, its copies' outputs, and the region's own `_console` tables."""

from console.errors import Problems
from console.model.live import Release
from console.model.pipeline import Parameter
from console.model.receipt import LEDGER, LEDGER_VIEW
from console.model.schema import types
from console.planning.sql import compile
from console.planning.sql.compile import Compiled, NameScope
from console.planning.sql.tree import Text


def compile_query(sql: str, release: Release, parameters: tuple[Parameter, ...] = ()) -> Compiled:
    """A checked query over a release.

    parameters  may occur as `:name` and stay in the SQL, for Spark to bind
    raises      Problems, a DataError: unreadable, refused, or naming something that the release does not have
    """
    tables = {state.table.name: types(state.table.columns) for state in release.tables}
    for copy in release.copies:
        output = compile.query(Text(sql=copy.sql, where="", node=copy.name), NameScope(tables))
        tables = {**tables, copy.into: dict.fromkeys(output.columns, "string")} if output else tables
    console_tables = {LEDGER_VIEW + table: columns for table, columns in LEDGER.items()}
    text = Text(sql=sql, own=True)
    compiled = compile.query(text, NameScope({**tables, **console_tables}), parameters)
    if compiled is None:
        raise Problems.of(text.problems)
    return compiled
