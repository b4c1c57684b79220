"""A table that is kept open is the table that is opened anew, whatever others did to it or put in its place meanwhile."""

import json
import random
import shutil
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, TableFeatures, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from console.agent.store import commits, log, open_tables
from console.agent.store.open_tables import MOST_PARTS, opened, position, schema_json, table_id
from console.model.created import CHECKPOINT_COMMITS

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})
WIDER = ROWS.append_column("more", pa.array([True, False]))


@pytest.fixture(autouse=True)
def _tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_tables, "_TABLES", open_tables._Tables())


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_deltalake(path, ROWS)
    return path


def seen(table: DeltaTable) -> tuple[Any, ...]:
    """All that deltalake tells of a table at its version."""
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    protocol = table.protocol()
    return (
        table.version(),
        table.metadata().id,
        table.metadata().configuration,
        table.schema().to_json(),
        (protocol.min_reader_version, protocol.min_writer_version, protocol.writer_features),
        sorted((action["path"], action["num_records"]) for action in actions),
        [table.transaction_version(name) for name in ("one", "two")],
    )


def append(path: str, rng: random.Random) -> None:
    numbers = [Transaction(rng.choice(("one", "two")), rng.randrange(1_000))]
    properties = CommitProperties(app_transactions=numbers)
    rows = WIDER if "more" in DeltaTable(path).schema().to_json() else ROWS
    write_deltalake(path, rows, mode="append", commit_properties=properties)


def widen(path: str, _: random.Random) -> None:
    write_deltalake(path, WIDER, mode="append", schema_mode="merge")


def delete(path: str, rng: random.Random) -> None:
    DeltaTable(path).delete(f"n = {rng.choice((1, 2))}")


def overwrite(path: str, _: random.Random) -> None:
    write_deltalake(path, ROWS, mode="overwrite", schema_mode="overwrite")


def restore(path: str, rng: random.Random) -> None:
    newest = DeltaTable(path)
    if newest.version():
        newest.restore(rng.randrange(newest.version()))


def replaced(path: str, rng: random.Random) -> None:
    """Another table with a log of any length is in its place."""
    shutil.rmtree(path)
    write_deltalake(path, ROWS)
    for _ in range(rng.randrange(6)):
        append(path, rng)


def cut(path: str, rng: random.Random) -> None:
    """A copy from before some commits was put back, and others followed."""
    folder, last = Path(path) / "_delta_log", DeltaTable(path).version()
    if any(folder.glob("*.checkpoint*")):
        return
    for version in range(max(1, last - rng.randrange(3)), last + 1):
        (folder / f"{version:020}.json").unlink()
    if rng.random() < 0.5:
        append(path, rng)


EDITS: tuple[Callable[[str, random.Random], None], ...] = (
    append, append, append, widen, delete, overwrite, restore, replaced, cut,
    lambda path, _: DeltaTable(path).alter.set_table_properties({"delta.checkpointInterval": "7"}),
    lambda path, _: DeltaTable(path).alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True),
    lambda path, _: DeltaTable(path).create_checkpoint(),
    lambda path, _: DeltaTable(path).optimize.compact() and None,
)  # fmt: skip


def put_another_there(path: str) -> None:
    """With as many commits."""
    shutil.rmtree(path)
    write_deltalake(path, ROWS)


def test_a_table_is_not_kept_if_another_took_its_place_while_it_was_used(table: str) -> None:
    with opened(table) as used:
        put_another_there(table)
    assert table_id(table) == DeltaTable(table).metadata().id != used.metadata().id


@pytest.mark.parametrize("read_first", [True, False])
def test_another_table_that_takes_the_place_of_a_kept_one_while_it_is_read_on_is_noticed(
    table: str, monkeypatch: pytest.MonkeyPatch, read_first: bool
) -> None:
    before, real = table_id(table), open_tables._read_on

    def beside_another(path: str, kept: DeltaTable) -> None:
        if read_first:
            real(path, kept)
        put_another_there(path)
        if not read_first:
            real(path, kept)

    with monkeypatch.context() as patched:
        patched.setattr(open_tables, "_read_on", beside_another)
        assert table_id(table) == DeltaTable(table).metadata().id != before


