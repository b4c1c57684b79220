"""Dependents of a column are found before the first statement, however a query names it; every name is quoted."""

import pytest

from console.errors import CheckFailed, DataError
from console.propagation.clickhouse.table_migration import default_of
from console.propagation.dialects import DIALECTS
from console.propagation.dialects.clickhouse import CLICKHOUSE
from console.propagation.migration import AddColumn, ChangeColumn, DropColumn, Facets, Migration, Operation, swap
from console.propagation.tables import Dependent, Reader, StoreColumn, StoreTable
from console.propagation.translate.operations import StoreStatement, lossy
from console.propagation.types import parse
from console.stores.apply import StepPlan, refuse_lossy
from console.stores.files import MigrationFile

COLUMNS = tuple(
    StoreColumn(name=name, type=word, nullable=False)
    for name, word in (("id", "Int64"), ("a", "Int32"), ("b", "String"))
)


def table(*views: str, readers: tuple[str, ...] = (), columns: tuple[StoreColumn, ...] = COLUMNS) -> StoreTable:
    dependents = tuple(
        Dependent(name=f"d.mv{n}", target="d.target", select=view, columns=COLUMNS, key=("id",))
        for n, view in enumerate(views)
    )
    return StoreTable(
        name="d.src",
        columns=columns,
        key=("id",),
        dependents=dependents,
        readers=tuple(Reader(name=f"d.r{n}", select=one) for n, one in enumerate(readers)),
    )


def statements(operation: Operation, there: StoreTable) -> list[str]:
    steps = CLICKHOUSE.translate(Migration("post", "public", "src", operation), there, "m1").steps
    return [step.sql for step in steps if isinstance(step, StoreStatement)]


ODD = [
    "SELECT * REPLACE(upper(b) AS b) FROM d.src", "SELECT * EXCEPT('b.*') FROM d.src", "SELECT * APPLY(toString) FROM d.src",
    "SELECT COLUMNS('a|b') FROM d.src", "SELECT s.* REPLACE(1 AS a) FROM d.src AS s", "SELECT s.COLUMNS('b') FROM d.src AS s",
    "SELECT * EXCEPT(id) REPLACE(b || 'x' AS b) FROM d.src", "SELECT id, COLUMNS('b') APPLY(upper) FROM d.src",
    "SELECT * APPLY(x -> upper(x)) FROM d.src", "SELECT * EXCEPT STRICT a FROM d.src",
    "SELECT id, b FROM d.src UNION ALL SELECT id, a FROM d.src", "SELECT * FROM d.src UNION ALL SELECT * FROM d.src",
]  # fmt: skip


@pytest.mark.parametrize("query", ODD)
def test_a_view_whose_columns_are_not_written_out_is_left_alone_by_an_addition_and_stops_what_it_would_fail_by(
    query: str,
) -> None:
    there = table(query)
    added = CLICKHOUSE.translate(Migration("pre", "public", "src", AddColumn("c", parse("int32"))), there, "m1")
    assert [step.sql for step in added.steps if isinstance(step, StoreStatement)] == [
        "ALTER TABLE `d`.`src` ADD COLUMN IF NOT EXISTS `c` Nullable(Int32)"
    ]
    assert any("d.mv0" in warning for warning in added.warnings)
    for operation in (DropColumn("b"), swap({"b": "c"}), swap({"a": "b", "b": "a"})):
        with pytest.raises(DataError, match=r"the view d\.mv0"):
            statements(operation, there)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b FROM d.src", "SELECT b FROM mv0", "SELECT b FROM d.mv0 FINAL", "SELECT * FROM d.mv0", "SELECT x.b FROM target x",
        "SELECT a FROM d.other UNION ALL SELECT b FROM d.src", "SELECT * REPLACE(1 AS a) FROM d.src", "SELECT COLUMNS('b') FROM mv0",
        "SELECT * APPLY(x -> upper(x)) FROM d.src", "SELECT frob(b -> ) FROM src", "WITH x AS (SELECT b FROM d.src) SELECT 1 FROM x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("operation", [DropColumn("b"), swap({"b": "c"})])
