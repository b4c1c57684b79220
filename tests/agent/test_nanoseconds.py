"""Parquet files with times that Spark would truncate: detected by footers, and by values where footers are inconclusive. No Java."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from console.agent.rows.nanoseconds import finer, time_columns
from console.agent.survey import survey

pytestmark = pytest.mark.slow

FINE, WHOLE = 1_700_000_000_123_456_789, 1_700_000_000_123_456_000
COLUMNS = {"ts": "ts", "many": "many", "s": "s", "col-1": "at", "a.b": "a.b"}


def written(place: Path, values: list[int | None], column: str = "ts", **how: Any) -> str:
    times: Any = pa.array(values, pa.timestamp("ns", "UTC"))
    if column == "many":
        times = pa.array([values], pa.list_(pa.timestamp("ns", "UTC")))
    elif column == "s":
        times = pa.StructArray.from_arrays([times, times], ["a", "b"])
    file = str(place / f"{column}.parquet")
    pq.write_table(pa.table({"id": pa.array(["x"] * len(times)), column: times}), file, **how)
    return file


@pytest.mark.parametrize("column", ["ts", "many", "s", "col-1", "a.b"])
def test_a_column_of_nanoseconds_is_named_whatever_it_holds(tmp_path: Path, column: str) -> None:
    file = written(tmp_path, [WHOLE, None], column)
    assert finer([file], COLUMNS) == (file, COLUMNS[column])
    assert finer([file], {"id": "id"}) is None, "a column that nobody reads is in nobody's way"


@pytest.mark.parametrize("column", ["ts", "many", "s", "a.b"])
def test_a_column_of_the_old_type_is_told_by_its_values(tmp_path: Path, column: str) -> None:
    old = {"use_deprecated_int96_timestamps": True}
    far = 253_402_214_400_000_000  # the year 9999 in microseconds: nanoseconds would not hold it
    assert finer([written(tmp_path, [WHOLE, None], column, **old)], COLUMNS) is None
    file = written(tmp_path, [WHOLE, None, FINE], column, **old)
    assert finer([file], COLUMNS) == (file, column)
    if column == "ts":
        times = pa.array([far, WHOLE // 1000], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times}), tmp_path / "far.parquet", **old)
        assert finer([str(tmp_path / "far.parquet")], COLUMNS) is None


def test_another_engines_nanoseconds_are_named(tmp_path: Path) -> None:
    import duckdb

    file, whole = str(tmp_path / "duck.parquet"), str(tmp_path / "whole.parquet")
    duckdb.sql(f"COPY (SELECT TIMESTAMP_NS '2026-11-22 10:00:00.123456789' AS ts) TO '{file}' (FORMAT parquet)")
    duckdb.sql(f"COPY (SELECT TIMESTAMP '2026-11-22 10:00:00.123456' AS ts) TO '{whole}' (FORMAT parquet)")
    assert finer([whole], COLUMNS) is None
    assert finer([file], COLUMNS) == (file, "ts")


def test_what_spark_wrote_is_not_looked_at_and_what_is_gone_is_anothers(tmp_path: Path) -> None:
    times = pa.table({"ts": pa.array([FINE], pa.timestamp("ns", "UTC"))})
    file = str(tmp_path / "spark.parquet")
    pq.write_table(times.replace_schema_metadata({"org.apache.spark.version": "4.0.0"}), file)
    (tmp_path / "short.parquet").write_bytes(b"x")
    assert finer([file, str(tmp_path / "short.parquet"), str(tmp_path / "gone.parquet")], COLUMNS) is None


def test_only_columns_that_may_hold_a_time_matter() -> None:
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "string", "metadata": {}},
        {"name": "TS", "type": "timestamp", "metadata": {}},
        {"name": "at", "type": "timestamp_ntz", "metadata": {"delta.columnMapping.physicalName": "col-1"}},
        {"name": "many", "type": {"type": "array", "elementType": "timestamp"}, "metadata": {}},
        {"name": "unread", "type": "timestamp", "metadata": {}},
    ]
    columns = time_columns(json.dumps({"fields": fields}), ["id", "ts", "at", "many"])
    assert columns == {"TS": "TS", "col-1": "at", "many": "many"}


def landing(place: Path, *commits: list[int], **how: Any) -> str:
    """A table by a writer of another language: Parquet with nanoseconds, and a log of its own."""
    folder = place / "landing"
    (folder / "_delta_log").mkdir(parents=True)
    fields = [
        {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "string"), ("ts", "timestamp"))
    ]
    about = {
        "id": "0" * 36,
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [],
        "configuration": {},
    }
    head: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {**about, "schemaString": json.dumps({"type": "struct", "fields": fields}), "createdTime": 0}},
    ]
    for version, values in enumerate([[], *commits]):
        actions = list(head) if not version else []
        if values:
            file = Path(written(folder, list(values), **how)).rename(folder / f"f{version}.parquet")
            add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "dataChange": True}
            actions.append(
                {"add": {**add, "modificationTime": version, "stats": json.dumps({"numRecords": len(values)})}}
            )
        log_file = folder / "_delta_log" / f"{version:020}.json"
        log_file.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return str(folder)


@pytest.mark.parametrize(("values", "finer"), [([[WHOLE], [FINE]], ("ts",)), ([[WHOLE], [WHOLE]], ())])
def test_a_survey_names_the_columns_of_a_landing_table_whose_newest_times_would_be_cut(
    tmp_path: Path, values: list[list[int]], finer: tuple[str, ...]
) -> None:
    landing(tmp_path, *values, use_deprecated_int96_timestamps=True)
    (stats,) = survey(tmp_path, "eu", "web", ["landing"]).stats
    assert stats.finer == finer
