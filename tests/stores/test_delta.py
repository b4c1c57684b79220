"""A Delta table that is rewritten: batch by batch, and everything outside the migration stays unchanged."""

from pathlib import Path

import pyarrow
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import ArrayType, PrimitiveType

from console.propagation.dialects.delta import DELTA
from console.propagation.migration import ChangeColumn, Facets, Migration
from console.propagation.types import parse
from console.stores.delta import Delta

pytestmark = pytest.mark.slow

TAGS = ArrayType(PrimitiveType("string"), contains_null=False)
FIELDS = [
    Field("id", PrimitiveType("long"), nullable=False, metadata={"comment": "its key"}),
    Field("n", PrimitiveType("integer"), nullable=False, metadata={"comment": "how many"}),
    Field("tags", TAGS, nullable=True),
]


def changed(store: Delta, to: Facets) -> None:
    table = store.describe(["t"])["t"]
    migration = Migration("post", "public", "t", ChangeColumn("n", to, Facets(parse("int32")), "widening"))
    [step] = DELTA.translate(migration, table, "m").steps
    store.run(table, (step,), "m")


@pytest.mark.parametrize("rows", [0, 3])
def test_a_column_keeps_its_nullability_and_what_is_said_of_it(tmp_path: Path, rows: int) -> None:
    DeltaTable.create(str(tmp_path / "t"), Schema(FIELDS))
    if rows:
        values = {"id": range(rows), "n": [7] * rows, "tags": [["a"]] * rows}
        schema = pyarrow.schema(Schema(FIELDS).to_arrow())
        write_deltalake(str(tmp_path / "t"), pyarrow.Table.from_pydict(values, schema=schema), mode="append")
    store = Delta("raw", str(tmp_path))
    changed(store, Facets(parse("int64")))
    long = Field("n", PrimitiveType("long"), nullable=False, metadata={"comment": "how many"})
    assert DeltaTable(str(tmp_path / "t")).schema().fields == [FIELDS[0], long, FIELDS[2]]
    changed(store, Facets(nullable=True))
    loose = Field("n", PrimitiveType("long"), nullable=True, metadata={"comment": "how many"})
    table = DeltaTable(str(tmp_path / "t"))
    assert table.schema().fields == [FIELDS[0], loose, FIELDS[2]]
    assert [row["n"] for row in table.to_pyarrow_table().to_pylist()] == [7] * rows


def test_memory_holds_batches_and_not_the_table(tmp_path: Path) -> None:
    files, rows = 20, 100_000
    for part in range(files):
        numbers = pyarrow.array(range(part * rows, (part + 1) * rows), pyarrow.int64())
        table = pyarrow.table({"id": numbers, "n": pyarrow.array([part] * rows, pyarrow.int32())})
        write_deltalake(str(tmp_path / "t"), table, mode="append")
    store = Delta("raw", str(tmp_path))
    kept = pyarrow.default_memory_pool()
    watched = pyarrow.proxy_memory_pool(kept)
    pyarrow.set_memory_pool(watched)
    try:
        changed(store, Facets(parse("int64")))
    finally:
        pyarrow.set_memory_pool(kept)

    assert 0 < watched.max_memory() < files * rows * 12 / 2
    table = DeltaTable(str(tmp_path / "t")).to_pyarrow_table()
    assert table.schema.field("n").type == pyarrow.int64()
    assert sorted(table.column("id").to_pylist()) == list(range(files * rows))
