"""The part of a table's past that can still be checked, according to its log and its files. No Java."""

import json
from collections.abc import Callable
from dataclasses import replace as data_replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console.agent.receipts.audit import compare_with_today
from console.agent.receipts.findings import Subject
from console.agent.receipts.readable import readability, removals
from console.agent.receipts.step_receipts import files_of_others
from console.agent.store import log, open_tables
from console.model.receipt import Place

pytestmark = pytest.mark.slow


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"n": list(range(first, last))})


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, Place]:
    """A table of three appends, and a receipt of its version 1."""
    path = str(tmp_path / "requests" / "v-1")
    for first in (0, 10, 20):
        write_deltalake(path, rows(first, first + 10), mode="append")
    return path, Place(path=path, id=open_tables.table_id(path), version=1)


@pytest.mark.parametrize("folder", ["w b", "wü", "w{a}", "w%", "w#"])
def test_files_below_an_odd_path_are_found(place: tuple[str, Place], tmp_path: Path, folder: str) -> None:
    moved = str((tmp_path / "requests").rename(tmp_path / folder) / "v-1")
    write_deltalake(f"{moved}-2", pa.table({"n": [1], "city": ["Zürich/%"]}), partition_by=["city"])
    assert not readability(moved, place[1]).reason
    assert not readability(
        f"{moved}-2", Place(path=f"{moved}-2", id=open_tables.table_id(f"{moved}-2"), version=0)
    ).reason


def cut_log(path: str) -> None:
    DeltaTable(path).create_checkpoint()
    for version in (0, 1):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()


def vacuum(path: str) -> None:
    DeltaTable(path).optimize.compact()
    DeltaTable(path).vacuum(0, enforce_retention_duration=False, dry_run=False)


def replace(path: str) -> None:
    Path(path).rename(path + "-old")
    write_deltalake(path, rows(0, 10))
    write_deltalake(path, rows(0, 10), mode="append")


@pytest.mark.parametrize(
    ("fate", "why", "table"),
    [
        (lambda _: None, "", False),
        (lambda path: write_deltalake(path, rows(30, 40), mode="append"), "", False),
        (cut_log, "its log no longer reaches back to version", False),
        (vacuum, "2 of 2 files of version 1 were removed", False),
        (replace, "another table is in its place", True),
        (lambda path: Path(path).rename(path + "-old"), "its table is gone", True),
    ],
)
def test_what_keeps_a_version_from_being_read_is_reported(
    place: tuple[str, Place], fate: Callable[[str], Any], why: str, table: bool
) -> None:
    path, receipt = place
    fate(path)
    result = readability(path, receipt)
    assert result.reason.startswith(why)
    assert bool(result.reason) == bool(why)
    assert result.table_gone is table


def test_where_other_feeds_wrote_meanwhile_their_commits_have_to_be_known(tmp_path: Path) -> None:
    path = str(tmp_path / "requests" / "v-1")
    for number, feed in enumerate(("history", "live", "history"), 1):
        whose = CommitProperties(app_transactions=[Transaction(feed, number)])
        write_deltalake(path, rows(number, number + 1), mode="append", commit_properties=whose)
    receipt = Place(path=path, id=open_tables.table_id(path), version=2, feed="history")
    (others,) = files_of_others(path, receipt)
    assert (others.rows, readability(path, receipt).reason) == (1, "")
    assert files_of_others(path, data_replace(receipt, feed="")) == ()
    DeltaTable(path, version=1).create_checkpoint()
    (Path(path) / "_delta_log" / f"{0:020}.json").unlink()
    assert readability(path, data_replace(receipt, feed="")).reason == ""
    assert readability(path, receipt).reason.startswith("the commits of other feeds are unknown")


def maintenance(path: str) -> None:
    note = CommitProperties(custom_metadata={"userMetadata": json.dumps({"kind": log.RETENTION, "keep": "2026-11-02"})})
    DeltaTable(path).delete("n < 10", commit_properties=note)


@pytest.mark.parametrize(
    ("fate", "field", "detail"),
    [
        (lambda path: DeltaTable(path).optimize.compact(), "none", "no rows were removed since version 1"),
        (lambda path: DeltaTable(path).delete("n = 3"), "by_others", "version 3 (DELETE, "),
        (lambda path: DeltaTable(path).restore(0), "by_others", "version 3 (RESTORE, "),
        (lambda path: write_deltalake(path, rows(0, 10), mode="overwrite"), "by_others", "version 3 (WRITE, "),
        (maintenance, "by_retention", "retention has deleted the days before 2026-11-02 since version 1"),
        (
            lambda path: (Path(path) / "_delta_log" / f"{2:020}.json").unlink(),
            "unknown",
            "changes since version 1 are unknown",
        ),
    ],
)
def test_who_took_rows_out_since_is_told_by_the_log(
    place: tuple[str, Place], fate: Callable[[str], Any], field: str, detail: str
) -> None:
    path, _ = place
    assert removals(path, 1).none
    if field == "unknown":
        DeltaTable(path).create_checkpoint()
    fate(path)
    result = removals(path, 1)
    assert getattr(result, field).startswith(detail)
    assert sum(bool(text) for text in (result.by_others, result.by_retention, result.unknown, result.none)) == 1


RECORDED = {"2026-11-03": (5, "c"), "2026-11-02": (5, "b"), "2026-11-01": (5, "a")}
SUBJECT = Subject("requests", "backfill/requests", "source")


@pytest.mark.parametrize(
    ("changes", "ok", "days"),
    [
        ({}, True, ()),
        ({"2026-11-02": (6, "x")}, None, ("2026-11-02",)),  # a late row: the day's old rows can no longer be told
        ({"2026-11-01": None}, None, ("2026-11-01",)),  # the oldest: retention takes whole days from that end
        ({"2026-11-02": None}, False, ("2026-11-02",)),  # a hole: nothing of ours takes a day out of the middle
        ({"2026-11-02": (4, "x")}, False, ("2026-11-02",)),
        ({"2026-11-02": (5, "x")}, False, ("2026-11-02",)),  # as many rows, with other values
        ({"2026-11-02": (6, "x"), "2026-11-03": (4, "y")}, False, ("2026-11-03",)),
    ],
)
def test_todays_rows_are_taken_for_proof_only_where_they_are_one(
    changes: dict[str, tuple[int, str] | None], ok: bool | None, days: tuple[str, ...]
) -> None:
    now = {day: sums for day, sums in {**RECORDED, **changes}.items() if sums is not None}
    finding = compare_with_today(SUBJECT, "its log is gone", RECORDED, now)
    assert (finding.ok, finding.days) == (ok, days)
    assert "its log is gone" in finding.detail
