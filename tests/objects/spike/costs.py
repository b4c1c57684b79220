"""What a commit costs when Spark writes plain Parquet files only, beside Delta's own write: processor seconds on a local disk.

python -m tests.objects.spike.costs        needs Java and Delta's jars; one JSON object
"""

import json
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction

from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from tests.bench.costs import costs

BATCH_ROWS, BATCHES = 1_000_000, 3
STEP_ROWS, WARM, STEPS = 250, 10, 20
PART = "part_of"  # the folder of a partition's files: a hash, so that no value has to be read from a folder's name
COLUMNS = ("id STRING", "ts TIMESTAMP", "status INT", "bytes BIGINT", "path STRING", "ms DOUBLE", "day STRING")

Write = Callable[[Any, str, int], None]


def rows(session: Any, first: int, count: int, days: int) -> Any:
    return session.range(first, first + count, 1, 2).selectExpr(
        "concat('e', id) AS id",
        "timestamp_micros(1793000000000000 + id * 86000) AS ts",
        "CAST(id % 7 AS INT) AS status",
        "id % 9999 AS bytes",
        "concat('/a/', id % 1000) AS path",
        "id % 777 / 7.0D AS ms",
        f"date_format(date_add(DATE'2026-11-01', CAST(id % {days} AS INT)), 'yyyy-MM-dd') AS day",
    )


def by_delta(data: Any, path: str, number: int) -> None:
    options = {"txnAppId": "feed", "txnVersion": str(number), "userMetadata": "{}"}
    data.write.format("delta").mode("append").partitionBy("day").options(**options).save(path)


def by_arrow(data: Any, path: str, number: int) -> None:
    """A small live step of today (decision 5)."""
    write_deltalake(DeltaTable(path), data.toArrow(), mode="append", commit_properties=properties(number))


def by_files(data: Any, path: str, number: int) -> None:
    """Plain Parquet into the attempt's folder, its footers read, one put of exactly N+1."""
    attempt = Path(path) / f"attempt-{number}"
    parted = data.selectExpr("*", f"hex(xxhash64(day)) AS {PART}")
    parted.write.partitionBy(PART).option("compression", "snappy").parquet(str(attempt))
    table = DeltaTable(path)
    adds = [added(file, Path(path)) for file in sorted(attempt.rglob("*.parquet"))]
    table.create_write_transaction(adds, "append", table.schema(), ["day"], commit_properties=properties(number))


def properties(number: int) -> CommitProperties:
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction("feed", number)],
        custom_metadata={"userMetadata": "{}"},
    )


def added(file: Path, table: Path) -> AddAction:
    """A file's entry in the log, from its footer: rows, smallest and largest values, NULLs, and the partition's value."""
    footer = pq.read_metadata(file)
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at in range(footer.num_columns):
        found = [group.column(at) for group in groups]
        name = found[0].path_in_schema
        values = [chunk.statistics for chunk in found]
        assert all(value is not None and value.has_min_max for value in values), name
        low[name], high[name] = min(value.min for value in values), max(value.max for value in values)
        nulls[name] = sum(value.null_count for value in values)
    day, last = low.pop("day"), high.pop("day")
    assert day == last, f"{file}: several partitions"
    stats = {"numRecords": footer.num_rows, "minValues": plain(low), "maxValues": plain(high), "nullCount": nulls}
    stat = file.stat()
    name = file.relative_to(table).as_posix()
    return AddAction(name, stat.st_size, {"day": day}, int(stat.st_mtime * 1000), True, json.dumps(stats))


def plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, (int, float, str)) else value.isoformat() for name, value in values.items()
    }


def created(session: Any, path: str) -> None:
    session.sql(f"CREATE TABLE delta.`{path}` ({', '.join(COLUMNS)}) USING delta PARTITIONED BY (day)")


def main() -> None:
    conf = {"spark.sql.runSQLOnFiles": "true"}
    spark = SparkHandle(Settings(region="costs", master="local[2]", conf=conf), -1)
    session = spark.session(
        spark__sql__runSQLOnFiles="true", spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"
    )
    jvm = session.sparkContext._gateway.proc.pid
    results: dict[str, dict[str, float]] = {"batch": {}, "live_step": {}}
    try:
        with tempfile.TemporaryDirectory(prefix="console-costs-") as folder:
            kinds: dict[str, Write] = {"delta": by_delta, "files": by_files}
            spent: dict[str, list[float]] = {name: [] for name in (*kinds, "arrow")}
            for name in kinds:
                created(session, f"{folder}/batch-{name}")
            for batch in range(BATCHES + 1):  # in turn; the first of each warms up
                for name, write in kinds.items():
                    data = rows(session, batch * BATCH_ROWS, BATCH_ROWS, 10)
                    took = costs(jvm, partial(write, data, f"{folder}/batch-{name}", batch + 1))
                    spent[name] += [took] if batch else []
            results["batch"] = {name: round(statistics.median(took), 2) for name, took in spent.items() if took}
            same(session, *(f"{folder}/batch-{name}" for name in kinds))
            kinds["arrow"] = by_arrow
            for name in kinds:
                created(session, f"{folder}/step-{name}")
            spent = {name: [] for name in kinds}
            for step in range(WARM + STEPS):
                for name, write in kinds.items():
                    data = rows(session, step * STEP_ROWS, STEP_ROWS, 1)
                    took = costs(jvm, partial(write, data, f"{folder}/step-{name}", step + 1))
                    spent[name] += [took] if step >= WARM else []
            results["live_step"] = {name: round(statistics.mean(took), 3) for name, took in spent.items()}
            same(session, *(f"{folder}/step-{name}" for name in kinds))
    finally:
        spark.stop()
    print(json.dumps(results))


def same(session: Any, *paths: str) -> None:
    """Delta's own reader finds the same rows in each table."""
    hashes = "count(*), sum(xxhash64(id, ts, status, bytes, path, ms, day) & 4294967295)"
    found = {
        tuple(session.read.format("delta").load(path).selectExpr(*hashes.split(", ", 1)).first()) for path in paths
    }
    assert len(found) == 1, found


if __name__ == "__main__":
    main()
