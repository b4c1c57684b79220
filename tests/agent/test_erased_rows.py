"""Rows that were deleted from the live release, in the files of all that is kept, over real logs. No Java."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.maintenance import erased_rows
from console.agent.maintenance.erased_rows import ErasedRowsSearch
from console.model.erased import ErasedRows
from console.model.live import Release
from tests.agent.copying import by_arrow
from tests.agent.test_gate import release
from tests.agent.test_way_back import ProvenRegion
from tests.faults.rules.tables import rows

pytestmark = pytest.mark.slow
WINDOW_HOURS = 5.0
DAYS = {1: (1, 2), 2: (3, 4), 3: (5, 6)}  # day of November 2026 → numbers


def with_days(id: str, copy: str, value: str = "same") -> Release:
    """A release whose tables are partitioned by days of one computation."""
    made = release(id, copy, "ignore")
    return replace(made, tables=tuple(replace(state, values={"day": value, "n": "same"}) for state in made.tables))


class KeptRegion(ProvenRegion):
    """r4 is live and r3 previous; r1 and r2 are retired. Every release has a version of the table of its own."""

    def __init__(self, place: Path, value: str) -> None:
        super().__init__(place)
        for path in ("copy/c-3", "copy/d-4"):
            self.table(path, 0)
            for day, numbers in DAYS.items():
                write_deltalake(str(place / path), rows(*numbers, day=day), mode="append", partition_by=["day"])
        self.promoted(with_days("r3", "copy/c-3"))
        self.promoted(with_days("r4", "copy/d-4", value))
        self.kept, self.live_table = str(place / "copy/c-3"), str(place / "copy/d-4")
        (place / "_console" / "marker.json").touch()
        self.search = ErasedRowsSearch(controllers=lambda: (self.line,), keep_hours=WINDOW_HOURS, report=print)

    def erase(self, where: str, table: str = "") -> None:
        time.sleep(0.01)  # files of the same millisecond count as written afterwards
        DeltaTable(table or self.live_table).delete(where)

    def found(self) -> dict[str, ErasedRows]:
        return {f"{each.keeper} {each.name}": each for each in self.search.look(self.line)}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., KeptRegion]]:
    by_arrow(monkeypatch)
    regions: list[KeptRegion] = []

    def make(value: str = "same") -> KeptRegion:
        regions.append(KeptRegion(tmp_path, value))
        return regions[-1]

    yield make
    for region in regions:
        region.follower.stop()
        region.line.halt()
        if region.follower.is_alive():
            region.follower.join(30)


def test_files_of_the_same_days_are_listed_for_each_keeper_with_the_time_at_which_they_go(
    made: Callable[..., KeptRegion],
) -> None:
    region = made()
    assert region.found() == {}
    before = time.time()
    region.erase("n = 3")
    region.line.hold("ada", 24.0, dry_run=False)
    found = region.found()
    assert set(found) == {"removed r4", "hold r3", "retired r1", "retired r2"}
    held, removed = found["hold r3"], found["removed r4"]
    assert (held.table, held.path, held.files) == ("copy", "copy/c-3", 1)
    assert held.bytes == sum(os.path.getsize(uri) for uri in DeltaTable(region.kept).file_uris() if "2026-11-02" in uri)
    assert before - 1 <= held.at <= time.time()
    assert held.until == pytest.approx(time.time() + 24 * 3600, abs=60)
    assert (removed.path, removed.files) == ("copy/d-4", 1)
    assert removed.until == pytest.approx(removed.at + 168 * 3600)  # Delta's default
    assert held.text(time.time()).startswith("copy: 1 file of r3, which is on hold, may hold rows erased ")
    region.line.restore()
    previous = region.found()["previous r3"]
    live = region.line.releases.in_state("live")
    assert live is not None
    assert previous.until == pytest.approx(live.row.at + WINDOW_HOURS * 3600)
    region.line.cleanup("ada", dry_run=False, previous=True)
    assert set(region.found()) == {"removed r4"}


def test_rows_that_were_deleted_there_as_well_are_listed_no_more_once_their_file_is_vacuumed(
    made: Callable[..., KeptRegion],
) -> None:
    region = made()
    region.erase("n = 3")
    region.erase("n = 3", region.kept)
    assert "previous r3" not in region.found()
    assert region.found()["removed r3"].path == "copy/c-3"
    for table in (region.kept, region.live_table):
        DeltaTable(table).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert {"removed r3", "removed r4"}.isdisjoint(region.found())


def test_where_days_were_computed_otherwise_every_older_file_is_listed(made: Callable[..., KeptRegion]) -> None:
    region = made("another computation")
    region.erase("n = 3")
    assert region.found()["previous r3"].files == len(DAYS)


def test_what_is_written_after_the_deletion_or_only_compacted_is_not_listed(made: Callable[..., KeptRegion]) -> None:
    region = made()
    write_deltalake(region.live_table, rows(7, day=2), mode="append", partition_by=["day"])
    assert DeltaTable(region.live_table).optimize.compact()["numFilesRemoved"] == 2
    assert region.found() == {}
    region.erase("n = 3")
    time.sleep(0.01)
    write_deltalake(region.kept, rows(8, day=2), mode="append", partition_by=["day"])
    assert region.found()["previous r3"].files == 1


def test_a_search_reads_each_commit_once_and_finds_later_ones(made: Callable[..., KeptRegion]) -> None:
    region = made()
    region.erase("n = 3")
    assert region.found()["previous r3"].files == 1
    region.erase("n = 5")
    assert region.found()["previous r3"].files == 2
    assert region.found()["removed r4"].files == 2
    assert len(region.search._removals[region.live_table].files) == 2


def test_the_disk_is_asked_for_removed_files_after_a_commit_and_every_ten_minutes_and_for_no_deleted_one_again(
    made: Callable[..., KeptRegion], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(path: str) -> bool:
        asked.append(path)
        return os.path.exists(path)

    region = made()
    monkeypatch.setattr(erased_rows, "exists", noted)
    region.erase("n = 3")
    region.erase("n = 5")
    assert region.found()["removed r4"].files == 2
    (first, _) = asked
    os.unlink(first)
    asked.clear()
    assert region.found()["removed r4"].files == 2
    assert asked == []
    region.search._removals[region.live_table]._asked -= erased_rows.DISK_SECONDS
    assert region.found()["removed r4"].files == 1
    write_deltalake(region.live_table, rows(7, day=2), mode="append", partition_by=["day"])
    asked.clear()
    assert region.found()["removed r4"].files == 1
    assert len(asked) == 1
    assert first not in asked
