"""Rules 3, 6 and 9 to 13 on real Spark: what a range reads, what our tables are, how days are cut and sums are made."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import backfill, commit, ranges
from console.agent.feeds.checksum import sums_per_day
from console.agent.feeds.live_feed import join_versions, joined_rows
from console.agent.query_over import query_over
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.model.created import changed, table_settings
from console.model.live import TableState
from console.model.schema import Column, Table
from console.model.slices import Slice
from console.planning.sql.compile import NameScope
from console.planning.sql.feed import FeedCode
from console.planning.sql.relation import physical
from tests.faults.rules.tables import foreign, rows, state
from tests.planning.feeds import feed_code

pytestmark = [pytest.mark.faults, pytest.mark.spark]
MANY = 10**9

# -- rules 3 and 6: what a range reads


def test_a_range_reads_the_rows_its_commits_added_in_the_schema_of_its_end_without_a_change_feed(
    tmp_path: Path, session: Any
) -> None:
    """A stranger's table: no change feed, files of three schemas, one of its commits compacted since."""
    table = foreign(tmp_path / "landing", rows(1), rows(2))
    wider = rows(3).append_column("note", pa.array(["x"]))
    write_deltalake(table, wider, mode="append", schema_mode="merge", partition_by=["day"])
    DeltaTable(table).optimize.compact()
    assert "delta.enableChangeDataFeed" not in DeltaTable(table).metadata().configuration
    reached, seen = -1, []
    while part := ranges.next_range(table, reached, log.latest_version(table), MANY):
        read = ranges.read(session, table, part, tmp_path) if part.files else None
        seen.append((sorted(read.columns), sorted(row["n"] for row in read.collect())) if read is not None else ())
        reached = part.last
    assert seen == [(["day", "n"], [1, 2]), (["day", "n", "note"], [3])]


def test_a_joined_table_stays_at_one_version_while_a_commit_is_computed(tmp_path: Path, session: Any) -> None:
    """Rows of it that come in meanwhile would be seen by one branch of a query and not by the other."""
    table = foreign(tmp_path / "rates", rows(1), rows(2))
    joins = [(state("rates"), table)]
    seen = query_over(session, "SELECT n FROM rates", joined_rows(session, joins, join_versions(joins)))
    session.createDataFrame([(3, None)], "n bigint, day date").write.format("delta").mode("append").save(table)
    assert sorted(row["n"] for row in seen.collect()) == [1, 2]
    seen = query_over(session, "SELECT n FROM rates", joined_rows(session, joins, join_versions(joins)))
    assert sorted(row["n"] for row in seen.collect()) == [1, 2, 3]


# -- rule 9


def test_our_tables_have_none_of_the_features_that_feeds_cannot_read_whatever_the_inventory_switches_on(
    tmp_path: Path, session: Any
) -> None:
    path = str(tmp_path / "copy")
    commit.create(session, state("copy"), path, 240)
    protocol = DeltaTable(path).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert {*(protocol.reader_features or ()), *(protocol.writer_features or ())} == set()
    write_deltalake(path, rows(1), mode="append")  # deltalake, too, can write it
    DeltaTable(path).delete("n = 1")


def test_the_log_says_what_the_release_keeps_of_their_settings_and_what_was_altered_by_hand(
    tmp_path: Path, session: Any
) -> None:
    kept = table_settings(300)
    for name, kind in (("plain", "bigint"), ("ours", "timestamp_ntz")):
        path = str(tmp_path / name)
        made = state(name, (Column(name="n", type=kind),), partition_by=())
        commit.create(session, replace(made, version=replace(made.version, settings=kept)), path, 240)
        assert changed(kept, real(path)) == ()
        DeltaTable(path).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 1 hours"})
        assert changed(kept, real(path)) == (
            ("delta.deletedFileRetentionDuration", "interval 300 hours", "interval 1 hours"),
        )  # fmt: skip


def real(path: str) -> tuple[tuple[str, str], ...]:
    stored = DeltaTable(path).metadata().configuration
    return tuple(sorted((key, value) for key, value in stored.items() if key.startswith("delta.")))


def test_nor_have_those_that_only_spark_can_create(tmp_path: Path, session: Any) -> None:
    path = str(tmp_path / "copy")
    commit.create(
        session,
        state("copy", (Column(name="n", type="bigint"), Column(name="at", type="timestamp_ntz")), partition_by=()),
        path,
        240,
    )
    protocol = DeltaTable(path).protocol()
    results = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    assert "timestampNtz" in results
    unreadable = {
        "deletionVectors",
        "rowTracking",
        "inCommitTimestamp",
        "columnMapping",
        "typeWidening",
        "v2Checkpoint",
    }
    assert results & unreadable == set()


