"""The smallest rows on which two queries differ: found on made-up databases, shrunk, and proven on Spark.

What DuckDB finds is a suspicion only, for its nulls, divisions and casts are not Spark's. Where DuckDB cannot run a
query, or finds nothing, Spark itself is searched, on fewer databases.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from console.drivers.replay import Given, Ran, Replayer
from console.planning.compare import QueryDifference
from console.planning.sql.elsewhere import Trial, trial
from console.planning.sql.tree import Tables
from console.witness.duck import Duck, Unable, bare
from console.witness.kinds import Kind, kind
from console.witness.values import Pool

Database = Mapping[str, tuple[tuple[Any, ...], ...]]  # table → rows
Judge = Callable[[Database], tuple[Ran, Ran]]
_SPARK_TRIES, _SPARK_SHRINKS, _REPLAYS = 24, 60, 3
_ROWS = 6  # most rows of a table in one try
_SECONDS = 8.0
_PATIENCE = 300  # databases, before a query that only fails is good enough


@dataclass(frozen=True, slots=True)
class Question:
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
class Sought:
    """What a search came to: a witness, or why there is none, after how many databases."""

    witness: Witness | None
    tried: int
    why: str = ""


def question(old: str, new: str, tables: Tables, difference: QueryDifference) -> Question:
    """What to search for, of two queries that were compared.

    raises  Problems, a DataError, where one of them may not be run
    """
    trials = trial(old, tables, "the old query"), trial(new, tables, "the new query")
    renamed = {was.lower(): now for was, now in difference.renamed.items()}
    held = {name.lower(): name for name in trials[1].columns}
    after = [(name, renamed.get(name.lower(), held.get(name.lower()))) for name in trials[0].columns]
    return Question(*trials, tuple((was, now) for was, now in after if now is not None), tables)


def seek(question: Question, spark: Replayer, *, seed: int = 0, seconds: float = _SECONDS) -> Sought:
    """Search, shrink, and let Spark confirm.

    raises  DataError where no rows of a column's type can be made; what the replayer raises
    """
    return _Search(question, spark, random.Random(seed)).run(seconds)


class _Search:
    def __init__(self, question: Question, spark: Replayer, rng: random.Random) -> None:
        self._question = question
        self._spark = spark
        self._rng = rng
        self._kinds: dict[str, list[tuple[str, Kind]]] = {
            table: [(name, kind(type)) for name, type in columns.items()] for table, columns in question.columns.items()
        }
        self._pool = Pool.of(question.old, question.new)
        self._tried = 0
        self._failed = 0
        self._error = ""

    def run(self, seconds: float) -> Sought:
        doubts = 0
        duck = Duck()

        def judge(database: Database) -> tuple[Ran, Ran]:
            return self._in_duck(duck, database)

        try:
            for found in self._suspects(judge, seconds):
                small = self._shrunk(found, judge, 10_000)
                if proven := self._proven(small) or self._proven(found):
                    return Sought(proven, self._tried)
                doubts += 1
                if doubts == _REPLAYS:
                    break
        except Unable:
            pass
        finally:
            duck.close()
        return self._on_spark(doubts)

    def _on_spark(self, doubts: int) -> Sought:
        for _ in range(_SPARK_TRIES):
            database = self._database(_ROWS)
            if self._differ(database, self._in_spark):
                small = self._shrunk(database, self._in_spark, _SPARK_SHRINKS)
                if proven := self._proven(small):
                    return Sought(proven, self._tried)
        why = f"none among {self._tried:,} databases"
        if doubts:
            why += f"; {doubts} on which DuckDB's answers differ and Spark's do not"
        if self._failed == self._tried:
            why = f"both queries failed on all {self._tried:,} databases: {self._error}"
        return Sought(None, self._tried, why)

    # -- databases

    def _suspects(self, judge: Judge, seconds: float) -> Iterator[Database]:
        """Databases with other rows first; those on which only one query fails when none such comes soon."""
        until = time.monotonic() + seconds
        failing: list[Database] = []
        while time.monotonic() < until and (not failing or self._tried < _PATIENCE):
            database = self._database(1 + min(self._tried // 40, _ROWS - 1))
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

    def _in_duck(self, duck: Duck, database: Database) -> tuple[Ran, Ran]:
        for table, rows in database.items():
            duck.fill(table, self._kinds[table], rows)
        return duck.run(self._question.old), duck.run(self._question.new)

    def _in_spark(self, database: Database) -> tuple[Ran, Ran]:
        old, new = self._spark.ask(self._given(database), (self._question.old.sql, self._question.new.sql))
        return old, new

    def _given(self, database: Database) -> dict[str, Given]:
        types = self._question.columns
        return {
            table: Given(tuple(types[table].items()), tuple(tuple(bare(value) for value in row) for row in rows))
            for table, rows in database.items()
        }

    # -- judging

    def _differ(self, database: Database, judge: Judge) -> bool:
        old, new = judge(database)
        self._count(old, new)
        return differ(old, new, self._question.pairs)

    def _count(self, old: Ran, new: Ran) -> None:
        self._tried += 1
        self._failed += bool(old.error and new.error)
        self._error = old.error or self._error

    def _proven(self, database: Database) -> Witness | None:
        old, new = self._in_spark(database)
        if not differ(old, new, self._question.pairs):
            return None
        return Witness(self._given(database), old, new)

    # -- shrinking

    def _shrunk(self, found: Database, judge: Judge, budget: int) -> Database:
        """Fewer rows, then plainer values, as long as the same kind of difference stays."""
        shape = _shape(*judge(found))
        left = budget

        def still(database: Database) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                return False
            old, new = judge(database)
            return differ(old, new, self._question.pairs) and _shape(old, new) == shape

        smaller = self._fewer(found, still)
        for table, columns in self._kinds.items():
            rows = range(len(smaller[table]))
            for at, (name, of) in enumerate(columns):
                simple = self._pool.simple(of, name)
                for together in ([*rows], *([row] for row in rows)):  # a key must change in all its rows at once
                    smaller = self._plainer(smaller, table, together, at, simple, still)
        return smaller

    def _fewer(self, database: Database, still: Callable[[Database], bool]) -> Database:
        for table in database:
            row = 0
            while row < len(database[table]):
                rows = database[table]
                candidate = {**database, table: rows[:row] + rows[row + 1 :]}
                if still(candidate):
                    database = candidate
                else:
                    row += 1
        return database

    def _plainer(
        self,
        database: Database,
        table: str,
        chosen: Sequence[int],
        at: int,
        simple: Sequence[Any],
        still: Callable[[Database], bool],
    ) -> Database:
        rows = database[table]
        now = {repr(rows[row][at]) for row in chosen}
        for value in simple[:4] if len(now) == 1 else ():
            if repr(value) in now:
                break
            changed = [(*row[:at], value, *row[at + 1 :]) if i in chosen else row for i, row in enumerate(rows)]
            candidate = {**database, table: tuple(changed)}
            if still(candidate):
                return candidate
        return database


def _shape(old: Ran, new: Ran) -> tuple[bool, bool]:
    return bool(old.error), bool(new.error)


def differ(old: Ran, new: Ran, pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether two runs give other rows, as multisets over the paired columns, or only one of them fails."""
    if old.error or new.error:
        return bool(old.error) != bool(new.error)
    if not pairs:
        return len(old.rows) != len(new.rows)
    return _bag(old, [one for one, _ in pairs]) != _bag(new, [other for _, other in pairs])


def _bag(ran: Ran, names: Sequence[str]) -> Counter[tuple[str, ...]]:
    held = [column.lower() for column in ran.columns]
    at = [held.index(name.lower()) for name in names]
    return Counter(tuple(_form(row[i], ran.kinds[i]) for i in at) for row in ran.rows)


def _form(value: Any, kind: str) -> str:
    if isinstance(value, str) and kind.lower().startswith("decimal"):
        return f"{Decimal(value).normalize():f}"  # 1.0 is 1.00
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"  # -0.0 is 0
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:.9g}" if abs(value) < 1e9 else str(value)
    if isinstance(value, str) and len(value) >= 19 and value[4:5] == "-" and value[10:11] == "T":
        return value.removesuffix("+00:00")
    return repr(value)
