"""Files of one table as files of another: the files taken over, the independence of both tables, and the refusals. No Java."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console.agent.execution import linked_history
from console.agent.feeds import app_ids, commit
from console.agent.feeds.backfill import History
from console.agent.receipts.findings import Subject
from console.agent.receipts.linked import check_files, check_since
from console.agent.rows.data_files import files_at
from console.errors import RegionError
from console.model.live import TableState, Version
from console.model.receipt import Finding
from console.model.schema import Column, Table
from console.model.slices import Slice
from console.model.step import Backfill

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("n", pa.int64()), ("host", pa.string())])
WIDER = pa.schema([*SCHEMA, ("agent", pa.string())])
FEED = "history/t/forward@3"
MILLION = 1_000_000
STEP = Backfill(
    materialization="", source="requests", target="requests", route="forward", sql="", time="", rows=0, bytes=0, days=0,
    batches=1, stored=True, linked=True,
)  # fmt: skip


def write(path: Path, *numbers: int, mode: str = "append") -> None:
    hosts = ["a b", "50%", None]
    rows = [{"n": n, "host": hosts[n % 3]} for n in numbers]
    write_deltalake(str(path), pa.Table.from_pylist(rows, SCHEMA), mode=mode, partition_by=["host"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four versions with a checkpoint between them, and a file that is gone from the last one."""
    path = tmp_path / "requests" / "old-1"
    write(path, 0, 1, 2)
    write(path, 3, 4, 5)
    DeltaTable(str(path)).create_checkpoint()
    write(path, 6)
    DeltaTable(str(path)).delete("n = 4")
    return path


def history(source: Path, fence: int) -> History:
    target = source.parent / "new-2"
    if not target.exists():
        write_deltalake(str(target), pa.Table.from_pylist([], WIDER), partition_by=["host"])
        taken = CommitProperties(app_transactions=[Transaction(FEED, 1 << app_ids.EPOCH_BITS)])
        write_deltalake(str(target), pa.Table.from_pylist([], WIDER), mode="append", commit_properties=taken)
    state = TableState(
        table=Table(name="requests", kind="append", columns=(Column(name="n", type="bigint"),)),
        version=Version(content="", path="", columns=()), read="", rows="", values={},
    )  # fmt: skip
    writer = commit.FeedWriter(app_id=FEED, target=str(target), epoch=1, position=0)
    slices = (Slice(index=1, label="all", first="", end="", rows=0, bytes=0),)
    return History(
        step=STEP, source=state, source_path=str(source), target=state, target_path=str(target), fence=fence,
        slices=slices, writer=writer,
    )  # fmt: skip


def numbers(path: Path | str, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(str(path), version=version).to_pyarrow_table().column("n").to_pylist())


@pytest.mark.parametrize("fence", [0, 1, 2, 3])
def test_a_version_is_taken_over_whole_with_its_partitions_and_what_is_new_reads_as_null(
    source: Path, fence: int
) -> None:
    made = history(source, fence)
    before = set(source.parent.rglob("*.parquet"))
    done = linked_history.link_history(made)
    rows = DeltaTable(made.target_path).to_pyarrow_table().to_pylist()
    hosts = ["a b", "50%", None]
    assert numbers(made.target_path) == numbers(source, fence)
    assert all(row["host"] == hosts[row["n"] % 3] and row["agent"] is None for row in rows)
    assert (done.rows, made.done) == (len(rows), True)
    new = set(source.parent.rglob("*.parquet")) - before
    assert all(path.stat().st_nlink == 2 for path in new)
    assert len(new) == len(DeltaTable(str(source), version=fence).file_uris())


