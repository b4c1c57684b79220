"""Failures of a real Spark, classified by the conditions that it names: a value in a message decides nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.failure import from_spark, kind

pytestmark = [pytest.mark.faults, pytest.mark.spark]

MISLEADING = "Java heap space: OutOfMemory, UNRESOLVED_COLUMN, FILE_NOT_EXIST"


def broken(call: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception, match=r".") as raised:
        call()
    return raised.value


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = str(tmp_path / "source")
    write_deltalake(path, pa.table({"text": [MISLEADING], "n": [1]}))
    return path


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("CAST(text AS int)", "value"),
        ("n / (n - 1)", "value"),
        ("if(n = 1, raise_error('PARTITION_DAY_OUT_OF_RANGE: t.day of a row lies outside'), n)", "day"),
        ("nothing_of_this_name", "drift"),
        ("CAST(n AS array<int>)", "drift"),
    ],
)
@pytest.mark.parametrize("into", ["driver", "table"])
def test_a_condition_decides_wherever_the_value_stands(
    session: Any, source: str, tmp_path: Path, query: str, expected: str, into: str
) -> None:
    def run() -> None:
        rows = session.read.format("delta").load(source).selectExpr(f"{query} AS a")
        rows.collect() if into == "driver" else rows.write.format("delta").save(str(tmp_path / "target"))

    error = broken(run)
    assert (kind(error), from_spark(error)) == (expected, True)


def test_files_and_versions_that_are_gone(session: Any, source: str) -> None:
    read = session.read.format("delta")
    assert kind(broken(lambda: read.option("versionAsOf", 99).load(source).collect())) == "gone"
    for file in Path(source).glob("*.parquet"):
        file.unlink()
    assert kind(broken(lambda: session.read.format("delta").load(source).collect())) == "gone"


def test_a_row_without_a_needed_value(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "strict")
    DeltaTable.create(path, schema=pa.schema([pa.field("n", pa.int32(), nullable=False)]))
    rows = session.sql("SELECT CAST(null AS int) AS n")
    assert kind(broken(lambda: rows.write.format("delta").mode("append").save(path))) == "value"
