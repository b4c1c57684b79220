"""The release table and the rollout table: one promotion wins, every event is kept, in order. No Java."""

import multiprocessing
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from console.agent.store.ledger import Releases, Rollouts
from console.errors import Conflict, DataError
from console.model.event import Accepted, Entered, Promoted
from console.model.live import Release

pytestmark = pytest.mark.slow


def release(name: str) -> Release:
    return Release(id=name, pipeline="web", digest="digest", tables=(), feeds=())


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    """r1 is live; r2 and r3 are being built."""
    stored_releases = Releases(tmp_path, "web")
    for name in ("r1", "r2", "r3"):
        stored_releases.propose(release(name), f"web-{name[1:]}", "ada", "laptop")
    stored_releases.swap("", "r1", "ada", "laptop")
    return stored_releases


def states(releases: Releases) -> dict[str, str]:
    return {each_release.row.id: each_release.row.state for each_release in releases.all()}


def test_a_promotion_a_rollback_and_another_promotion_keep_exactly_one_live_and_one_previous(
    releases: Releases,
) -> None:
    releases.swap("r1", "r2", "ada", "laptop")
    assert states(releases) == {"r1": "previous", "r2": "live", "r3": "preview"}
    releases.swap("r2", "r1", "ada", "laptop")
    assert states(releases) == {"r1": "live", "r2": "previous", "r3": "preview"}
    releases.swap("r1", "r3", "eve", "desk")
    assert states(releases) == {"r1": "previous", "r2": "retired", "r3": "live"}


def test_a_swap_from_a_release_that_is_no_longer_live_names_who_was_first(releases: Releases) -> None:
    releases.swap("r1", "r2", "ada", "laptop")
    with pytest.raises(Conflict, match="r2 is live, not r1: promoted by ada from laptop at "):
        releases.swap("r1", "r3", "eve", "desk")
    assert states(releases)["r3"] == "preview"


@pytest.mark.parametrize("to", ["r9", "r1"])
def test_what_is_not_there_to_become_live_is_refused_and_live_stays_live(releases: Releases, to: str) -> None:
    before = states(releases)
    with pytest.raises(Conflict, match=f"release {to} is not in this region, or live already") as refused:
        releases.swap("r1", to, "ada", "laptop")
    assert (refused.value.code, states(releases)) == ("E_NO_RELEASE", before)


def contend(
    place: str, name: str, gate: "multiprocessing.synchronize.Barrier", won: "multiprocessing.Queue[str]"
) -> None:
    stored_releases = Releases(Path(place), "web")
    gate.wait(30)
    try:
        stored_releases.swap("r1", name, name, "here")
        won.put(name)
    except Conflict:
        won.put("")


def test_of_two_processes_that_promote_at_once_exactly_one_wins(tmp_path: Path, releases: Releases) -> None:
    context = multiprocessing.get_context("spawn")
    gate, won = context.Barrier(2), context.Queue()
    rivals = [context.Process(target=contend, args=(str(tmp_path), name, gate, won)) for name in ("r2", "r3")]
    for rival in rivals:
        rival.start()
    winners = [won.get(timeout=60) for _ in rivals]
    for rival in rivals:
        rival.join(30)
    assert sorted(bool(name) for name in winners) == [False, True]
    assert [each_release.row.state for each_release in releases.all()].count("live") == 1
    assert states(releases)[max(winners)] == "live"


def test_events_come_back_in_order_and_only_those_after_a_number(tmp_path: Path) -> None:
    rollouts = Rollouts(tmp_path, "web")
    accepted = Accepted(
        release="r1", was="", plan="digest", by="ada", host="laptop", steps=(("create/requests", 0), ("promote", 0))
    )
    for seq, event in enumerate(
        (accepted, Entered("preparing"), Promoted(release="r1", was="", by="ada", host="laptop", version=3)), 1
    ):
        rollouts.append("web-1", seq, event)
    rollouts.append("web-10", 1, accepted)
    assert [r.event for r in rollouts.events("web-1", after=1)] == [
        Entered("preparing"),
        Promoted(release="r1", was="", by="ada", host="laptop", version=3),
    ]
    assert rollouts.latest() == "web-10"
    assert rollouts.status().state == "planned"


def test_a_name_that_is_no_id_never_reaches_a_query(tmp_path: Path) -> None:
    rollouts = Rollouts(tmp_path, "web")
    rollouts.append("web-1", 1, Entered("preparing"))
    with pytest.raises(DataError):
        rollouts.events("web-1' OR '1'='1")


def test_of_older_rollouts_no_file_is_opened(tmp_path: Path) -> None:
    """A region keeps the events of years, mostly one in a file."""
    rollouts = Rollouts(tmp_path, "web")
    for number in (9, 10):
        files = set(rollouts.path.glob("*.parquet"))
        for seq in (1, 2):
            rollouts.append(f"web-{number}", seq, Entered("preparing"))
    for file in files:
        file.unlink()
    assert rollouts.latest() == "web-10"
    assert [(recorded.rollout, recorded.seq) for recorded in rollouts.newest()] == [("web-10", 1), ("web-10", 2)]
    assert rollouts.status().state == "preparing"


def test_the_newest_rollout_of_a_file_that_holds_several_is_known(tmp_path: Path) -> None:
    rollouts = Rollouts(tmp_path, "web")
    for number in (2, 10, 9):
        rollouts.append(f"web-{number}", 1, Entered("preparing"))
    DeltaTable(str(rollouts.path)).optimize.compact()
    assert len(DeltaTable(str(rollouts.path)).file_uris()) == 1
    assert (rollouts.latest(), rollouts.names()) == ("web-10", ("web-10", "web-9", "web-2"))
    rollouts.append("web-11", 1, Entered("preparing"))
    assert [recorded.rollout for recorded in rollouts.newest()] == ["web-11"]


def test_releases_are_read_again_only_after_a_commit_whoever_made_it_or_another_table_in_its_place(
    tmp_path: Path, releases: Releases
) -> None:
    before = releases.all()
    assert releases.all() is before
    Releases(tmp_path, "web").swap("r1", "r2", "eve", "desk")
    assert states(releases) == {"r1": "previous", "r2": "live", "r3": "preview"}
    version = releases.version()
    shutil.rmtree(releases.path)
    other = Releases(tmp_path, "web")
    for name in range(4, 4 + version + 1):
        other.propose(release(f"r{name}"), f"web-{name}", "ada", "laptop")
    assert releases.version() == version, "as many commits as before"
    assert states(releases) == states(other)
    assert "r2" not in states(releases)
