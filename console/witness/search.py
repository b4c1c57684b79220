"""The smallest rows on which two queries differ: found on made-up databases, shrunk, and proven on Spark.

What DuckDB finds is a suspicion only, for its nulls, divisions and casts are not Spark's. Where DuckDB cannot run a
query, or finds nothing, Spark itself is searched, on fewer databases.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from console.drivers.replay import Given, Ran, Replayer
from console.planning.compare import QueryDifference
from console.planning.sql.syntax.duckdb import Trial, trial
from console.planning.sql.tree import Tables
from console.witness.duck import DuckEngine, Unsupported, json_value
from console.witness.results import differ, failures
from console.witness.shrink import Database, shrink
from console.witness.spark_types import SparkType, parse_type
from console.witness.values import ValuePool

Judge = Callable[[Database], tuple[Ran, Ran]]
_SPARK_TRIES, _SPARK_SHRINKS, _REPLAYS = 24, 60, 3
_SHRINKS = 10_000
_ROWS = 6  # most rows of a table in one try
_SECONDS = 8.0
_ENOUGH_TRIES = 300  # databases, before a query that only fails is good enough


@dataclass(frozen=True, slots=True)
class WitnessQuery:
    """Two queries over the same tables.

    pairs  (old column, new column) that should agree; without any, the number of rows is compared
    """

    old: Trial
    new: Trial
    pairs: tuple[tuple[str, str], ...]
    tables: Tables

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """table → column → Spark type, of all that either query reads."""
        merged: dict[str, dict[str, str]] = {}
        for side in (self.old, self.new):
            for table, columns in side.reads.items():
                merged.setdefault(table, {}).update(columns)
        # rows that are only counted have a column all the same
        return {table: columns or dict([*self.tables[table].items()][:1]) for table, columns in merged.items()}


@dataclass(frozen=True, slots=True)
class Witness:
    """Rows on which old and new differ, and what Spark gave for each."""

    tables: dict[str, Given]
    old: Ran
    new: Ran


@dataclass(frozen=True, slots=True)
class WitnessResult:
    """What a search came to: a witness, or why there is none, after how many databases.

    unproven  no Spark could be asked: another time it may be
    """

    witness: Witness | None
    tried: int
    why: str = ""
    unproven: bool = False


def witness_query(old: str, new: str, tables: Tables, difference: QueryDifference) -> WitnessQuery:
    """What to search for, of two queries that were compared.

    raises  Problems, a DataError, where one of them may not be run
    """
    trials = trial(old, tables, "the old query"), trial(new, tables, "the new query")
    renamed = {was.lower(): now for was, now in difference.renamed.items()}
    held = {name.lower(): name for name in trials[1].columns}
    after = [(name, renamed.get(name.lower(), held.get(name.lower()))) for name in trials[0].columns]
    return WitnessQuery(*trials, tuple((was, now) for was, now in after if now is not None), tables)


def find_witness(question: WitnessQuery, spark: Replayer, *, seed: int = 0, seconds: float = _SECONDS) -> WitnessResult:
    """Search, make it small, and let Spark confirm.

    raises  DataError where no rows of a column's type can be made; what the replayer raises
    """
    search = _Search(question, seed, lambda: spark.stopped)
    doubts = 0
    for small, found in search.suspects(seconds):
        if proven := search.proven(small, spark) or search.proven(found, spark):
            return WitnessResult(proven, search.tried)
        doubts += 1
        if doubts == _REPLAYS:
            break
    return search.on_spark(spark, doubts)


def candidates(question: WitnessQuery, *, seed: int = 0, seconds: float = _SECONDS) -> Iterator[Database]:
    """Small databases on which DuckDB's answers differ; none where DuckDB cannot run the queries."""
    return (small for small, _ in _Search(question, seed).suspects(seconds))


