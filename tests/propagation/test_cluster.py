"""Statements for a whole cluster: ClickHouse's own parser accepts each of them as an ON CLUSTER statement.

The run itself needs a server with Keeper, which no package registry has: docs/schema.md says so.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.errors import DataError, Problems
from console.model.region import Region
from console.propagation.dialects.clickhouse import CLICKHOUSE
from console.propagation.migration import AddColumn, DropColumn, Facets, Migration, Operation, ReplaceColumn, swap
from console.propagation.tables import ColumnStorage
from console.propagation.translate.operations import StoreOperation, StoreStatement
from console.propagation.types import parse
from console.stores.clickhouse import ClickHouse as Store
from console.stores.files import read_plan, sites
from console.stores.tables.clickhouse import behind, stands_over
from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.test_dependents import CHAIN, Base, widen

OPERATIONS: list[Operation] = [
    AddColumn("kind", parse("string"), nullable=False, default="'it''s'"), DropColumn("s"), widen,
    swap({"n": "m"}), swap({"s": "s2", "s2": "s"}), ReplaceColumn("n", "n2"),
]  # fmt: skip


class Heard(Store):
    """Keeps what is asked of the server, and asks for its syntax tree alone."""

    def __init__(self, base: Base, url: str, cluster: str) -> None:
        super().__init__("c", url, base.name, cluster=cluster)
        self.base, self.trees = base, list[str]()

    def _command(self, sql: str, settings: object = None) -> None:
        self.trees.append("\n".join(line for (line,) in self.base.ask(f"EXPLAIN AST {sql}")))


@pytest.fixture
def base(server: ClickHouse, request: pytest.FixtureRequest) -> Iterator[Base]:
    result = Base(server, f"c{abs(hash(request.node.name)) % 10**9}")
    yield result
    result.close()


@pytest.mark.stores
def test_every_statement_is_one_for_the_cluster_to_clickhouses_own_parser(base: Base) -> None:
    more = "s String, s2 String, n2 Int32"
    base.do(*(statement.replace("s String", more).replace("id, n, s,", "id, n, n2, s, s2,") for statement in CHAIN[:3]))
    base.do("CREATE VIEW db.plain AS SELECT id, n FROM db.src")
    report = set[str]()
    for operation in OPERATIONS:
        if not isinstance(operation, swap({"a": "b"}).__class__ | ReplaceColumn):
            base.do("CREATE OR REPLACE VIEW db.plain AS SELECT id, n FROM db.src")
        else:
            base.do("DROP VIEW IF EXISTS db.plain")
        table = base.store.describe(["src"])["src"]
        migration = Migration("pre", "public", "src", operation)
        plain = CLICKHOUSE.translate(migration, table, "m1").steps
        steps = CLICKHOUSE.translate(migration, replace(table, cluster="all hosts"), "m1").steps
        assert len(plain) == len(steps)
        for one, other in zip(plain, steps, strict=True):
            sql = statement_of(other)
            assert sql.count("ON CLUSTER `all hosts`") == 1
            assert sql.replace(" ON CLUSTER `all hosts`", "") == statement_of(one)
            [formatted] = base.client.query(f"SELECT formatQuerySingleLine({literal(sql)})").result_rows[0]
            assert re.search(r"ON CLUSTER (`all hosts`|\"all hosts\")", formatted), formatted
            base.ask(f"EXPLAIN AST {sql}")
            report.add(" ".join(sql.split(" ")[:2]))
    assert report == {"ALTER TABLE", "CREATE MATERIALIZED", "CREATE OR", "EXCHANGE TABLES", "DROP VIEW"}


def statement_of(step: StoreOperation) -> str:
    assert isinstance(step, StoreStatement)
    return step.sql


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.stores
def test_the_lock_and_the_journal_are_made_on_the_cluster_too(base: Base, server: ClickHouse) -> None:
    store = Heard(base, server.url(base.name), "c1")
    store.set_mark("console_schema_lock", "it's mine")
    store.drop_mark("console_schema_lock")
    store._make("console_schema_migrations")
    assert len(store.trees) == 3
    store.close()


def test_a_host_that_missed_its_part_is_found() -> None:
    rows = [
        {"host": "a", "table": "t", "columns": [("id", "Int64", ""), ("n", "Int64", "")]},
        {"host": "b", "table": "t", "columns": [("id", "Int64", ""), ("n", "Int64", "")]},
        {"host": "a", "table": "here_alone", "columns": [("id", "Int64", "")]},
        {"host": "b", "table": "there_alone", "columns": [("id", "Int64", "")]},
    ]
    assert behind(rows, "a") is None
    missed = {"host": "c", "table": "t", "columns": [("id", "Int64", ""), ("n", "Int32", "")]}
    assert behind([*rows, missed], "a") == ("c", "t")


@pytest.mark.stores
def test_settings_go_with_what_changes_a_schema(base: Base, server: ClickHouse) -> None:
    store = Store("c", server.url(base.name), base.name, settings={"alter_sync": 2, "mutations_sync": 2})
    base.do("CREATE TABLE db.src (id Int64) ENGINE = MergeTree ORDER BY id")
    text = "concat(toString(getSetting('alter_sync')), toString(getSetting('mutations_sync'))) AS settings"
    sql = f"CREATE TABLE {base.name}.heard ENGINE = MergeTree ORDER BY settings AS SELECT {text}"
    store.run(store.describe(["src"])["src"], [StoreStatement(sql, "")], "m1")
    assert base.ask("SELECT settings FROM db.heard") == [("22",)]
    store.close()


@pytest.mark.stores
def test_a_column_is_kept_as_the_operators_file_says_in_the_table_and_below(base: Base) -> None:
    base.do(*CHAIN)
    kept = (ColumnStorage("kind", "ZSTD(3)", low_cardinality=True), ColumnStorage("n", "Delta, LZ4"))
    fresh = ReplaceColumn("n", None, Facets(parse("int64"), nullable=True, default=None)).staged
    assert fresh is not None
    for operation in (AddColumn("kind", parse("string"), nullable=False, default="'x'"), fresh):
        table = replace(base.store.describe(["src"])["src"], kept=kept)
        for step in CLICKHOUSE.translate(Migration("pre", "public", "src", operation), table, "m1").steps:
            base.do(statement_of(step))
    for name in ("src", "target", "lower"):
        [made] = [made for item, made in base.made() if item == name]
        assert "`kind` LowCardinality(String) DEFAULT 'x' CODEC(ZSTD(3))" in made
        assert "`n__new` Nullable(Int64) CODEC(Delta(8), LZ4)" in made


FILES = """\
tables: {issues: }
stores:
  main: {kind: clickhouse, url: "http://h:1/d", cluster: all, alter_sync: 2, columns: main.yaml, table: "s_{table}"}
