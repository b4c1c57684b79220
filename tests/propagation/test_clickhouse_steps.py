"""Every statement of a translation is executed, and after each one the rest is computed again from the store, as after a kill."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from console.errors import DataError
from console.propagation.dialects.clickhouse import CLICKHOUSE
from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    default_phase,
    swap,
)
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import StoreStatement
from console.propagation.types import parse
from console.stores.clickhouse import ClickHouse as Store
from tests.propagation.servers.clickhouse import ClickHouse

pytestmark = pytest.mark.stores
_OWN = "_at DateTime64(6, 'UTC') DEFAULT now64(6), _gone Bool DEFAULT false"
_ENGINE = "ENGINE = ReplacingMergeTree(_at, _gone) ORDER BY id"


class Sitting:
    """One database with a source, a target, the view between them, a writer that repeats and a reader that must not fail."""

    def __init__(self, url: str, database: str) -> None:
        import clickhouse_connect

        self.store = Store("test", url, database)
        self.client = clickhouse_connect.get_client(dsn=url, database=database, autogenerate_session_id=False)
        self.database = database
        self.rows = 0
        self.failed = 0

    def do(self, sql: str) -> None:
        self.client.command(sql)

    def ask(self, sql: str) -> list[Any]:
        return list(self.client.query(sql).result_rows)

    def tables(self, columns: str, select: str) -> None:
        for table in ("src", "target"):
            self.do(f"CREATE TABLE {table} (id Int64, {columns}, {_OWN}) {_ENGINE}")
        self.do(f"CREATE MATERIALIZED VIEW mv TO {self.database}.target AS {select}")

    def walk(
        self, operation: Operation, mark: str, write: Callable[[int], str], read: str = "SELECT id FROM target FINAL"
    ) -> list[str]:
        """Apply, a row written and a query made after every statement. returns the statements"""
        migration = Migration(default_phase(operation), "public", "src", operation)
        done: list[str] = []
        waiting: list[str] = []
        foreseen = []
        while True:
            self.rows += 1
            waiting = [sql for sql in [*waiting, write(self.rows)] if not self._inserted(sql)]
            self.ask(read)
            table = self.store.describe(["src"])["src"]
            steps = CLICKHOUSE.translate(migration, table, mark).steps
            foreseen.append(CLICKHOUSE.after(migration, table, mark))
            if not steps:
                break
            assert isinstance(steps[0], StoreStatement)
            self.do(steps[0].sql)
            done.append(steps[0].sql)
            assert len(done) < 30, done
        assert [sql for sql in waiting if not self._inserted(sql)] == []
        assert [described(one) for one in foreseen] == [described(table)] * len(foreseen)
        return done

    def _inserted(self, sql: str) -> bool:
        from clickhouse_connect.driver.exceptions import DatabaseError

        try:
            self.do(sql)
        except DatabaseError:
            self.failed += 1
            return False
        return True


def described(table: StoreTable) -> Any:
    """What the next migration would see of a table: types by name, and the views."""
    views = {view.name: ({c.name: c.type for c in view.columns}, _plain(view.select)) for view in table.dependents}
    return {column.name: column.type for column in table.columns}, views


def _plain(select: str) -> str:
    result = sqlglot.parse_one(select, read="clickhouse")
    for name in result.find_all(sqlglot.exp.Identifier):
        name.set("quoted", True)
    return result.sql(dialect="clickhouse")


@pytest.fixture
def sitting(server: ClickHouse, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sitting]:
    import clickhouse_connect

    database = f"d{abs(hash(request.node.name)) % 10**8}"
    clickhouse_connect.get_client(dsn=server.url(), autogenerate_session_id=False).command(
        f"CREATE DATABASE {database}"
    )
    result = Sitting(server.url(database), database)
    yield result
    result.store.close()
    result.client.close()


ALL = "SELECT id, a, b, _at, _gone FROM src"


def old(row: int) -> str:
    return f"INSERT INTO src (id, a, b) VALUES ({row}, {row}, 'b{row}')"


def test_an_added_column_reaches_the_table_and_the_target_of_its_mirror_and_no_row_is_missed(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do("CREATE TABLE sums (a Int32, n UInt64) ENGINE = SummingMergeTree ORDER BY a")
    sitting.do(
        f"CREATE MATERIALIZED VIEW sums_mv TO {sitting.database}.sums AS SELECT a, count() AS n FROM src GROUP BY a"
    )
    add = AddColumn("labels", parse("string"), nullable=False, default="'it''s \\ x'")
    done = sitting.walk(add, "m1", old)
    assert [sql.split(" ")[0] for sql in done] == ["ALTER", "ALTER", "CREATE", "EXCHANGE", "DROP"]
    sitting.do("INSERT INTO src (id, a, b, labels) VALUES (99, 99, 'z', 'new')")
    expected = [(row, "it's \\ x") for row in range(1, sitting.rows + 1)] + [(99, "new")]
    for table in ("src", "target"):
        assert sitting.ask(f"SELECT id, labels FROM {table} FINAL ORDER BY id") == expected
    assert sitting.failed == 0
    assert sitting.ask("SELECT sum(n) FROM sums") == [(sitting.rows + 1,)]


def test_a_dropped_column_leaves_the_view_then_the_target_then_the_table(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    done = sitting.walk(DropColumn("b"), "m1", lambda row: f"INSERT INTO src (id, a) VALUES ({row}, {row})")
    assert sitting.failed == 0
    for table in ("src", "target"):
        assert "b" not in {
            name
            for (name,) in sitting.ask(
                f"SELECT name FROM system.columns WHERE table = '{table}' AND database = '{sitting.database}'"
            )
        }
        rows = sitting.ask(f"SELECT id, a FROM {table} FINAL ORDER BY id")
        assert rows == [(row, row) for row in range(1, sitting.rows + 1)]
    assert done[-1].startswith(f"ALTER TABLE `{sitting.database}`.`src` DROP")


def test_a_ring_of_names_is_swapped_once_for_a_mark_and_back_for_another(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do(old(1000))

    def swapped(row: int) -> str:
        return f"INSERT INTO src (id, b, a) VALUES ({row}, {row}, 'b{row}')"

    read = "SELECT id, a, b FROM target FINAL"
    sitting.walk(swap({"a": "b", "b": "a"}), "m1", lambda row: old(row) if row == 1 else swapped(row), read)
    expected = [(row, f"b{row}", row) for row in (*range(1, sitting.rows + 1), 1000)]
    for table in ("src", "target"):
        assert sitting.ask(f"SELECT id, a, b FROM {table} FINAL ORDER BY id") == expected
    sitting.walk(
        swap({"a": "b", "b": "a"}),
        "m2",
        lambda row: swapped(row) if row < 100 and not _back(sitting) else old(row),
        read,
    )
    for table in ("src", "target"):
        result = sitting.ask(f"SELECT toTypeName(a), toTypeName(b) FROM {table} LIMIT 1")
        assert result == [("Int32", "String")]
        rows = sitting.ask(f"SELECT id, a, b FROM {table} FINAL ORDER BY id")
        assert rows == [(row, row, f"b{row}") for row in (*range(1, sitting.rows + 1), 1000)]


def _back(sitting: Sitting) -> bool:
    return sitting.ask(
        f"SELECT type FROM system.columns WHERE table = 'src' AND database = '{sitting.database}' AND name = 'a'"
    ) != [("String",)]


def test_a_renamed_column_keeps_its_values_in_the_table_and_in_the_target(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do(old(1000))
    new = "INSERT INTO src (id, a, label) VALUES ({row}, {row}, 'b{row}')"
    sitting.walk(swap({"b": "label"}), "m1", lambda row: old(row) if row == 1 else new.format(row=row))
    for table in ("src", "target"):
        rows = sitting.ask(f"SELECT id, label FROM {table} FINAL ORDER BY id")
        assert rows == [(row, f"b{row}") for row in (*range(1, sitting.rows + 1), 1000)]


def test_a_chain_of_names_moves_on_by_one_and_so_do_the_views(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do(f"CREATE TABLE middle (id Int64, b String, {_OWN}) {_ENGINE}")
    sitting.do(
        f"CREATE MATERIALIZED VIEW middle_mv TO {sitting.database}.middle AS"
        " SELECT id, b, _at, _gone FROM src WHERE b != ''"
    )
    sitting.do(old(1000))
    new = "INSERT INTO src (id, b, c) VALUES ({row}, {row}, 'b{row}')"
    sitting.walk(swap({"a": "b", "b": "c"}), "m1", lambda row: old(row) if row == 1 else new.format(row=row))
    expected = [(row, row, f"b{row}") for row in (*range(1, sitting.rows + 1), 1000)]
    for table in ("src", "target"):
        assert sitting.ask(f"SELECT id, b, c FROM {table} FINAL ORDER BY id") == expected
    assert sitting.ask("SELECT id, c FROM middle FINAL ORDER BY id") == [(row, text) for row, _, text in expected]


def test_a_ring_and_a_renaming_in_one_migration_are_both_done(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String, d String", ALL.replace("b,", "b, d,"))
    sitting.do("INSERT INTO src (id, a, b, d) VALUES (1000, 1, 'b', 'd')")

    def write(row: int) -> str:
        return f"INSERT INTO src (id, b, a, e) VALUES ({row}, 1, 'b', 'd')"

    sitting.walk(swap({"a": "b", "b": "a", "d": "e"}), "m1", write)
    for table in ("src", "target"):
        assert set(sitting.ask(f"SELECT a, b, e FROM {table} FINAL")) == {("b", 1, "d")}


def test_a_widened_and_loosened_column_takes_the_new_values_everywhere(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.walk(ChangeColumn("a", Facets(parse("int64")), Facets(parse("int32")), "widening"), "m1", old)
    sitting.walk(ChangeColumn("b", Facets(nullable=True), Facets(nullable=False), "widening"), "m2", old)
    sitting.do("INSERT INTO src (id, a, b) VALUES (1000, 10000000000, NULL)")
    assert sitting.failed == 0
    for table in ("src", "target"):
        rows = sitting.ask(f"SELECT a, b FROM {table} FINAL WHERE id >= 1000 ORDER BY id")
        assert rows == [(10000000000, None)]


def test_a_default_that_changes_later_leaves_what_older_rows_read(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do(old(1000))
    sitting.walk(AddColumn("c", parse("int32"), nullable=False, default="7"), "m1", old)
    for number, default in enumerate((None, "8", "now()")):
        assert sitting.walk(ChangeColumn("c", Facets(default=default), Facets(), "safe"), f"m2{number}", old) == []
    sitting.walk(ChangeColumn("c", Facets(parse("int64"), nullable=True), Facets(), "widening"), "m3", old)
    for table in ("src", "target"):
        assert sitting.ask(f"SELECT c FROM {table} FINAL WHERE id = 1000") == [(7,)]


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("boolean", "true", True), ("int16", "-3", -3), ("decimal(10,2)", "1.50", "1.5"), ("float64", "1e3", 1000.0),
        ("date", "'2020-02-29'", "2020-02-29"), ("timestamp_tz", "'2020-01-31 12:00:00+02'", "2020-01-31 10:00:00.000000"),
        ("timestamp(3)", "'2020-01-31 12:00:00'", "2020-01-31 12:00:00.000"), ("json", "'{\"a\": \"b\\\\c\"}'", '{"a": "b\\\\c"}'),
        ("uuid", "'00000000-0000-0000-0000-00000000000a'", "00000000-0000-0000-0000-00000000000a"),
        ("enum<'a','b'>", "'b'", "b"), ("array<string>", "[]", "[]"), ("time", "'12:00'", "12:00:00"), ("string", "null", None),
        ("decimal(40,20)", "12345678901234567890.12345678901234567891", "12345678901234567890.12345678901234567891"),
        ("decimal", "0.00", "0.00"), ("decimal(90,2)", "7", "7.00"), ("string", "'0, DROP COLUMN id'", "0, DROP COLUMN id"),
        ("text_of<inet>", "'::1'", "::1"), ("array<array<int32>>", "[]", "[]"), ("bytes", "null", None),
    ],
)  # fmt: skip
def test_every_type_is_added_with_its_default_read_by_older_rows(
    sitting: Sitting, kind: str, default: str, value: Any
) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do(old(1))
    add = AddColumn("c", parse(kind), nullable=default == "null", default=None if default == "null" else default)
    sitting.walk(add, "m1", old)
    for table in ("src", "target"):
        [(result,)] = sitting.ask(
            f"SELECT {'c' if isinstance(value, bool | float | None) else 'toString(c)'} FROM {table} FINAL WHERE id = 1"
        )
        assert result == (str(value) if isinstance(value, int) and not isinstance(value, bool) else value)


@pytest.mark.parametrize(
    ("operation", "select", "why"),
    [
        (DropColumn("b"), "SELECT id, a, upper(b) AS b, _at, _gone FROM src", "computes with b"),
        (DropColumn("b"), "SELECT id, a, _at, _gone FROM src WHERE b != ''", "computes with b"),
        (DropColumn("id"), ALL, "is ordered by id"),
        (swap({"a": "id", "id": "a"}), ALL, "is ordered by"),
        (AddColumn("b", parse("int64")), ALL, "is there as String"),
    ],
)
def test_what_cannot_be_done_without_a_person_is_refused_before_the_first_statement(
    sitting: Sitting, operation: Operation, select: str, why: str
) -> None:
    sitting.tables("a Int32, b String", select)
    migration = Migration("post", "public", "src", operation)
    with pytest.raises(DataError, match=why):
        CLICKHOUSE.translate(migration, sitting.store.describe(["src"])["src"], "m1")


@pytest.mark.parametrize(
    ("operation", "query"),
    [
        (DropColumn("b"), "SELECT * FROM src FINAL"),
        (DropColumn("b"), "SELECT id, upper(b) AS c FROM target"),
        (swap({"b": "label"}), "SELECT s.b FROM src AS s JOIN target AS t ON s.id = t.id"),
        (swap({"b": "label"}), "SELECT id FROM target WHERE b != ''"),
    ],
)
def test_a_plain_view_that_would_fail_is_named_before_the_first_statement(
    sitting: Sitting, operation: Operation, query: str
) -> None:
    sitting.tables("a String, b String", ALL)
    sitting.do("CREATE TABLE other (id Int64, b String) ENGINE = MergeTree ORDER BY id")
    for name, harmless in enumerate(("SELECT * EXCEPT b FROM src", "SELECT s.a, o.b FROM src s JOIN other o USING id", "SELECT count(*) FROM src", "SELECT * FROM other")):  # fmt: skip
        sitting.do(f"CREATE VIEW fine{name} AS {harmless}")
    migration = Migration("post", "public", "src", operation)
    assert CLICKHOUSE.translate(migration, sitting.store.describe(["src"])["src"], "m1").steps
    sitting.do(f"CREATE VIEW top AS {query}")
    with pytest.raises(DataError, match=r"the view d\d+.top reads d\d+.(src|target).b"):
        CLICKHOUSE.translate(migration, sitting.store.describe(["src"])["src"], "m1")
    ring = Migration("post", "public", "src", swap({"a": "b", "b": "a"}))  # both names stay
    assert CLICKHOUSE.translate(ring, sitting.store.describe(["src"])["src"], "m1").steps


def test_a_column_by_which_a_target_is_partitioned_stops_its_drop_before_the_first_statement(sitting: Sitting) -> None:
    sitting.do(f"CREATE TABLE src (id Int64, a Int32, b String, {_OWN}) {_ENGINE}")
    sitting.do(f"CREATE TABLE target (id Int64, a Int32, b String, {_OWN}) {_ENGINE} PARTITION BY b")
    sitting.do(f"CREATE MATERIALIZED VIEW mv TO {sitting.database}.target AS {ALL}")
    for operation in (DropColumn("b"), swap({"b": "c"})):
        with pytest.raises(DataError, match=r"target is ordered (or partitioned )?by b"):
            sitting.walk(operation, "m1", old)


def test_a_materialized_view_on_the_target_or_beside_is_named_before_the_first_statement(sitting: Sitting) -> None:
    sitting.tables("a Int32, b String", ALL)
    sitting.do(f"CREATE TABLE far (id Int64, b String) {_ENGINE.replace('(_at, _gone)', '')}")
    sitting.do(f"CREATE MATERIALIZED VIEW far_mv TO {sitting.database}.far AS SELECT id, b FROM target")
    migration = Migration("post", "public", "src", DropColumn("b"))
    with pytest.raises(DataError, match=r"far_mv reads d\d+.target.b"):
        CLICKHOUSE.translate(migration, sitting.store.describe(["src"])["src"], "m1")
    sitting.do("DROP VIEW far_mv")
    sitting.walk(DropColumn("b"), "m1", lambda row: f"INSERT INTO src (id, a) VALUES ({row}, {row})")
