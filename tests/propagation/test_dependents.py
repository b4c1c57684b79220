"""Dependents of a ClickHouse table change with it, or are reported before the first statement; ClickHouse itself is the judge."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.errors import DataError
from console.propagation.dialects.clickhouse import CLICKHOUSE
from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    ReplaceColumn,
    default_phase,
    swap,
)
from console.propagation.translate.operations import StoreStatement
from console.propagation.types import parse
from console.stores.clickhouse import ClickHouse as Store
from tests.propagation.servers.clickhouse import ClickHouse

pytestmark = pytest.mark.stores
WIDE = 3_000_000_000  # no Int32 holds it


class Base:
    """One database of a real ClickHouse."""

    def __init__(self, server: ClickHouse, name: str) -> None:
        import clickhouse_connect

        self.name = name
        self.client = clickhouse_connect.get_client(dsn=server.url(), autogenerate_session_id=False)
        self.client.command(f"CREATE DATABASE {name}")
        self.store = Store("test", server.url(name), name)

    def do(self, *statements: str) -> None:
        for statement in statements:
            self.client.command(statement.replace("db.", f"{self.name}."))

    def ask(self, query: str) -> list[Any]:
        return list(self.client.query(query.replace("db.", f"{self.name}.")).result_rows)

    def made(self) -> list[Any]:
        """All that there is, as ClickHouse itself would make it."""
        query = "SELECT name, create_table_query FROM system.tables WHERE database = {name:String} ORDER BY name"
        return list(self.client.query(query, parameters={"name": self.name}).result_rows)

    def left(self, operation: Operation, table: str = "src") -> list[str]:
        migration = Migration(default_phase(operation), "public", table, operation)
        steps = CLICKHOUSE.translate(migration, self.store.describe([table])[table], "m1").steps
        return [step.sql for step in steps if isinstance(step, StoreStatement)]

    def walk(self, operation: Operation) -> None:
        """Apply, the rest read off the store after every statement; the end is what was foreseen at the beginning."""
        migration = Migration(default_phase(operation), "public", "src", operation)
        foreseen = CLICKHOUSE.after(migration, self.store.describe(["src"])["src"], "m1")
        for _ in range(40):
            left = self.left(operation)
            if not left:
                break
            self.do(left[0])
        assert self.left(operation) == []
        there = self.store.describe(["src"])["src"]
        assert {c.name: c.type for c in there.columns} == {c.name: c.type for c in foreseen.columns}
        below = [{c.name: c.type for c in view.columns} for view in there.dependents]
        assert below == [{c.name: c.type for c in view.columns} for view in foreseen.dependents]

    def close(self) -> None:
        self.store.close()
        self.client.close()


@pytest.fixture
def base(server: ClickHouse, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Base]:
    result = Base(server, f"h{abs(hash(request.node.name)) % 10**9}")
    yield result
    result.close()


OWN = "v UInt64, g UInt8 DEFAULT 0"
TARGET = (
    "CREATE TABLE db.target (id Int64, n Int32, s String, d DateTime, v UInt64, g UInt8) ENGINE = MergeTree ORDER BY id"
)
VIEW = "CREATE MATERIALIZED VIEW db.mv TO db.target AS SELECT id, n, s, d, v, g FROM db.src"


def source(inside: str = "", behind: str = "", engine: str = "ReplacingMergeTree(v, g) ORDER BY id") -> str:
    more = f", {inside}" if inside else ""
    return f"CREATE TABLE db.src (id Int64, n Int32, s String, d DateTime, {OWN}{more}) ENGINE = {engine} {behind}"


widen = ChangeColumn("n", Facets(parse("int64")), Facets(parse("int32")), "widening")
loosen = ChangeColumn("n", Facets(nullable=True), Facets(nullable=False), "widening")
to_text = ChangeColumn("n", Facets(parse("string")), Facets(parse("int32")), "widening")
REBUILD = "SETTINGS deduplicate_merge_projection_mode = 'rebuild'"
DEPENDENT_CASES = [
    ("INDEX ix n TYPE minmax", "", DropColumn("n"), "the skip index ix"),
    ("INDEX ix (s, n) TYPE minmax", "", to_text, "the skip index ix"),
    ("", "TTL d + INTERVAL 1 YEAR", DropColumn("d"), "the TTL of"),
    ("e String TTL d + INTERVAL 1 YEAR", "", DropColumn("d"), "the TTL e"),
    ("PROJECTION p (SELECT s, sum(n) GROUP BY s)", REBUILD, DropColumn("n"), "the projection p"),
    ("PROJECTION p (SELECT s, sum(n) GROUP BY s)", REBUILD, swap({"n": "m"}), "the projection p"),
    ("PROJECTION p (SELECT s, sum(n) GROUP BY s)", REBUILD, widen, "the projection p"),
    ("PROJECTION p (SELECT * ORDER BY s)", REBUILD, swap({"n": "m"}), "the projection p"),
    ("CONSTRAINT c CHECK n > 0", "", DropColumn("n"), "the constraint c"),
    ("CONSTRAINT c CHECK n > 0", "", to_text, "the constraint c"),
    ("al Int64 ALIAS n + 1", "", DropColumn("n"), "the computed column al"),
    ("al Int64 MATERIALIZED n + 1", "", DropColumn("n"), "the computed column al"),
    ("al Int64 DEFAULT n + 1", "", DropColumn("n"), "the computed column al"),
    ("al Int32 MATERIALIZED n", "", widen, "the computed column al"),
    ("al Int64 MATERIALIZED n", "", loosen, "the computed column al"),
    ("al Int64 MATERIALIZED n + 1", "", to_text, "the computed column al"),
    ("", "", DropColumn("v"), "the engine ReplacingMergeTree"),
    ("", "", DropColumn("g"), "the engine ReplacingMergeTree"),
    ("", "", swap({"v": "w"}), "the engine ReplacingMergeTree"),
    ("", "", DropColumn("id"), "is ordered by id"),
]


@pytest.mark.parametrize(("inside", "behind", "operation", "why"), DEPENDENT_CASES, ids=lambda result: str(result)[:20])
@pytest.mark.parametrize("where", ["source", "target"])
def test_what_a_column_is_used_for_is_named_while_everything_is_as_it_was(
    base: Base, inside: str, behind: str, operation: Operation, why: str, where: str
) -> None:
    if where == "source":
        base.do(source(inside, behind), TARGET, VIEW)
    else:
        made = source(inside, behind)
        base.do(source(engine="MergeTree ORDER BY tuple()"), made.replace("db.src", "db.target"), VIEW)
    before = base.made()
    with pytest.raises(DataError) as refused:
        base.left(operation)
    text = str(refused.value)
    assert why in text or (where == "target" and "target is ordered or partitioned by id" in text), text
    assert refused.value.hint
    assert base.made() == before


def test_a_key_that_only_samples_stays_too(base: Base) -> None:
    base.do("CREATE TABLE db.src (id UInt32, k UInt32) ENGINE = MergeTree ORDER BY (id, k) SAMPLE BY k")
    with pytest.raises(DataError, match="is ordered by k"):
        base.left(DropColumn("k"))


def test_what_only_mentions_others_lets_a_column_go(base: Base) -> None:
    inside = "`n, m` String COMMENT 'n, INDEX n', INDEX ix d TYPE minmax, CONSTRAINT c CHECK d > '2000-01-01'"
    base.do(source(inside, "TTL d + INTERVAL 100 YEAR"), TARGET, VIEW)
    base.do("INSERT INTO db.src (id, n, s, d) VALUES (1, 1, 'n', now())")
    base.walk(DropColumn("n"))
    assert base.ask("SELECT id, s FROM db.target") == [(1, "n")]


CHAIN = (
    source(), TARGET, VIEW,
    TARGET.replace("db.target", "db.lower"),
    "CREATE MATERIALIZED VIEW db.lower_mv TO db.lower AS SELECT id, n, s, d, v, g FROM db.target",
)  # fmt: skip


def test_a_widened_column_keeps_its_values_two_views_down_and_in_everything_that_reads_it(base: Base) -> None:
    base.do(
        *CHAIN,
        "CREATE VIEW db.plain AS SELECT id, n FROM db.src FINAL",
        "CREATE VIEW db.again AS SELECT n AS number FROM db.plain",
        "CREATE VIEW db.of_lower AS SELECT * FROM db.lower",
        "CREATE VIEW db.of_view AS SELECT n FROM db.mv",
        "CREATE VIEW db.is_big AS SELECT id, n > 5 AS big FROM db.src",
        "CREATE TABLE db.buffer AS db.src ENGINE = Buffer(currentDatabase(), 'src', 1, 1, 1, 1, 1, 1, 1)".replace(
            "currentDatabase()", f"'{base.name}'"
        ),
    )  # fmt: skip
    base.do("INSERT INTO db.src (id, n) VALUES (1, 7)")
    base.walk(widen)
    base.do(f"INSERT INTO db.src (id, n) VALUES (2, {WIDE})", f"INSERT INTO db.buffer (id, n) VALUES (3, {WIDE})")
    base.do("OPTIMIZE TABLE db.buffer")
    rows = [(1, 7), (2, WIDE), (3, WIDE)]
    for table in ("src", "target", "lower", "plain", "of_lower", "buffer"):
        assert base.ask(f"SELECT id, n FROM db.{table} ORDER BY id") == rows, table
    for table, column in (("again", "number"), ("of_view", "n")):
        assert base.ask(f"SELECT {column} FROM db.{table} ORDER BY 1") == [(n,) for _, n in rows], table


def test_a_loosened_column_takes_null_two_views_down(base: Base) -> None:
    base.do(*CHAIN, "CREATE VIEW db.plain AS SELECT id, n FROM db.src")
    base.walk(loosen)
    base.do("INSERT INTO db.src (id, n) VALUES (2, NULL)")
    for table in ("src", "target", "lower", "plain"):
        assert base.ask(f"SELECT id, n FROM db.{table}") == [(2, None)], table


def test_an_added_column_arrives_two_views_down_and_through_a_buffer(base: Base) -> None:
    base.do(*CHAIN, f"CREATE TABLE db.buffer AS db.src ENGINE = Buffer('{base.name}', 'src', 1, 1, 1, 1, 1, 1, 1)")
    base.walk(AddColumn("kind", parse("string")))
    base.do("INSERT INTO db.src (id, kind) VALUES (1, 'k')", "INSERT INTO db.buffer (id, kind) VALUES (2, 'l')")
    base.do("OPTIMIZE TABLE db.buffer")
    for table in ("src", "target", "lower"):
        assert base.ask(f"SELECT id, kind FROM db.{table} ORDER BY id") == [(1, "k"), (2, "l")], table


def test_a_dropped_column_leaves_a_buffer_first(base: Base) -> None:
    base.do(source(), TARGET, VIEW, f"CREATE TABLE db.buffer AS db.src ENGINE = Buffer('{base.name}', 'src', 1, 1, 1, 1, 1, 1, 1)")  # fmt: skip
    base.walk(DropColumn("n"))
    base.do("INSERT INTO db.buffer (id, s) VALUES (2, 'l')", "OPTIMIZE TABLE db.buffer")
    assert base.ask("SELECT id, s FROM db.target") == [(2, "l")]


DICTIONARY = (
    "CREATE DICTIONARY db.words (id UInt64, n Int32) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE '{table}' DB '{db}'))"
    " LAYOUT(FLAT()) LIFETIME(0)"
)
STANDING = [
    (DICTIONARY.replace("{table}", "src"), DropColumn("n"), "the Dictionary"),
    (DICTIONARY.replace("{table}", "src"), widen, "the Dictionary"),
    (DICTIONARY.replace("{table}", "target"), swap({"n": "m"}), "the Dictionary"),
    ("CREATE TABLE db.over AS db.src ENGINE = Merge('{db}', '^src$')", DropColumn("n"), "the Merge"),
    ("CREATE TABLE db.over AS db.src ENGINE = Merge('{db}', '^src$')", widen, "the Merge"),
    ("CREATE TABLE db.over AS db.src ENGINE = Buffer('{db}', 'src', 1, 1, 1, 1, 1, 1, 1)", swap({"n": "m"}), "the Buffer"),
    ("CREATE VIEW db.top AS SELECT max(n) AS top FROM db.src", widen, "db.top computes its column top"),
    ("CREATE VIEW db.is_big AS SELECT n > 5 AS big FROM db.src", loosen, "db.is_big computes its column big"),
    ("CREATE VIEW db.is_big AS SELECT n > 5 AS big FROM db.src", to_text, "db.is_big computes with n"),
    ("CREATE MATERIALIZED VIEW db.two TO db.sums AS SELECT id FROM db.target WHERE n > 5", to_text, "db.two computes with n"),
    ("CREATE VIEW db.half AS SELECT n + 1 AS next FROM db.src", loosen, "db.half computes its column next"),
    ("CREATE MATERIALIZED VIEW db.kept ENGINE = MergeTree ORDER BY id AS SELECT id, n FROM db.src", widen, "has no target table, and reads n"),
    ("CREATE MATERIALIZED VIEW db.two TO db.sums AS SELECT id, n + 1 AS m FROM db.target", loosen, "db.two computes db.sums.m"),
    ("CREATE MATERIALIZED VIEW db.two TO db.sums AS SELECT id, -n AS m FROM db.target", widen, "db.two computes db.sums.m"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, n FROM db.target", swap({"n": "s", "s": "n"}), "db.two reads"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, n FROM db.target", swap({"n": "m"}), "db.two reads"),
    ("CREATE VIEW db.both AS SELECT n, s FROM db.src", swap({"n": "s", "s": "n"}), "db.both reads"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, n FROM db.target", DropColumn("n"), "db.two reads"),
    ("CREATE VIEW db.low AS SELECT n FROM db.target", DropColumn("n"), "db.low reads"),
    ("CREATE VIEW db.low AS SELECT n FROM db.target", swap({"n": "m"}), "db.low reads"),
    ("CREATE VIEW db.low AS SELECT n FROM db.mv", DropColumn("n"), "db.low reads"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "operation", "why"), STANDING, ids=lambda result: str(result)[:60])
def test_what_stands_over_a_table_or_below_its_views_is_named_while_everything_is_as_it_was(
    base: Base, made: str, operation: Operation, why: str
) -> None:
    base.do(
        source(), TARGET, VIEW,
        "CREATE TABLE db.sums (id Int64, m Int32) ENGINE = MergeTree ORDER BY id",
        "CREATE TABLE db.far (id Int64, n Int32) ENGINE = MergeTree ORDER BY id",
        made.replace("{db}", base.name),
    )  # fmt: skip
    before = base.made()
    with pytest.raises(DataError) as refused:
        base.left(operation)
    assert why.replace("db.", f"{base.name}.") in str(refused.value)
    assert refused.value.hint
    assert base.made() == before


def test_a_table_without_rows_of_its_own_is_no_place(base: Base) -> None:
    base.do(source(), f"CREATE TABLE db.buffer AS db.src ENGINE = Buffer('{base.name}', 'src', 1, 1, 1, 1, 1, 1, 1)")
    with pytest.raises(DataError, match="is a Buffer"):
        base.left(AddColumn("kind", parse("string")), "buffer")


def test_a_replaced_view_keeps_who_it_runs_as_and_what_it_says(base: Base) -> None:
    text = "DEFINER = default SQL SECURITY DEFINER COMMENT 'it\\'s \\\\ mine'"
    base.do(source(), TARGET, VIEW.replace(" AS SELECT", f" {text} AS SELECT"))
    base.do(f"CREATE VIEW db.plain {text} AS SELECT id, n FROM db.src")
    before = dict(base.made())
    assert before["mv"].count("DEFINER") == before["plain"].count("DEFINER") == 2
    for number, operation in enumerate((AddColumn("kind", parse("string")), widen, DropColumn("kind"))):
        base.walk(operation)
        made = dict(base.made())
        for view in ("mv", "plain"):
            assert "DEFINER = default SQL SECURITY DEFINER COMMENT 'it\\'s \\\\ mine'" in made[view], number
    kept = {column: kind for column, kind in base.ask(f"SELECT name, type FROM system.columns WHERE database = '{base.name}' AND table = 'plain'")}  # fmt: skip
    assert kept == {"id": "Int64", "n": "Int64"}


def test_ttls_indices_and_computed_columns_follow_a_swap_to_the_values_that_they_were_for(base: Base) -> None:
    inside = (
        "n2 Int32, d2 DateTime, twice Int64 MATERIALIZED n * 2, shown Int64 ALIAS n + 1, INDEX ix n TYPE minmax,"
        " CONSTRAINT c CHECK n < 100"
    )
    base.do(source(inside, "TTL d + INTERVAL 100 YEAR"))
    base.do(TARGET.replace("v UInt64", "v UInt64, n2 Int32, d2 DateTime"), "CREATE MATERIALIZED VIEW db.mv TO db.target AS SELECT * FROM db.src")  # fmt: skip
    base.do("INSERT INTO db.src (id, n, n2, d, d2) VALUES (1, 5, 500, '2020-01-01 00:00:00', '2030-01-01 00:00:00')")
    base.walk(swap({"n": "n2", "n2": "n", "d": "d2", "d2": "d"}))
    base.do("INSERT INTO db.src (id, n2, n, d2, d) VALUES (2, 6, 600, '2020-01-01 00:00:00', '2030-01-01 00:00:00')")
    assert base.ask("SELECT id, n, n2, twice, shown, toYear(d) FROM db.src ORDER BY id") == [
        (1, 500, 5, 10, 6, 2030),
        (2, 600, 6, 12, 7, 2030),
    ]
    assert base.ask("SELECT id, n, n2, toYear(d) FROM db.target ORDER BY id") == [(1, 500, 5, 2030), (2, 600, 6, 2030)]
    made = dict(base.made())["src"]
    assert "TTL d2 + toIntervalYear(100)" in made
    assert "INDEX ix n2" in made


MORE = TARGET.replace("n Int32", "n Int32, m Int32")
MORE_VIEW = VIEW.replace("id, n,", "id, n, m,")


@pytest.mark.parametrize("select", ["id, n, m, s, d, v, g", "*"])
def test_a_column_takes_anothers_name_and_its_values_along(base: Base, select: str) -> None:
    base.do(source("m Int32"), MORE, VIEW.replace("id, n, s, d, v, g", select))
    base.do("CREATE VIEW db.plain AS SELECT id, n FROM db.src", "INSERT INTO db.src (id, n, m) VALUES (1, 5, 500)")
    base.walk(ReplaceColumn("n", "m"))
    base.do("INSERT INTO db.src (id, n) VALUES (2, 600)")
    for table in ("src", "target", "plain"):
        assert base.ask(f"SELECT id, n FROM db.{table} ORDER BY id") == [(1, 500), (2, 600)], table
    assert "`m`" not in "".join(made for _, made in base.made())


def test_a_new_column_takes_anothers_name_and_older_rows_read_its_default(base: Base) -> None:
    base.do(source(), TARGET, VIEW, "INSERT INTO db.src (id, n) VALUES (1, 5)")
    operation = ReplaceColumn("n", None, Facets(parse("string"), nullable=False, default="'old'"))
    before = base.made()
    with pytest.raises(DataError, match="has no column n__new") as refused:
        base.left(operation)
    assert "--phase pre" in refused.value.hint
    assert base.made() == before
    assert operation.staged is not None
    base.walk(operation.staged)
    base.do("INSERT INTO db.src (id, n) VALUES (2, 6)", "INSERT INTO db.src (id, n__new) VALUES (3, 'new')")
    base.walk(operation)
    base.do("INSERT INTO db.src (id, n) VALUES (4, 'newer')")
    for table in ("src", "target"):
        result = base.ask(f"SELECT id, n FROM db.{table} ORDER BY id")
        assert result == [(1, "old"), (2, "old"), (3, "new"), (4, "newer")], table
    assert base.store.describe(["src"])["src"].marks == ("m1",)


def test_a_view_that_hands_on_one_of_two_names_that_change_places_is_named(base: Base) -> None:
    """Its target has both: the one would stop arriving, the other begin to, and no query would tell."""
    base.do(source("m Int32"), MORE, VIEW)
    before = base.made()
    with pytest.raises(DataError, match="passes on n, but not m, with which it is swapped") as refused:
        base.left(swap({"n": "m", "m": "n"}))
    assert base.made() == before
    assert "pass on all of m, n in" in refused.value.hint
    base.do("DROP VIEW db.mv", MORE_VIEW)
    base.walk(swap({"n": "m", "m": "n"}))


REPLACED = [
    ("CREATE VIEW db.top AS SELECT m FROM db.src", "db.top reads"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, n FROM db.src", "passes on n, but not m"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, n + m AS n FROM db.src", "computes with n"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, m AS n FROM db.target", "db.two reads"),
    ("CREATE MATERIALIZED VIEW db.two TO db.far AS SELECT id, n FROM db.target", "db.two reads"),
    ("ALTER TABLE db.src ADD INDEX ix n TYPE minmax", "the skip index ix"),
    ("CREATE TABLE db.over AS db.src ENGINE = Buffer('{db}', 'src', 1, 1, 1, 1, 1, 1, 1)", "the Buffer"),
]


@pytest.mark.parametrize(("made", "why"), REPLACED, ids=lambda result: str(result)[:60])
def test_what_stands_in_a_replacements_way_is_named_while_everything_is_as_it_was(
    base: Base, made: str, why: str
) -> None:
    base.do(
        source("m Int32"), MORE, MORE_VIEW, "CREATE TABLE db.far (id Int64, n Int64) ENGINE = MergeTree ORDER BY id"
    )
    base.do(made.replace("{db}", base.name))
    before = base.made()
    with pytest.raises(DataError) as refused:
        base.left(ReplaceColumn("n", "m"))
    assert why.replace("db.", f"{base.name}.") in str(refused.value)
    assert base.made() == before
