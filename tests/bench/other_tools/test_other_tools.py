"""What the races with other tools rest on, without any of them: locks, texts, ratios, and the comparison of rows."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import write_deltalake

from tests.bench import demo_rows
from tests.bench.other_tools import environments, ours, run_dbt, run_sqlmesh
from tests.bench.other_tools.environments import SQLMESH, TOOLS, ToolEnvironment
from tests.bench.other_tools.race import BEGIN, OURS, RaceSize, Rival, built, land, measurement
from tests.bench.other_tools.rows import differences
from tests.bench.other_tools.task import BackfillTask
from tests.bench.process_tree import TreeCost

SIZE = RaceSize(rows=10, days=2, rounds=3, judged=True)
RIVAL = Rival(name="theirs", tool=SQLMESH, module="m", batch_days=1, goal=1 / 4)
QUERY = demo_rows.PARSE.partition("*/")[2]


def wanted(batch_days: int) -> BackfillTask:
    return BackfillTask(
        landing="/l", columns={"day": "date", "id": "string"}, query=QUERY, begin="2026-10-01", end="2026-10-02",
        after="2026-10-03", conf={}, batch_days=batch_days,
    )  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool.name))
def test_a_lock_has_versions_and_hashes_alone(tool: ToolEnvironment) -> None:
    text = tool.lock.read_text()
    lines = text.splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines)
    names = [name for name, _ in environments.locked(text)]
    assert tool.package in names
    assert len(names) == len(set(names)) == sum(not line.startswith(" ") for line in lines)
    assert not {"pyspark", "py4j", "delta-spark"} & set(names), "the same Spark is linked, not installed"


def test_daily_batches_and_one_job_differ_by_the_size_of_a_batch_alone() -> None:
    daily, whole = run_sqlmesh.model(wanted(1)), run_sqlmesh.model(wanted(0))
    assert daily.replace(", batch_size 1", "") == whole
    assert "FROM raw.landing WHERE ts BETWEEN @start_ts AND @end_ts\n" in whole
    assert whole.count("FROM parsed") == 1


def test_microbatches_read_the_landing_table_as_a_source() -> None:
    text = run_dbt.model(wanted(1))
    assert "FROM {{ source('raw', 'landing') }}\n" in text
    assert "SELECT id, day FROM (" in text, "the partition is the last column"


def test_the_figure_is_the_median_of_the_rounds_ratios() -> None:
    def cost(processor: float) -> TreeCost:
        return TreeCost(processor=processor, seconds=2 * processor)

    pairs = [(10, 20), (30, 40), (10, 100)]  # medians of both: 10 and 40
    rounds = [{OURS: cost(mine), "theirs": cost(theirs)} for mine, theirs in pairs]
    found = measurement(SIZE, RIVAL, rounds)
    assert (found.figure, found.limit, found.met) == (0.5, 0.25, False)
    assert "(10.0/40.0 processor seconds, 20.0/80.0 s by the clock, 3 runs)" in found.text
    assert f"sqlmesh {SQLMESH.version} 2.00 × ours" in found.text


@pytest.mark.slow
def test_our_project_keeps_every_day_and_owns_no_landing_table(tmp_path: Path) -> None:
    landing = str(tmp_path / "landing")
    land(landing, SIZE)
    ours.project(tmp_path / "project", landing)
    files = {path.name: path.read_text() for path in (tmp_path / "project").rglob("*.yaml")}
    assert not any("retention" in text or "managed" in text for text in files.values())
    assert "time: ts" in files["landing.yaml"]
    assert (tmp_path / "project" / "lake" / "landing" / "_delta_log").is_dir()


def table(path: Path, values: str) -> str:
    rows = duckdb.sql(f"SELECT * FROM (VALUES {values}) t(id, day, ms)").to_arrow_table()
    write_deltalake(str(path), rows, partition_by=["day"])
    return str(path)


DAYS = [date(2026, 10, 1), date(2026, 10, 2)]
KEPT = "('a', DATE '2026-10-01', 0.5::DOUBLE), ('a', DATE '2026-10-01', 0.5), ('b', DATE '2026-10-02', NULL), ('c', NULL, 'NaN')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "count"),
    [
        (KEPT, 0),
        (KEPT.replace("('a', DATE '2026-10-01', 0.5), ", ""), 1),  # one of two equal rows
        (f"{KEPT}, ('b', DATE '2026-10-02', NULL)", 1),
        (KEPT.replace("NULL)", "0.0)"), 2),
        (KEPT.replace("'NaN'", "1"), 2),
        (KEPT.replace("('c', NULL", "('c', DATE '2026-10-02'"), 2),
        (f"{KEPT}, ('d', DATE '2027-01-01', 1)", 1),
    ],
)
def test_every_difference_of_whole_rows_is_counted(tmp_path: Path, change: str, count: int) -> None:
    one, other = table(tmp_path / "one", KEPT), table(tmp_path / "other", change)
    assert differences(one, other, ["id", "day", "ms"], DAYS) == count
    assert differences(other, one, ["id", "day", "ms"], DAYS) == count


def test_the_built_table_is_the_only_one_of_requests(tmp_path: Path) -> None:
    for name in ("lake/requests/v1", "lake/landing", "lake/_console/web/releases"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    assert built(tmp_path) == str(tmp_path / "lake" / "requests" / "v1")


@pytest.mark.slow
def test_each_day_is_a_file_of_the_landing_table(tmp_path: Path) -> None:
    land(str(tmp_path / "l"), SIZE)
    query = f"SELECT min(ts)::DATE, max(ts)::DATE, count(*) FROM read_parquet('{tmp_path}/l/*.parquet', filename=true) GROUP BY filename ORDER BY 1"
    found: Any = duckdb.sql(f"SET TimeZone = 'UTC'; {query}").fetchall()
    assert found == [(day, day, 5) for day in SIZE.dates]
    assert SIZE.dates[0] == BEGIN
