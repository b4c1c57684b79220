"""What follows from a breach after a promotion, what people decide about it, and what the next agent knows. No Java."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from deltalake import write_deltalake
from pyspark.errors import NumberFormatException

from console.agent.execution.validation import rebuilt_feeds
from console.agent.pipeline import PipelineController
from console.agent.rollout import self_opening
from console.agent.rollout.recorder import Recorder
from console.agent.soak import after_promotion, looking
from console.agent.soak.after_promotion import WatchRounds
from console.agent.soak.gate_checks import GateRound, RoundMemory
from console.agent.soak.spark_checks import SparkCheck
from console.agent.soak.watch_checks import WATCH
from console.errors import CheckFailed, Conflict
from console.model.breach import Breached, OnBreach
from console.model.consent import GateRules
from console.model.event import Checked, Logged, RolledBack
from console.model.landing import RELAY
from console.model.step import Comparison, CreateTable
from tests.agent.test_failing_feed import CARD
from tests.agent.test_gate_defects import added_by_somebody
from tests.agent.test_gate_rounds import GOOD
from tests.agent.test_watch import PromotedRegion, Rounds, region, twice_in_one_commit
from tests.faults.rules.tables import rows

__all__ = ["region"]
pytestmark = pytest.mark.slow


def test_a_row_that_neither_version_converts_is_no_reason_to_go_back(region: PromotedRegion) -> None:
    watching = region.promote()

    def meets(*_: Any) -> None:
        raise NumberFormatException(CARD)

    region.meets = meets
    write_deltalake(region.landing, rows(20), mode="append", partition_by=["day"])
    region.until(lambda: all(feed.health.standing for feed in region.follower.feeds("web")))
    watching.once()
    goes_on = next(check for check in region.status.checks if check.check == "feed every goes on")
    assert (goes_on.ok, "so has the version before" in goes_on.detail) == (None, True)
    assert (region.line.live().id, region.status.watched.breaches) == ("r2", ())


def test_clean_rounds_with_and_without_traffic_leave_nothing_in_the_log_and_end_the_watch(
    region: PromotedRegion,
) -> None:
    watching = region.promote()
    stored = len(region.line.recorder.progress())
    for n in range(10, 13):
        watching.once()
        region.arrive(n, n + 100)
        watching.once()
    assert region.status.watch is not None
    assert (region.status.watch.rounds, region.status.watch.clean) == (7, 7)
    assert len(region.line.recorder.progress()) == stored
    (known,) = watching._known.values()
    known.since -= 3600.0
    watching.once()
    assert (region.status.watched.ended > 0, region.status.watched.unclear, region.status.watch) == (True, (), None)
    twice_in_one_commit(region)
    watching.once()
    assert (region.line.live().id, region.status.watched.breaches) == ("r2", ())


@pytest.mark.parametrize(("action", "holds"), [("pause", True), ("tell", False)])
def test_a_breach_pauses_or_is_only_told_and_is_stored_once(
    region: PromotedRegion, action: OnBreach, holds: bool
) -> None:
    watching = region.promote(action)
    twice_in_one_commit(region)
    for _ in range(3):
        watching.once()
    assert region.line.live().id == "r2"
    (breach,) = region.status.watched.breaches
    assert (breach.action, bool(region.status.watched.holds)) == (action, holds)
    stored = [event for event in region.line.recorder.events(Logged) if isinstance(event.incident, Breached)]
    assert len(stored) == 1
    again = Recorder(region.line.rollouts)  # what the next agent reads
    assert (again.status.watched, again.status.state) == (region.status.watched, "live")


def test_a_person_lets_the_next_wave_begin_in_spite_of_a_breach_and_another_check_holds_it_again(
    region: PromotedRegion,
) -> None:
    watching = region.promote("pause")
    twice_in_one_commit(region)
    watching.once()
    region.line.control("resume", "ada from laptop")
    watching.once()
    (breach,) = region.status.watched.breaches
    assert (breach.answered, region.status.watched.holds) == ("ada from laptop", "")
    with pytest.raises(Conflict, match="resume does not fit"):
        region.line.control("resume", "ada from laptop")
    added_by_somebody(region)
    watching.once()
    assert "feed every: " in region.status.watched.holds


def test_a_person_who_pauses_first_keeps_the_agent_from_taking_it_back(region: PromotedRegion) -> None:
    watching = region.promote()
    region.line.control("pause", "ada from laptop")
    region.line.control("pause", "bob from desk")  # changes nothing
    twice_in_one_commit(region)
    watching.once()
    assert (region.line.live().id, region.status.state) == ("r2", "live")
    assert (region.status.watched.held_by, len(region.status.watched.breaches)) == ("ada from laptop", 1)
    region.line.control("resume", "ada from laptop")
    watching.once()
    assert (region.line.live().id, region.status.watched.holds) == ("r2", "")


@pytest.mark.parametrize("decision", ["rollback", "pause"])
def test_a_persons_decision_that_has_the_lock_first_wins(
    region: PromotedRegion, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    """It comes between the agent's own and the lock."""
    watching = region.promote()
    twice_in_one_commit(region)
    due, decided = after_promotion._to_take_back, list[str]()

    def after_it_was_due(*args: Any) -> bool:
        is_due = due(*args)
        if is_due and not decided:
            decided.append(decision)
            if decision == "rollback":
                region.line.rollback("r2", "ada", "laptop")
            else:
                region.line.control("pause", "ada")
        return is_due

    monkeypatch.setattr(after_promotion, "_to_take_back", after_it_was_due)
    watching.once()
    assert decided
    decisions = [event for event in region.line.recorder.progress() if isinstance(event, RolledBack)]
    assert [event.by for event in decisions] == (["ada"] if decision == "rollback" else [])
    watching.once()
    assert region.line.live().id == ("r1" if decision == "rollback" else "r2")


