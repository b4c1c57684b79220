"""One feed moves by one range: its writer, the recount of its rows, and equality of two declarations. No Java."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from console.agent.expectations import guard
from console.agent.feeds import commit, exact_appends, live_feed, ranges
from console.agent.feeds.live_feed import LiveFeed
from console.agent.feeds.readings import Readings
from console.errors import FeedStopped
from tests.agent.copying import Rows, by_arrow
from tests.faults.rules.tables import SCHEMA, column_values, copying_feed, foreign, rows

pytestmark = pytest.mark.slow

MIB = 1 << 20


@dataclass
class Carried:
    """A feed from `landing` to `copy`, opened, and what became of each range: which of the two wrote, in how many tasks."""

    feed: LiveFeed
    writers: list[str]
    tasks: list[int]


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Carried:
    landing, copy = foreign(tmp_path / "landing", rows(0), rows(1)), str(tmp_path / "copy")
    DeltaTable.create(copy, schema=SCHEMA, partition_by=["day"])
    result = Carried(copying_feed(landing, copy), [], [])
    small = commit.append_small

    def by_deltalake(*given: Any) -> commit.CommitResult | None:
        result.writers.append("deltalake")
        return small(*given)

    def by_spark(*_: Any) -> None:
        result.writers.append("spark")

    def tasks(self: Rows, many: int) -> Rows:
        result.tasks.append(many)
        return self

    by_arrow(monkeypatch)
    monkeypatch.setattr(Rows, "coalesce", tasks)
    monkeypatch.setattr(Rows, "selectExpr", lambda self, *_: self, raising=False)
    monkeypatch.setattr(commit, "append_small", by_deltalake)
    monkeypatch.setattr(commit, "append", by_spark)
    return result


@pytest.mark.parametrize(
    ("rows_in", "size", "writer", "tasks"),
    [
        (0, 1, "deltalake", [1]),
        (10_000, 16 * MIB - 1, "deltalake", [1]),
        (10_001, 8 * MIB, "deltalake", [1]),
        (400_000, 1, "deltalake", [1]),
        (10_001, 8 * MIB + 1, "spark", [1]),
        (400_001, 1, "spark", [1]),
        (-1, 1, "spark", [1]),  # a log that does not tell how many
        (1, 16 * MIB, "spark", []),
        (1, 16 * MIB + 1, "spark", []),
    ],
)
def test_a_range_of_few_rows_and_bytes_is_written_without_spark(
    carried: Carried, rows_in: int, size: int, writer: str, tasks: list[int]
) -> None:
    part = ranges.next_range(carried.feed.source_path, 0, 1, 100)
    assert part is not None
    part = replace(part, rows=rows_in, files=tuple(replace(file, bytes=size) for file in part.files))
    with Readings() as readings:
        carried.feed._copy_range(None, carried.feed.open(None), part, readings)
    assert (carried.writers, carried.tasks) == ([writer], tasks)
    assert column_values(carried.feed.target_path) == ([1] if writer == "deltalake" else [])


def large(carried: Carried, first: int) -> None:
    """Carry the source's commits from one on as a range of many rows."""
    part = ranges.next_range(carried.feed.source_path, first - 1, first, 100)
    assert part is not None
    with Readings() as readings:
        carried.feed._copy_range(None, carried.feed.open(None), replace(part, rows=20_000), readings)


def test_rows_that_could_not_be_collected_are_written_by_spark_from_then_on(
    carried: Carried, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(*_: Any) -> None:
        carried.writers.append("collected")
        raise PySparkException("Total size of serialized results of 1 tasks is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr(live_feed, "_TOO_LARGE", set())
    by_deltalake = commit.append_small
    monkeypatch.setattr(commit, "append_small", too_many)
    large(carried, 1)
    assert carried.writers == ["collected", "spark"]
    monkeypatch.setattr(commit, "append_small", by_deltalake)
    write_deltalake(carried.feed.source_path, rows(2, 3), mode="append", partition_by=["day"])
    large(carried, 2)
    assert carried.writers == ["collected", "spark", "spark"]
    assert carried.feed.step(None, 2) == 3  # a small range is collected as ever
    assert carried.writers[3:] == ["deltalake"]


def test_a_jvm_that_died_meanwhile_is_asked_nothing_more_and_the_next_writes_by_spark(
    carried: Carried, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(live_feed, "_TOO_LARGE", set())
    with monkeypatch.context() as patch:
        patch.setattr(commit, "append_small", dies)
        with pytest.raises(Py4JNetworkError):
            large(carried, 1)
    assert carried.writers == []
    large(carried, 1)
    assert carried.writers == ["spark"]


@pytest.mark.parametrize("error", [FeedStopped("another writer is ahead"), PySparkException(guard.UNEXPECTED)])
def test_what_stops_a_range_is_no_question_of_its_size(
    carried: Carried, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def stops(*_: Any) -> None:
        raise error

    monkeypatch.setattr(commit, "append_small", stops)
    monkeypatch.setattr(guard, "refused", lambda given: given is error and not isinstance(error, FeedStopped))
    monkeypatch.setattr(live_feed, "failing_rows", lambda *_: ())
    with pytest.raises(FeedStopped):
        large(carried, 1)
    assert carried.writers == []
    assert carried.feed.app_id not in live_feed._TOO_LARGE


def test_a_range_that_was_collected_leaves_no_mark(carried: Carried) -> None:
    large(carried, 1)
    assert carried.writers == ["deltalake"]
    assert carried.feed.app_id not in live_feed._TOO_LARGE


def test_a_target_that_deltalake_cannot_write_is_left_to_spark_and_asked_about_once(
    carried: Carried, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    carried.feed.open(None)
    monkeypatch.setattr(exact_appends, "supports_small_appends", lambda target: bool(asked.append(target)))
    write_deltalake(carried.feed.source_path, rows(2), mode="append", partition_by=["day"])
    for end in (1, 2):
        assert carried.feed.step(None, end) == 1
    assert carried.writers == ["spark", "spark"]
    assert asked == [carried.feed.target_path]


def test_one_commit_alone_is_computed_again(carried: Carried) -> None:
    for n in range(2, 6):
        write_deltalake(carried.feed.source_path, rows(n), mode="append", partition_by=["day"])
    for version in range(6):
        with carried.feed.dry_run(None, version, {}) as out:
            assert out.table.column("n").to_pylist() == [version]
    assert column_values(carried.feed.target_path) == []


def test_two_declarations_differ_where_other_commits_flow_or_other_rows_come_of_them() -> None:
    one = copying_feed("landing", "copy")
    other_sql, other_read, other_policy = (
        copying_feed("landing", "copy"),
        copying_feed("landing", "copy"),
        copying_feed("landing", "copy"),
    )
    other_sql.spec = replace(one.spec, sql="SELECT n + 1 AS n, day FROM landing")
    other_read.source = replace(one.source, read="SELECT n, day FROM stored")
    other_policy.source = replace(one.source, table=replace(one.source.table, on_rewrite="ignore"))
    same = copying_feed("landing", "copy")
    same.joins, same.seen = ((one.source, "elsewhere"),), 7
    assert not one.differs(same)
    assert not same.differs(one)
    for other in (other_sql, other_read, other_policy):
        assert one.differs(other)
        assert other.differs(one)


def test_a_version_that_joined_tables_are_pinned_at_is_their_newest(tmp_path: Path) -> None:
    joined = ((copying_feed("landing", "copy").source, foreign(tmp_path / "landing", rows(0), rows(1))),)
    assert live_feed.join_versions(joined) == {"landing": 1}