# -- rule 10


def spark_of(*, tasks: int, on_cluster: bool = False) -> Any:
    job = SparkHandle(Settings(), -1).job
    return SimpleNamespace(build_tasks=tasks, fit=lambda _: None, on_cluster=on_cluster, job=job)


@pytest.mark.parametrize(("on_cluster", "counted"), [(False, 12), (True, 6)])
def test_rows_read_on_a_cluster_rest_on_no_counter_of_sparks(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch, on_cluster: bool, counted: int
) -> None:
    """What a lost executor had counted is counted again (SPARK-58183); an executor is really lost in tests/cluster."""
    table = foreign(tmp_path / "landing", *(rows(n) for n in range(6)))
    monkeypatch.setattr(commit, "append", lambda *_: commit.CommitResult(1, 0, 0))
    monkeypatch.setattr("pyspark.sql.Observation.get", property(lambda _: {"rows": 12}))
    history = history_of(table, state("copy"), log.latest_version(table), "")
    spark = spark_of(tasks=1, on_cluster=on_cluster)
    assert backfill.run_batch(spark, session, history, history.slices, lambda _: None).rows_in == counted


def test_a_batch_leaves_a_slot_to_live(tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [SparkHandle(Settings(master=m), -1).slots for m in ("local", "local[2]", "local[7,3]")] == [2, 3, 8]
    table = foreign(tmp_path / "landing", *(rows(n) for n in range(6)))
    tasks: list[int] = []

    def stand_in(_: Any, out: Any, *more: Any) -> commit.CommitResult:
        tasks.append(out.rdd.getNumPartitions())
        out.count()
        return commit.CommitResult(1, 0, 0)

    monkeypatch.setattr(commit, "append", stand_in)
    spark = spark_of(tasks=2)
    history = history_of(table, state("copy"), log.latest_version(table), "")
    history.step.sql = "SELECT /*+ REPARTITION(6) */ * FROM landing"
    receipt = backfill.run_batch(spark, session, history, history.slices, lambda _: None)
    assert receipt.rows_in == 6
    assert tasks == [2]


def test_a_batch_is_stored_in_the_order_by_which_its_table_is_clustered(tmp_path: Path, session: Any) -> None:
    numbers = (5, 1, 4, 0, 3, 2)
    source = foreign(tmp_path / "landing", rows(*numbers), rows(*numbers, day=2))
    target = state("copy", cluster_by=("n",))
    path = str(tmp_path / "copy")
    commit.create(session, target, path, 240)
    spark = spark_of(tasks=1)
    history = history_of(source, target, log.latest_version(source), "")
    history = replace(history, target_path=path, writer=commit.open_feed(session, "history/x", path, 0))
    backfill.run_batch(spark, session, history, history.slices, lambda _: None)
    assert DeltaTable(path).to_pyarrow_table().num_rows == 12
    for file in (tmp_path / "copy").rglob("*.parquet"):
        assert pq.read_table(file).column("n").to_pylist() == sorted(numbers)


def history_of(source: str, target: TableState, fence: int, time: str, slices: tuple[Slice, ...] = ()) -> Any:
    step: Any = SimpleNamespace(
        id="backfill/copy", source="landing", target="copy", sql="SELECT * FROM landing", time=time, stored=False
    )
    writer = commit.FeedWriter(app_id="history", target=source, epoch=1, position=0)
    landing = state("landing", target.version.columns, kind="landing")
    whole = slices or (Slice(index=1, label="all", first="", end="", rows=6, bytes=6, null=True),)
    return backfill.History(
        step=step,
        source=landing,
        source_path=source,
        target=target,
        target_path=source,
        fence=fence,
        slices=whole,
        writer=writer,
    )


# -- rule 10


def test_the_stages_of_a_batch_have_no_more_tasks_than_the_limit_though_the_files_do_not_fit_evenly(
    tmp_path: Path, session: Any
) -> None:
    """Spark packs files of two thirds of a task's share one to a task. The query groups, so a batch has two stages."""
    limit, group = 3, "a batch"
    for n in range(limit + 1):
        write_deltalake(str(tmp_path / "landing"), rows(*range(n * 1000, n * 1000 + 1000)), mode="append")
    settings = {
        "files.maxPartitionNum": limit, "files.minPartitionNum": limit + 1, "files.openCostInBytes": 0, "shuffle.partitions": limit,
    }  # fmt: skip
    for name, value in settings.items():
        session.conf.set(f"spark.sql.{name}", str(value))
    try:
        history = history_of(str(tmp_path / "landing"), state("copy", partition_by=()), limit, "")
        history.step.sql = "SELECT max(n) AS n, day FROM landing GROUP BY day"
        assert backfill.source_rows(session, history, history.slices).rdd.getNumPartitions() > limit, "no such files"
        session.sparkContext.setJobGroup(group, "")
        found = backfill.target_rows(session, history, history.slices, tasks=limit).collect()
    finally:
        for name in settings:
            session.conf.unset(f"spark.sql.{name}")
        session.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert [row["n"] for row in found] == [1000 * (limit + 1) - 1]
    tracker = session.sparkContext.statusTracker()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    infos = [info for stage in sorted(stages) if (info := tracker.getStageInfo(stage))]
    tasks = [info.numTasks for info in infos if Path(__file__).name in info.name]  # the others read Delta's log
    assert max(tasks) == limit


# -- rule 11

AT = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
# statistics end a file's last millisecond late, so the file of the last microsecond may be read for the next day as well
EDGES = (
    ("2026-11-01T00:00:00", "2026-11-01T12:00:00"),
    ("2026-11-01T23:59:59.999999",),
    ("2026-11-02T00:00:00", "2026-11-02T12:00:00"),
    (None,),
)


def days(place: Path) -> str:
    """A file for each group of times: on both sides of midnight, and rows without a time."""
    for group in EDGES:
        part = [text and datetime.fromisoformat(text).replace(tzinfo=UTC) for text in group]
        table = pa.table({"id": [str(at) for at in part], "at": pa.array(part, AT.field("at").type)}, AT)
        write_deltalake(str(place), table, mode="append")
    return str(place)


def test_days_are_half_open_with_one_batch_for_the_rows_without_a_time_and_read_no_other_days_files(
    tmp_path: Path, session: Any
) -> None:
    table = days(tmp_path / "landing")
    columns = (Column(name="id", type="string"), Column(name="at", type="timestamp"))
    slices = (
        Slice(index=1, label="2026-11-02", first="2026-11-02T00:00:00", end="2026-11-03T00:00:00", rows=2, bytes=1),
        Slice(index=2, label="2026-11-01", first="2026-11-01T00:00:00", end="2026-11-02T00:00:00", rows=3, bytes=1),
        Slice(index=3, label="", first="", end="", rows=1, bytes=1, null=True),
    )
    history = history_of(table, state("copy", columns, partition_by=()), 3, "at", slices)
    of_others = ((0, 3), (2, 3), (0, 1, 2))  # versions that hold no row of the slice
    for run, versions in zip(slices, of_others, strict=True):
        others = [Path(file.path) for version in versions for file in log.commit(table, version).added]
        for other in others:
            other.rename(other.with_suffix(".away"))  # a day that reads it breaks
        result = backfill.target_rows(session, history, (run,)).collect()
        for other in others:
            other.with_suffix(".away").rename(other)
        assert len(result) == run.rows, run
    assert len(backfill.target_rows(session, history, slices).collect()) == sum(map(len, EDGES))


# -- rule 12


def sums(session: Any, values: str, kind: str) -> Any:
    rows = session.sql(f"SELECT CAST(col1 AS {kind}) AS c, CAST(col2 AS {kind}) AS d FROM VALUES {values}")
    return tuple(sums_per_day(rows, "", [("c", kind), ("d", kind)]).collect()[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(1, 1), (1, 1), (2, 2)", "(3, 3), (3, 3), (2, 2)"),  # XOR lets pairs cancel
        ("(1, 1), (2, 2)", "(1, 2), (2, 1)"),  # columns equal each for itself, rows not
        ("(NULL, 1), (NULL, 2)", "(1, NULL), (2, NULL)"),  # a hash that skips NULLs sees the same
        ("(NULL, 1)", "(1, NULL)"),
        ("(1, 1), (1, 1)", "(1, 1)"),
    ],
)
def test_sums_tell_apart_what_weaker_sums_do_not(session: Any, left: str, right: str) -> None:
    assert sums(session, left, "bigint") != sums(session, right, "bigint")


def test_sums_see_in_which_column_a_null_stands(session: Any) -> None:
    """Every column holds the same values, and every row the same ones if NULLs are left out."""

    def of(values: str) -> Any:
        rows = session.sql(f"SELECT col1 AS a, col2 AS b, col3 AS c FROM VALUES {values}")
        return tuple(sums_per_day(rows, "", [(name, "int") for name in "abc"]).collect()[0])

    assert of("(1, NULL, 2), (3, 2, NULL)") != of("(1, 2, NULL), (3, NULL, 2)")


def test_sums_do_not_depend_on_order_take_maps_and_do_not_overflow(session: Any) -> None:
    pairs = ", ".join(f"({n}, {n * 7})" for n in range(300))
    shuffled = ", ".join(f"({n}, {n * 7})" for n in reversed(range(300)))
    assert sums(session, pairs, "bigint") == sums(session, shuffled, "bigint")
    one = "(map('a', 1, 'b', 2), map('x', 0))"
    other = "(map('b', 2, 'a', 1), map('x', 0))"
    assert sums(session, one, "map<string,int>") == sums(session, other, "map<string,int>")
    assert sums(session, one, "map<string,int>") != sums(session, one.replace("'b', 2", "'b', 3"), "map<string,int>")
    session.conf.set("spark.sql.ansi.enabled", "true")  # an overflow is an error
    many = session.range(200_000).selectExpr("id AS c", "id AS d")
    assert sums_per_day(many, "", [("c", "bigint"), ("d", "bigint")]).collect()[0]["rows"] == 200_000


# -- rule 13

GIVEN = {
    "k": "string",
    "i": "int",
    "l": "bigint",
    "d": "decimal(10,2)",
    "w": "decimal(38,6)",
    "f": "double",
    "s": "string",
}
STATES = """SELECT k, count(*) AS n, count_if(i > 2) AS big, sum(i) AS si, sum(l) AS sl, sum(d) AS sd, sum(w) AS sw,
  sum(f) AS sf, min(s) AS lo, max(d) AS hi, avg(i) AS ai, avg(l) AS al, avg(d) AS ad, avg(f) AS af,
  approx_count_distinct(s) AS u, approx_percentile(f, 0.5) AS q FROM t GROUP BY k"""
OUT = {
    "k": "string", "n": "bigint", "big": "bigint", "si": "bigint", "sl": "bigint", "sd": "decimal(38,2)",
    "sw": "decimal(38,6)", "sf": "double", "lo": "string", "hi": "decimal(10,2)", "ai": "double", "al": "double",
    "ad": "decimal(14,6)", "af": "double", "u": "bigint", "q": "double",
}  # fmt: skip


def compiled() -> FeedCode:
    known = NameScope({"t": GIVEN}, {"t": physical("t", "t", {name: name for name in GIVEN})})
    table = Table(
        name="agg", kind="aggregate", columns=tuple(Column(name=name, type=kind) for name, kind in OUT.items())
    )
    code, text = feed_code(STATES, table, known)
    assert code is not None, text.problems
    return code


def test_states_keep_their_types_through_every_merge_and_end_in_the_declared_ones(session: Any) -> None:
    """A decimal sum widens each time it is summed, and the averages of two types differ."""
    code = compiled()
    rows = session.sql(
        "SELECT CAST(id % 2 AS STRING) AS k, CAST(id AS INT) AS i, 9000000000000000 AS l,"
        " CAST(99999999.99 AS DECIMAL(10,2)) AS d, CAST(1.5 AS DECIMAL(38,6)) AS w, CAST(id AS DOUBLE) AS f,"
        " CAST(id AS STRING) AS s FROM range(0, 40)"
    )
    declared = [(column.name, column.type) for column in code.stored]
    stored = None
    for part in range(3):
        states = query_over(session, code.feed.sql, {"t": rows.where(f"i % 3 = {part}")})
        assert [(f.name, f.dataType.simpleString()) for f in states.schema.fields] == declared
        stored = states if stored is None else stored.unionByName(states)
    assert stored is not None
    merged = query_over(session, code.read, {"stored": stored})
    assert {f.name: f.dataType.simpleString() for f in merged.schema.fields} == OUT
    results = {row["k"]: row for row in merged.collect()}
    assert [results["0"][name] for name in ("n", "si", "u")] == [20, 380, 20]
    assert str(results["1"]["sd"]) == "1999999999.80"