class _Search:
    def __init__(self, question: WitnessQuery, seed: int, stopped: Callable[[], bool] = lambda: False) -> None:
        self._question = question
        self._stopped = stopped
        self._rng = random.Random(seed)
        self._kinds: dict[str, list[tuple[str, SparkType]]] = {
            table: [(name, parse_type(type)) for name, type in columns.items()]
            for table, columns in question.columns.items()
        }
        self._pool = ValuePool.of(question.old, question.new)
        self.tried = 0
        self._failed = 0
        self._error = ""

    def suspects(self, seconds: float) -> Iterator[tuple[Database, Database]]:
        """(made small, as found)"""
        duck = DuckEngine()

        def judge(database: Database) -> tuple[Ran, Ran]:
            return self._in_duck(duck, database)

        try:
            for found in self._found(judge, seconds):
                yield self._small(found, judge, _SHRINKS), found
        except Unsupported:
            return
        finally:
            duck.close()

    def on_spark(self, spark: Replayer, doubts: int) -> WitnessResult:
        """Search on Spark itself."""

        def judge(database: Database) -> tuple[Ran, Ran]:
            return self._in_spark(spark, database)

        chances = 0
        for _ in range(_SPARK_TRIES):
            database = self._database(_ROWS)
            old, new = judge(database)
            self._count(old, new)
            if differ(old, new, self._question.pairs):
                found = self.proven(database, spark)  # first, for chance is not worth making small
                if found is not None:
                    return WitnessResult(
                        self.proven(self._small(database, judge, _SPARK_SHRINKS), spark) or found, self.tried
                    )
                chances += 1
                if chances == _REPLAYS:
                    break
        why = f"none among {self.tried:,} databases"
        if chances:
            why += "; the answers differ by chance, for the same query answers otherwise each time"
        elif doubts:
            why += f"; {doubts} on which DuckDB's answers differ and Spark's do not"
        if self._failed == self.tried:
            why = f"both queries failed on all {self.tried:,} databases: {self._error}"
        return WitnessResult(None, self.tried, why)

    # -- databases

    def _found(self, judge: Judge, seconds: float) -> Iterator[Database]:
        """Databases with other rows first; those on which only one query fails when none such comes soon."""
        until = time.monotonic() + seconds
        failing: list[Database] = []
        while time.monotonic() < until and (not failing or self.tried < _ENOUGH_TRIES) and not self._stopped():
            database = self._database(1 + min(self.tried // 40, _ROWS - 1))
            old, new = judge(database)
            self._count(old, new)
            if differ(old, new, self._question.pairs):
                if old.error or new.error:
                    failing.append(database)
                else:
                    yield database
        yield from failing

    def _database(self, most: int) -> Database:
        few = self._rng.randrange(1, 4)
        drawn: dict[str, list[Any]] = {}
        made: dict[str, tuple[tuple[Any, ...], ...]] = {}
        for table, columns in self._kinds.items():
            rows: list[tuple[Any, ...]] = []
            for _ in range(self._rng.randrange(most + 1)):
                if rows and self._rng.random() < 0.2:
                    rows.append(self._rng.choice(rows))
                    continue
                row = []
                for name, of in columns:
                    # columns of one type draw from the same values, so that keys meet
                    key = f"{of}{name if name.lower() in self._pool.documents else ''}"
                    if key not in drawn:
                        drawn[key] = self._pool.draw(self._rng, of, name, few)
                    row.append(self._pool.cell(self._rng, drawn[key]))
                rows.append(tuple(row))
            made[table] = tuple(rows)
        return made

    # -- engines

    def _in_duck(self, duck: DuckEngine, database: Database) -> tuple[Ran, Ran]:
        for table, rows in database.items():
            duck.fill(table, self._kinds[table], rows)
        return duck.run(self._question.old), duck.run(self._question.new)

    def _in_spark(self, spark: Replayer, database: Database) -> tuple[Ran, Ran]:
        old, new = spark.ask(self._given(database), (self._question.old.sql, self._question.new.sql))
        return old, new

    def _given(self, database: Database) -> dict[str, Given]:
        types = self._question.columns
        return {
            table: Given(tuple(types[table].items()), tuple(tuple(json_value(value) for value in row) for row in rows))
            for table, rows in database.items()
        }

    # -- judging

    def _count(self, old: Ran, new: Ran) -> None:
        self.tried += 1
        self._failed += bool(old.error and new.error)
        self._error = old.error or self._error

    def proven(self, database: Database, spark: Replayer) -> Witness | None:
        """What Spark gives for both queries, where it differs and does so twice: chance is no witness."""
        old, new = self._in_spark(spark, database)
        if not differ(old, new, self._question.pairs):
            return None
        once_more = self._in_spark(spark, database)
        for before, after in ((old, once_more[0]), (new, once_more[1])):
            if differ(before, after, [(name, name) for name in before.columns]):
                return None
        return Witness(self._given(database), old, new)

    def _small(self, found: Database, judge: Judge, budget: int) -> Database:
        was = failures(*judge(found))
        left = budget

        def still(database: Database) -> bool:
            nonlocal left
            left -= 1
            if left < 0 or self._stopped():
                return False
            old, new = judge(database)
            return differ(old, new, self._question.pairs) and failures(old, new) == was

        return shrink(found, self._kinds, self._pool, still)
