"""A cleanup in two stages over real logs: held, restored with every row that arrived meanwhile, dropped when due. No Java."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from console import crash
from console.agent.__main__ import _state
from console.agent.cleanup.hold_store import HoldStore
from console.agent.maintenance.maintainer import needs
from console.errors import Conflict, RegionError
from console.model.held_release import HeldRelease
from tests.agent.copying import by_arrow
from tests.agent.manual_clock import ManualClock
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


def ticked(region: ProvenRegion) -> None:
    """One look of the agent, and what it began."""
    region.line.tick()
    if (attempt := region.line.due_holds._attempt) is not None:
        attempt.join(30)
        assert not attempt.is_alive()


def dying(at: str, error: type[Exception] = MemoryError) -> Callable[[str], None]:
    def point(reached: str) -> None:
        if reached == at:
            raise error(at)

    return point


def refused(region: ProvenRegion) -> Conflict:
    with pytest.raises(Conflict) as caught:
        region.line.restore()
    return caught.value


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
    ticked(region)
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
    ticked(region)
    assert Path(region.old).exists()
    end_hold(region)
    ticked(region)
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
    ticked(region)
    assert states(region) == {"r2": "previous", "r3": "live"}
    assert not Path(region.old).exists()


def test_a_cleanup_of_the_previous_release_takes_those_on_hold_along(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    assert region.line.cleanup("ada", dry_run=False, previous=True) == (OLD,)
    assert region.line.cleaning.held() == ()


def test_a_hold_that_a_dead_agent_had_only_written_down_is_finished_by_the_next(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(crash, "point", dying("before-retire"))
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


# -- a drop beside the agent's other duties


def test_neither_the_agents_other_duties_nor_its_end_wait_for_a_drop(region: ProvenRegion) -> None:
    region.follower.start()
    region.line.hold("ada", 24.0, dry_run=False)
    end_hold(region)
    with region.follower._tick_lock:  # a long step of a feed, for whose end the drop waits
        for duty in (region.line.tick, region.line.tick, region.line.halt):
            running = threading.Thread(target=duty, daemon=True)
            running.start()
            running.join(60)
            assert not running.is_alive()
            region.until(lambda: region.line.due_holds.dropping)
        assert Path(region.old).exists()
    region.until(lambda: states(region) == {"r2": "live"} and not region.line.cleaning.held())
    assert not Path(region.old).exists()


def test_a_drop_that_fails_is_repeated_each_minute_and_the_release_is_not_restored_meanwhile(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = region.line.due_holds.clock = ManualClock(wall=time.time())
    region.line.hold("ada", 1.0, dry_run=False)
    clock.go(3601)
    with monkeypatch.context() as patch:
        patch.setattr(crash, "point", dying("before-drop", PermissionError))
        for _ in range(3):
            ticked(region)
        assert capsys.readouterr().err.count("is over; retrying: PermissionError") == 1
        clock.go(59)
        ticked(region)
        assert "retrying" not in capsys.readouterr().err
    assert refused(region).code == "E_NO_HOLD"  # by the region's wall clock it is not even due
    clock.go(1)
    ticked(region)
    assert states(region) == {"r2": "live"}
    assert "the hold of r1 is over" in capsys.readouterr().err


def test_with_damaged_holds_the_watchdog_and_the_gate_are_looked_after_all_the_same(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = region.line.due_holds.clock = ManualClock()
    looked: list[str] = []
    monkeypatch.setattr("console.agent.rollout.watchdog.Watchdog.tick", lambda *_: looked.append("watchdog"))
    monkeypatch.setattr("console.agent.rollout.self_opening.SelfOpeningGate.tick", lambda *_: looked.append("gate"))
    (region.place / "_console" / "web" / "holds.json").write_text("{")
    region.line.cleaning._held = None
    for _ in range(3):
        region.line.tick()
    assert looked == ["watchdog", "gate"] * 3
    assert capsys.readouterr().err.count("holds.json cannot be read") == 1
    clock.go(60)
    region.line.tick()
    assert capsys.readouterr().err.count("holds.json cannot be read") == 1


# -- what a restore can no longer bring back


def test_a_release_that_another_agents_cleanup_has_dropped_is_not_restored(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    region.line.releases.drop("r1")  # as 0.1.0 does, which knows no holds
    error = refused(region)
    assert (error.code, str(error)) == ("E_NO_HOLD", "web: r1 was dropped")
    assert region.line.cleaning.held() == ()


def test_the_next_agent_forgets_the_hold_of_a_dropped_release(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    region.line.releases.drop("r1")
    region.line.resume()
    assert region.line.cleaning.held() == ()
    assert states(region) == {"r2": "live"}


def test_a_release_whose_hold_is_over_is_not_restored(region: ProvenRegion) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    end_hold(region)
    error = refused(region)
    assert (error.code, "the hold of r1 is over" in str(error)) == ("E_NO_HOLD", True)
    assert states(region) == {"r1": "retired", "r2": "live"}


@pytest.mark.parametrize("point", ["before-drop", "after-drop", "before-forget"])
def test_a_drop_that_ended_in_the_middle_is_not_restored_but_finished(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    region.line.hold("ada", 24.0, dry_run=False)
    with monkeypatch.context() as patch:
        patch.setattr(crash, "point", dying(point))
        with pytest.raises(MemoryError):
            region.line.cleanup("ada", dry_run=False, previous=True)  # before it is due
    assert states(region) == {"r1": "retired", "r2": "live"}
    assert refused(region).code == "E_NO_HOLD"
    region.line.resume()
    ticked(region)
    assert states(region) == {"r2": "live"}
    assert region.line.cleaning.held() == ()
    assert not list((region.place / "copy").glob("*a-1*"))


# -- a restore that ended in the middle


def half_restored(region: ProvenRegion, monkeypatch: pytest.MonkeyPatch, *, marked: bool) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    region.line.hold("ada", 24.0, dry_run=False)
    with monkeypatch.context() as patch:
        patch.setattr(
            *((HoldStore, "forget", full_disk) if marked else (crash, "point", dying("before-retire", OSError)))
        )
        with pytest.raises(OSError, match=r"No space|before-retire"):
            region.line.restore()
    assert states(region)["r1"] == ("previous" if marked else "retired")


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("by", ["the next agent", "the operator"])
def test_a_restore_that_ended_in_the_middle_is_finished_and_never_dropped(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch, by: str, marked: bool
) -> None:
    half_restored(region, monkeypatch, marked=marked)
    end_hold(region)
    ticked(region)
    if by == "the operator":
        assert region.line.restore() == "r1"
    else:
        region.line.cleaning._held = None
        region.line.resume()
    assert states(region) == {"r1": "previous", "r2": "live"}
    assert region.old in followed(region)
    assert region.line.cleaning.held() == ()
    assert Path(region.old).exists()


@pytest.mark.parametrize("marked", [True, False])
def test_a_restore_that_ended_in_front_of_a_promotion_is_not_finished(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    half_restored(region, monkeypatch, marked=marked)
    region.table("copy/c-3", 0)
    region.promoted(release("r3", "copy/c-3", "ignore"))
    region.line.resume()
    assert states(region) == {"r1": "retired", "r2": "previous", "r3": "live"}
    assert [held.restoring for held in region.line.cleaning.held()] == [False]


def test_a_hold_is_never_missed_by_a_reader_that_came_in_between(
    region: ProvenRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has read the file from before the hold, and keeps what it has read only after it."""
    read, written = threading.Event(), threading.Event()
    whole = HoldStore.all
    reader = threading.Thread(target=region.line.cleaning.held, daemon=True)

    def all_slowly(store: HoldStore) -> tuple[HeldRelease, ...]:
        found = whole(store)
        if threading.current_thread() is reader:
            read.set()
            written.wait(0.5)
        return found

    monkeypatch.setattr(HoldStore, "all", all_slowly)
    region.line.cleaning._held = None
    reader.start()
    assert read.wait(60)
    region.line.hold("ada", 24.0, dry_run=False)
    written.set()
    reader.join(60)
    assert [held.release for held in region.line.cleaning.held()] == ["r1"]


