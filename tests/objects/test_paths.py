"""Folders, small files and Delta logs of a bucket, read by the code that reads those of a disk."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.errors import CommitEmpty, CommitGone, StoreUnreachable
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import log, open_tables
from console.agent.store.log import Commit
from console.errors import ConsoleError, RegionError
from tests.objects.proxy import Proxy

pytestmark = pytest.mark.s3


def append(table: Path, *numbers: int) -> None:
    write_deltalake(str(table), pa.table({"n": list(numbers)}), mode="append")


def test_a_folder_of_a_bucket_reads_like_one_of_a_disk(folder: ObjectPath, tmp_path: Path) -> None:
    for root in (folder, tmp_path):
        for name in (
            "_console/web/rollouts/x",
            "_console/api/rollouts/x",
            "_console/marker.json",
            "_console/web/a.b.json",
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)

    def seen(root: Path) -> list[object]:
        inside = root / "_console"
        return [
            sorted(str(path.relative_to(root)) for path in inside.glob("*/rollouts")),
            sorted(path.name for path in inside.iterdir()),
            sorted(path.name for path in (inside / "web").glob("a.*.json")),
            [(inside / name).exists() for name in ("web", "we", "marker.json", "marker")],
            [(inside / name).is_file() for name in ("web", "marker.json")],
            [(inside / name).is_dir() for name in ("web", "marker.json", "nothing")],
            (inside / "marker.json").read_text(),
            (inside / "web" / "rollouts").parent.name,
        ]

    assert seen(folder) == seen(tmp_path)
    with (folder / "_console/marker.json").open("rb") as file:
        file.seek(-11, os.SEEK_END)
        assert (file.read(6), file.tell(), file.read()) == (b"marker", 15, b".json")
    with pytest.raises(FileNotFoundError):
        (folder / "nothing").read_text()


IMPOSSIBLE: dict[str, Callable[[Path], object]] = {
    "stat": lambda path: path.stat(),
    "rename": lambda path: path.rename(path.with_name("other")),
    "write": lambda path: path.open("w"),
    "unlink": lambda path: os.unlink(path.parent / path.name),
    "mkdir": os.mkdir,
    "scandir": lambda path: list(os.scandir(path)),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_a_bucket_cannot_do_is_refused_and_never_done_on_this_disk(
    folder: ObjectPath, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegionError, match="not possible in a bucket") as error:
        IMPOSSIBLE[what](folder / "file")
    assert (error.value.code, list(tmp_path.iterdir())) == ("E_STORE", [])


def test_a_store_that_does_not_answer_is_no_empty_folder(folder: ObjectPath, proxy: Proxy) -> None:
    append(folder / "t", 1)
    proxy.partition()
    for look in (folder.exists, lambda: log.latest_version(str(folder / "t")), (folder / "t").listed):
        with pytest.raises(StoreUnreachable):
            look()


def test_of_a_deleted_table_nothing_is_left_and_its_log_goes_first(folder: ObjectPath, proxy: Proxy) -> None:
    append(folder / "t", 1)
    append(folder / "t2", 1)
    kept = (folder / "t2").listed()
    asked: list[bool] = []
    assert (folder / "t").delete_below(lambda: asked.append(log.exists(str(folder / "t"))))
    assert asked == [True, False]
    assert ((folder / "t").exists(), (folder / "t").delete_below(), (folder / "t2").listed()) == (False, False, kept)


def plain(commit: Commit, root: str) -> Commit:
    """Without what two tables of the same commits may differ in."""
    added = tuple(replace(file, path=file.path.startswith(root) and "below", bytes=0) for file in commit.added)
    return replace(commit, added=added, at_ms=0)


def test_a_log_in_a_bucket_is_read_like_one_on_a_disk(folder: ObjectPath, tmp_path: Path) -> None:
    for root in (folder, tmp_path):
        for n in range(5):
            append(root / "t", n)
        DeltaTable(str(root / "t")).delete("n = 2")
        DeltaTable(str(root / "t")).create_checkpoint()
        append(root / "t", 9)

    def seen(root: Path) -> list[object]:
        table = str(root / "t")
        return [
            log.latest_version(table),
            [plain(commit, table) for commit in log.commits(table, 0, 6)],
            [log.covers(table, version) for version in (0, 5, 6)],
            open_tables.position(table, "nobody"),
            log.exists(f"{root}/none"),
        ]

    assert seen(folder) == seen(tmp_path)
    with pytest.raises(CommitGone):
        log.commit(str(folder / "t"), 7)


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_table_that_was_dropped_and_made_again_is_not_taken_for_the_former_one(
    folder: ObjectPath, has_checkpoint: bool
) -> None:
    table = str(folder / "t")
    for n in range(4):
        append(folder / "t", n)
    assert (log.latest_version(table), [f.rows for f in log.commit(table, 1).added]) == (3, [1])
    (folder / "t").delete_below()
    assert not log.exists(table)
    append(folder / "t", 1, 2)
    append(folder / "t", 3, 4, 5)
    if has_checkpoint:  # a name behind those of all versions
        (folder / "t" / "_delta_log" / "_last_checkpoint").write_bytes(b'{"version": 1, "size": 3}')
    assert (log.latest_version(table), [f.rows for f in log.commit(table, 1).added]) == (1, [3])


def test_an_empty_commit_is_found_in_a_bucket_too(folder: ObjectPath) -> None:
    append(folder / "t", 1)
    (folder / "t" / "_delta_log" / f"{1:020}.json").write_bytes(b"")
    with pytest.raises(CommitEmpty):
        log.check_intact(str(folder / "t"))


def test_nobody_but_the_agent_of_a_region_writes_in_its_bucket(folder: ObjectPath) -> None:
    from console.agent.store import commits

    with pytest.raises(ConsoleError, match="only the agent of its region writes it"):
        commits.append(str(folder / "t"), pa.table({"n": [1]}))
    assert not log.exists(str(folder / "t"))
