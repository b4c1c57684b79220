"""A disk that fills up under the region's own tables: stored records count, and no decision is lost. No Java."""

import resource
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.receipts.cross_check import cross_check
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.agent.store.ops import Ops
from console.model.event import Accepted, Ended, Entered, Event, Failed, Paused, Promoted, StepStarted
from console.model.live import Release
from console.model.status import replay
from console.model.step import Promote
from tests.plans import bare_plan
from tests.room import room

pytestmark = pytest.mark.slow

# bytes: no file fits · one of events does · one of decisions does, no checkpoint
NONE, EVENTS, ROWS = 100, 5_000, 10_000
PLAN = bare_plan(steps=(Promote(),), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()))
ACCEPTED = Accepted(release="r1", was="", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
PROMOTED = Promoted(release="r1", was="", by="ada", host="laptop", version=2)


def checkpoints(table: Path) -> None:
    """From now on there is one after every commit, as there is after every hundredth."""
    DeltaTable(str(table)).alter.set_table_properties({"delta.checkpointInterval": "1"})


def begun(place: Path) -> Recorder:
    recorder = Recorder(Rollouts(place, "web"))
    recorder.accept("web-1", PLAN, ACCEPTED)
    return recorder


@pytest.mark.parametrize("event", [Paused("ada"), Failed("promote", "why"), Ended("discarded", "ada"), PROMOTED])
@pytest.mark.parametrize("breaks", [0, 1])
def test_an_event_whose_commit_stands_is_stored_and_the_next_one_is_not_taken_for_it(
    tmp_path: Path, event: Event, breaks: int
) -> None:
    recorder = begun(tmp_path)
    checkpoints(tmp_path / "_console" / "web" / "rollouts")
    for number, each in enumerate((StepStarted("promote"), event)):
        with room(EVENTS if number == breaks else resource.RLIM_INFINITY):
            recorder.store(each)
    events = Rollouts(tmp_path, "web").events("web-1")
    assert [recorded.seq for recorded in events] == [1, 2, 3]
    assert replay(events) == recorder.status


def test_an_accepted_plan_whose_commit_stands_is_accepted(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    checkpoints(tmp_path / "_console" / "web" / "rollouts")
    with room(EVENTS):
        recorder.accept("web-2", PLAN, ACCEPTED)
    assert (recorder.rollout, recorder.status.rollout) == ("web-2", "web-2")


def test_an_event_that_found_no_room_is_not_stored(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    with room(NONE), pytest.raises((DeltaError, OSError)):
        recorder.store(Paused("ada"))
    assert recorder.store(StepStarted("promote")).seq == 2
    assert Recorder(Rollouts(tmp_path, "web")).status == recorder.status


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    """r1 is live, r2 is being built."""
    stored_releases = Releases(tmp_path, "web")
    for name in ("r1", "r2"):
        stored_releases.propose(
            Release(id=name, pipeline="web", digest="d", tables=(), feeds=()), f"web-{name[1:]}", "ada", "laptop"
        )
    stored_releases.swap("", "r1", "ada", "laptop")
    return stored_releases


def states(releases: Releases) -> dict[str, str]:
    return {release.row.id: release.row.state for release in releases.all()}


def test_a_promotion_whose_commit_stands_was_made(releases: Releases) -> None:
    checkpoints(releases.path)
    with room(EVENTS):
        version = releases.swap("r1", "r2", "eve", "desk")
    assert (version, states(releases)) == (releases.version(), {"r1": "previous", "r2": "live"})


def test_a_release_whose_commit_stands_was_proposed(releases: Releases) -> None:
    checkpoints(releases.path)
    with room(EVENTS):
        releases.propose(Release(id="r3", pipeline="web", digest="d", tables=(), feeds=()), "web-3", "ada", "laptop")
    assert states(releases)["r3"] == "preview"


def test_a_promotion_that_found_no_room_was_not_made(releases: Releases) -> None:
    with room(NONE), pytest.raises((DeltaError, OSError)):
        releases.swap("r1", "r2", "eve", "desk")
    assert states(releases) == {"r1": "live", "r2": "preview"}


def decisions(place: Path, rollout: str) -> list[tuple[str, bool | None]]:
    """What is kept of who decided, oldest first, and whether `console verify` finds it in order."""
    rows = Ops(place / "_console" / "web").rows(rollout)
    judged = cross_check(Rollouts(place, "web").events(rollout), PLAN, rows)[0][0]
    return [(row["kind"], judged.ok) for row in sorted(rows, key=lambda row: row["seq"])]


def test_the_last_decision_of_a_rollout_is_kept_before_another_begins(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    with room(EVENTS):
        recorder.store(PROMOTED)
        assert decisions(tmp_path, "web-1") == [("accepted", False)]
        with pytest.raises((DeltaError, OSError)):
            recorder.accept("web-2", PLAN, ACCEPTED)
    assert recorder.rollout == "web-1"
    recorder.accept("web-2", PLAN, ACCEPTED)
    assert decisions(tmp_path, "web-1") == [("accepted", True), ("promoted", True)]
    assert decisions(tmp_path, "web-2") == [("accepted", True)]


def test_a_decision_that_found_no_room_is_kept_with_the_first_event_that_finds_some(tmp_path: Path) -> None:
    with room(EVENTS):
        recorder = begun(tmp_path)
        recorder.store(Entered("preparing"))
    assert decisions(tmp_path, "web-1") == []
    recorder.store(StepStarted("promote"))
    assert decisions(tmp_path, "web-1") == [("accepted", True)]


def test_a_decision_whose_commit_stands_is_kept_once(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    checkpoints(tmp_path / "_console" / "web" / "ops")
    with room(ROWS):
        recorder.store(PROMOTED)
    recorder.store(Ended("cleaned", "ada"))
    assert decisions(tmp_path, "web-1") == [("accepted", True), ("promoted", True), ("cleaned", True)]


def test_decisions_that_cannot_be_read_keep_no_event_from_being_stored(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    newest = tmp_path / "_console" / "web" / "ops" / "_delta_log" / f"{0:020}.json"
    whole = newest.read_bytes()
    with room(EVENTS):
        recorder.store(PROMOTED)
    newest.write_bytes(b"")
    assert recorder.store(Ended("cleaned", "ada")).seq == 3
    newest.write_bytes(whole)
    recorder.accept("web-2", PLAN, ACCEPTED)
    assert decisions(tmp_path, "web-1") == [("accepted", True), ("promoted", True), ("cleaned", True)]
