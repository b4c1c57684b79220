"""The Delta log as a feed reads it: commits that may flow, commits that must not, and the content of each. No Java."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console.agent.feeds import ranges
from console.agent.store import log, open_tables, shape
from console.agent.store import table_stats as table_stats_module
from console.agent.store.shape import layout_of
from console.agent.store.table_stats import table_stats
from console.errors import FeedStopped, RegionError, Unreachable
from console.model.schema import OnRewrite
from console.record import replace

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
START = datetime(2026, 11, 1, tzinfo=UTC)


def rows(first: int, count: int, hours: int = 1) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": str(first + i), "ts": START + timedelta(hours=hours * (first + i))} for i in range(count)], SCHEMA
    )


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Versions 0…3: three appends of 10, 20, 30 rows, then an OPTIMIZE."""
    path = str(tmp_path / "landing")
    for first, count in ((0, 10), (10, 20), (30, 30)):
        write_deltalake(path, rows(first, count), mode="append")
    DeltaTable(path).optimize.compact()
    return path


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_a_text_that_has_a_line_end_of_unicode_does_not_damage_its_commit(end: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"text": [f"a{end}b"], "part": [f"c{end}d"]}), partition_by=["part"])
    (file,) = log.commit(path, 0).added
    assert (file.rows, file.values) == (1, (("part", f"c{end}d"),))


def test_what_a_writer_leaves_unsaid_or_null_is_not_known(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, rows(0, 3))
    commit = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"] |= {"stats": '{"numRecords":null}', "partitionValues": None, "size": None}
        if "commitInfo" in action:
            action["commitInfo"] |= {"timestamp": None, "operation": None}
    unsaid = dict.fromkeys(("add", "remove", "cdc", "metaData", "txn", "protocol", "commitInfo"))
    commit.write_text("\n".join(json.dumps(unsaid | action) for action in actions))
    result = log.commit(path, 0)
    assert (result.kind, result.at_ms, [(file.rows, file.bytes) for file in result.added]) == ("append", 0, [(-1, 0)])


def test_appends_flow_and_maintenance_is_quiet(table: str) -> None:
    kinds = [commit.kind for commit in log.commits(table, 0, 3)]
    assert kinds == ["append", "append", "append", "quiet"]
    part = ranges.next_range(table, -1, 3, rows_limit=10**9)
    assert part is not None
    assert (part.first, part.last, part.rows, len(part.files)) == (0, 3, 60, 3)


def test_a_range_stops_before_its_row_limit_and_a_single_larger_commit_goes_alone(table: str) -> None:
    reached, seen = -1, []
    while part := ranges.next_range(table, reached, 3, rows_limit=25):
        seen.append((part.first, part.last, part.rows))
        reached = part.last
    assert seen == [(0, 0, 10), (1, 1, 20), (2, 3, 30)]


@pytest.mark.parametrize("change", ["delete", "overwrite", "restore", "merge"])
def test_a_commit_that_rewrites_rows_stops_the_feed_in_front_of_it(table: str, change: str) -> None:
    before = log.latest_version(table)
    rewrite(table, change)
    end = log.latest_version(table)
    assert ranges.next_range(table, before - 1, end, rows_limit=10**9) == ranges.Range(first=before, last=before)
    write_deltalake(table, rows(200, 5), mode="append")  # behind it, and not to be reached past it
    assert ranges.next_range(table, before - 1, end + 1, rows_limit=10**9) == ranges.Range(first=before, last=before)
    with pytest.raises(FeedStopped, match="only appends flow"):
        ranges.next_range(table, before, end, rows_limit=10**9)


@pytest.mark.parametrize("policy", ["ignore", "take_inserts"])
def test_a_policy_passes_over_a_commit_that_only_removes(table: str, policy: OnRewrite) -> None:
    DeltaTable(table).delete()
    write_deltalake(table, rows(200, 5), mode="append")
    part = ranges.next_range(table, 3, 5, rows_limit=10**9, policy=policy)
    assert part is not None
    assert (part.rows, part.skipped) == (5, (4,))