def test_a_million_rows_are_less_than_a_second_of_work_and_no_data_file(tmp_path: Path) -> None:
    source, batch = tmp_path / "requests" / "old-1", 50_000
    for start in range(0, MILLION, batch):
        hosts = [f"h{n % 3}" for n in range(batch)]
        rows = pa.table({"n": range(start, start + batch), "host": hosts}, SCHEMA)
        write_deltalake(str(source), rows, mode="append", partition_by=["host"])
    made = history(source, MILLION // batch - 1)
    before = {path.stat().st_ino for path in source.rglob("*.parquet")}
    began = time.process_time()
    done = linked_history.link_history(made)
    seconds = time.process_time() - began
    assert (done.rows, DeltaTable(made.target_path).to_pyarrow_dataset().count_rows()) == (MILLION, MILLION)
    assert {path.stat().st_ino for path in Path(made.target_path).rglob("*.parquet")} == before
    assert seconds < 1


def test_neither_table_loses_a_row_to_what_is_done_to_the_other(source: Path) -> None:
    made = history(source, 3)
    linked_history.link_history(made)
    wanted = numbers(source)
    old = DeltaTable(str(source))
    old.optimize.compact()
    old.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert numbers(made.target_path) == wanted
    new = DeltaTable(made.target_path)
    new.optimize.compact()
    new.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert numbers(source) == wanted
    write(source, 7)
    DeltaTable(str(source)).create_checkpoint()
    for commit_file in (source / "_delta_log").glob("0*.json"):
        commit_file.unlink()  # as after a clean-up of the log
    assert numbers(made.target_path) == wanted
    shutil.rmtree(source)
    assert numbers(made.target_path) == wanted


def test_links_of_an_attempt_that_died_before_its_commit_are_found_again(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def die(name: str) -> None:
        if name == "before-commit-history":
            raise Killed

    made = history(source, 3)
    monkeypatch.setattr("console.crash.point", die)
    with pytest.raises(Killed):
        linked_history.link_history(made)
    assert numbers(made.target_path) == []
    monkeypatch.undo()
    linked_history.link_history(history(source, 3))
    assert numbers(made.target_path) == numbers(source)


def test_a_commit_that_was_made_is_not_made_again(source: Path) -> None:
    linked_history.link_history(history(source, 3))
    with pytest.raises(RegionError, match="skipped"):
        linked_history.link_history(history(source, 3))
    assert numbers(source.parent / "new-2") == numbers(source)


def test_a_file_that_is_gone_refuses_before_anything_is_committed(source: Path) -> None:
    made, lost = history(source, 3), files_at(str(source), 3)[0]
    Path(lost.path).unlink()
    with pytest.raises(RegionError, match="is gone") as error:
        linked_history.link_history(made)
    assert (error.value.code, numbers(made.target_path)) == ("E_LINK", [])


def test_a_file_system_without_links_refuses_and_names_the_copy(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    with pytest.raises(RegionError, match="cannot link it") as error:
        linked_history.link_history(history(source, 3))
    assert "history: carry" in error.value.hint


def test_a_log_that_no_longer_reaches_the_version_refuses(source: Path) -> None:
    (source / "_delta_log" / f"{1:020}.checkpoint.parquet").unlink()
    (source / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(RegionError) as error:
        files_at(str(source), 3)
    assert error.value.code == "E_LOG_GONE"


def test_statistics_are_those_of_the_log(source: Path) -> None:
    for file in files_at(str(source), 3):
        assert json.loads(file.stats)["numRecords"] == file.rows > 0


def audited(source: Path) -> tuple[Finding, Finding]:
    target = str(source.parent / "new-2")
    files, since = (Subject("requests", STEP.id, what) for what in ("source", "since"))
    return check_files(source.parents[1], target, files), check_since(target, since)


def test_verify_knows_the_older_half_by_its_files_until_its_version_is_gone(source: Path) -> None:
    made = history(source, 3)
    made.source = replace(made.source, version=replace(made.source.version, path="requests/old-1"))
    linked_history.link_history(made)
    write(source, 7)
    files, since = audited(source)
    assert (files.ok, since.ok) == (True, True)
    assert "6 rows in" in files.detail
    assert "rows that arrived later follow the new query" in files.detail
    DeltaTable(made.target_path).delete("n = 0")
    assert audited(source)[1].ok is False
    shutil.rmtree(source)
    files, _ = audited(source)
    assert files.ok is None
    assert "can no longer be read" in files.detail


def test_verify_finds_a_file_that_is_not_of_that_version(source: Path) -> None:
    made = history(source, 2)
    made.source = replace(made.source, version=replace(made.source.version, path="requests/old-1"))
    linked_history.link_history(made)
    log_file = Path(made.target_path) / "_delta_log" / f"{2:020}.json"
    log_file.write_text(log_file.read_text().replace('\\"version\\": 2', '\\"version\\": 1'))
    assert audited(source)[0].ok is False
