"""Random tables, rows and queries. Every value computed here is total: no cast that fails, no overflow, no zero divided."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.planning.property import model
from tests.planning.property.model import Expr, From, Query, Select, SetOp, col, lit

Rows = list[tuple[Any, ...]]
TABLES = ("orders", "visits", "users")
TYPES = ("int", "int", "bigint", "double", "string", "string", "boolean", "date", "timestamp", "decimal(10,2)")
_JSON = ('{"k":"a","n":3}', '{"k":"b","n":"x"}', '{"k":null}', "{}", "not json", '{"k":"A","n":2,"deep":{"z":1}}')
VALUES: dict[str, tuple[Any, ...]] = {
    "int": (-1, 0, 1, 2, 3, 7),
    "bigint": (0, 1, 2, 2, 5, 4_000_000_000),
    "double": (-1.5, 0.0, 0.5, 1.0, 2.25),
    "decimal(10,2)": (Decimal("-1.10"), Decimal("0.00"), Decimal("1.00"), Decimal("2.50")),
    "string": ("", "a", "A", "ab", "b", "x%", "10"),
    "boolean": (True, False),
    "date": (date(1970, 1, 1), date(2024, 2, 29), date(2026, 11, 7)),
    "timestamp": (datetime(1970, 1, 1), datetime(2024, 2, 29, 23, 59, 59), datetime(2026, 11, 7, 12, 0, 0, 1)),
    "array<int>": ([], [1], [2, 1], [3, None, 3]),
}


@dataclass(frozen=True)
class World:
    """Tables as `{table: {column: Spark type}}`, and several databases of rows for them."""

    tables: dict[str, dict[str, str]]
    databases: tuple[dict[str, Rows], ...]


def world(rng: random.Random, databases: int = 3) -> World:
    tables: dict[str, dict[str, str]] = {}
    for table in TABLES[: rng.randrange(1, 4)]:
        letter = table[0]
        tables[table] = {"k": "int", f"{letter}_n": "int", f"{letter}_s": "string", f"{letter}_doc": "string"}
        tables[table] |= {f"{letter}_list": "array<int>"}
        tables[table] |= {f"{letter}{i}": rng.choice(TYPES) for i in range(rng.randrange(3, 6))}
    return World(tables, tuple(_database(rng, tables, size) for size in (3, 7, 12)[:databases]))


def _database(rng: random.Random, tables: Mapping[str, Mapping[str, str]], size: int) -> dict[str, Rows]:
    return {table: _rows(rng, columns, size) for table, columns in tables.items()}


def _rows(rng: random.Random, columns: Mapping[str, str], size: int) -> Rows:
    made: Rows = []
    for _ in range(size):
        if made and rng.random() < 0.2:
            made.append(rng.choice(made))  # what DISTINCT and UNION are about
        else:
            made.append(tuple(_value(rng, name, type) for name, type in columns.items()))
    return made


def _value(rng: random.Random, name: str, type: str) -> Any:
    if name == "k":
        return rng.choice((1, 1, 2, 2, 3, None))
    if rng.random() < 0.15:
        return None
    return rng.choice(_JSON) if name.endswith("_doc") else rng.choice(VALUES[type])


@dataclass
class Maker:
    """Builds queries over one world. Aliases and output names are never used twice in a query."""

    rng: random.Random
    world: World
    aliases: int = 0
    names: int = 0
    sources: list[From] = field(default_factory=list)

    def alias(self) -> str:
        self.aliases += 1
        return f"s{self.aliases}"

    def name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    # -- sources

    def source(self, depth: int, join: str = "") -> From:
        if depth and self.rng.random() < 0.35:
            inner = self.select(depth - 1, keyed=True)
            return From(self.alias(), inner, inner.columns, join)
        table = self.rng.choice(list(self.world.tables))
        return From(self.alias(), table, tuple(self.world.tables[table].items()), join)

    def joined(self, depth: int, most: int = 3) -> tuple[From, ...]:
        results = [self.source(depth)]
        for _ in range(self.rng.choices(range(most), (60, 30, 10)[:most])[0]):
            join = self.rng.choice(("JOIN", "LEFT JOIN"))
            other = self.source(depth, join)
            keys = [(s.alias, n) for s in results for n, _ in s.columns if n == "k" or n.endswith("key")]
            mine = [n for n, _ in other.columns if n == "k" or n.endswith("key")]
            left, right = self.rng.choice(keys), mine[0]
            on = [Expr("boolean", model.EQ, (col(*left, "int"), col(other.alias, right, "int")))]
            if self.rng.random() < 0.3:
                on.append(self.test([other]))
            results.append(From(other.alias, other.what, other.columns, join, tuple(on)))
        return tuple(results)

    # -- expressions

    def column(self, sources: tuple[From, ...] | list[From], type: str) -> Expr | None:
        results = [col(s.alias, n, t) for s in sources for n, t in s.columns if t == type]
        return self.rng.choice(results) if results else None

    def expr(self, sources: tuple[From, ...] | list[From], type: str, depth: int = 2) -> Expr:
        here = self.column(sources, type)
        if depth <= 0 or (here is not None and self.rng.random() < 0.4):
            return here if here is not None else self.literal(type)
        return self.compound(sources, type, depth - 1)

    def literal(self, type: str) -> Expr:
        match type:
            case "int":
                return lit("int", str(self.rng.randrange(9)))
            case "bigint":
                return lit("bigint", f"{self.rng.randrange(9)}L")
            case "double":
                return lit("double", f"{self.rng.randrange(9)}.5D")
            case "string":
                return lit("string", self.rng.choice(("'a'", "'A'", "'b'", "''", "'it\\'s'")))
            case "boolean":
                return lit("boolean", self.rng.choice(("true", "false")))
            case "date":
                return lit("date", "DATE '2024-02-29'")
            case "timestamp":
                return lit("timestamp", "TIMESTAMP '2024-02-29 23:59:59'")
            case "array<int>":
                return lit("array<int>", "array(1, 2)")
        return lit(type, f"CAST('{self.rng.randrange(9)}.25' AS {type.upper()})")

    def compound(self, sources: tuple[From, ...] | list[From], type: str, depth: int) -> Expr:
        def of(kind: str) -> Expr:
            return self.expr(sources, kind, depth)

        def small() -> Expr:
            return self.column(sources, "int") or self.literal("int")

        common: list[Callable[[], Expr]] = [
            lambda: Expr(type, model.COALESCE, (of(type), self.literal(type))),
            lambda: Expr(type, model.CASE, (self.test(sources, 0), of(type), self.literal(type))),
            lambda: Expr(type, model.IF, (self.test(sources, 0), self.literal(type), of(type))),
        ]
        own: dict[str, list[Callable[[], Expr]]] = {
            "int": [
                lambda: Expr("int", model.ADD, (of("int"), small())),
                lambda: Expr("int", model.SUB, (of("int"), small())),
                lambda: Expr("int", model.MUL, (small(), self.literal("int"))),
                lambda: Expr("int", "length({})", (of("string"),)),
                lambda: Expr("int", "abs({})", (of("int"),)),
                lambda: Expr("int", "size({})", (of("array<int>"),)),
                lambda: Expr("int", "year({})", (of("date"),)),
                lambda: Expr("int", "try_cast(get_json_object({}, '$.n') AS INT)", (self.doc(sources),)),
                lambda: Expr("int", model.CAST, (small(),)),
            ],
            "bigint": [
                lambda: Expr("bigint", model.CAST, (of("int"),)),
                lambda: Expr("bigint", model.CASTS, (small(),)),
                lambda: Expr("bigint", "({} DIV 2)", (of("int"),)),
            ],
            "double": [
                lambda: Expr("double", "({} / 2)", (of("int"),)),
                lambda: Expr("double", model.MUL, (of("double"), self.literal("double"))),
                lambda: Expr("double", model.CAST, (of("int"),)),
            ],
            "string": [
                lambda: Expr("string", "concat({}, {})", (of("string"), of("string"))),
                lambda: Expr("string", "({} || {})", (of("string"), of("string"))),
                lambda: Expr("string", "upper({})", (of("string"),)),
                lambda: Expr("string", "substring({}, 1, 2)", (of("string"),)),
                lambda: Expr("string", "get_json_object({}, '$.k')", (self.doc(sources),)),
                lambda: Expr("string", model.CAST, (of("int"),)),
                lambda: Expr("string", "trim({})", (of("string"),)),
            ],
            "date": [
                lambda: Expr("date", "date_add({}, 1)", (of("date"),)),
                lambda: Expr("date", "to_date({})", (of("timestamp"),)),
            ],
            "timestamp": [lambda: Expr("timestamp", "date_trunc('DAY', {})", (of("timestamp"),))],
            "boolean": [lambda: self.test(sources, depth)],
        }
        return self.rng.choice([*common, *own.get(type, []) * 3])()

    def doc(self, sources: tuple[From, ...] | list[From]) -> Expr:
        docs = [col(s.alias, n, t) for s in sources for n, t in s.columns if n.endswith("_doc")]
        return self.rng.choice(docs) if docs else self.expr(sources, "string", 0)

    def test(self, sources: tuple[From, ...] | list[From], depth: int = 1) -> Expr:
        """A condition."""
        rng = self.rng
        values = {kind for source in sources for _, kind in source.columns}
        type = rng.choice([kind for kind in ("int", "int", "string", "double", "date") if kind in values] or ["int"])
        one = self.expr(sources, type, depth)
        kind = rng.randrange(10)
        if kind < 4:
            form = rng.choice((model.EQ, model.NE, model.LT, model.LE, model.GT, model.GE, model.NULLSAFE))
            return Expr(
                "boolean", form, (one, self.literal(type) if rng.random() < 0.7 else self.expr(sources, type, 0))
            )
        if kind == 4:
            return Expr("boolean", rng.choice(("({} IS NULL)", "({} IS NOT NULL)")), (one,))
        if kind == 5:
            number = self.expr(sources, "int", depth)
            low, high = lit("int", "0"), lit("int", str(rng.randrange(1, 4)))
            return Expr("boolean", model.BETWEEN, (number, low, high))
        if kind == 6:
            number = self.expr(sources, "int", depth)
            return Expr(
                "boolean", rng.choice((model.IN, model.IN, model.NOT_IN)), (number, lit("int", "1"), lit("int", "3"))
            )
        if kind == 7:
            return Expr(
                "boolean", rng.choice(("({} LIKE 'a%')", "({} ILIKE 'a%')")), (self.expr(sources, "string", depth),)
            )
        if depth <= 0:
            return Expr("boolean", model.NE, (one, self.literal(type)))
        form = rng.choice((model.AND, model.OR, model.NOT))
        return Expr("boolean", form, tuple(self.test(sources, depth - 1) for _ in range(form.count("{}"))))

    def aggregate(self, sources: tuple[From, ...] | list[From]) -> Expr:
        number = self.expr(sources, "int", 1)
        return self.rng.choice(
            (
                Expr("bigint", model.COUNT_ALL),
                Expr("bigint", "count({})", (self.expr(sources, "string", 1),)),
                Expr("bigint", "count(DISTINCT {})", (number,)),
                Expr("bigint", "sum({})", (number,)),
                Expr("double", "avg({})", (number,)),
                Expr("int", "min({})", (number,)),
                Expr("string", "max({})", (self.expr(sources, "string", 1),)),
            )
        )

    def window(self, sources: tuple[From, ...] | list[From]) -> Expr:
        """Deterministic ones only: peers are ranked alike, and a frame by RANGE takes them all."""
        by, order = self.expr(sources, "string", 1), self.expr(sources, "int", 1)
        return self.rng.choice(
            (
                Expr("int", "rank() OVER (PARTITION BY {} ORDER BY {})", (by, order)),
                Expr("int", "dense_rank() OVER (ORDER BY {} DESC)", (order,)),
                Expr("bigint", "count(*) OVER (PARTITION BY {})", (by,)),
                Expr("bigint", "sum({}) OVER (PARTITION BY {} ORDER BY {})", (order, by, order)),
            )
        )

    # -- queries

    def items(self, sources: tuple[From, ...], count: int) -> list[tuple[str, Expr]]:
        values = sorted({type for source in sources for _, type in source.columns} & set(TYPES))
        types = [self.rng.choice(values) if self.rng.random() < 0.8 else self.rng.choice(TYPES) for _ in range(count)]
        return [(self.name(), self.expr(sources, type, self.rng.choice((1, 1, 2)))) for type in types]

    def where(self, sources: tuple[From, ...]) -> tuple[Expr, ...]:
        return tuple(self.test(sources) for _ in range(self.rng.choices(range(4), (35, 35, 20, 10))[0]))

    def plain(self, depth: int = 1, *, keyed: bool = False, most: int = 3) -> Select:
        """Projections and filters alone; `keyed` gives it an int column to join by."""
        sources = self.joined(depth, most)
        items = self.items(sources, self.rng.randrange(1, 4))
        if keyed:
            keys = [col(s.alias, n, t) for s in sources for n, t in s.columns if n == "k"] or [
                self.expr(sources, "int", 0)
            ]
            items = [(f"{self.name()}key", self.rng.choice(keys)), *items]
        return Select(tuple(items), sources, self.where(sources))

    def grouped(self, depth: int = 1, *, keyed: bool = False) -> Select:
        base = self.plain(depth, keyed=keyed)
        kept = tuple(base.items[: 2 if keyed else self.rng.randrange(1, 3)])
        items = [(name, expr if expr.columns() else self.expr(base.sources, "int", 0)) for name, expr in kept]
        aggregates = [(self.name(), self.aggregate(base.sources)) for _ in range(self.rng.randrange(1, 3))]
        having = (Expr("boolean", model.GT, (aggregates[0][1], lit("int", "0"))),) if self.rng.random() < 0.1 else ()
        if having and aggregates[0][1].type == "string":
            having = ()
        group = self.rng.choice(("names", "names", "ordinals", "all"))
        if any(not expr.columns() for _, expr in items):
            group = "all"
        return Select((*items, *aggregates), base.sources, base.where, group, having)

    def windowed(self, depth: int = 1, *, keyed: bool = False) -> Select:
        base = self.plain(depth, keyed=keyed)
        return Select((*base.items, (self.name(), self.window(base.sources))), base.sources, base.where)

    def select(self, depth: int = 1, *, keyed: bool = False) -> Select:
        match self.rng.randrange(10):
            case 0 | 1:
                return self.grouped(depth, keyed=keyed)
            case 2:
                return self.windowed(depth, keyed=keyed)
            case 3:
                base = self.plain(depth, keyed=keyed)
                return Select(base.items, base.sources, base.where, distinct=True)
        return self.plain(depth, keyed=keyed)

    def union(self, op: str, depth: int = 1) -> SetOp:
        left = self.plain(depth, most=2)
        sources = self.joined(depth, 2)
        items = tuple((self.name(), self.expr(sources, expr.type)) for _, expr in left.items)
        return SetOp(op, left, Select(items, sources, self.where(sources)))

    def query(self) -> Query:
        if self.rng.random() < 0.12:
            return self.union("UNION ALL")
        return self.select(2)
