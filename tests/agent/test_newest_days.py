"""Which days and which live commits a round looks at: those that are new to it, and no sample of them. No Java."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.recount import sample as samples
from console.agent.recount.sample import LiveCommit
from console.agent.soak import newest_days
from console.agent.soak.newest_days import Extent, days_to_compare
from console.agent.store import log
from console.model.live import Day
from console.model.slices import LATE
from tests.faults.rules.tables import foreign, rows

NOW = datetime(2026, 11, 27, tzinfo=UTC)
DAYS = (
    Day("2026-11-01", 10, 100),
    Day("2026-11-02", 10, 100),
    Day("2026-11-03", 10, 100),
    Day("2099-01-01", 1, 10),
    Day(LATE, 1, 10),
    Day("", 2, 10),
)
SEEN: Mapping[str, Extent] = {day.day: (day.rows, day.bytes) for day in DAYS}


def test_the_newest_days_are_not_those_of_a_clock_that_is_ahead() -> None:
    assert days_to_compare(DAYS, None, NOW, small=False) == ("2026-11-03", "2026-11-02")


@pytest.mark.parametrize("day", ["2026-11-01", "2099-01-01", LATE, ""])
@pytest.mark.parametrize("extent", [(9, 100), (10, 99)])
def test_a_day_that_changed_by_rows_or_by_bytes_alone_is_compared_whichever_it_is(day: str, extent: Extent) -> None:
    chosen = days_to_compare(DAYS, {**SEEN, day: extent}, NOW, small=False)
    assert set(chosen) == {day, "2026-11-03", "2026-11-02"}
    assert days_to_compare(DAYS, SEEN, NOW, small=False) == ("2026-11-03", "2026-11-02")


def test_of_many_changed_days_so_many_are_compared_as_their_bytes_allow_and_the_others_follow() -> None:
    many = tuple(Day(f"2026-10-{number:02}", 1, newest_days.CHANGED_BYTES // 3) for number in range(1, 31))
    seen = dict[str, Extent]()
    for _ in range(30):
        chosen = days_to_compare(many, seen, NOW, small=False)
        assert len(chosen) <= newest_days.NEWEST + 4
        seen |= {day.day: (day.rows, day.bytes) for day in many if day.day in chosen}
    assert len(seen) == len(many)


def test_a_day_in_a_file_of_several_days_is_compared_in_a_small_table_alone_and_hides_no_other() -> None:
    wide = (*(Day(f"2026-11-0{number}", 5, 50, exact=False) for number in (1, 2)), *DAYS[2:])
    assert days_to_compare(wide, None, NOW, small=True) == ("2026-11-03", "2026-11-02")
    assert days_to_compare(wide, None, NOW, small=False) == ("2026-11-03",)


def commit(version: int, first: int, last: int, count: int = 1, passed: tuple[int, ...] = ()) -> LiveCommit:
    return LiveCommit(version=version, first=first, last=last, rows=count, passed=passed)


def test_commits_are_taken_together_as_long_as_both_logs_go_on_without_a_gap() -> None:
    commits = (commit(3, 1, 1), commit(4, 2, 4, 5, (3,)), commit(5, 5, 5), commit(7, 6, 6), commit(8, 9, 9))
    first, second, third = samples.together(commits)
    assert (first.since, first.version, first.parts, first.rows) == (3, 5, 3, 7)
    assert first.runs() == ((1, 2), (4, 5))  # without the one that was skipped
    assert [(each.since, each.version, each.parts) for each in (second, third)] == [(7, 7, 1), (8, 8, 1)]


def test_of_more_rows_than_fit_the_newest_are_computed_and_one_commit_always() -> None:
    large = samples.NEWEST_ROWS
    commits = (commit(1, 1, 1), commit(2, 2, 2, large // 2), commit(3, 3, 3, large // 2))
    assert [each.version for each in samples.newest(commits, 9)] == [2, 3]
    assert [each.version for each in samples.newest(commits, 1)] == [3]
    assert [each.version for each in samples.newest((commit(1, 1, 1, 3 * large),), 9)] == [1]


def test_a_commit_that_changed_rows_is_named_until_a_person_accepts_it_and_retention_never(tmp_path: Path) -> None:
    copy = foreign(tmp_path / "copy", rows(0), rows(1))
    retained = CommitProperties(custom_metadata={"userMetadata": f'{{"kind": "{log.RETENTION}"}}'})
    DeltaTable(copy).delete("n = 0", commit_properties=retained)
    assert samples.rewritten_rows(copy) == ""
    DeltaTable(copy).delete("n = 1")
    assert samples.rewritten_rows(copy) == "version 3 (DELETE) removed or changed rows, under no feed"
    assert samples.rewritten_rows(copy, 3) == ""
    accepted = CommitProperties(custom_metadata={"userMetadata": f'{{"kind": "{log.ACCEPTED}"}}'})
    write_deltalake(copy, rows(2), mode="append", commit_properties=accepted)
    assert samples.rewritten_rows(copy) == ""
