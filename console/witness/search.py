"""The smallest rows on which two queries differ: found on made-up databases, shrunk, and confirmed on Spark.

A difference on DuckDB is only a candidate, since its nulls, divisions and casts are not Spark's. If DuckDB cannot run a
query, or finds nothing, Spark itself is searched, on fewer databases.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from console.drivers.replay import Given, Ran, Replayer
from console.model.spark_type import SparkType, parse_type
from console.planning.compare import QueryDifference
from console.planning.sql.duckdb import Trial, trial
from console.planning.sql.tree import Tables
from console.witness.duck import DuckEngine, Unsupported, json_value
from console.witness.results import differ, failures
from console.witness.shrink import Database, shrink
from console.witness.values import ValuePool

Evaluate = Callable[[Database], tuple[Ran, Ran]]
_SPARK_TRIES, _SPARK_SHRINKS, _REPLAYS = 24, 60, 3
_SHRINKS = 10_000
_ROWS = 6  # at most, of a table in one try
_SECONDS = 8.0
_ENOUGH_TRIES = 300  # databases, after which a difference between a failure and a result will do


@dataclass(frozen=True, slots=True)
class WitnessQuery:
    """Two queries over the same tables.

    pairs  (old column, new column) that should agree; if empty, only the number of rows is compared
    """

    old: Trial
    new: Trial
    pairs: tuple[tuple[str, str], ...]
    tables: Tables

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """table → column → Spark type, of all columns that either query reads."""
        merged: dict[str, dict[str, str]] = {}
        for side in (self.old, self.new):
            for table, columns in side.reads.items():
                merged.setdefault(table, {}).update(columns)
        # rows that are only counted need a column all the same
        return {table: columns or dict([*self.tables[table].items()][:1]) for table, columns in merged.items()}


@dataclass(frozen=True, slots=True)
class Witness:
    """Rows on which old and new differ, and the result of each on Spark."""

    tables: dict[str, Given]
    old: Ran
    new: Ran


class NoWitness(Enum):
    """Why a search has no witness."""

    NOT_FOUND = auto()
    UNCHANGED = auto()  # the edit changes no row of the old result
    UNAVAILABLE = auto()  # Spark could not be asked; a later search may succeed


@dataclass(frozen=True, slots=True)
class WitnessResult:
    """Result of a search: a witness, or why there is none.

    tried   databases
    reason  why there is no witness, as a sentence
    absent  the same as a value; without meaning beside a witness
    """

    witness: Witness | None
    tried: int
    reason: str = ""
    absent: NoWitness = NoWitness.NOT_FOUND

    @property
    def unchanged(self) -> bool:
        return self.witness is None and self.absent is NoWitness.UNCHANGED

    @property
    def unavailable(self) -> bool:
        return self.witness is None and self.absent is NoWitness.UNAVAILABLE


def witness_query(old: str, new: str, tables: Tables, difference: QueryDifference) -> WitnessQuery:
    """The search for a witness of two compared queries.

    raises  Problems, a DataError, if one of them may not be run
    """
    trials = trial(old, tables, "the old query"), trial(new, tables, "the new query")
    renamed = {was.lower(): now for was, now in difference.renamed.items()}
    new_names = {name.lower(): name for name in trials[1].columns}
    after = [(name, renamed.get(name.lower(), new_names.get(name.lower()))) for name in trials[0].columns]
    return WitnessQuery(*trials, tuple((was, now) for was, now in after if now is not None), tables)


def find_witness(query: WitnessQuery, spark: Replayer, *, seed: int = 0, seconds: float = _SECONDS) -> WitnessResult:
    """Search on DuckDB, shrink a candidate, and have Spark confirm it; else search on Spark.

    raises  DataError if no rows of a column's type can be made; errors of the replayer
    """
    search = _Search(query, seed, lambda: spark.stopped)
    unconfirmed = 0
    for small, database in search.candidates(seconds):
        if confirmed := search.confirmed(small, spark) or search.confirmed(database, spark):
            return WitnessResult(confirmed, search.tried)
        unconfirmed += 1
        if unconfirmed == _REPLAYS:
            break
    return search.search_on_spark(spark, unconfirmed)


def candidates(query: WitnessQuery, *, seed: int = 0, seconds: float = _SECONDS) -> Iterator[Database]:
    """Small databases on which DuckDB's results differ; none if DuckDB cannot run the queries."""
    return (small for small, _ in _Search(query, seed).candidates(seconds))


