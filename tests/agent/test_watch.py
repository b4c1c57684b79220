"""Defects that show only after a promotion: planted in real logs, and in what Spark answers. Each is taken back. No Java."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import NumberFormatException

from console.agent.calls.difference import Difference
from console.agent.calls.verdict import checks_of, judge_answers, judge_cost
from console.agent.feeds import live_feed
from console.agent.feeds.health import TRIES
from console.agent.feeds.live_feed import LiveFeed
from console.agent.recount.live import RecountResult
from console.agent.soak import watch_checks
from console.agent.soak.after_promotion import WatchRounds
from console.agent.soak.counted_days import CHECK
from console.agent.soak.spark_checks import Checks, SparkCheck
from console.agent.soak.watch_checks import (
    WATCH,
    LiveRows,
    RecordedCalls,
    policy_query,
    table_expectations,
)
from console.errors import RegionError
from console.model.breach import OnBreach
from console.model.consent import GateRules
from console.model.event import Checked
from console.model.expectation import DayCheck, Fresh
from console.model.identity import AgentReason, agent_reason
from console.model.recorded_call import (
    NO_BUDGET,
    AnswerForm,
    CallBudget,
    CallCost,
    CallQuery,
    PlannedCall,
    ReplayedCall,
)
from console.model.step import Validate
from tests.agent.copying import by_arrow
from tests.agent.test_failing_feed import CARD
from tests.agent.test_gate_defects import (
    WaitingRegion,
    added_by_somebody,
    its_feed_stops,
    lost,
    moved_twice,
    on_another_day,
    without_a_day,
)
from tests.agent.watched_defects import DEFECTS, FURTHER
from tests.faults.rules.tables import column_values, commit_rows, number, rows

pytestmark = pytest.mark.slow

Answers = Callable[[pytest.MonkeyPatch], None]


class Rounds(WatchRounds):
    """The rounds of one region, run by hand. slow: the checks that would ask Spark"""

    slow: tuple[SparkCheck, ...] = ()

    def once(self) -> None:
        self.tick_now()
        (controller,) = self.controllers()
        known = self._known.get(controller.pipeline)
        if known is not None:
            known.slow = self.slow
            self.round(controller, known)
            self.tick_now()

    def tick_now(self) -> None:
        """A tick that begins no round."""
        (controller,) = self.controllers()
        self._known_now(controller)


class PromotedRegion(WaitingRegion):
    """r2 was promoted, and is watched; r1 is fed like it. meets: what Spark says of the rows of a feed"""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.meets: Callable[[LiveFeed, Any], None] = lambda *_: None
        cast(Any, self.line.spark).job = lambda *_: nullcontext()

    def promote(self, action: OnBreach = "rollback", watch: float = 3600.0) -> Rounds:
        self.waits()
        recorder = self.line.recorder
        assert recorder.plan is not None
        rules = GateRules(watch=watch, on_breach=action, watch_query="SELECT true")
        called = (replace(step, calls=(CALL,)) if isinstance(step, Validate) else step for step in recorder.plan.steps)
        recorder._plan = replace(recorder.plan, gate=rules, steps=tuple(called))
        self.line.promote("web-2", "r1", "ada", "laptop")
        watching = Rounds(controllers=lambda: (self.line,), report=lambda *_: None)
        watching.once()
        assert self.status.watch is not None
        assert (self.status.watch.rounds, self.status.watched.breaches) == (1, ())
        return watching

    @property
    def status(self) -> Any:
        return self.line.recorder.status

    def sees(self, watching: Rounds) -> str:
        """What the next round finds to be wrong."""
        watching.once()
        return "; ".join(f"{breach.check}: {breach.detail}" for breach in self.status.watched.breaches)


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PromotedRegion]:
    by_arrow(monkeypatch)
    made = PromotedRegion(tmp_path)
    carried = live_feed.compute

    def compute(session: Any, feed: LiveFeed, stored: Any, joined: Any) -> Any:
        made.meets(feed, stored)
        return carried(session, feed, stored, joined)

    monkeypatch.setattr(live_feed, "compute", compute)
    yield made
    made.follower.stop()
    made.line.halt()
    made.follower.join(30)


def a_new_shape(region: PromotedRegion) -> None:
    """A row of a producer that only the new version's query does not convert."""

    def meets(feed: LiveFeed, _: Any) -> None:
        if feed.target_path == region.new:
            raise NumberFormatException(CARD)

    region.meets = meets
    write_deltalake(region.landing, rows(20), mode="append", partition_by=["day"])
    region.until(region.stands)


