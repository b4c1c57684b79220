"""The proof of the way back over real logs and folders: a file that is gone, a feed that stands, a release that goes. No Java."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.rows import release_files
from console.agent.rows.release_files import TableFiles
from console.agent.way_back.prover import WayBackProver
from console.errors import CheckFailed
from console.model.way_back import WayBackProof
from tests.agent.copying import by_arrow
from tests.agent.test_gate import Region, release
from tests.faults.rules.tables import rows

pytestmark = pytest.mark.slow
WINDOW_HOURS = 5.0


class ProvenRegion(Region):
    """r2 is live and r1 previous, each with a table of its own that is fed from landing."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.table("copy/b-2", 0)
        self.promoted(release("r2", "copy/b-2", "ignore"))
        self.old = str(place / "copy/a-1")
        for folder in ("copy/a-1", "copy/b-2"):
            write_deltalake(str(place / folder), rows(7), mode="append", partition_by=["day"])
        self.prover = WayBackProver(controllers=lambda: (self.line,), keep_hours=WINDOW_HOURS, report=lambda *_: None)

    def proven(self) -> WayBackProof:
        proof = self.prover.prove(self.line)
        assert proof is not None
        return proof

    def files_of_old(self) -> list[str]:
        return [str(uri) for uri in DeltaTable(self.old).file_uris()]


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProvenRegion]:
    by_arrow(monkeypatch)
    made = ProvenRegion(tmp_path)
    yield made
    made.follower.stop()
    made.line.halt()
    if made.follower.is_alive():
        made.follower.join(30)


def test_a_file_of_the_previous_release_that_is_gone_is_named_and_only_then(region: ProvenRegion) -> None:
    first = region.proven()
    named = {str(uri) for path in (region.old, region.landing) for uri in DeltaTable(path).file_uris()}
    assert (first.release, first.files) == ("r1", len(named))
    assert [finding for finding in first.findings if finding.part == "file"] == []
    (victim,) = region.files_of_old()
    Path(victim).unlink()
    proof = region.proven()
    assert proof.state == "failed"
    (finding,) = [finding for finding in proof.findings if finding.part == "file"]
    assert (finding.table, f"{region.old}/{finding.name}") == ("copy", victim)


def test_a_rollback_to_a_release_with_a_file_less_is_refused_by_its_name(region: ProvenRegion) -> None:
    (victim,) = region.files_of_old()
    Path(victim).unlink()
    with pytest.raises(CheckFailed, match="copy: file day=2026-11-01/") as refused:
        region.line.rollback("r2", "ada", "laptop")
    assert refused.value.code == "E_WAY_BACK"
    assert region.line.live().id == "r2"


def test_a_file_that_live_lacks_as_well_shuts_no_way_back(region: ProvenRegion) -> None:
    """Both releases read landing: a rollback makes nothing worse."""
    (victim, *_) = (str(uri) for uri in DeltaTable(region.landing).file_uris())
    Path(victim).unlink()
    findings = [finding for finding in region.proven().findings if finding.part == "file"]
    assert [finding.table for finding in findings] == ["landing"]
    promotion = region.line._promotion
    previous, live = region.line.releases.in_state("previous"), region.line.releases.in_state("live")
    assert previous is not None
    promotion._check_files(previous.release, live)
    with pytest.raises(CheckFailed, match="landing"):
        promotion._check_files(previous.release, None)


def test_a_feed_of_the_previous_release_that_has_stopped_fails_the_proof(region: ProvenRegion) -> None:
    """r1 stops in front of the delete in landing, which r2 lets pass."""
    region.follower.start()
    stopped = [feed for feed in region.follower.feeds("web") if feed.target_path == region.old]
    region.until(lambda: stopped[0].health.stopped is not None)
    finding, *more = region.proven().findings
    assert (finding.part, finding.name, finding.state, more) == ("feed", "every", "failed", [])
    assert "only appends flow" in finding.why


def test_without_a_previous_release_there_is_nothing_to_prove_and_nothing_is_read(region: ProvenRegion) -> None:
    region.proven()
    (region.place / "_console" / "marker.json").touch()
    region.line.cleanup("ada", dry_run=False, previous=True)
    region.prover.tick()
    assert region.prover._thread is not None
    region.prover._thread.join(30)
    assert region.prover.proof("web") is None
    idle = region.prover._thread
    region.prover.tick()
    assert region.prover._thread is idle


def test_a_promotion_is_seen_at_once_and_the_countdown_begins_with_it(region: ProvenRegion) -> None:
    assert region.proven().until == pytest.approx(time.time() + WINDOW_HOURS * 3600, abs=60)
    region.table("copy/c-3", 0)
    region.promoted(release("r3", "copy/c-3", "ignore"))
    region.prover.tick()
    assert region.prover._thread is not None
    region.prover._thread.join(30)
    proof = region.prover.proof("web")
    assert proof is not None
    assert proof.release == "r2"


# -- files alone


def test_what_is_known_of_a_table_follows_its_log_commit_by_commit(tmp_path: Path) -> None:
    """Against deltalake's own list of files, over appends, deletes and a checkpoint; a folder with a name that is encoded."""
    import pyarrow as pa

    place = str(tmp_path / "t")
    known = TableFiles(path=place)
    for number in range(12):
        part = pa.table({"n": [number], "city": [f"a b%{number % 3}/c"]})
        write_deltalake(place, part, mode="append", partition_by=["city"])
        if number % 4 == 3:
            DeltaTable(place).delete(f"n = {number - 1}")
        assert known.missing() == ()
        assert known.count == len(DeltaTable(place).file_uris())
    DeltaTable(place).create_checkpoint()
    assert (known.missing(), known.version) == ((), DeltaTable(place).version())
    whole = TableFiles(path=place)
    assert (whole.missing(), whole.count) == ((), known.count)


def test_a_folder_whose_entries_have_not_changed_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "t")
    for day in (1, 2, 3):
        write_deltalake(place, rows(day, day=day), mode="append", partition_by=["day"])
    before = time.time() - 60
    for folder in Path(place).glob("day=*"):
        os.utime(folder, (before, before))
    known, listed = TableFiles(path=place), list[str]()
    assert known.missing() == ()
    scandir = os.scandir

    def scanned(path: str) -> object:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(release_files.os, "scandir", scanned)
    assert known.missing() == ()
    assert [path for path in listed if "day=" in path] == []
    (victim,) = Path(place, "day=2026-11-02").glob("*.parquet")
    victim.unlink()
    assert known.missing() == (str(victim),)
    assert known.missing() == (str(victim),), "and it stays gone"


def test_a_removal_in_the_tick_of_a_listing_is_not_overlooked(tmp_path: Path) -> None:
    """The folder's time is the same before and after, as the kernel's clock allows."""
    place = str(tmp_path / "t")
    write_deltalake(place, rows(1), mode="append", partition_by=["day"])
    known = TableFiles(path=place)
    assert known.missing() == ()
    (folder,) = Path(place).glob("day=*")
    (victim,) = folder.glob("*.parquet")
    stamp = folder.stat().st_mtime_ns
    victim.unlink()
    os.utime(folder, ns=(stamp, stamp))
    assert known.missing() == (str(victim),)
