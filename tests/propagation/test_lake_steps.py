"""Every operation on Iceberg and Delta runs on real tables: rows stay with their columns, and no step remains afterwards."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from console.errors import DataError
from console.propagation.dialects import DIALECTS
from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    ReplaceColumn,
    swap,
)
from console.propagation.types import parse
from console.stores.delta import Delta
from console.stores.iceberg import Iceberg
from tests.propagation.test_verify import WORDS

pytestmark = pytest.mark.stores


class Pond:
    """One table of one lake, with two rows."""

    def __init__(self, lake: str, folder: Path) -> None:
        self.lake = lake
        self.folder = folder
        folder.mkdir(exist_ok=True)
        properties = {"name": "c", "type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}"}
        self.store = Iceberg("i", properties, "own") if lake == "iceberg" else Delta("d", str(folder))
        self.place = "app.t" if lake == "iceberg" else "t"
        self._properties = properties

    def make(self) -> None:
        import pyarrow

        schema = pyarrow.schema([("id", pyarrow.int64()), ("a", pyarrow.int32()), ("b", pyarrow.string())])
        rows = pyarrow.table([[1, 2], [10, 20], ["x", "y"]], schema=schema)
        if self.lake == "delta":
            from deltalake import write_deltalake

            write_deltalake(str(self.folder / "t"), rows, partition_by=[])
            return
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog(**self._properties)
        catalog.create_namespace("app")
        catalog.create_table(self.place, schema).append(rows)

    def rows(self) -> list[dict[str, Any]]:
        if self.lake == "delta":
            from deltalake import DeltaTable

            table = DeltaTable(str(self.folder / "t")).to_pyarrow_table()
        else:
            from pyiceberg.catalog import load_catalog

            table = load_catalog(**self._properties).load_table(self.place).scan().to_arrow()
        results: list[dict[str, Any]] = sorted(table.to_pylist(), key=lambda row: row["id"])
        return results

    def left(self, operation: Operation) -> Sequence[Any]:
        migration = Migration("pre", "public", "t", operation)
        return DIALECTS[self.lake].translate(migration, self.store.describe([self.place])[self.place], "m1").steps

    def apply(self, operation: Operation) -> None:
        steps = self.left(operation)
        assert steps
        table = self.store.describe([self.place])[self.place]
        foreseen = DIALECTS[self.lake].after(Migration("pre", "public", "t", operation), table, "m1")
        self.store.run(table, steps, "m1")
        result = self.store.describe([self.place])[self.place]
        assert [(c.name, c.type, c.nullable) for c in foreseen.columns] == [
            (c.name, c.type, c.nullable) for c in result.columns
        ]


@pytest.fixture(params=["iceberg", "delta"])
def pond(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pond]:
    result = Pond(request.param, tmp_path / "lake")
    result.make()
    yield result
    result.store.close()


@pytest.mark.parametrize("word", [*WORDS, "decimal(50,2)", "timestamp", "interval", "array<array<string>>"])
def test_a_column_of_every_type_is_added_and_older_rows_have_null(pond: Pond, word: str) -> None:
    add = AddColumn("c", parse(word), nullable=False, default="now()")
    pond.apply(add)
    assert [(row["id"], row["a"], row["c"]) for row in pond.rows()] == [(1, 10, None), (2, 20, None)]
    assert pond.left(add) == ()


@pytest.mark.parametrize(
    ("word", "default", "value"),
    [
        ("boolean", "true", True), ("int16", "-3", -3), ("decimal(10,2)", "1.5", Decimal("1.50")), ("float64", "1e3", 1000.0),
        ("date", "'2020-02-29'", date(2020, 2, 29)), ("string", "'it''s'", "it's"), ("array<string>", "[]", []),
        ("timestamp_tz", "'2020-01-31 12:00:00+02'", datetime(2020, 1, 31, 10, tzinfo=UTC)),
        ("timestamp", "'2020-01-31 12:00:00'", datetime(2020, 1, 31, 12)),
        ("decimal(38,9)", "-12345678901234567890123456789.5", Decimal("-12345678901234567890123456789.500000000")),
    ],
)  # fmt: skip
def test_rows_from_before_a_column_get_the_default_that_it_came_with(
    pond: Pond, word: str, default: str, value: Any
) -> None:
    add = AddColumn("c", parse(word), nullable=False, default=default)
    assert pond.store.rewrite_bytes(pond.place) > 0
    pond.apply(add)
    assert [(row["id"], row["a"], row["c"]) for row in pond.rows()] == [(1, 10, value), (2, 20, value)]
    assert pond.left(add) == ()


def test_rows_of_a_partitioned_iceberg_table_get_it_too(tmp_path: Path) -> None:
    pond = Pond("iceberg", tmp_path)
    pond.make()
    try:
        table = pond.store.table("app.t")
        with table.update_spec() as update:
            update.add_identity("b")
        table = pond.store.table("app.t")
        table.append(table.scan().to_arrow())
        pond.apply(AddColumn("c", parse("int32"), nullable=False, default="7"))
        assert [(row["id"], row["c"]) for row in pond.rows()] == [(1, 7), (1, 7), (2, 7), (2, 7)]
    finally:
        pond.store.close()


def test_a_dropped_column_is_gone_and_the_others_keep_their_values(pond: Pond) -> None:
    pond.apply(DropColumn("a"))
    assert pond.rows() == [{"id": 1, "b": "x"}, {"id": 2, "b": "y"}]
    assert pond.left(DropColumn("a")) == ()


def test_names_change_hands_and_the_values_go_with_them(pond: Pond) -> None:
    pond.apply(swap({"a": "b", "b": "a"}))
    assert [(row["a"], row["b"]) for row in pond.rows()] == [("x", 10), ("y", 20)]
    pond.apply(swap({"b": "n"}))
    assert [(row["a"], row["n"]) for row in pond.rows()] == [("x", 10), ("y", 20)]
    assert pond.left(swap({"b": "n"})) == ()


def test_a_column_made_anew_under_a_dropped_name_does_not_show_the_dropped_values(pond: Pond) -> None:
    pond.apply(DropColumn("b"))
    pond.apply(AddColumn("b", parse("string")))
    assert [row["b"] for row in pond.rows()] == [None, None]


def test_a_column_takes_anothers_name_and_its_values_along(pond: Pond) -> None:
    pond.apply(ReplaceColumn("a", "b"))
    assert pond.rows() == [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}]
    assert pond.left(ReplaceColumn("a", "b")) == ()


def test_a_new_column_takes_anothers_name_and_shows_none_of_its_values(pond: Pond) -> None:
    operation = ReplaceColumn("a", None, Facets(parse("string"), nullable=True, default=None))
    with pytest.raises(DataError, match="has no column a__new"):
        pond.left(operation)
    assert operation.staged is not None
    pond.apply(operation.staged)
    pond.apply(operation)
    assert sorted(pond.rows()[0].items()) == [("a", None), ("b", "x"), ("id", 1)]


def test_a_widened_type_holds_the_old_values(pond: Pond) -> None:
    change = ChangeColumn("a", Facets(parse("int64")), Facets(parse("int32")), "widening")
    pond.apply(change)
    assert [row["a"] for row in pond.rows()] == [10, 20]
    assert pond.store.describe([pond.place])[pond.place].columns[1].type in ("long", "bigint")
    assert pond.left(change) == ()


def test_what_the_format_cannot_do_is_refused_or_needs_nothing(pond: Pond) -> None:
    with pytest.raises(DataError, match="is there as"):
        pond.left(AddColumn("b", parse("int64")))
    with pytest.raises(DataError, match="no column nobody"):
        pond.left(swap({"nobody": "c"}))
    with pytest.raises(DataError, match="b already"):
        pond.left(swap({"a": "b"}))
    if pond.lake == "iceberg":
        with pytest.raises(DataError, match="cannot make"):
            pond.left(ChangeColumn("b", Facets(parse("int64")), Facets(), "destructive"))
    assert pond.left(ChangeColumn("b", Facets(nullable=False), Facets(), "safe")) == ()
    assert pond.left(ChangeColumn("b", Facets(default="'x'"), Facets(), "safe")) == ()