def stands_still(region: PromotedRegion) -> None:
    """Its feed fails for a reason that could pass, and does not."""

    def meets(feed: LiveFeed, _: Any) -> None:
        if feed.target_path == region.new:
            feed.health.tries = max(feed.health.tries, TRIES - 1)
            raise OSError("no space left on device")

    region.meets = meets
    write_deltalake(region.landing, rows(20), mode="append", partition_by=["day"])
    region.until(lambda: any(feed.health.standing for feed in region.follower.feeds("web")))


def lost_of_live_traffic(region: PromotedRegion) -> None:
    region.arrive(30, 31)
    DeltaTable(region.new).delete("n = 31")


def a_day_lost(region: PromotedRegion) -> None:
    DeltaTable(region.new).delete("day = '2026-11-01'")


def restored(region: PromotedRegion) -> None:
    """Somebody takes the table back to its first version."""
    region.arrive(30)
    DeltaTable(region.new).restore(1)


def twice_in_one_commit(region: PromotedRegion) -> None:
    commit_rows(region.new, region.app_id, number(9, 3), rows(40, 40, day=None), kind="live", **{"from": 3, "to": 3})


def under_another_feed(region: PromotedRegion) -> None:
    commit_rows(region.new, "live/other", number(1, 1), rows(50, day=3), kind="live", **{"from": 1, "to": 1})


def overwritten(region: PromotedRegion) -> None:
    write_deltalake(region.new, rows(0, day=1), mode="overwrite", partition_by=["day"])


IN_LOGS: tuple[tuple[Callable[[Any], None], str], ...] = (
    (a_new_shape, "feed every goes on: it has stopped"),
    (its_feed_stops, "feed every goes on: it has stopped"),
    (stands_still, "no space left on device (5 tries)"),
    (lost, f"{CHECK}: no day: 2 → 1"),
    (lost_of_live_traffic, f"{CHECK}: no day: 4 → 3"),
    (a_day_lost, f"{CHECK}: 2026-11-01: 1 → 0"),
    (restored, f"{CHECK}: "),
    (overwritten, f"{CHECK}: no day: 2 → 0"),
    (on_another_day, f"{CHECK}: 2026-11-01: 1 → 0"),
    (without_a_day, f"{CHECK}: no day: 2 → 3"),
    (added_by_somebody, "added rows under no feed"),
    (moved_twice, "both hold commit 2"),
    (twice_in_one_commit, f"{CHECK}: no day: 2 → 4"),
    (under_another_feed, f"{CHECK}: 2026-11-03: 0 → 1"),
)


@pytest.mark.parametrize(("plant", "found"), IN_LOGS, ids=[plant.__name__ for plant, _ in IN_LOGS])
def test_a_defect_that_shows_only_after_the_promotion_is_taken_back_in_the_first_round_that_could_see_it(
    region: PromotedRegion, plant: Callable[[Any], None], found: str
) -> None:
    watching = region.promote()
    plant(region)
    if plant is its_feed_stops:
        region.until(region.stands)
    assert found in region.sees(watching)
    assert region.line.live().id == "r1"
    status = region.status
    assert (status.state, agent_reason(status.decided_by)) == ("rolled-back", AgentReason.BREACH)
    # no row of the traffic is lost, neither before the return nor after it
    write_deltalake(region.landing, rows(60), mode="append", partition_by=["day"])
    region.until(lambda: 60 in region.has("copy/a-0"))
    # a delete in the source is passed over by r1
    assert region.has("copy/a-0") == sorted({0, 1, 2, *column_values(region.landing)})


CHEAP, DEAR = CallCost(seconds=0.1, files=2, bytes=1000), CallCost(seconds=0.1, files=40, bytes=1000)
HEAVY = CallCost(seconds=0.1, files=2, bytes=50 << 20)
FAST, SLOW = (0.1, 0.1, 0.1, 0.1), (2.0, 2.1, 2.2, 2.3)
BUDGET = CallBudget(files=6, bytes=10 << 20)
CALL = PlannedCall(
    endpoint="top", name="all", new=CallQuery(sql="", tables=()), live=CallQuery(sql="", tables=()), form=AnswerForm()
)


def costs(new: CallCost, after: tuple[float, ...] = FAST, budget: CallBudget = NO_BUDGET) -> Answers:
    """An endpoint whose calls have these measurements in the new release."""

    def replayed(*_: Any) -> Iterator[Checked]:
        cheap, why = judge_cost(CHEAP, new, budget, (FAST, after))
        yield from checks_of(
            "top", [ReplayedCall(endpoint="top", name="all", same=True, same_cost=cheap, why_cost=why)]
        )

    return lambda patch: patch.setattr(watch_checks, "call_checks", replayed)


def answers(differs: Difference) -> Answers:
    """An endpoint whose new answer differs like this."""

    def replayed(*_: Any) -> Iterator[Checked]:
        same, why = judge_answers(CALL, differs, (3, 3))
        yield from checks_of("top", [ReplayedCall(endpoint="top", name="all", same=same, same_cost=True, why=why)])

    return lambda patch: patch.setattr(watch_checks, "call_checks", replayed)


