"""A cleanup in two stages over real logs: held, restored with every row that arrived meanwhile, dropped when due. No Java."""

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import write_deltalake

from console import crash
from console.agent.__main__ import _state
from console.agent.cleanup.hold_store import HoldStore
from console.agent.maintenance.maintainer import needs
from console.errors import Conflict, RegionError
from tests.agent.copying import by_arrow
from tests.agent.test_gate import release
from tests.agent.test_way_back import ProvenRegion
from tests.faults.rules.tables import rows

pytestmark = pytest.mark.slow
OLD = "copy/a-1"


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProvenRegion]:
    by_arrow(monkeypatch)
    made = ProvenRegion(tmp_path)
    (tmp_path / "_console" / "marker.json").touch()
    yield made
    made.follower.stop()
    made.line.halt()
    if made.follower.is_alive():
        made.follower.join(30)


def states(region: ProvenRegion) -> dict[str, str]:
    return {stored.row.id: stored.row.state for stored in region.line.releases.all()}


def followed(region: ProvenRegion) -> set[str]:
    return {feed.target_path for feed in region.follower.feeds("web")}


def end_hold(region: ProvenRegion) -> None:
    """As if its time had passed."""
    holds = region.line.cleaning.holds
    for held in holds.all():
        holds.put(dataclasses.replace(held, due=time.time() - 1))
    region.line.cleaning._held = None


def test_a_release_on_hold_is_not_fed_keeps_its_files_and_comes_back_with_its_feeds(region: ProvenRegion) -> None:
    files = region.files_of_old()
    assert region.line.hold("ada", 24.0, dry_run=True) == (OLD,)
    assert states(region) == {"r1": "previous", "r2": "live"}
    assert region.line.hold("ada", 24.0, dry_run=False) == (OLD,)
    assert states(region) == {"r1": "retired", "r2": "live"}
    assert region.old not in followed(region)
    (held,) = region.line.cleaning.held()
    assert (held.release, held.live, held.by) == ("r1", "r2", "ada")
    assert held.due == pytest.approx(time.time() + 24 * 3600, abs=60)
    with pytest.raises(Conflict, match="nothing to go back to"):
        region.line.rollback("r2", "ada", "laptop")
    assert region.line.cleanup("ada", dry_run=False, previous=False) == ()  # of what nobody needs: not this
    region.line.tick()
    assert all(Path(file).exists() for file in files)
    # what it has not read yet is spared, so that it can catch up
    assert [need for need in needs((region.line,))[region.landing] if "of r1" in need.why]

    assert region.line.restore() == "r1"
    assert states(region) == {"r1": "previous", "r2": "live"}
    assert region.old in followed(region)
    assert region.proven().release == "r1"
    assert region.line.cleaning.held() == ()


def test_when_its_time_is_over_its_agent_drops_it_and_nothing_else(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    region.line.tick()
    assert Path(region.old).exists()
    end_hold(region)
    region.line.tick()
    assert not Path(region.old).exists()
    assert (region.place / "copy" / "b-2").exists()
    assert states(region) == {"r2": "live"}
    assert region.line.cleaning.held() == ()
    with pytest.raises(Conflict, match="no release is on hold"):
        region.line.restore()


def test_it_cannot_be_restored_beside_another_live_release_and_is_dropped_all_the_same(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    region.table("copy/c-3", 0)
    region.promoted(release("r3", "copy/c-3", "ignore"))
    with pytest.raises(Conflict, match="r3 is live, and r2 was") as refused:
        region.line.restore()
    assert refused.value.code == "E_HOLD"
    end_hold(region)
    region.line.tick()
    assert states(region) == {"r2": "previous", "r3": "live"}
    assert not Path(region.old).exists()


def test_a_cleanup_of_the_previous_release_takes_those_on_hold_along(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    assert region.line.cleanup("ada", dry_run=False, previous=True) == (OLD,)
    assert region.line.cleaning.held() == ()


def test_a_hold_that_a_dead_agent_had_only_written_down_is_finished_by_the_next(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(point: str) -> None:
        if point == "before-retire":
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(crash, "point", dies)
        with pytest.raises(MemoryError):
            region.line.hold("ada", 24.0, dry_run=False)
    assert states(region)["r1"] == "previous"
    region.line.resume()
    assert states(region)["r1"] == "retired"
    assert region.old not in followed(region)


def test_a_region_without_an_agent_shows_what_is_on_hold_and_damage_is_reported(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    (held,) = _state(region.place, "web")["status"].on_hold
    assert held.text(held.at) == "r1 is on hold, dropped in 24 h: until then console cleanup --restore brings it back"
    (region.place / "_console" / "web" / "holds.json").write_text("{")
    with pytest.raises(RegionError, match=r"holds\.json cannot be read"):
        HoldStore(region.place, "web").all()


def test_rows_that_arrive_during_the_hold_are_in_the_restored_release(region: ProvenRegion) -> None:
    region.table("copy/c-3", 0)
    region.promoted(release("r3", "copy/c-3", "ignore"))
    region.follower.start()
    region.until(lambda: 9 in region.has("copy/c-3") and 9 in region.has("copy/b-2"))
    region.line.hold("ada", 24.0, dry_run=False)
    write_deltalake(region.landing, rows(5), mode="append", partition_by=["day"])
    region.until(lambda: 5 in region.has("copy/c-3"))
    assert 5 not in region.has("copy/b-2")
    assert region.line.restore() == "r2"
    region.until(lambda: 5 in region.has("copy/b-2"))
    assert sorted(region.has("copy/b-2")) == sorted({*region.has("copy/b-2")})  # each of them once
    assert region.line.rollback("r3", "ada", "laptop").release == "r2"
