"""Column lineage of a script, end to end, in any dialect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from console.planning.sql.semantics import Unclear
from console.planning.sql.statements import Flow, Pair, statements

_DIALECTS = {"ansi": "", "sparksql": "spark"}


@dataclass(frozen=True, slots=True)
class Lineage:
    """The tables and columns that flow through a script.

    sources, targets  tables read and written, lower case, in order; a path of files unchanged
    columns   ((source table, column), (target table, column)); a source table "" is one of several candidates, a column
              `*` all columns of an unknown table
    unclear   why columns are missing, statement by statement
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    columns: frozenset[Pair]
    unclear: tuple[str, ...] = ()


def lineage(sql: str, dialect: str = "spark", schema: Mapping[str, Iterable[str]] | None = None) -> Lineage:
    """Follow a script's statements: SELECT, INSERT, CREATE … AS, MERGE and UPDATE; all others are ignored.

    dialect  as sqlglot names it, or `ansi`, or `sparksql`
    schema   table → its columns in order
    """
    flow, unclear = Flow(schema or {}), []
    for tree in statements(sql, _DIALECTS.get(dialect, dialect)):
        try:
            flow.follow(tree)
        except Unclear as reason:
            unclear.append(str(reason))
    return Lineage(tuple(flow.sources), tuple(flow.targets), frozenset(flow.pairs), tuple(unclear))