def test_a_hold_says_what_happens_to_its_release() -> None:
    held = HeldRelease(release="r1", live="r2", at=0.0, due=3600.0, by="ada")
    assert "--restore brings it back" in held.text(0.0)
    over = "r1 is on hold, dropped as soon as its agent runs"
    assert held.text(3600.0) == over == dataclasses.replace(held, dropping=True).text(0.0)
    assert "r1 is not restored yet" in dataclasses.replace(held, restoring=True).text(7200.0)


def test_a_change_of_one_hold_keeps_their_order(region: ProvenRegion) -> None:
    holds = region.line.cleaning.holds
    first = HeldRelease(release="r1", live="r2", at=0.0, due=1.0, by="ada")
    holds.put(first)
    holds.put(dataclasses.replace(first, release="r2"))
    holds.put(dataclasses.replace(first, dropping=True))
    assert [(held.release, held.dropping) for held in holds.all()] == [("r1", True), ("r2", False)]


def test_a_restored_release_stops_where_the_log_of_its_source_was_cleaned_up_meanwhile(region: ProvenRegion) -> None:
    region.table("copy/c-3", 0)
    region.promoted(release("r3", "copy/c-3", "ignore"))
    region.follower.start()
    region.until(lambda: 9 in region.has("copy/c-3") and 9 in region.has("copy/b-2"))
    region.line.hold("ada", 24.0, dry_run=False)
    for key in (5, 6):
        write_deltalake(region.landing, rows(key), mode="append", partition_by=["day"])
    region.until(lambda: 6 in region.has("copy/c-3"))
    DeltaTable(region.landing).create_checkpoint()
    for commit in sorted(Path(region.landing, "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    region.line.restore()
    (feed,) = (each for each in region.follower.feeds("web") if each.target_path.endswith("copy/b-2"))
    region.until(lambda: feed.health.standing is not None)
    assert feed.health.standing is not None
    assert feed.health.standing.code == "E_LOG_GONE"
    assert not {5, 6} & set(region.has("copy/b-2"))
    assert region.proven().state != "passed"
