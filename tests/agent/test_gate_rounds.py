"""The checks that go on at a gate: what they find in the logs, what is stored of it, what ends them. No Java."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.agent.soak import at_gate
from console.agent.soak.at_gate import GateRounds
from console.agent.soak.gate_checks import GateRound
from console.agent.soak.news import RoundNews
from console.agent.soak.spark_checks import CheckPace, Checks, SparkCheck
from console.agent.soak.watch_checks import GATE
from console.errors import AtGate, CheckFailed, RegionError
from console.model.consent import GateRules
from console.model.event import Checked, ComparedDay, Entered
from console.model.step import Validate
from tests.agent.copying import by_arrow
from tests.agent.test_gate import Region, release

GOOD = Checked(table="copy", check="rows per day", ok=True, detail="3 rows in 1 days are equal")


def lost(rows: int, day: str = "2026-11-02") -> Checked:
    differing = ComparedDay(day=day, old=rows, new=rows - 1)
    return Checked(table="copy", check="rows per day", ok=False, detail=f"{rows} → {rows - 1}", days=(differing,))


class Rounds(GateRounds):
    """The rounds of one region, run by hand: `finds` are the results of the next ones. slow: the checks that would ask Spark"""

    slow: tuple[SparkCheck, ...] = ()

    def once(self) -> None:
        self.tick()
        (known,) = self._known.values()
        known.slow = self.slow
        (controller,) = self.controllers()
        self.round(controller, known)
        self.tick()


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Region]:
    by_arrow(monkeypatch)
    made = Region(tmp_path)
    made.build(release("r2", "copy/a-1", "ignore"), Validate(()))
    yield made
    made.follower.stop()
    made.line.halt()
    made.follower.join(30)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Checked]:
    """What the next rounds find."""
    finds: list[Checked] = []
    monkeypatch.setattr(GateRound, "results", lambda _: iter(tuple(finds)))
    return finds


def rounds_of(region: Region) -> Rounds:
    return Rounds(controllers=lambda: (region.line,), report=lambda *_: None)


@pytest.mark.slow
def test_what_a_later_round_finds_closes_the_gate_and_is_stored_once_however_long_it_lasts(
    region: Region, found: list[Checked]
) -> None:
    checking = rounds_of(region)
    found[:] = [GOOD]
    checking.once()
    stored = len(region.line.recorder.progress())
    soak = region.line.recorder.status.soak
    assert soak is not None
    assert (soak.rounds, soak.clean, soak.at > 0) == (1, 1, True)
    for rows in range(2, 9):  # the figures of a lost row's day grow with the day
        found[:] = [lost(rows)]
        checking.once()
    assert len(region.line.recorder.progress()) == stored + 1
    soak = region.line.recorder.status.soak
    assert soak is not None
    assert (soak.rounds, soak.clean) == (8, 0)
    with pytest.raises(CheckFailed, match="2 → 1") as refused:
        region.line.promote("web-2", "r1", "ada", "laptop")
    assert refused.value.code == "E_CHECK"
    found[:] = [GOOD]
    checking.once()
    checking.once()
    assert [check.ok for check in region.line.recorder.status.checks] == [True]
    assert region.line.promote("web-2", "r1", "ada", "laptop").release == "r2"
    checking.tick()
    assert region.line.recorder.status.soak is None


def asking(checks: Checks, pace: CheckPace = GATE) -> tuple[SparkCheck, ...]:
    return (SparkCheck(place="gate", name="planted", run=checks, pace=pace),)


@pytest.mark.slow
def test_what_spark_finds_in_a_later_round_closes_the_gate_and_is_asked_again_only_when_due(
    region: Region, found: list[Checked]
) -> None:
    asked: list[int] = []

    def values(*_: Any) -> Iterator[Checked]:
        asked.append(1)
        yield lost(9)

    checking = rounds_of(region)
    checking.slow = asking(values)
    found[:] = [GOOD]
    checking.once()
    checking.once()
    assert len(asked) == 1
    with pytest.raises(CheckFailed, match="9 → 8") as refused:
        region.line.promote("web-2", "r1", "ada", "laptop")
    assert refused.value.code == "E_CHECK"


@pytest.mark.slow
def test_what_is_not_completed_in_time_says_nothing_at_a_gate_and_an_error_asks_a_person(
    region: Region, found: list[Checked]
) -> None:
    def fails(*_: Any) -> Iterator[Checked]:
        time.sleep(0.05)
        raise RegionError("a file is gone")
        yield

    checking = rounds_of(region)
    found[:] = [GOOD]
    checking.slow = asking(fails, replace(GATE, most=0.01))
    checking.once()
    assert [check.ok for check in region.line.recorder.status.checks] == []
    checking.slow = asking(fails)
    checking.once()
    (doubt,) = region.line.recorder.status.checks
    assert (doubt.check, doubt.ok, doubt.detail) == ("planted", None, "a file is gone")


@pytest.mark.slow
def test_a_promotion_is_refused_until_the_rounds_that_the_plan_asks_for_were_clean(
    region: Region, found: list[Checked]
) -> None:
    plan = region.line.recorder.plan
    assert plan is not None
    region.line.recorder._plan = replace(plan, gate=GateRules(clean_intervals=2))
    checking = rounds_of(region)
    found[:] = [GOOD]
    checking.once()
    with pytest.raises(AtGate, match="soak: 1 of 2 clean rounds") as refused:
        region.line.promote("web-2", "r1", "ada", "laptop")
    assert refused.value.code == "E_SOAK"
    checking.once()
    assert region.line.promote("web-2", "r1", "ada", "laptop").release == "r2"


@pytest.mark.slow
def test_a_retry_begins_the_wait_anew_and_a_promotion_that_came_back_does_not(region: Region) -> None:
    recorder, checking = region.line.recorder, rounds_of(region)
    checking.once()
    since = recorder.gate_since()
    recorder.store(Entered("promoting"))
    checking.tick()
    assert (recorder.gate_since(), recorder.status.soak) == (0.0, None)
    recorder.store(Entered("awaiting-confirmation"))
    assert recorder.gate_since() == since > 0
    region.line.control("retry", "ada")
    region.until(lambda: recorder.status.shown == "awaiting-confirmation")
    checking.tick()
    assert recorder.gate_since() > since
    assert recorder.status.soak is not None
    assert recorder.status.soak.rounds == 0


@pytest.mark.slow
def test_checks_that_cannot_go_on_ask_a_person_and_no_longer_do_once_they_can(
    region: Region, monkeypatch: pytest.MonkeyPatch, found: list[Checked]
) -> None:
    checking, goes_on = rounds_of(region), GateRound.results

    def breaks(_: Any) -> Iterator[Checked]:
        raise RegionError("its disk is full", hint="console status")

    monkeypatch.setattr(GateRound, "results", breaks)
    for verdicts in ([], [], [None]):
        checking.once()
        assert [check.ok for check in region.line.recorder.status.checks] == verdicts
    assert "its disk is full" in region.line.recorder.status.checks[0].detail
    monkeypatch.setattr(GateRound, "results", goes_on)
    checking.once()
    checking.once()
    assert [check.ok for check in region.line.recorder.status.checks] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["pause", "discard", "retry"])
def test_a_decision_ends_a_round_at_once_and_nothing_of_it_is_stored(
    region: Region, monkeypatch: pytest.MonkeyPatch, verb: Any
) -> None:
    begun: list[float] = []

    def takes_long(made: GateRound) -> Iterator[Checked]:
        begun.append(time.monotonic())
        yield lost(3)
        while True:
            made.context.check_halt()
            time.sleep(0.01)

    monkeypatch.setattr(GateRound, "results", takes_long)
    monkeypatch.setattr(at_gate, "CHECK_SECONDS", 0.0)
    checking = rounds_of(region)
    checking.tick()
    region.until(lambda: begun)
    region.line.control(verb, "ada")
    thread = checking._thread
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()
    assert not [check for check in region.line.recorder.events(Checked) if check.ok is False]


@pytest.mark.slow
def test_what_a_round_found_before_a_retry_is_not_stored_behind_it(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(_: GateRound) -> Iterator[Checked]:
        region.line.control("retry", "ada")
        region.until(lambda: region.line.recorder.status.shown == "awaiting-confirmation")
        yield lost(3)

    monkeypatch.setattr(GateRound, "results", overtaken)
    rounds_of(region).once()
    assert region.line.recorder.events(Checked) == ()


def test_a_check_that_got_worse_often_has_to_be_better_for_longer_each_time() -> None:
    told, standing, waited = RoundNews(), (GOOD,), list[int]()
    for _ in range(3):
        standing = told.of(standing, (lost(3),))
        assert standing == (lost(3),)
        rounds = 1
        while not told.of(standing, (GOOD,)):
            rounds += 1
        waited.append(rounds)
        standing = (GOOD,)
    assert waited == [2, 4, 8]


def test_another_day_that_differs_is_news_and_more_rows_of_the_same_day_are_not() -> None:
    told = RoundNews()
    assert told.of((lost(3),), (lost(4),)) == ()
    assert told.of((lost(3),), (lost(4, "2026-11-03"),)) == (lost(4, "2026-11-03"),)
