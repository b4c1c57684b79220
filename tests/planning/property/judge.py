"""The comparison's verdict on an edit, checked against its construction, against rows in DuckDB, and against Spark."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from console.drivers.replay import Given, Ran, Replayer
from console.planning.compare import QueryDifference, compare
from tests.planning.property.build import Rows, World
from tests.planning.property.edits import Edit

VOLATILE = ("TABLESAMPLE", "LIMIT", "OFFSET")  # which rows they keep is not said


def wrong(edit: Edit, message: QueryDifference) -> str:
    """Why the answer is unsafe by how the edit was made, or ""."""
    kept = {*message.same, *message.renamed}
    if edit.group == "harmless" or message.rows != "same":
        return ""
    if edit.rows:
        return "the rows differ and are called the same"
    if edit.group == "value" and (lost := edit.changed & kept):
        return f"{', '.join(sorted(lost))} differs and is called the same"
    if edit.group == "hazard" and kept >= set(edit.columns):
        return "old values differ and nothing old is called changed"
    return ""


def recognised(edit: Edit, message: QueryDifference) -> bool:
    """Whether a harmless edit is seen for exactly what it is."""
    return (
        message.rows == "same"
        and not message.changed
        and set(message.added) == edit.added
        and set(message.removed) == edit.removed
        and dict(message.renamed) == dict(edit.renamed)
    )


@dataclass
class Engine:
    """DuckDB holding the databases of the worlds it has met, each in a schema of its own."""

    db: Any = field(default_factory=duckdb.connect)
    worlds: dict[int, World] = field(default_factory=dict)

    def run(self, world: World, number: int, sql: str, names: Sequence[str]) -> Counter[tuple[str, ...]]:
        """The rows as a multiset, of these columns.

        raises  duckdb.Error, sqlglot.errors.SqlglotError where it cannot be run there
        """
        self._enter(world, number)
        result = self.db.execute(self.translated(sql))
        values = [column[0].lower() for column in result.description]
        at = [values.index(name.lower()) for name in names]
        return multiset(result.fetchall(), at)

    @staticmethod
    @lru_cache(maxsize=64)
    def translated(sql: str) -> str:
        return in_duckdb(sql)

    def _enter(self, world: World, number: int) -> None:
        if id(world) not in self.worlds:
            self.worlds[id(world)] = world
            for i, database in enumerate(world.databases):
                self.db.execute(f"CREATE SCHEMA w{id(world)}_{i}")
                self.db.execute(f"SET schema = 'w{id(world)}_{i}'")
                for table, rows in database.items():
                    self._fill(table, world.tables[table], rows)
        self.db.execute(f"SET schema = 'w{id(world)}_{number}'")

    def _fill(self, table: str, columns: dict[str, str], rows: Rows) -> None:
        kinds = [f"{name} {'int[]' if kind == 'array<int>' else kind}" for name, kind in columns.items()]
        self.db.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")
        if rows:
            self.db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)


def in_duckdb(sql: str) -> str:
    """The judge's own translation: the rows are its witness, so it asks nothing of what it judges."""
    tree = sqlglot.parse_one(sql, read="spark")
    for call in list(tree.find_all(exp.JSONExtractScalar)):
        document = call.this.copy()
        # Spark reads NULL from a text that is no JSON, DuckDB refuses it
        valid = exp.Anonymous(this="json_valid", expressions=[document])
        call.replace(exp.Case(ifs=[exp.If(this=valid, true=call.copy())]))
    text: str = tree.sql("duckdb")
    return text


def multiset(rows: Iterable[Sequence[Any]], at: Sequence[int]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(_form(row[i]) for i in at) for row in rows)


def _form(value: Any) -> str:
    match value:
        case float() if value == int(value):
            return str(int(value))
        case float():
            return f"{value:.9g}"
    return str(value)


def truth(edit: Edit, message: QueryDifference) -> QueryDifference:
    """What is to be held against rows: the answer, and for edits whose whole truth is known, that truth."""
    if edit.group in ("hazard", "mutation"):
        return message
    kept = tuple(c for c in edit.columns if c not in edit.removed | edit.changed | set(dict(edit.renamed)))
    return QueryDifference(rows="same", same=kept, renamed=dict(edit.renamed))