def test_a_reader_is_found_by_every_name_of_the_table_and_where_it_cannot_be_parsed(
    query: str, operation: Operation
) -> None:
    there = table("SELECT id, a, b FROM d.src")
    assert statements(operation, there)
    with pytest.raises(DataError, match=r"the view d\.r0 reads d\.(src|target)\.b"):
        statements(operation, table("SELECT id, a, b FROM d.src", readers=(query,)))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM mv0", "SELECT * EXCEPT(b) FROM d.mv0", "SELECT b FROM e.mv0", "SELECT frob(a -> ) FROM src",
        "SELECT frob(b -> ) FROM other", "SELECT count(*) FROM mv0", "SELECT a FROM src UNION ALL SELECT id FROM mv0",
    ],
)  # fmt: skip
def test_a_reader_of_other_columns_or_tables_stops_nothing(query: str) -> None:
    assert statements(DropColumn("b"), table("SELECT id, a, b FROM d.src", readers=(query,)))


@pytest.mark.parametrize(
    ("default", "kind", "written"),
    [
        ("12345678901234567890.5", "decimal(30,2)", "'12345678901234567890.5'"), ("1e3", "decimal", "'1000'"), ("7", "decimal(9,1)", "'7'"),
        ("5", "string", "'5'"), ("'5'", "int32", "5"), ("'it''s \\'", "string", "'it\\'s \\\\'"), ("true", "boolean", "true"),
    ],
)  # fmt: skip
def test_a_default_is_written_as_its_type_has_it(default: str, kind: str, written: str) -> None:
    assert default_of(default, parse(kind)) == written


@pytest.mark.parametrize("default", ["0, DROP COLUMN id", "'x'", "1.5", "true", "99999999999", "now(), DROP COLUMN id"])
@pytest.mark.parametrize("store", ["clickhouse", "iceberg", "delta"])
def test_a_default_of_another_type_reaches_no_statement(default: str, store: str) -> None:
    migration = Migration("pre", "public", "src", AddColumn("c", parse("int32"), default=default))
    with pytest.raises(DataError, match=r"is not a value of int32"):
        DIALECTS[store].translate(migration, table(), "m1")


TYPES = [
    ("clickhouse", "Float64", "int64", True), ("clickhouse", "String", "int64", True), ("clickhouse", "UInt64", "int64", True),
    ("clickhouse", "Nullable(Int32)", "int64", False), ("clickhouse", "Decimal(10, 2)", "decimal", True),
    ("clickhouse", "Date32", "timestamp", False), ("clickhouse", "LowCardinality(Nullable(String))", "bytes", False),
    ("clickhouse", "Int32", "string", False), ("delta", "double", "bigint", True), ("delta", "string", "int64", True),
    ("delta", "int", "int64", False), ("delta", "decimal(10,2)", "decimal", True), ("delta", "float", "float64", False),
]  # fmt: skip


@pytest.mark.parametrize(("store", "word", "kind", "loses"), TYPES)
def test_a_widening_that_the_stores_own_type_does_not_survive_says_so_itself(
    store: str, word: str, kind: str, loses: bool
) -> None:
    there = table(columns=(*COLUMNS, StoreColumn(name="c", type=word)))
    change = ChangeColumn("c", Facets(parse(kind.replace("bigint", "int64"))), Facets(), "widening")
    steps = DIALECTS[store].translate(Migration("pre", "public", "src", change), there, "m1").steps
    assert [lossy(step) for step in steps] == ([] if kind == "bytes" else [loses])
    assert all(("may not hold every" in step.why) is loses for step in steps if isinstance(step, StoreStatement))


def test_what_a_store_would_lose_is_refused_though_the_migration_is_a_widening() -> None:
    there = table(columns=(*COLUMNS, StoreColumn(name="c", type="Float64")))
    migration = Migration("pre", "public", "src", ChangeColumn("c", Facets(parse("int64")), Facets(), "widening"))
    todo = StepPlan(
        change=MigrationFile("m1", migration, ""), place="src", steps=CLICKHOUSE.translate(migration, there, "m1").steps
    )
    with pytest.raises(CheckFailed, match="eu/ch: may lose stored values: m1"):
        refuse_lossy("eu/ch", [todo])
    refuse_lossy("eu/ch", [StepPlan(change=MigrationFile("m1", migration, ""), place="src", steps=())])


def test_an_operation_that_changes_no_type_loses_nothing() -> None:
    for store in ("clickhouse", "delta", "iceberg"):
        loosened = ChangeColumn("b", Facets(nullable=True), Facets(), "widening")
        result = DIALECTS[store].translate(Migration("pre", "public", "src", loosened), table(), "m1").steps
        assert result
        assert not any(map(lossy, result))
