"""The lists of rewrites that change nothing, and of near misses that do, checked with Spark on drawn tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.planning.cases import held_out, rewrites, unseen
from tests.planning.oracle import databases
from tests.planning.oracle.draw import TABLES
from tests.planning.oracle.judge import Refused, SparkOracle

Pair = tuple[str, str]


@dataclass(frozen=True)
class Pairs:
    """Pairs over the same tables, all of which do change rows or do not."""

    what: str
    tables: databases.Tables
    pairs: Sequence[Pair]
    differ: bool


def _all(kinds: dict[str, list[Pair]]) -> list[Pair]:
    return [pair for pairs in kinds.values() for pair in pairs]


LISTS = (
    Pairs("rewrite", TABLES, rewrites.HARMLESS, differ=False),
    Pairs("near miss", TABLES, rewrites.NEAR_MISSES, differ=True),
    Pairs("held-out rewrite", held_out.SCHEMA, _all(held_out.HARMLESS), differ=False),
    Pairs("held-out near miss", held_out.SCHEMA, _all(held_out.NEAR), differ=True),
    Pairs("unseen rewrite", TABLES, _all(unseen.HARMLESS), differ=False),
    Pairs("unseen near miss", TABLES, _all(unseen.NEAR), differ=True),
)
SIZE = sum(len(of.pairs) for of in LISTS)


def listed(spark: SparkOracle, every: int = 1, seeds: Sequence[int] = (0,)) -> list[str]:
    """What Spark says otherwise: of a rewrite on any of the databases, of a near miss on all of them.

    every  of how many pairs one is asked about;  seeds  of the databases, beside the rows of `draw` where they fit
    """
    results = []
    for of in LISTS:
        own = [spark] if of.tables is TABLES else []
        values = [*own, *(spark.beside(databases.views(of.tables, seed)) for seed in seeds)]
        for one, other in of.pairs[::every]:
            messages = (distinguished(database, one, other) for database in values)
            right = True in messages if of.differ else all(differs is False for differs in messages)
            if not right:
                results.append(f"{of.what}: {one} | {other}")
    return results


def distinguished(spark: SparkOracle, one: str, other: str) -> bool | None:
    """Whether the rows of two texts differ on the data, in their order where both have one; a text that fails differs from
    one that does not, and of two that fail nothing is known."""
    try:
        if spark.alike(one, other):
            return False
    except Refused:
        return None
    ordered = all(" order by " in sql and "over (" not in sql for sql in (one, other))
    results = [_rows(spark, sql, ordered=ordered) for sql in (one, other)]
    return results[0] != results[1] if any(rows is not None for rows in results) else None


def _rows(spark: SparkOracle, sql: str, *, ordered: bool) -> object:
    try:
        return spark.rows(sql)[1:] if ordered else spark.multiset(sql)
    except Refused:
        return None
