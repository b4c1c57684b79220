"""Small appends through deltalake: rows and position in one commit, never concurrent with a write by Spark. No Java."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Transaction, write_deltalake
from deltalake.schema import PrimitiveType

from console.agent.feeds import app_ids, commit, exact_appends
from console.agent.store import log, open_tables, write_lock
from console.errors import FeedStopped

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("day", pa.date32())])
FEED = "live/t/parse"


class Computed:
    """What Spark hands over: only its rows as Arrow matter here."""

    def __init__(self, *rows: dict[str, Any], schema: pa.Schema = SCHEMA) -> None:
        self._table = pa.Table.from_pylist(list(rows), schema)

    def toArrow(self) -> pa.Table:
        return self._table


@pytest.fixture
def writer(tmp_path: Path) -> commit.FeedWriter:
    target = str(tmp_path / "requests")
    write_deltalake(target, pa.Table.from_pylist([], SCHEMA), partition_by=["day"])
    taken_over(target, 3, 0)
    return commit.FeedWriter(app_id=FEED, target=target, epoch=3, position=0)


def taken_over(target: str, epoch: int, position: int) -> None:
    number = epoch << app_ids.EPOCH_BITS | position
    properties = CommitProperties(app_transactions=[Transaction(FEED, number)])
    write_deltalake(target, pa.Table.from_pylist([], SCHEMA), mode="append", commit_properties=properties)


def stored(writer: commit.FeedWriter) -> list[dict[str, Any]]:
    return sorted(DeltaTable(writer.target).to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


def test_rows_and_position_enter_in_one_commit(writer: commit.FeedWriter) -> None:
    done = commit.append_small(Computed({"id": "a", "n": 1}, {"id": "b"}), writer, 7, {"kind": "live", "to": 7})
    assert done is not None
    assert (done.version, done.rows) == (2, 2)
    stored_commit = log.commit(writer.target, 2)
    assert (stored_commit.kind, stored_commit.txn, stored_commit.note["to"]) == (
        "append",
        {FEED: 3 << app_ids.EPOCH_BITS | 7},
        7,
    )
    assert [row["id"] for row in stored(writer)] == ["a", "b"]
    assert writer.position == 7


def test_a_range_that_gives_no_rows_still_moves_the_position(writer: commit.FeedWriter) -> None:
    done = commit.append_small(Computed(), writer, 8, {"kind": "live"})
    assert done is not None
    assert done.rows == 0
    assert app_ids.split(open_tables.position(writer.target, FEED) or 0) == (3, 8)


@pytest.mark.parametrize(("epoch", "position"), [(3, 9), (4, 2)])
def test_behind_a_rival_nothing_is_written(writer: commit.FeedWriter, epoch: int, position: int) -> None:
    taken_over(writer.target, epoch, position)
    with pytest.raises(FeedStopped) as refused:
        commit.append_small(Computed({"id": "a"}), writer, 7, {"kind": "live"})
    assert refused.value.code == "E_SKIPPED"
    assert stored(writer) == []
    assert writer.position == 0


def test_a_number_that_stands_in_the_log_already_is_not_taken_for_the_write_that_delta_skipped(
    writer: commit.FeedWriter,
) -> None:
    """Its own, of a call whose answer was lost, or a rival's: who writes next takes the feed over first."""
    taken_over(writer.target, 3, 7)

    class Skipped:
        write: Any

        def format(self, *_: str) -> "Skipped":
            return self

        mode = format

        def options(self, **given: str) -> "Skipped":
            assert given["txnVersion"] == str(3 << app_ids.EPOCH_BITS | 7)
            return self

        def save(self, _: str) -> None:
            """As Delta does with a number that it knows."""

    rows = Skipped()
    rows.write = rows
    with pytest.raises(FeedStopped) as refused:
        commit.append(None, rows, writer, 7, {"kind": "live"})
    assert (refused.value.code, writer.position) == ("E_SKIPPED", 0)


def test_a_position_never_goes_back(writer: commit.FeedWriter) -> None:
    commit.append_small(Computed({"id": "a"}), writer, 7, {"kind": "live"})
    with pytest.raises(FeedStopped) as refused:
        commit.append_small(Computed({"id": "a"}), writer, 7, {"kind": "live"})
    assert refused.value.code == "E_ORDER"
    assert len(stored(writer)) == 1


