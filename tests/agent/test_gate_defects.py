"""Defects that are planted while a rollout waits at its gate, in real logs: each closes it by name. No Java."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import app_ids
from console.agent.recount.pinned_tables import Pinned
from console.agent.soak import counted_days
from console.agent.soak.counted_days import CHECK
from console.errors import CheckFailed
from console.model.event import Accepted, Entered, StepDone
from console.model.step import Comparison, CreateTable, Pair, Promote, Validate
from tests.agent.copying import by_arrow
from tests.agent.test_gate import COMPARED, FEED, Region, release
from tests.agent.test_gate_rounds import Rounds, rounds_of
from tests.faults.rules.tables import commit_rows, foreign, number, rows, state
from tests.plans import bare_plan

TODAY = 1_795_500_000.0  # in November 2026


class WaitingRegion(Region):
    """r1 is live, r2 with another version of its table has been validated, and both are fed. Live rows have no day: Arrow
    reads none from a folder's name.
    """

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.line.halt()

    def promoted(self, wanted: object) -> None:
        """Its landing table is one that nobody has deleted from."""
        place = self.place / "landing"
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        foreign(place, rows(0), rows(1), rows(2))
        self.table("copy/a-0", 0, 0)
        super().promoted(release("r1", "copy/a-0", "ignore"))

    @property
    def new(self) -> str:
        return str(self.place / "copy/b-2")

    def waits(self) -> Rounds:
        self.table("copy/b-2", 0, 0)
        wanted, made = release("r2", "copy/b-2"), CreateTable("copy")
        plan = bare_plan(live="r1", steps=(made, COMPARED, Promote()), release=wanted)
        self.line.releases.propose(wanted, "web-2", "ada", "laptop")
        steps = tuple((step.id, 0) for step in plan.steps)
        event = Accepted(release="r2", was="r1", plan="digest", by="ada", host="laptop", steps=steps)
        self.line.recorder.accept("web-2", plan, event)
        for stored in (StepDone(made.id), Entered("validating"), StepDone(Validate(()).id)):
            self.line.recorder.store(stored)
        self.line.resume()
        self.until(lambda: self.line.recorder.status.shown == "awaiting-confirmation")
        self.follower.start()
        self.until(lambda: self.has("copy/b-2") == self.has("copy/a-0") == [0, 1, 2])
        checking = rounds_of(self)
        checking.once()
        return checking

    def arrive(self, *numbers: int) -> None:
        """Rows of live traffic, in both versions."""
        write_deltalake(self.landing, rows(*numbers), mode="append", partition_by=["day"])
        self.until(lambda: set(numbers) <= set(self.has("copy/b-2")) and set(numbers) <= set(self.has("copy/a-0")))

    @property
    def app_id(self) -> str:
        return app_ids.live_id(self.new, FEED)


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingRegion]:
    by_arrow(monkeypatch)
    made = WaitingRegion(tmp_path)
    yield made
    made.follower.stop()
    made.line.halt()
    made.follower.join(30)


def lost(region: WaitingRegion) -> None:
    DeltaTable(region.new).delete("n = 2")


def added_by_somebody(region: WaitingRegion) -> None:
    write_deltalake(region.new, rows(2), mode="append")


def on_another_day(region: WaitingRegion) -> None:
    DeltaTable(region.new).delete("n = 0")
    commit_rows(region.new, "history/x", 1, rows(0, day=2), kind="history")


def without_a_day(region: WaitingRegion) -> None:
    DeltaTable(region.new).delete("n = 0")
    commit_rows(region.new, "history/x", 1, rows(0, day=None), kind="history")


def moved_twice(region: WaitingRegion) -> None:
    """The last range again, under the feed's own id."""
    note = {"kind": "live", "from": 2, "to": 2, "rows_in": 1}
    commit_rows(region.new, region.app_id, number(9, 2), rows(2, day=None), **note)


def its_feed_stops(region: WaitingRegion) -> None:
    """r1 ignores deletes in its source, and r2 does not."""
    DeltaTable(region.landing).delete("n = 1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (lost, {CHECK: "no day: 2 → 1", "feed every": "(DELETE) removed or changed rows"}),
        (added_by_somebody, {CHECK: "2026-11-01: 1 → 2", "feed every": "added rows under no feed"}),
        (on_another_day, {CHECK: "2026-11-01: 1 → 0, 2026-11-02: 0 → 1", "feed every": "removed or changed rows"}),
        (without_a_day, {CHECK: "no day: 2 → 3, 2026-11-01: 1 → 0", "feed every": "removed or changed rows"}),
        (moved_twice, {CHECK: "no day: 2 → 3", "feed every": "both hold commit 2"}),
        (its_feed_stops, {"feed every goes on": "only appends flow"}),
    ],
)
def test_a_defect_at_the_gate_closes_it_by_name_in_the_first_round_that_could_see_it(
    region: WaitingRegion, plant: Callable[[WaitingRegion], None], found: dict[str, str]
) -> None:
    checking = region.waits()
    assert [check for check in region.line.recorder.status.checks if not check.ok] == []
    plant(region)
    if plant is its_feed_stops:
        region.until(lambda: any(feed.health.stopped for feed in region.follower.feeds("web")))
    checking.once()
    failed = {check.check: check.detail for check in region.line.recorder.status.checks if check.ok is False}
    assert set(failed) == set(found)
    assert all(part in failed[name] for name, part in found.items()), failed
    with pytest.raises(CheckFailed) as refused:
        region.line.promote("web-2", "r1", "ada", "laptop")
    assert refused.value.code == "E_CHECK"
    assert region.line.live().id == "r1"


