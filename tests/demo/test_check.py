"""The demo's check itself: a warehouse made by hand passes, and every bug planted in it is found."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import datasketches
import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.demo import check
from console.demo.traffic.generate import Traffic, build

pytestmark = pytest.mark.slow

LINE = '192.0.2.{} - - [17/May/2015:{}:00:00 +0000] "GET /part/{} HTTP/1.1" {} 512 "-" "curl/8"'
READS = {"reads": 250, "failed": 0, "torn": 0}
HOUR_COLUMNS = ["day", "hour", "tenant", "requests", "errors", "bytes", "slowest_ms", "p95_ms__kll", "visitors__hll"]


def hours_of(requests: pa.Table) -> pa.Table:
    """Partial states, two for every hour, as two commits would have left them."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for n, row in enumerate(requests.to_pylist()):
        groups.setdefault((row["day"], row["hour"], row["tenant"], n % 2), []).append(row)
    states = []
    for (day, hour, tenant, _), rows in groups.items():
        kll, hll = datasketches.kll_doubles_sketch(200), datasketches.hll_sketch(12)
        for row in rows:
            kll.update(row["duration_ms"])
            hll.update(row["ip"])
        sizes = [row["bytes"] for row in rows if row["bytes"] is not None]
        errors = sum(bool(row["is_error"]) for row in rows)
        slowest = max(row["duration_ms"] for row in rows)
        known = (len(rows), errors, sum(sizes) if sizes else None, slowest, kll.serialize(), hll.serialize_updatable())
        states.append(dict(zip(HOUR_COLUMNS, (day, hour, tenant, *known), strict=True)))
    return pa.Table.from_pylist(states)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A region whose tables are right."""
    warehouse = tmp_path_factory.mktemp("good")
    log = warehouse / "access.log"
    log.write_text(
        "\n".join(
            LINE.format(n % 19, 10 + n % 7, n % 23, 400 if n % 9 == 0 else 200) for n in (*range(1_950), *range(50))
        )
    )
    build(
        Traffic(region="ap", rows_a_day=60, heavy=2_000, live=5),
        warehouse,
        datetime(2026, 11, 20, 12, tzinfo=UTC),
        log,
        lambda day: None,
    )
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.execute(
        check.PARSED,
        {"files": [uri.removeprefix("file://") for uri in DeltaTable(str(warehouse / "landing")).file_uris()]},
    )
    requests = db.execute("SELECT * EXCLUDE (raw) FROM parsed").to_arrow_table()
    write_deltalake(str(warehouse / "requests/a-2"), requests, partition_by=["day"])
    write_deltalake(str(warehouse / "requests_by_hour/b-2"), hours_of(requests), partition_by=["day"])
    names = {"landing": "landing", "requests": "requests/a-2", "requests_by_hour": "requests_by_hour/b-2"}
    tables = [{"table": {"name": name}, "version": {"path": path}} for name, path in names.items()]
    rows = [
        {"id": "r1", "state": "previous", "manifest": "{}"},
        {"id": "r2", "state": "live", "manifest": json.dumps({"tables": tables})},
    ]
    write_deltalake(str(warehouse / "_console/web/releases"), pa.Table.from_pylist(rows))
    ids = [row["event_id"] for row in requests.slice(0, 3).to_pylist()]
    acknowledged = [
        {"what": "acknowledged", "prefix": i.rpartition("-")[0] + "-", "first": int(i.rpartition("-")[2]), "rows": 1}
        for i in ids
    ]
    (warehouse / "ledger.ndjson").write_text("".join(json.dumps(line) + "\n" for line in acknowledged))
    return warehouse


def judged(warehouse: Path, scratch: Path, reads: dict[str, int] = READS) -> dict[str, Any]:
    region = check.JudgedWarehouse("ap", str(warehouse), "web", str(scratch))
    facts = {"before": 1, "moved": 1, "everything": 2}
    try:
        region.read_landing()
        return check.judge(region, reads, facts, warehouse / "ledger.ndjson")
    finally:
        region.db.close()


def test_a_correct_region_passes(good: Path, tmp_path: Path) -> None:
    result = judged(good, tmp_path)
    assert result["faults"] == []
    assert result["compared"] == result["landing"] > 2_700
    assert result["twins"] >= 19
    assert result["hours"] > 90
    assert result["acknowledged"] == 3
    assert "WRONG" not in check.report([result])


def a_row_is_lost(warehouse: Path) -> None:
    table = DeltaTable(str(warehouse / "requests/a-2"))
    row = table.to_pyarrow_table(columns=["event_id"])["event_id"][0].as_py()
    table.delete(f"event_id = '{row}'")


def a_row_is_doubled(warehouse: Path) -> None:
    path = str(warehouse / "requests/a-2")
    write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(0, 1), mode="append")


def a_value_is_changed(warehouse: Path) -> None:
    table = DeltaTable(str(warehouse / "requests/a-2"))
    row = table.to_pyarrow_table(columns=["event_id"])["event_id"][0].as_py()
    table.update({"status": "299"}, predicate=f"event_id = '{row}'")


def a_day_is_lost(warehouse: Path) -> None:
    DeltaTable(str(warehouse / "requests/a-2")).delete("day = '2026-11-12'")


def an_hour_counts_too_many(warehouse: Path) -> None:
    path = str(warehouse / "requests_by_hour/b-2")
    write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(0, 1), mode="append")


def an_hours_sketch_is_another(warehouse: Path) -> None:
    path = str(warehouse / "requests_by_hour/b-2")
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    other = datasketches.kll_doubles_sketch(200)
    for _ in range(10_000):
        other.update(0.001)
    # a group of one or two rows has no percentile to speak of
    max(rows, key=lambda row: row["requests"])["p95_ms__kll"] = other.serialize()
    write_deltalake(path, pa.Table.from_pylist(rows), mode="overwrite", partition_by=["day"])


def an_event_is_lost_on_the_way_in(warehouse: Path) -> None:
    with (warehouse / "ledger.ndjson").open("a") as ledger:
        ledger.write(json.dumps({"what": "acknowledged", "prefix": "ap-s9-", "first": 0, "rows": 2}) + "\n")


BUGS: list[tuple[Callable[[Path], None], str, int]] = [
    (a_row_is_lost, "gaps", 1),
    (a_row_is_doubled, "duplicates", 1),
    (a_value_is_changed, "changed", 1),
    (a_day_is_lost, "gaps", 60),
    (an_hour_counts_too_many, "wrong_hours", 1),
    (an_hours_sketch_is_another, "wrong_hours", 1),
    (an_event_is_lost_on_the_way_in, "lost", 2),
]


@pytest.mark.parametrize(("bug", "figure", "size"), BUGS, ids=[bug.__name__ for bug, _, _ in BUGS])
def test_every_planted_bug_is_found(
    good: Path, tmp_path: Path, bug: Callable[[Path], None], figure: str, size: int
) -> None:
    warehouse = tmp_path / "bad"
    shutil.copytree(good, warehouse)
    bug(warehouse)
    result = judged(warehouse, tmp_path)
    assert result[figure] == size
    assert f"{figure} {size}" in result["faults"]
    assert "WRONG in ap" in check.report([result])


RIGHT: dict[str, Any] = (
    dict.fromkeys(
        ("before", "arrived", "compared", "hours", "acknowledged", "agents", "agentless", "twins", "twins_in_landing"),
        7,
    )
    | dict.fromkeys(("gaps", "duplicates", "changed", "wrong_hours", "lost", "doubled", "failed", "torn"), 0)
    | {"reads": 200}
)


def test_only_a_region_without_any_fault_has_none() -> None:
    assert check.faults(RIGHT) == []


@pytest.mark.parametrize("figure", sorted(RIGHT))
def test_every_figure_alone_can_fail_the_check(figure: str) -> None:
    wrong = RIGHT | {figure: 0 if RIGHT[figure] else 1}
    assert check.faults(wrong)


def test_too_few_reads_prove_nothing() -> None:
    assert check.faults(RIGHT | {"reads": 199}) == ["only 199 reads"]


@pytest.mark.parametrize(
    ("estimate", "fits"), [(950.0, True), (930.0, True), (996.0, False), (850.0, False), (None, False)]
)
def test_a_percentile_is_judged_by_its_rank(estimate: float | None, fits: bool) -> None:
    assert check.percentile_fits([float(n) for n in range(1, 1001)], estimate) is fits


def test_a_percentile_of_nothing_is_nothing() -> None:
    assert check.percentile_fits([], None)
    assert not check.percentile_fits([], 1.0)
    assert check.percentile_fits([5.0] * 40, 5.0)