def test_beside_a_write_of_sparks_nothing_is_written(writer: commit.FeedWriter) -> None:
    with write_lock.shared(writer.target):
        assert in_a_thread(lambda: commit.append_small(Computed({"id": "a"}), writer, 7, {"kind": "live"})) is None
    assert stored(writer) == []
    assert writer.position == 0
    assert commit.append_small(Computed({"id": "a"}), writer, 7, {"kind": "live"}) is not None


def test_a_write_of_sparks_waits_for_one_of_deltalakes(writer: commit.FeedWriter) -> None:
    order = []

    def by_spark() -> None:
        with write_lock.shared(writer.target):
            order.append("spark")

    with write_lock.exclusive(writer.target) as ours:
        other = threading.Thread(target=by_spark)
        other.start()
        other.join(0.2)
        order.append("deltalake")
    other.join()
    assert ours
    assert order == ["deltalake", "spark"]


def test_a_call_that_broke_without_the_jvms_answer_keeps_its_turn(writer: commit.FeedWriter) -> None:
    with pytest.raises(ConnectionError), write_lock.shared(writer.target):
        raise ConnectionError("the job may go on")
    assert commit.append_small(Computed({"id": "a"}), writer, 7, {"kind": "live"}) is None
    assert stored(writer) == []


def test_what_arrow_cannot_store_exactly_is_left_to_spark(writer: commit.FeedWriter) -> None:
    other = pa.schema([("id", pa.string()), ("n", pa.float64()), ("day", pa.date32())])
    assert commit.append_small(Computed({"id": "a", "n": 0.5}, schema=other), writer, 7, {"kind": "live"}) is None
    assert stored(writer) == []


def test_a_column_that_somebody_added_is_left_to_spark(writer: commit.FeedWriter) -> None:
    DeltaTable(writer.target).alter.add_columns(Field("note", PrimitiveType("string")))
    assert commit.append_small(Computed({"id": "a", "n": 1}), writer, 7, {"kind": "live"}) is None
    assert stored(writer) == []
    assert writer.position == 0


def test_types_that_deltalake_writes_as_spark_does(tmp_path: Path) -> None:
    plain = [("m", pa.map_(pa.string(), pa.list_(pa.decimal128(38, 4)))), ("t", pa.timestamp("us", "UTC"))]
    for name, columns in (("plain", plain), ("zoneless", [*plain, ("z", pa.struct([("t", pa.timestamp("us"))]))])):
        write_deltalake(str(tmp_path / name), pa.Table.from_pylist([], pa.schema(columns)))
    assert exact_appends.supports_small_appends(str(tmp_path / "plain"))
    assert not exact_appends.supports_small_appends(str(tmp_path / "zoneless"))


@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.float32(), pa.float64(), pa.binary()])
def test_partitions_that_deltalake_spells_in_its_own_way_are_left_to_spark(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.string()), ("part", kind)])
    for name, by in (("ours", ["part"]), ("other", ["id"])):
        write_deltalake(str(tmp_path / name), pa.Table.from_pylist([], schema), partition_by=by)
    assert not exact_appends.supports_small_appends(str(tmp_path / "ours"))
    assert exact_appends.supports_small_appends(str(tmp_path / "other"))


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_in_a_partition_that_spark_writes_as_null_is_null(tmp_path: Path, text: str) -> None:
    target = str(tmp_path / "requests")
    write_deltalake(target, pa.Table.from_pylist([], SCHEMA), partition_by=["id"])
    taken_over(target, 3, 0)
    commit.append_small(
        Computed({"id": text, "n": 1}),
        commit.FeedWriter(app_id=FEED, target=target, epoch=3, position=0),
        7,
        {"kind": "live"},
    )
    assert [dict(file.values) for file in log.commit(target, 2).added] == [{"id": None}]
    assert '"partitionValues":{"id":null}' in "".join(log.action_lines(target, 2))


def in_a_thread(do: Any) -> Any:
    """The turn belongs to a thread, so a rival must be one of its own."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(do()))
    thread.start()
    thread.join()
    return results[0]