@pytest.mark.parametrize("seed", range(6))
def test_a_kept_table_is_what_a_fresh_one_is_after_anything_that_others_did(table: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        if rng.random() < 0.3:
            commits.append(table, WIDER if "more" in schema_json(table) else ROWS, note={"kind": "ours"})
        else:
            rng.choice(EDITS)(table, rng)
        with opened(table) as kept:
            assert seen(kept) == seen(DeltaTable(table))
        assert log.latest_version(table) == DeltaTable(table).version()
        log.check_intact(table)
        assert table_id(table) == DeltaTable(table).metadata().id
        assert position(table, "one") == DeltaTable(table).transaction_version("one")


def test_a_table_is_opened_once_and_read_on_from_there(table: str, openings: list[str]) -> None:
    for _ in range(5):
        commits.append(table, ROWS, note={"kind": "ours"})
        write_deltalake(table, ROWS, mode="append")
        assert position(table, "one") is None
    assert openings == [table]
    assert log.latest_version(table) == 10


def test_each_thread_has_a_table_of_its_own_and_finds_its_own_again(table: str) -> None:
    others: list[DeltaTable] = []

    def other() -> None:
        with opened(table) as found:
            others.append(found)

    table_id(table)  # it is kept from now on
    with opened(table) as mine:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert others[0] is not mine
        write_deltalake(table, ROWS, mode="append")
        with opened(table) as again:
            assert again is mine
            assert again.version() == 1


def test_a_table_whose_use_failed_is_opened_anew(table: str, openings: list[str]) -> None:
    with pytest.raises(ZeroDivisionError), opened(table):
        raise ZeroDivisionError
    with opened(table) as found:
        assert found.version() == 0
    assert openings == [table, table]


def test_no_table_is_none_for_a_position_and_an_error_for_the_others(tmp_path: Path) -> None:
    assert position(str(tmp_path / "none"), "one") is None
    with pytest.raises(TableNotFoundError):
        table_id(str(tmp_path / "none"))


def test_tables_with_more_files_than_are_kept_are_closed_the_one_longest_unused_first(
    tmp_path: Path, openings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_tables, "_TABLES", open_tables._Tables(most_files=2_500))
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        write_deltalake(path, ROWS)
    for place in (0, 1, 0, 2, 0, 1):
        table_id(paths[place])
    assert [Path(path).name for path in openings] == ["a", "b", "c", "b"]
    DeltaTable(paths[0]).create_checkpoint()
    last = Path(paths[0]) / "_delta_log" / "_last_checkpoint"
    last.write_text(json.dumps({**json.loads(last.read_text()), "size": 3_000}))
    for _ in range(CHECKPOINT_COMMITS):
        commits.append(paths[0], ROWS)
    before = len(openings)
    for _ in range(3):
        table_id(paths[0])
    assert openings[before:] == [paths[0]] * 3, "its size is looked at anew with each checkpoint"


def test_the_schema_of_a_version_is_not_that_of_the_newest_one(table: str) -> None:
    write_deltalake(table, WIDER, mode="append", schema_mode="merge")
    assert ("more" in schema_json(table, 0), "more" in schema_json(table)) == (False, True)
    assert position(table, "one", as_of=0) is None


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of tables that were opened anew."""
    found: list[str] = []

    class Counted(DeltaTable):
        def __init__(self, path: str, *rest: Any, **named: Any) -> None:
            found.append(path)
            super().__init__(path, *rest, **named)

    monkeypatch.setattr(open_tables, "DeltaTable", Counted)
    return found


def test_expired_commits_are_looked_for_once_a_checkpoint(table: str) -> None:
    DeltaTable(table).alter.set_table_properties({
        "delta.logRetentionDuration": "interval 0 seconds", "delta.checkpointInterval": str(CHECKPOINT_COMMITS)
    })  # fmt: skip
    left = {}
    for _ in range(2 * CHECKPOINT_COMMITS + 5):
        commits.append(table, ROWS)
        left[log.latest_version(table)] = len(list((Path(table) / "_delta_log").glob("*.json")))
    shrunk = [version for (_, before), (version, after) in pairwise(left.items()) if after < before]
    assert shrunk
    assert {version % CHECKPOINT_COMMITS for version in shrunk} == {0}


def test_a_kept_table_is_opened_anew_before_it_consists_of_many_parts(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_at: list[int] = []

    def noted(path: str) -> DeltaTable:
        found = DeltaTable(path)
        opened_at.append(found.version())
        return found

    monkeypatch.setattr(open_tables, "DeltaTable", noted)
    for _ in range(2 * MOST_PARTS + 10):
        commits.append(table, ROWS)
    assert opened_at == [0, MOST_PARTS, 2 * MOST_PARTS]
    for _ in range(2 * MOST_PARTS):  # of another writer: also in one step
        write_deltalake(table, ROWS, mode="append")
    for _ in range(3):
        position(table, "one")
    assert opened_at == [0, MOST_PARTS, 2 * MOST_PARTS, 4 * MOST_PARTS + 10]
