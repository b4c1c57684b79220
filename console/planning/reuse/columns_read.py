"""The columns that an already compiled query reads."""

from console.planning.cache.planner_cache import PlannerCache
from console.planning.sql.compile import NameScope
from console.planning.sql.relation import physical, unknown
from console.planning.sql.semantics import names
from console.planning.sql.tree import Text, parse


def columns_of_query(sql: str, known: NameScope, cache: PlannerCache) -> frozenset[tuple[str, str]]:
    """(table, column) that an already compiled query reads. Only names matter, not the meaning of the tables' rows.

    known  a table without columns is one whose columns are unknown
    """
    tables = (
        (name, tuple(c for v in relation.columns.values() for _, c in v.reads))
        for name, relation in known.relations.items()
    )
    return cache.by_value(_columns_of_query, sql, tuple(sorted(tables)))


def _columns_of_query(sql: str, tables: tuple[tuple[str, tuple[str, ...]], ...]) -> frozenset[tuple[str, str]]:
    tree = parse(Text(sql=sql))
    if tree is None:
        return frozenset()
    relations = {
        name: physical(name, "", dict.fromkeys(columns, "")) if columns else unknown(name) for name, columns in tables
    }
    return names(tree, relations)
