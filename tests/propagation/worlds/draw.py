"""Random ClickHouse schemas around one replicated table, and random migrations of it.

A world is what its seed says: features of the table and of what its views write into, views of two levels, plain views,
dictionaries, Buffer and Merge tables; then a migration, and rows written before it and after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Operation,
    ReplaceColumn,
    swap,
)
from console.propagation.types import parse

BASE: Final = ("id Int64", "n Int32", "m Int32", "s String", "d DateTime")
OWN: Final = ("v UInt64", "g UInt8 DEFAULT 0")
NAMES: Final = ("id", "n", "m", "s", "d", "v", "g")
ENGINES: Final = (
    ("MergeTree", 4), ("ReplacingMergeTree(v)", 3), ("ReplacingMergeTree(v, g)", 3), ("ReplacingMergeTree(m)", 1),
)  # fmt: skip
ORDERS: Final = (("ORDER BY id", 7), ("ORDER BY (id, n)", 1), ("PARTITION BY toYYYYMM(d) ORDER BY id", 1), ("ORDER BY (id, intHash32(m)) SAMPLE BY intHash32(m)", 1))  # fmt: skip
PARTS: Final = (
    "INDEX ix{k} {c} TYPE minmax", "INDEX ix{k} ({c}, {o}) TYPE minmax", "CONSTRAINT c{k} CHECK toString({c}) != 'never'",
    "CONSTRAINT c{k} CHECK n >= 0", "PROJECTION p{k} (SELECT {c}, count() GROUP BY {c})", "PROJECTION p{k} (SELECT * ORDER BY {c})",
    "al{k} Int64 ALIAS n + 1", "al{k} String MATERIALIZED concat(s, '!')", "al{k} Int32 MATERIALIZED n", "al{k} Int64 DEFAULT m * 2",
    "e{k} String TTL d + INTERVAL 100 YEAR",
)  # fmt: skip
TTLS: Final = ("", "", "", "TTL d + INTERVAL 100 YEAR", "TTL d + INTERVAL 100 YEAR DELETE WHERE n < 0")
PLAIN: Final = (
    "SELECT * FROM {t}", "SELECT id, n FROM {t}", "SELECT id, {c} AS x FROM {t}", "SELECT max(n) AS top FROM {t}",
    "SELECT id, n + 1 AS up FROM {t}", "SELECT id FROM {t} WHERE {c} = {c}", "SELECT count() AS c FROM {t}",
    "SELECT a.id AS id, b.{c} AS x FROM {t} AS a JOIN {t} AS b ON a.id = b.id", "SELECT id, n > 5 AS big FROM {t}",
    "SELECT x FROM (SELECT {c} AS x FROM {t})",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """seed   what it was drawn by;  made  the statements that make it, `db.` for its database;  operation  the migration"""

    seed: int
    made: tuple[str, ...]
    operation: Operation


def drawn(seed: int) -> World:
    dice = Random(seed)
    made = [_table(dice, "src", rich=True), _table(dice, "target", rich=False)]
    names = list(NAMES)
    hands_on = [name for name in names if name == "id" or dice.random() < 0.93]
    made.append(_view(dice, "mv", "target", "src", hands_on))
    if dice.random() < 0.45:
        made.append(_table(dice, "lower", rich=False))
        below = [name for name in hands_on if name == "id" or dice.random() < 0.9]
        made.append(_view(dice, "lower_mv", "lower", "target", below))
    if dice.random() < 0.3:
        made.append("CREATE TABLE db.sums (m Int32, top Int32, times UInt64) ENGINE = MergeTree ORDER BY tuple()")
        of = dice.choice(("src", "target"))
        made.append(
            f"CREATE MATERIALIZED VIEW db.sums_mv TO db.sums AS SELECT m, max(n) AS top, count() AS times FROM db.{of} GROUP BY m"
        )
    for number in range(dice.choice((0, 0, 1, 1, 2))):
        query = dice.choice(PLAIN).format(t=f"db.{dice.choice(('src', 'target', 'mv'))}", c=dice.choice("nms"))
        made.append(f"CREATE VIEW db.plain{number} AS {query}")
    made += _standing(dice)
    return World(seed, tuple(made), _operation(dice))


def _weighed(dice: Random, choices: Sequence[tuple[str, int]]) -> str:
    [result] = dice.choices([choice for choice, _ in choices], [weight for _, weight in choices])
    return result


def _table(dice: Random, name: str, *, rich: bool) -> str:
    parts = [
        dice.choice(PARTS).format(k=number, c=dice.choice("nmsd"), o=dice.choice("nms"))
        for number in range(dice.choice((0, 0, 0, 1, 1, 2) if rich else (0, 0, 0, 0, 1)))
    ]
    inside = ", ".join((*BASE, *OWN, *parts))
    engine = _weighed(dice, ENGINES)
    ttl = dice.choice(TTLS) if dice.random() < 0.4 else ""
    order = _weighed(dice, ORDERS)
    tail = f"{order} {ttl} SETTINGS deduplicate_merge_projection_mode = 'rebuild'"
    return f"CREATE TABLE db.{name} ({inside}) ENGINE = {engine} {tail}"


def _view(dice: Random, name: str, target: str, source: str, columns: Sequence[str]) -> str:
    report = dice.choice(("", "", "DEFINER = default SQL SECURITY DEFINER COMMENT 'mine'"))
    shown = ", ".join(columns)
    where = f" WHERE {dice.choice('nms')} IS NOT NULL" if dice.random() < 0.1 else ""
    return f"CREATE MATERIALIZED VIEW db.{name} TO db.{target} {report} AS SELECT {shown} FROM db.{source}{where}"


def _standing(dice: Random) -> Iterator[str]:
    over = dice.choice(("src", "target"))
    if dice.random() < 0.15:
        column = dice.choice(("n Int32", "s String", "m Int32"))
        yield (
            f"CREATE DICTIONARY db.words (id UInt64, {column}) PRIMARY KEY id"
            f" SOURCE(CLICKHOUSE(TABLE '{over}' DB '{{db}}')) LAYOUT(FLAT()) LIFETIME(0)"
        )
    if dice.random() < 0.15:
        yield "CREATE TABLE db.buffer AS db.src ENGINE = Buffer('{db}', 'src', 1, 1, 1, 1, 1, 1, 1)"
    if dice.random() < 0.1:
        yield f"CREATE TABLE db.merged AS db.{over} ENGINE = Merge('{{db}}', '^{over}$')"


def _operation(dice: Random) -> Operation:
    column = dice.choice("nnmsd")
    kinds = {"n": "int32", "m": "int32", "s": "string", "d": "timestamp"}
    match dice.choice(("add", "add", "drop", "drop", "widen", "widen", "loosen", "rename", "ring", "take", "fresh")):
        case "add":
            default = dice.choice((None, "'x'"))
            return AddColumn("extra", parse("string"), nullable=default is None or dice.random() < 0.5, default=default)
        case "drop":
            return DropColumn(column)
        case "widen":
            chosen = dice.choice("nm")
            return ChangeColumn(
                chosen, Facets(parse(dice.choice(("int64", "int64", "string")))), Facets(parse("int32")), "widening"
            )
        case "loosen":
            return ChangeColumn(column, Facets(nullable=True), Facets(nullable=False), "widening")
        case "rename":
            return swap({column: "called"})
        case "ring":
            one, other = dice.choice((("n", "m"), ("n", "s"), ("m", "s")))
            return swap({one: other, other: one})
        case "take":
            one, other = dice.choice((("n", "m"), ("m", "n"), ("s", "n")))
            return ReplaceColumn(one, other)
        case _:
            new = "int64" if kinds[column] == "string" else "string"
            return ReplaceColumn(column, None, Facets(parse(new), nullable=True, default=None))