def contradicted(edit: Edit, message: QueryDifference, engine: Engine, every: bool = False) -> str | None:
    """What DuckDB finds to differ although it is called the same; "" where nothing, None where it cannot be run.

    every  queries too whose rows depend on which ones an engine happens to take
    """
    if message.rows != "same" or edit.old == edit.new:
        return ""
    if not every and any(word in edit.old + edit.new for word in VOLATILE):
        return ""
    old_names = [*message.same, *message.renamed]
    new_names = [*message.same, *message.renamed.values()]
    for number in range(len(edit.world.databases)):
        try:
            old = engine.run(edit.world, number, edit.old, old_names)
            new = engine.run(edit.world, number, edit.new, new_names)
        except (duckdb.Error, sqlglot.errors.SqlglotError, ValueError):
            return None
        if old != new:
            return f"database {number}: only old {dict(old - new)}, only new {dict(new - old)}"
    return ""


@dataclass
class Score:
    """What came out, edit by edit."""

    edits: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    precise: int = 0
    checked: int = 0
    not_run: int = 0
    unsafe: list[tuple[Edit, str]] = field(default_factory=list)
    suspected: list[tuple[Edit, QueryDifference, str]] = field(default_factory=list)
    examples: dict[str, tuple[Edit, QueryDifference]] = field(default_factory=dict)

    def add(self, edit: Edit, engine: Engine) -> QueryDifference:
        comparison = compare(edit.old, edit.new, edit.world.tables)
        self.edits[edit.group] += 1
        self.kinds[edit.group, edit.kind] += 1
        if reason := wrong(edit, comparison):
            self.unsafe.append((edit, reason))
        if edit.group == "harmless" and not recognised(edit, comparison):
            self.missed[edit.kind] += 1
            self.examples.setdefault(edit.kind, (edit, comparison))
        self.precise += edit.group == "value" and comparison.rows == "same" and set(comparison.changed) == edit.changed
        claim = truth(edit, comparison)
        result = contradicted(edit, claim, engine)
        self.checked += claim.rows == "same" and result is not None
        self.not_run += result is None
        if result:
            self.suspected.append((edit, claim, result))
        return comparison

    @property
    def recognised(self) -> float:
        harmless = self.edits["harmless"]
        return (harmless - self.missed.total()) / harmless if harmless else 1.0

    def figures(self) -> dict[str, int]:
        """What many scores are added up by."""
        return {
            "edits": self.edits.total(),
            "unsafe": len(self.unsafe),
            "suspected": len(self.suspected),
            "run": self.checked,
            "harmless": self.edits["harmless"],
            "recognised": self.edits["harmless"] - self.missed.total(),
            "values": self.edits["value"],
            "precise": self.precise,
        }

    def text(self) -> str:
        """The scoreboard."""
        total = self.edits.total()
        shares = ", ".join(f"{n} {group} ({n / total:.0%})" for group, n in sorted(self.edits.items()))
        lines = [
            f"{total} edits: {shares}",
            f"unsafe {len(self.unsafe)}; suspected by rows in DuckDB {len(self.suspected)} "
            f"({self.checked} pairs of which something stays were run on their data, {self.not_run} could not be)",
            f"recognised {self.recognised:.1%} of the harmless; "
            f"{self.precise} of {self.edits['value']} value edits attributed to the right column",
        ]
        for kind, missed in self.missed.most_common():
            lines.append(f"  missed {missed} of {self.kinds['harmless', kind]}: {kind}")
        return "\n".join(lines)


# -- Spark, which has the last word


def given(world: World, number: int) -> dict[str, Given]:
    """One database of a world, in the values of the replayer."""
    return {
        table: Given(tuple(world.tables[table].items()), tuple(tuple(_json(value) for value in row) for row in rows))
        for table, rows in world.databases[number].items()
    }


def _json(value: Any) -> Any:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
    return value


def differing(edit: Edit, message: QueryDifference, old: Ran, new: Ran) -> str:
    """What differs in two runs although it is called the same, or ""; a query that fails shows nothing."""
    if message.rows != "same" or old.error or new.error:
        return ""
    olds = [name.lower() for name in (*message.same, *message.renamed)]
    news = [name.lower() for name in (*message.same, *message.renamed.values())]
    was = multiset(old.rows, _places(old, olds))
    now = multiset(new.rows, _places(new, news))
    return f"only old {dict(was - now)}, only new {dict(now - was)}" if was != now else ""


def _places(ran: Ran, names: Iterable[str]) -> list[int]:
    values = [column.lower() for column in ran.columns]
    return [values.index(name) for name in names]


def confirmed(suspected: list[tuple[Edit, QueryDifference, str]]) -> list[tuple[Edit, str]]:
    """Those differences seen in DuckDB that Spark shows as well."""
    results = []
    with Replayer() as spark:
        for edit, item, _ in suspected:
            for number in range(len(edit.world.databases)):
                old, new = spark.ask(given(edit.world, number), (edit.old, edit.new))
                if shown := differing(edit, item, old, new):
                    results.append((edit, shown))
                    break
    return results