@pytest.mark.parametrize(("policy", "stops"), [("ignore", False), ("take_inserts", True)])
def test_inserts_are_not_taken_from_a_commit_that_removes_as_well(table: str, policy: OnRewrite, stops: bool) -> None:
    write_deltalake(table, rows(100, 7), mode="overwrite")
    write_deltalake(table, rows(200, 5), mode="append")
    if stops:
        with pytest.raises(FeedStopped, match="only appends flow"):
            ranges.next_range(table, 3, 5, rows_limit=10**9, policy=policy)
        return
    part = ranges.next_range(table, 3, 5, rows_limit=10**9, policy=policy)
    assert part is not None
    assert (part.rows, part.skipped) == (5, (4,))


def rewrite(table: str, change: str) -> None:
    delta = DeltaTable(table)
    match change:
        case "delete":
            delta.delete("id = '3'")
        case "overwrite":
            write_deltalake(table, rows(0, 1), mode="overwrite")
        case "restore":
            delta.restore(1)
        case "merge":
            new = rows(3, 1)
            delta.merge(new, "t.id = s.id", source_alias="s", target_alias="t").when_matched_update_all().execute()


def test_a_range_never_crosses_a_change_of_schema(table: str) -> None:
    wider = rows(70, 5).append_column("extra", pa.array([1] * 5))
    write_deltalake(table, rows(60, 5), mode="append")
    write_deltalake(table, wider, mode="append", schema_mode="merge")
    write_deltalake(table, wider, mode="append")
    end = log.latest_version(table)
    first = ranges.next_range(table, 3, end, rows_limit=10**9)
    assert first is not None
    assert (first.first, first.last) == (4, 4)
    second = ranges.next_range(table, 4, end, rows_limit=10**9)
    assert second is not None
    assert (second.first, second.last, second.rows) == (5, end, 10)


@pytest.mark.parametrize("position", ["-1", "0", "3", "70000"])
def test_at_its_end_there_is_no_range(table: str, position: str) -> None:
    """Two numbers read from two places are equal and not the same object."""
    assert ranges.next_range(table, int(position), int(position), rows_limit=10) is None


def test_a_source_shorter_than_the_position_is_never_taken_for_nothing_to_do(table: str) -> None:
    with pytest.raises(FeedStopped, match="before position 9"):
        ranges.next_range(table, 9, log.latest_version(table), rows_limit=10)