@pytest.mark.slow
def test_live_rows_pass_every_round_and_leave_nothing_in_the_log(region: WaitingRegion) -> None:
    checking = region.waits()
    stored = len(region.line.recorder.progress())
    for n in range(10, 13):
        region.arrive(n, n + 100)
        checking.once()
    status = region.line.recorder.status
    assert status.soak is not None
    assert (status.soak.rounds, status.soak.clean, status.checks) == (4, 4, ())
    assert len(region.line.recorder.progress()) == stored


def sides(place: Path, old: tuple[int | None, ...], new: tuple[int | None, ...], **table: object) -> tuple[Pinned, ...]:
    """Two versions with a row on each of these days."""
    made = []
    for name, days in (("old", old), ("new", new)):
        for at, day in enumerate(days):
            write_deltalake(str(place / name), rows(at, day=day), mode="append", partition_by=["day"])
        shown = state("copy", time="day", **table)
        made.append(Pinned(shown, str(place / name), len(days) - 1))
    return tuple(made)


PLAN = Comparison(table="copy", pairs=(Pair("n", "n"),), time="day")


@pytest.mark.parametrize(
    ("plan", "table", "ok"),
    [
        (PLAN, {}, False),
        (replace(PLAN, joins=("users",)), {}, None),
        (replace(PLAN, other_rows=True), {}, "not counted"),
        (replace(PLAN, keys=("day",)), {}, "not counted"),
        (replace(PLAN, time=""), {}, "not counted"),
        (PLAN, {"retention_days": 10}, "not counted"),  # one side may have expired it
        (PLAN, {"kind": "aggregate"}, "not counted"),  # it stores a state for each commit
    ],
)
def test_days_are_counted_only_where_both_must_have_as_many_rows(
    tmp_path: Path, plan: Comparison, table: dict[str, object], ok: object
) -> None:
    old, new = sides(tmp_path, (1, 1, 2), (1, 2), **table)
    found = counted_days.check(plan, old, new, TODAY)
    assert (found.ok if found else "not counted") == ok


def wide(place: Path, *files: tuple[int, ...]) -> Pinned:
    """A version without partitions whose files each hold a row of these days after 2026-06-01."""
    for at, numbers in enumerate(files):
        made = pa.Table.from_pylist(
            [{"n": at * 1000 + n, "day": date(2026, 6, 1) + timedelta(days=n)} for n in numbers], rows(0).schema
        )
        write_deltalake(str(place / "wide"), made, mode="append")
    return Pinned(state("copy", partition_by=(), time="day"), str(place / "wide"), len(files) - 1)


@pytest.mark.parametrize("span", [30, *(pytest.param(span, marks=pytest.mark.slow) for span in (41, 90, 100))])
def test_no_day_within_a_file_of_many_days_is_said_to_have_no_rows(tmp_path: Path, span: int) -> None:
    """Of long files a table's statistics name every second day or fewer."""
    old, new = wide(tmp_path / "old", *((n,) for n in range(span))), wide(tmp_path / "new", tuple(range(span)))
    assert counted_days.check(PLAN, old, new, TODAY) is None


def test_files_without_statistics_of_times_are_not_counted(tmp_path: Path) -> None:
    old, _ = sides(tmp_path, (1, 2), (1,))
    bare = str(tmp_path / "bare")
    DeltaTable.create(bare, rows(0).schema, configuration={"delta.dataSkippingStatsColumns": "n"})
    write_deltalake(bare, rows(0, 1, day=1), mode="append")
    assert counted_days.check(PLAN, old, Pinned(state("copy", partition_by=(), time="day"), bare, 1), TODAY) is None


def test_a_day_that_differed_is_not_cleared_by_files_in_which_it_can_no_longer_be_counted(tmp_path: Path) -> None:
    old = wide(tmp_path / "old", (0,), (1,), (2,), (3,))
    new = wide(tmp_path / "new", (0, 1), (2,), (3,))
    for differed, ok in ((["2026-06-03"], True), (["2026-06-01"], "not counted")):
        found = counted_days.check(PLAN, old, new, TODAY, differed)
        assert (found.ok if found else "not counted") == ok


def test_a_day_that_shares_a_file_with_others_is_not_counted(tmp_path: Path) -> None:
    old, _ = sides(tmp_path, (1, 2, 3), (1,))
    files = pa.concat_tables([rows(0, day=1), rows(1, day=2)])  # one row of each in one file
    write_deltalake(str(tmp_path / "wide"), files, mode="append")
    write_deltalake(str(tmp_path / "wide"), rows(2, 3, day=3), mode="append")
    plain = state("copy", partition_by=(), time="day")
    found = counted_days.check(PLAN, old, Pinned(plain, str(tmp_path / "wide"), 1), TODAY)
    assert found is not None
    assert (found.ok, found.detail) == (False, "2026-11-03: 1 → 2")