"""


def test_the_file_of_columns_is_read_or_its_place_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "plans" / "app"
    folder.mkdir(parents=True)
    (folder / "replication.yaml").write_text(FILES)
    with pytest.raises(Problems, match=r"stores\.main\.columns: no file 'main\.yaml'"):
        read_plan(tmp_path, None)
    (folder / "main.yaml").write_text('issues: {state: {low_cardinality: true}, title: {codec: "ZSTD(3)"}}\n')
    [target] = read_plan(tmp_path, None).replication.stores
    assert target.kept == {
        "s_issues": (ColumnStorage("state", "", low_cardinality=True), ColumnStorage("title", "ZSTD(3)"))
    }
    for wrong in ('issues: {title: {codec: "ZSTD); DROP"}}', "other: {}", "issues: {title: {kodec: x}}"):
        (folder / "main.yaml").write_text(wrong + "\n")
        with pytest.raises(Problems, match=r"stores\.main\.columns"):
            read_plan(tmp_path, None)
    (folder / "main.yaml").write_text("issues: {}\n")
    (folder / "replication.yaml").write_text(FILES.replace("alter_sync: 2", "alter_sync: 9"))
    with pytest.raises(DataError, match="alter_sync: expected 0, 1 or 2"):
        sites(read_plan(tmp_path, None), [Region(name="eu", warehouse="/w")])


def test_a_table_over_another_is_known_by_its_engines_arguments() -> None:
    for engine, full, over in (
        ("Distributed", "Distributed('all', 'd', 't', rand())", True),
        ("Distributed", "Distributed(all, d, t)", True),
        ("Distributed", "Distributed('all', 'other', 't')", False),
        ("Buffer", "Buffer('d', 't', 16, 10, 100, 1, 2, 3, 4)", True),
        ("Merge", "Merge('d', '^t')", True),
        ("Merge", "Merge(REGEXP('^d'), 't')", True),
        ("Merge", "Merge('d', '^u')", False),
    ):
        assert stands_over({"engine": engine, "engine_full": full, "whole": "d.x"}, "d.t") is over, full
