"""What an already compiled query reads, column by column."""

from functools import lru_cache

from console.planning.sql.compile import Known
from console.planning.sql.meaning import meaning
from console.planning.sql.relation import physical
from console.planning.sql.tree import Text, parse


def needs(sql: str, known: Known) -> frozenset[tuple[str, str]]:
    """(table, column) that an already compiled query reads. Names alone decide, whatever the tables' rows mean."""
    tables = (
        (name, tuple(c for v in held.columns.values() for _, c in v.reads)) for name, held in known.relations.items()
    )
    return _needs(sql, tuple(sorted(tables)))


@lru_cache(maxsize=8192)
def _needs(sql: str, tables: tuple[tuple[str, tuple[str, ...]], ...]) -> frozenset[tuple[str, str]]:
    tree = parse(Text(sql))
    if tree is None:
        return frozenset()
    relation = meaning(tree, {name: physical(name, "", dict.fromkeys(columns, "")) for name, columns in tables})
    return relation.reads.union(*(value.reads for value in relation.columns.values()))
