"""Delta's rows, read by means of Rust or C++ alone: a process that has read them ends when and as it wants."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from console.errors import RegionError
from console.stores.delta import Delta
from console.stores.lakes.delta_rows import batches, counted, dataset, equals

pytestmark = pytest.mark.slow

LEAVES = """
import deltalake
from console.stores.lakes import delta_rows
next(iter({read}(deltalake.DeltaTable({path!r})){then}))
"""
NAMES = ("Zürich", "a b", "a%20b", "a/b", "{x}", "x=y", "*", "it's", "..", '"', "\t", None)
PARTITIONS = {
    "int32": [1, -5, None],
    "bool_": [True, False, None],
    "float64": [1.5, -0.1, None],
    "decimal": [Decimal("1.20"), Decimal("-3.00"), None],
    "date32": [date(2020, 1, 1), date(1, 1, 1), None],
    "moment": [datetime(2020, 1, 1, 3, 4, 5, 678901, UTC), datetime(1900, 1, 1, tzinfo=UTC), None],
    "string": list(NAMES),
}
KINDS = {"decimal": pa.decimal128(10, 2), "moment": pa.timestamp("us", "UTC")}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of so many files that not all have been read when the first of them was."""
    path = str(tmp_path_factory.mktemp("files") / "t")
    for n in range(30):
        write_deltalake(path, pa.table({"id": range(20_000), "s": [f"{n}"] * 20_000}), mode="append")
    return path


@pytest.mark.parametrize(("read", "then"), [("delta_rows.batches", ""), ("delta_rows.dataset", ".to_batches()")])
def test_a_process_that_ends_amid_its_reading_ends_well(files: str, read: str, then: str) -> None:
    """deltalake's own file system, a Python object, hangs or crashes nearly every such process."""
    for _ in range(2):
        code = LEAVES.format(read=read, then=then, path=files)
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_dataset_reads_through_a_file_system_of_pyarrows_own(files: str) -> None:
    rows_read = dataset(DeltaTable(files))
    assert isinstance(rows_read.filesystem, SubTreeFileSystem)
    assert isinstance(rows_read.filesystem.base_fs, LocalFileSystem)
    assert rows_read.count_rows() == counted(DeltaTable(files)) == 600_000


def test_rows_come_batch_by_batch_in_the_order_of_their_files(files: str) -> None:
    sizes, ids, parts = [], [], []
    for batch in batches(DeltaTable(files), ["s", "id"]):
        assert batch.schema == pa.schema({"s": pa.string(), "id": pa.int64()})
        sizes.append(batch.num_rows)
        ids += batch.column("id").to_pylist()
        parts += [batch.column("s")[0].as_py()]
    assert max(sizes) <= 32_768
    assert ids == list(range(20_000)) * 30
    assert len(parts) == len(set(parts)) == 30


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("folder", ["t", "a b {1} é+"])
def test_a_partition_is_found_by_its_value_whatever_that_is(tmp_path: Path, kind: str, folder: str) -> None:
    values, path = PARTITIONS[kind], str(tmp_path / folder)
    arrow = KINDS.get(kind) or getattr(pa, kind)()
    write_deltalake(path, pa.table({"p": pa.array(values, arrow), "id": range(len(values))}), partition_by=["p"])
    table = DeltaTable(path)
    report = pa.table(table.get_add_actions(flatten=True)).column("partition.p").to_pylist()
    assert sorted(map(repr, report)) == sorted(map(repr, batches(table, ["p"]).read_all().column("p").to_pylist()))
    for value in report:
        [row] = batches(table, where=equals("p", value)).read_all().to_pylist()
        assert values[row["id"]] == row["p"] == value
    assert counted(table, "p") == len(values) - 1


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping"])
@pytest.mark.parametrize("version", [2, 3])
def test_what_cannot_be_read_right_is_refused_by_name(tmp_path: Path, feature: str, version: int) -> None:
    if (feature, version) == ("deletionVectors", 2):
        return  # they came with version 3
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            named = {"readerFeatures": [feature], "writerFeatures": [feature]} if version == 3 else {}
            action["protocol"] = {"minReaderVersion": version, "minWriterVersion": {2: 5, 3: 7}[version], **named}
        if "metaData" in action and feature == "columnMapping":
            schema = json.loads(action["metaData"]["schemaString"])
            for column in schema["fields"]:
                column["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c-1"}
            action["metaData"] |= {
                "schemaString": json.dumps(schema),
                "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"},
            }
    log.write_text("\n".join(map(json.dumps, actions)))
    store = Delta("raw", str(tmp_path))
    with pytest.raises(RegionError, match=f"t/?: its rows cannot be read here: {feature}"):
        store.count(store.describe(["t"])["t"])
    with pytest.raises(RegionError, match=feature):
        dataset(DeltaTable(str(tmp_path / "t")))