class _Search:
    def __init__(self, query: WitnessQuery, seed: int, stopped: Callable[[], bool] = lambda: False) -> None:
        self._query = query
        self._stopped = stopped
        self._rng = random.Random(seed)
        self._types: dict[str, list[tuple[str, SparkType]]] = {
            table: [(name, parse_type(type)) for name, type in columns.items()]
            for table, columns in query.columns.items()
        }
        self._pool = ValuePool.of(query.old, query.new)
        self.tried = 0
        self._failed = 0
        self._error = ""

    def candidates(self, seconds: float) -> Iterator[tuple[Database, Database]]:
        """(shrunk, as found)"""
        duck = DuckEngine()

        def evaluate(database: Database) -> tuple[Ran, Ran]:
            return self._run_in_duckdb(duck, database)

        try:
            for database in self._differing(evaluate, seconds):
                yield self._shrunk(database, evaluate, _SHRINKS), database
        except Unsupported:
            return
        finally:
            duck.close()

    def search_on_spark(self, spark: Replayer, unconfirmed: int) -> WitnessResult:
        """Search on Spark itself."""

        def evaluate(database: Database) -> tuple[Ran, Ran]:
            return self._run_in_spark(spark, database)

        random_differences = 0
        for _ in range(_SPARK_TRIES):
            database = self._database(_ROWS)
            old, new = evaluate(database)
            self._count(old, new)
            if differ(old, new, self._query.pairs):
                witness = self.confirmed(database, spark)  # before shrinking: a random difference is not worth that
                if witness is not None:
                    return WitnessResult(
                        self.confirmed(self._shrunk(database, evaluate, _SPARK_SHRINKS), spark) or witness, self.tried
                    )
                random_differences += 1
                if random_differences == _REPLAYS:
                    break
        reason = f"none among {self.tried:,} databases"
        if random_differences:
            reason += "; the results differ by chance: the same query returns other rows each time"
        elif unconfirmed:
            reason += f"; {unconfirmed} on which DuckDB's results differ and Spark's do not"
        if self._failed == self.tried:
            reason = f"both queries failed on all {self.tried:,} databases: {self._error}"
        return WitnessResult(None, self.tried, reason)

    # -- databases

    def _differing(self, evaluate: Evaluate, seconds: float) -> Iterator[Database]:
        """Databases with different rows first; if none comes soon, those on which only one query fails."""
        deadline = time.monotonic() + seconds
        failing: list[Database] = []
        while time.monotonic() < deadline and (not failing or self.tried < _ENOUGH_TRIES) and not self._stopped():
            database = self._database(1 + min(self.tried // 40, _ROWS - 1))
            old, new = evaluate(database)
            self._count(old, new)
            if differ(old, new, self._query.pairs):
                if old.error or new.error:
                    failing.append(database)
                else:
                    yield database
        yield from failing

    def _database(self, most: int) -> Database:
        distinct = self._rng.randrange(1, 4)
        drawn: dict[str, list[Any]] = {}
        made: dict[str, tuple[tuple[Any, ...], ...]] = {}
        for table, columns in self._types.items():
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
                        drawn[key] = self._pool.draw(self._rng, of, name, distinct)
                    row.append(self._pool.cell(self._rng, drawn[key]))
                rows.append(tuple(row))
            made[table] = tuple(rows)
        return made

    # -- engines

    def _run_in_duckdb(self, duck: DuckEngine, database: Database) -> tuple[Ran, Ran]:
        for table, rows in database.items():
            duck.fill(table, self._types[table], rows)
        return duck.run(self._query.old), duck.run(self._query.new)

    def _run_in_spark(self, spark: Replayer, database: Database) -> tuple[Ran, Ran]:
        old, new = spark.ask(self._inputs(database), (self._query.old.sql, self._query.new.sql))
        return old, new

    def _inputs(self, database: Database) -> dict[str, Given]:
        types = self._query.columns
        return {
            table: Given(tuple(types[table].items()), tuple(tuple(json_value(value) for value in row) for row in rows))
            for table, rows in database.items()
        }

    # -- confirming

    def _count(self, old: Ran, new: Ran) -> None:
        self.tried += 1
        self._failed += bool(old.error and new.error)
        self._error = old.error or self._error

    def confirmed(self, database: Database, spark: Replayer) -> Witness | None:
        """A witness if the results on Spark differ and each query returns the same again: chance is no witness."""
        old, new = self._run_in_spark(spark, database)
        if not differ(old, new, self._query.pairs):
            return None
        once_more = self._run_in_spark(spark, database)
        for before, after in ((old, once_more[0]), (new, once_more[1])):
            if differ(before, after, [(name, name) for name in before.columns]):
                return None
        return Witness(self._inputs(database), old, new)

    def _shrunk(self, database: Database, evaluate: Evaluate, budget: int) -> Database:
        failed = failures(*evaluate(database))
        left = budget

        def still_differs(candidate: Database) -> bool:
            nonlocal left
            left -= 1
            if left < 0 or self._stopped():
                return False
            old, new = evaluate(candidate)
            return differ(old, new, self._query.pairs) and failures(old, new) == failed

        return shrink(database, self._types, self._pool, still_differs)