def test_an_agent_that_died_before_it_took_back_what_failed_does_so_when_it_is_next_started(
    region: PromotedRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = region.promote()
    twice_in_one_commit(region)
    monkeypatch.setattr(WatchRounds, "_take_back", lambda *_: None)
    watching.once()
    monkeypatch.undo()
    assert (region.line.live().id, len(region.status.watched.open)) == ("r2", 1)
    anew = Rounds(controllers=lambda: (region.line,), report=lambda *_: None)
    monkeypatch.setattr("console.agent.soak.gate_checks.GateRound.tables", lambda _: iter(()))
    anew.once()
    assert region.line.live().id == "r1"


def test_what_fails_is_acted_on_before_the_next_result_of_the_same_check(region: PromotedRegion) -> None:
    reached: list[str] = []

    def calls(*_: Any) -> Iterator[Checked]:
        yield Checked(table="top", check="recorded calls: cost", ok=False, detail="2 → 40 files")
        reached.append("the next endpoint")

    watching = region.promote()
    watching.slow = (SparkCheck(place="watch", name="planted", run=calls, pace=WATCH),)
    watching.once()
    assert (region.line.live().id, reached) == ("r1", [])


def test_a_return_that_fails_holds_the_next_wave_and_is_tried_again(
    region: PromotedRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = region.promote()
    twice_in_one_commit(region)
    rollback = PipelineController.rollback

    def fails(*_: Any) -> Any:
        raise CheckFailed("the feeds do not catch up", code="E_LAG")

    monkeypatch.setattr(PipelineController, "rollback", fails)
    watching.once()
    assert (region.line.live().id, bool(region.status.watched.holds)) == ("r2", True)
    monkeypatch.setattr(PipelineController, "rollback", rollback)
    (known,) = watching._known.values()
    watching.once()
    assert region.line.live().id == "r2"  # not at once
    known.again = 0.0
    watching.once()
    assert region.line.live().id == "r1"


def test_after_a_return_no_gate_opens_by_itself_until_a_person_has_promoted(region: PromotedRegion) -> None:
    watching = region.promote()
    twice_in_one_commit(region)
    watching.once()
    plan = region.line.recorder.plan
    assert plan is not None
    taken = region.line.acceptance._taken_back()
    assert taken == "r2"
    waits = replace(region.status, state="awaiting-confirmation", checks=(GOOD,))
    auto = replace(plan, gate=GateRules(auto=True))
    assert self_opening.due(waits, auto)
    assert not self_opening.due(replace(waits, taken_back=taken), auto)
    region.line.rollback("r1", "ada", "laptop")  # a person makes it live again
    assert region.line.acceptance._taken_back() == ""


def test_what_is_sent_to_a_promoted_landing_version_is_not_held_against_it(region: PromotedRegion) -> None:
    """Before its promotion its relay alone fed it."""
    region.promote()
    context = looking.context_of(region.line)
    assert context.recorder.plan is not None
    plan = replace(context.recorder.plan, steps=(CreateTable("copy"), CreateTable("landing")))
    context.recorder._plan = plan
    (feed,) = context.live_feeds_in_order()
    spec = replace(feed.spec, materialization=RELAY, target="landing")
    context.live_feeds["landing", RELAY] = replace(feed, spec=spec, target=feed.source, target_path=feed.source_path)
    assert {each.spec.target for each in rebuilt_feeds(context)} == {"copy", "landing"}
    context.before = region.line.live()
    assert {each.spec.target for each in rebuilt_feeds(context)} == {"copy"}
    assert list(GateRound(context, {}, RoundMemory())._of_table(Comparison(table="landing", pairs=()), {})) == []


def test_without_a_watch_a_promoted_release_is_left_alone(region: PromotedRegion) -> None:
    region.waits()
    region.line.promote("web-2", "r1", "ada", "laptop")
    twice_in_one_commit(region)
    watching = Rounds(controllers=lambda: (region.line,), report=lambda *_: None)
    watching.once()
    assert (region.status.watch, region.line.live().id) == (None, "r2")


def test_the_agent_begins_rounds_by_itself_and_returns_within_the_bound(
    region: PromotedRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert after_promotion.ROUND_SECONDS <= 20
    monkeypatch.setattr(SparkCheck, "results", lambda *_: iter(()))
    monkeypatch.setattr(after_promotion, "ROUND_SECONDS", 0.05)
    region.promote()
    own = WatchRounds(controllers=lambda: (region.line,), report=lambda *_: None)
    twice_in_one_commit(region)
    end = time.monotonic() + 60
    while region.line.live().id == "r2" and time.monotonic() < end:
        own.tick()
        time.sleep(0.01)
    own.stop()
    assert region.line.live().id == "r1"
