"""Which files a run of commits added, determined from two versions of a table and from a few in between. No Java."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.recount import files
from console.agent.recount.files import Span, Unreadable, VersionFiles
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from tests.faults.rules.tables import foreign, rows, state

pytestmark = pytest.mark.slow


class World:
    """A table of appends, with compactions between some of them."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.looks = str(place / "landing"), 0
        of = VersionFiles.of

        def counted(table: Pinned, version: int) -> VersionFiles:
            self.looks += 1
            return of(table, version)

        monkeypatch.setattr(files.VersionFiles, "of", staticmethod(counted))

    def lands(self, *days: int) -> None:
        foreign(Path(self.path), *(rows(n, day=day) for n, day in enumerate(days)))

    def compacts(self, day: int) -> None:
        DeltaTable(self.path).optimize.compact(partition_filters=[("day", "=", f"2026-11-{day:02}")])

    def added(self, first: int) -> set[str]:
        """Names of the files, from a version to the newest."""
        last = log.latest_version(self.path)
        return {*files._added(Pinned(state("landing"), self.path, last), Span(0, first, last))}

    def by_log(self, first: int) -> set[str]:
        """The same by the log's own words."""
        commits = log.commits(self.path, first, log.latest_version(self.path))
        return {Path(file.path).name for commit in commits for file in commit.added}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return World(tmp_path, monkeypatch)


def test_a_compaction_of_older_files_among_many_commits_is_found_by_few_looks(world: World) -> None:
    world.lands(1, 1, *[2] * 20)
    world.compacts(1)
    world.lands(*[3] * 40)
    assert world.added(2) == world.by_log(2)
    assert world.looks < 20


def test_rows_that_were_moved_on_within_the_span_are_not_guessed(world: World) -> None:
    world.lands(1, 1)
    world.compacts(1)
    world.lands(1)
    with pytest.raises(Unreadable, match="files were moved between versions 1 and 3"):
        world.added(1)


def test_of_a_span_that_was_compacted_as_a_whole_the_new_files_have_the_rows(world: World) -> None:
    world.lands(1, 2, 2)
    world.compacts(2)
    world.lands(3)
    names = world.added(1)
    days = DeltaTable(world.path).to_pyarrow_table().column("day").to_pylist()
    assert (len(names), sorted(day.day for day in days)) == (2, [1, 2, 2, 3])
