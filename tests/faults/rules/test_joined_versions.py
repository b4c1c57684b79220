"""What a feed joined is kept with its rows: the version, of which table, and since when that can no longer be read."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.feeds import live_feed
from console.agent.recount.live import RecountResult, pinned_feed, recount
from console.agent.store import log
from console.model.live import Version
from tests.faults.rules.test_recount import World, owners

pytestmark = [pytest.mark.faults, pytest.mark.spark]


class Moving(World):
    """The joined table gets another version, as by a rollout that changes it alone, and the feed goes on."""

    def moves_owners(self) -> None:
        before = self.owners
        self.owners = str(self.place / "owners-2")
        if not Path(self.owners).exists():
            self.owns(eve=0)  # what was called ada before: numbers of the two logs are of other rows
        state = owners()
        new = replace(state, version=Version(content="o2", path="owners-2", columns=state.version.columns))
        self.others = ((state, before),)
        self.copy.joins = ((new, self.owners),)

    def looked_at(self) -> RecountResult:
        recounted = recount(self.session, pinned_feed(self.copy, {}, self.others), "seed")
        assert recounted is not None
        return recounted


@pytest.fixture
def world(tmp_path: Path, session: Any) -> Moving:
    made = Moving(tmp_path, session)
    made.lands()
    made.moves()
    made.moves_owners()
    made.lands()
    made.moves()
    return made


def test_rows_are_checked_with_the_version_that_they_joined_whatever_its_table_is_now(world: Moving) -> None:
    again = world.looked_at()
    assert (again.ok, again.commits) == (True, 2), again
    notes = [
        commit.note for commit in log.commits(world.copy.target_path, 1, log.latest_version(world.copy.target_path))
    ]
    noted = [(note["joined"], note["joins"]) for note in notes if note.get("kind") == "live"]
    assert noted == [({"owners": "owners"}, {"owners": 0}), ({"owners": "owners-2"}, {"owners": 0})]


def test_wrong_rows_of_an_older_version_of_the_joined_table_are_found(world: Moving) -> None:
    state = world.others[0][0]
    world.others = ((replace(state, read="SELECT k, concat(name, '!') AS name FROM stored"), world.others[0][1]),)
    assert world.looked_at().ok is False


def test_of_a_version_that_is_dropped_it_says_until_when_rows_cannot_be_checked(world: Moving) -> None:
    shutil.rmtree(world.others[0][1])
    again = world.looked_at()
    assert (again.ok, again.commits) == (True, 1), again
    assert "1 of 2 live commits (4 rows) computed again from landing: equal; rows that arrived until 20" in again.detail
    assert again.detail.endswith("cannot be checked again: the version of owners that was joined was dropped")
    shutil.rmtree(world.owners)
    again = world.looked_at()
    assert (again.ok, again.detail.startswith("rows that arrived until 20")) == (None, True), again


def test_once_the_joined_tables_files_are_vacuumed_the_check_is_inconclusive_and_says_since_when(
    tmp_path: Path, session: Any
) -> None:
    world = World(tmp_path, session)
    world.lands()
    world.moves()
    world.owns(eve=2)
    DeltaTable(world.owners).optimize.compact()
    DeltaTable(world.owners).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    again = recount(session, pinned_feed(world.copy, {}), "seed")
    assert again is not None
    assert again.ok is None, again
    assert "owners as of version 0 is gone: 1 of 1 files were removed, as VACUUM does" in again.detail
    world.lands()
    world.moves()
    again = recount(session, pinned_feed(world.copy, {}), "seed")
    assert again is not None
    assert (again.ok, again.commits, "cannot be checked again" in again.detail) == (True, 1, True), again


def test_a_note_of_an_older_console_counts_where_there_is_one_version_only(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "joined_paths", lambda joins: "none noted")
    world = Moving(tmp_path, session)
    world.lands()
    world.moves()
    assert world.again(world.copy).ok is True
    world.moves_owners()
    again = world.looked_at()
    assert again.ok is None, again
    assert "the version of owners that was read is not recorded, or was dropped" in again.detail