def test_a_commit_gone_from_the_log_is_an_error_not_an_empty_range(table: str) -> None:
    (Path(table) / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(RegionError, match="commit 1 is gone"):
        ranges.next_range(table, 0, 3, rows_limit=10**9)


def test_a_table_written_anew_in_the_place_of_one_that_was_dropped_is_read_anew(table: str) -> None:
    assert [commit.kind for commit in log.commits(table, 0, 3)] == ["append", "append", "append", "quiet"]
    shutil.rmtree(table)
    for first in range(4):
        write_deltalake(table, rows(first, 5), mode="append")
    results = list(log.commits(table, 0, 3))
    assert [(commit.kind, commit.added[0].rows) for commit in results] == [("append", 5)] * 4
    assert all(Path(commit.added[0].path).is_file() for commit in results)


def test_a_commit_gone_from_the_log_is_gone_though_it_was_read_before(table: str) -> None:
    assert log.commit(table, 1) is log.commit(table, 1)
    (Path(table) / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(RegionError, match="commit 1 is gone"):
        log.commit(table, 1)


def test_an_empty_commit_file_is_named_and_not_skipped(table: str) -> None:
    (Path(table) / "_delta_log" / f"{1:020}.json").write_text("")
    with pytest.raises(RegionError, match="commit 1 is empty"):
        ranges.next_range(table, 0, 3, rows_limit=10**9)


def test_an_empty_commit_counts_behind_the_last_checkpoint_and_not_before_it(table: str) -> None:
    folder = Path(table) / "_delta_log"
    DeltaTable(table).create_checkpoint()
    write_deltalake(table, rows(60, 4), mode="append")
    (folder / f"{1:020}.json").write_text("")
    log.check_intact(table)
    (folder / f"{4:020}.json").write_text("")
    with pytest.raises(RegionError, match="commit 4 is empty"):
        log.check_intact(table)
    (folder / "_last_checkpoint").write_text("{")
    with pytest.raises(RegionError, match="commit 4 is empty"):
        log.check_intact(table)


def test_a_gap_of_one_commit_behind_the_known_end_of_a_log_shows_at_once(table: str) -> None:
    assert log.latest_version(table) == 3
    for _ in range(2):
        write_deltalake(table, rows(60, 4), mode="append")
    (Path(table) / "_delta_log" / f"{4:020}.json").unlink()
    assert log.latest_version(table) == 5
    with pytest.raises(RegionError, match="commit 4 is gone"):
        ranges.next_range(table, 3, 5, rows_limit=10**9)


def test_a_longer_gap_shows_once_the_whole_log_is_listed(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert log.latest_version(table) == 3
    for _ in range(3):
        write_deltalake(table, rows(60, 4), mode="append")
    for version in (4, 5):
        (Path(table) / "_delta_log" / f"{version:020}.json").unlink()
    assert log.latest_version(table) == 3
    monkeypatch.setattr(log, "LISTED_SECONDS", -1.0)
    assert log.latest_version(table) == 6


def test_the_end_of_a_log_is_found_without_listing_it_again(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert log.latest_version(table) == 3
    monkeypatch.setattr(log, "newest_names", lambda _: pytest.fail("listed"))
    for version in (3, 4, 5):
        assert log.latest_version(table) == version
        write_deltalake(table, rows(60, 4), mode="append")


def test_the_position_and_the_note_travel_in_the_commit(table: str) -> None:
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps({"kind": "live", "rows_in": 4})},
        app_transactions=[Transaction("feed", 42)],
    )
    write_deltalake(table, rows(60, 4), mode="append", commit_properties=properties)
    commit = log.commit(table, 4)
    assert (commit.txn, commit.note["rows_in"]) == ({"feed": 42}, 4)
    assert open_tables.position(table, "feed") == 42
    assert open_tables.position(table, "feed", as_of=3) is None


def test_no_table_is_unreachable_and_not_version_zero(tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        log.latest_version(str(tmp_path / "nothing"))


def test_days_are_counted_from_file_statistics_and_shared_out_where_files_span_days(tmp_path: Path) -> None:
    path = str(tmp_path / "landing")
    write_deltalake(path, rows(0, 24), mode="append")  # one whole day
    write_deltalake(path, rows(24, 48), mode="append")  # two days in one file
    write_deltalake(path, pa.Table.from_pylist([{"id": "x", "ts": None}] * 3, SCHEMA), mode="append")
    stats = table_stats("landing", path)
    assert stats is not None
    assert (stats.rows, stats.files, stats.version) == (75, 3, 2)
    assert [(day.day, day.rows, day.exact) for day in stats.days] == [
        ("", 3, True),
        ("2026-11-01", 24, True),
        ("2026-11-02", 24, False),
        ("2026-11-03", 24, False),
    ]


def test_statistics_in_memory_are_those_of_the_log_after_whatever_others_have_done_to_it(tmp_path: Path) -> None:
    path = str(tmp_path / "landing")
    constraint = {"positive": "id >= '0'"}
    deeds: dict[str, Callable[[str], object]] = {
        "made": lambda path: write_deltalake(path, rows(0, 48), mode="append"),
        "appended": lambda path: write_deltalake(path, rows(48, 24), mode="append"),
        "deleted": lambda path: DeltaTable(path).delete("id < '2'"),
        "compacted": lambda path: DeltaTable(path).optimize.compact(),
        "updated": lambda path: DeltaTable(path).update({"ts": "NULL"}, predicate="id = '47'"),
        "constrained": lambda path: DeltaTable(path).alter.add_constraint(constraint),
        "checkpointed": lambda path: DeltaTable(path).create_checkpoint(),
        "overwritten": lambda path: write_deltalake(path, rows(0, 30), mode="overwrite"),
        "restored": lambda path: DeltaTable(path).restore(1),
        "swept": lambda path: DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False),
        "of other columns": lambda path: write_deltalake(
            path, rows(0, 3).append_column("more", pa.array([1, 2, 3])), mode="overwrite", schema_mode="overwrite"
        ),
    }
    known = None
    for name, deed in deeds.items():
        before = known
        deed(path)
        known = table_stats("landing", path)
        assert known == table_stats_module._read_stats("landing", path, "", None, None), name
        assert table_stats("landing", path) == known
        assert known != before or name == "checkpointed", name


def test_statistics_are_read_again_after_a_commit_of_another_time_column_and_of_a_table_in_its_place(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "landing")

    def counted(time: str = "") -> tuple[int, int] | None:
        stats = table_stats("landing", path, time)
        return stats and (stats.rows, len(stats.days))

    write_deltalake(path, rows(0, 24), mode="append")
    first = table_stats("landing", path)
    assert table_stats("again", path) == (first and replace(first, name="again"))
    assert (counted(), counted("id")) == ((24, 1), (24, 2))  # days by the text are none: before and after all
    write_deltalake(path, rows(24, 24), mode="append")
    assert counted() == (48, 2)
    assert table_stats("landing", path, version=0) == first
    shutil.rmtree(path)
    write_deltalake(path, rows(0, 1), mode="append")
    write_deltalake(path, rows(1, 1), mode="append")
    assert counted() == (2, 1)
    shutil.rmtree(path)
    assert counted() is None


def test_what_is_left_of_a_cleaned_log_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    """deltalake does, where the first commit that is left changed the table's metadata."""
    path = str(tmp_path / "t")
    for number in range(3):
        write_deltalake(path, pa.table({"id": [number]}), mode="append")
    write_deltalake(path, pa.table({"id": [3], "more": [3]}), mode="append", schema_mode="merge")
    commits = tmp_path / "t" / "_delta_log"
    [protocol] = [
        line for line in (commits / f"{0:020}.json").read_text().splitlines() if line.startswith('{"protocol"')
    ]
    changed = commits / f"{3:020}.json"  # Spark's repeats the protocol, as column mapping asks for another
    changed.write_text(f"{protocol}\n{changed.read_text()}")
    for number in range(4, 7):
        write_deltalake(path, pa.table({"id": [number], "more": [number]}), mode="append")
    whole = [log.covers(path, version) for version in range(8)]
    DeltaTable(path).create_checkpoint()
    for number in range(3):
        (commits / f"{number:020}.json").unlink()
    assert whole == [True] * 7 + [False]
    assert len(DeltaTable(path, version=4).get_add_actions().column("path")) == 2, (
        "deltalake asks by itself: `reaches` may go"
    )
    assert [log.covers(path, version) for version in range(8)] == [False] * 6 + [True, False]


def test_a_range_behind_which_the_log_was_cleaned_has_the_schema_of_later_versions_until_it_changes(
    tmp_path: Path,
) -> None:
    place = str(tmp_path / "t")
    for n in range(6):
        more = {"m": [n]} if n > 3 else {}
        write_deltalake(place, pa.table({"n": [n], **more}), mode="append", schema_mode="merge")
        if n in (3, 5):
            DeltaTable(place).create_checkpoint()
    layout = layout_of(place, 2)
    for gone in (0, 1):
        (tmp_path / f"t/_delta_log/{gone:020}.json").unlink()
    shape._KNOWN.clear()
    assert layout_of(place, 2) == layout  # from version 3, which a checkpoint tells
    shape._KNOWN.clear()
    (tmp_path / f"t/_delta_log/{3:020}.checkpoint.parquet").unlink()
    with pytest.raises(RegionError) as caught:  # what tells more begins behind another schema
        layout_of(place, 2)
    assert caught.value.code == "E_LOG_GONE"
    assert '"m"' in layout_of(place, 5).schema


def test_a_layout_is_read_again_only_where_a_commit_changed_it_or_another_table_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    reads = shape._read_layout

    def counted(table: str, version: int) -> shape.TableLayout:
        read.append(version)
        return reads(table, version)

    monkeypatch.setattr(shape, "_read_layout", counted)
    place = tmp_path / "t"
    for n in range(4):
        write_deltalake(str(place), pa.table({"n": [n]}), mode="append")
    layouts = [layout_of(str(place), version) for version in (1, 2, 3)]
    assert (read, len(set(layouts))) == ([1], 1)
    write_deltalake(str(place), pa.table({"n": [4], "m": [4]}), mode="append", schema_mode="merge")
    write_deltalake(str(place), pa.table({"n": [5], "m": [5]}), mode="append")
    assert '"m"' in layout_of(str(place), 5).schema
    assert '"m"' not in layout_of(str(place), 3).schema  # an older one than the one read last
    assert read == [1, 5, 3]
    shutil.rmtree(place)
    for n in range(7):
        write_deltalake(str(place), pa.table({"k": [n]}), mode="append")
    assert '"k"' in layout_of(str(place), 6).schema
    assert read == [1, 5, 3, 6]