def says(answer: Any) -> Answers:
    """The policy's query gives this value, or fails like this."""

    def asked(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return lambda patch: patch.setattr(watch_checks, "asked", asked)


def recounted(ok: bool | None) -> Answers:
    result = RecountResult(ok=ok, detail="version 4: n: 1 of 2 rows differ")
    return lambda patch: patch.setattr(watch_checks, "recount_arrived", lambda *_: result)


def expected(ok: bool | None) -> Answers:
    check = Checked(table="copy", check="expectation: n is not null", ok=ok, detail="1 row: 2026-11-01")
    return lambda patch: patch.setattr(watch_checks.expectations, "checks", lambda *_: iter((check,)))


BY_SPARK: tuple[tuple[str, Checks, Answers, str], ...] = (
    (
        "more files than its budget",
        RecordedCalls(),
        costs(DEAR, budget=BUDGET),
        "recorded calls: cost: all: 2 → 40 files",
    ),
    ("more bytes than its budget", RecordedCalls(), costs(HEAVY, budget=BUDGET), "recorded calls: cost: all: 1,000"),
    ("twice the files, no budget", RecordedCalls(), costs(DEAR), "without a budget"),
    ("20 times slower", RecordedCalls(), costs(replace(CHEAP, seconds=2.1), SLOW), "recorded calls: cost: all: "),
    ("another answer", RecordedCalls(), answers(Difference(only_live=1, only_new=1)), "recorded calls: answers: all: "),
    ("the query turns false", policy_query, says(False), "watch_query: it answers false"),
    ("other values of live rows", LiveRows(), recounted(False), "feed every: live rows: version 4"),
    ("an expectation", table_expectations, expected(False), "expectation: n is not null: 1 row"),
)


@pytest.mark.parametrize(
    ("checks", "plant", "found"), [case[1:] for case in BY_SPARK], ids=[case[0] for case in BY_SPARK]
)
def test_what_only_spark_can_see_is_taken_back_as_well(
    region: PromotedRegion, monkeypatch: pytest.MonkeyPatch, checks: Checks, plant: Answers, found: str
) -> None:
    watching = region.promote()
    plant(monkeypatch)
    watching.slow = (SparkCheck(place="watch", name="planted", run=checks, pace=WATCH),)
    assert found in region.sees(watching)
    assert (region.line.live().id, region.status.state) == ("r1", "rolled-back")


def test_a_table_that_is_not_fresh_says_nothing_about_its_release(
    region: PromotedRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = region.promote()
    recorder = region.line.recorder
    assert recorder.plan is not None
    fresh = DayCheck(name="fresh", severity="stop", rule=Fresh(3600.0))
    known = recorder.plan.release
    tables = tuple(replace(state, checks=(fresh,)) if state.table.name == "copy" else state for state in known.tables)
    recorder._plan = replace(recorder.plan, release=replace(known, tables=tables))
    old = Checked(table="copy", check="expects fresh", ok=False, detail="the newest row is 9.00 h old")
    monkeypatch.setattr(watch_checks.expectations, "checks", lambda *_: iter((old,)))
    watching.slow = (SparkCheck(place="watch", name="planted", run=table_expectations, pace=WATCH),)
    watching.once()
    assert (region.line.live().id, region.status.watched.breaches) == ("r2", ())
    assert [check.ok for check in region.status.checks if check.check == "expects fresh"] == [None]


def test_twenty_defects_are_on_the_list() -> None:
    assert len({plant for plant, _ in IN_LOGS}) + len({name for name, *_ in BY_SPARK}) >= 20
    on_spark = (*DEFECTS, *FURTHER)  # planted by `watched_rollouts`
    assert len({defect.plant for defect in on_spark}) == len({defect.name for defect in on_spark}) == 20


UNSURE: tuple[tuple[Checks, Answers], ...] = (
    (RecordedCalls(), costs(replace(CHEAP, seconds=0.22), (0.2, 0.21, 0.22, 0.23))),  # slower, by less than twice
    (policy_query, says(True)),
    (policy_query, says(None)),
    (policy_query, says(3)),
    (policy_query, says(RegionError("it gives no row"))),
    (policy_query, says(MemoryError("no heap"))),
    (LiveRows(), recounted(None)),
    (table_expectations, expected(None)),
)


def test_what_is_inconclusive_takes_nothing_back_and_holds_nothing(region: PromotedRegion) -> None:
    watching = region.promote()
    for checks, plant in UNSURE:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            watching.slow = (SparkCheck(place="watch", name="planted", run=checks, pace=WATCH),)
            watching.once()
    assert (region.line.live().id, region.status.watched.breaches, region.status.watched.holds) == ("r2", (), "")
