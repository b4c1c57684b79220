"""The fate of a rollout that nobody watches, whatever its host's clock shows and whoever decides meanwhile. No Java."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.rollout.watchdog import ATTACHED_SECONDS, HOUR, Watchdog, is_attached
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.model.event import Accepted, Entered, Event, Failed, Paused, Resumed
from console.model.identity import AgentReason, by_agent
from console.model.live import Release
from console.model.status import Status
from console.model.step import Promote
from tests.agent.manual_clock import ManualClock
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

LEFT = by_agent(AgentReason.CONSOLE_LEFT)
DAY = 24 * HOUR
DISCARD = ("discard", "the agent, 24 h after the failure")


def running(clock: ManualClock, hours: float = 10.0) -> Watchdog:
    """Of an agent that has been running for so long; it keeps what failed for a day."""
    watchdog = Watchdog(24.0, clock=clock)
    clock.go(hours * HOUR)
    return watchdog


def failure(at: float, seq: int = 7) -> Status:
    return Status(rollout="web-1", state="backfilling", held="failed", seq=seq, changed=at)


def due_after(watchdog: Watchdog, clock: ManualClock, status: Status, steps: dict[int, float] | None = None) -> float:
    """Hours until it is discarded, asked every quarter of one; the wall clock is stepped by so much after so many hours."""
    begun, left = clock.steady, dict(steps or {})
    while watchdog.due(status, True, False) != DISCARD:
        clock.go(HOUR / 4)
        clock.wall += left.pop(int((clock.steady - begun) / HOUR), 0.0)
        assert clock.steady - begun < 400 * DAY
    return (clock.steady - begun) / HOUR


@pytest.mark.parametrize("step", [-400 * DAY, -DAY, -120.0, 120.0, DAY, 400 * DAY])
@pytest.mark.parametrize("hour", [0, 1, 12, 23])
def test_no_step_of_the_clock_ends_the_keeping_of_what_failed(step: float, hour: int) -> None:
    clock = ManualClock()
    watchdog = running(clock)
    assert due_after(watchdog, clock, failure(clock.wall - 60), {hour: step}) == pytest.approx(24.25, abs=0.26)


def test_a_clock_stepped_between_a_failure_and_the_first_look_at_it_makes_it_no_older() -> None:
    clock = ManualClock()
    watchdog = running(clock)
    failed = failure(clock.wall)
    clock.wall += DAY
    assert due_after(watchdog, clock, failed) == 24.25


def test_a_clock_that_is_stepped_to_and_fro_does_not_keep_what_failed_for_ever() -> None:
    clock = ManualClock()
    watchdog = running(clock)
    steps = {hour: DAY if hour % 2 else -DAY for hour in range(24)}
    assert due_after(watchdog, clock, failure(clock.wall), steps) == 24.25


@pytest.mark.parametrize("hours", [0.0, 1.0, 23.0, 23.9, 24.1, 10_000.0])
def test_an_agent_that_has_just_started_counts_what_was_kept_before_it_and_discards_nothing_for_an_hour(
    hours: float,
) -> None:
    clock = ManualClock()
    watchdog = running(clock, 0)
    waited = due_after(watchdog, clock, failure(clock.wall - hours * HOUR))
    assert waited == pytest.approx(max(1.0, 24 - hours), abs=0.26)
    assert waited >= 1.0


def test_a_clock_that_was_wrong_when_the_host_started_and_is_then_set_right_has_made_nothing_old() -> None:
    clock = ManualClock()
    watchdog = running(clock, 0)
    assert due_after(watchdog, clock, failure(clock.wall - 400 * DAY), {0: -400 * DAY}) == 24.25


def test_a_failure_in_the_future_of_a_clock_that_was_set_back_is_as_old_as_the_agent_saw_it() -> None:
    clock = ManualClock()
    assert due_after(running(clock), clock, failure(clock.wall + 30 * DAY)) == 24.25


def test_what_failed_again_is_kept_anew() -> None:
    clock = ManualClock()
    watchdog = running(clock)
    assert watchdog.due(failure(clock.wall), True, False) is None
    clock.go(DAY)
    assert due_after(watchdog, clock, failure(clock.wall, seq=9)) == 24.25


def opened(place: Path, watchdog: Watchdog, first: int = 1) -> PipelineController:
    """A region's pipeline under this watchdog: its first rollout is accepted."""
    spark = SparkHandle(Settings(region="eu"), -1)
    controller = PipelineController(
        place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu")
    )
    controller.watchdog = watchdog
    accepted(controller, first)
    return controller


def accepted(controller: PipelineController, number: int) -> None:
    release = Release(id=f"r{number}", pipeline="web", digest="d", tables=(), feeds=())
    plan = bare_plan(desired=f"d{number}", steps=(Promote(),), release=release)
    controller.releases.propose(release, f"web-{number}", "ada", "laptop")
    controller.recorder.accept(
        f"web-{number}",
        plan,
        Accepted(release=release.id, was="", plan="", by="ada", host="laptop", steps=(("promote", 0),)),
    )


def over(place: Path, first: int = 1) -> PipelineController:
    """A failed rollout that was kept long enough."""
    clock = ManualClock()
    controller = opened(place, Watchdog(24.0, clock=clock), first)
    controller.recorder.store(Failed("promote", "disk full"))
    controller.recorder._status = replace(controller.recorder.status, changed=clock.wall)
    controller.tick()
    clock.go(DAY + 1)
    return controller


def begun(controller: PipelineController) -> list[threading.Thread]:
    """What one tick begins."""
    before = set(threading.enumerate())
    controller.watchdog.tick(controller, True)
    return [thread for thread in threading.enumerate() if thread not in before]


def over_with(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("first", [1, 9])  # web-10 sorts before web-9
def test_a_discard_that_waited_while_somebody_decided_leaves_the_next_rollout_alone(tmp_path: Path, first: int) -> None:
    controller = over(tmp_path, first)
    with controller.lock:  # as `cleanup` holds it, for long
        waiting = begun(controller)
        controller.control("cancel", "eve from desk")
        accepted(controller, first + 1)
        controller.recorder.store(Failed("promote", "disk full again"))
    over_with(waiting)
    assert len(waiting) == 1
    status = controller.recorder.status
    assert (status.rollout, status.state, status.held) == (f"web-{first + 1}", "planned", "failed")
    assert [release.row.id for release in controller.releases.all()] == [f"r{first + 1}"]


def test_a_discard_that_waited_while_the_rollout_was_retried_does_not_drop_it(tmp_path: Path) -> None:
    controller = over(tmp_path)
    with controller.lock:
        waiting = begun(controller)
        controller.recorder.store(Resumed("eve from desk"))
        controller.recorder.store(Failed("promote", "disk full again"))
    over_with(waiting)
    assert (controller.recorder.status.held, controller.recorder.status.why) == ("failed", "disk full again")


def test_what_is_due_is_begun_once_however_long_it_waits_and_again_when_it_could_not_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = over(tmp_path)
    errors = unheard(monkeypatch)
    with controller.lock:
        waiting = [thread for _ in range(3) for thread in begun(controller)]
        rest = without(controller)
    over_with(waiting)
    assert (len(waiting), len(errors)) == (1, 1)
    restored(controller, rest)
    assert controller.recorder.status.shown == "failed"
    over_with(begun(controller))
    assert controller.recorder.status.decided_by == DISCARD[1]


def unheard(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What threads die of, which an agent's log would tell."""
    errors: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    return errors


def without(controller: PipelineController) -> Path:
    """Nothing more can be stored of the rollout."""
    moved = controller.rollouts.path.rename(controller.rollouts.path.with_name("aside"))
    controller.rollouts.path.touch()
    return moved


def restored(controller: PipelineController, moved: Path) -> None:
    controller.rollouts.path.unlink()
    moved.rename(controller.rollouts.path)


def left_alone(place: Path) -> tuple[PipelineController, ManualClock]:
    """A rollout whose console has just left, for too long."""
    clock = ManualClock()
    controller = opened(place, Watchdog(24.0, attached=True, clock=clock))
    controller.recorder.store(Entered("backfilling"))
    clock.go(ATTACHED_SECONDS + 1)
    return controller, clock


@pytest.mark.parametrize(
    ("pauses", "stays"),
    [((), True), (("ada",), True), (("zoe from desk",), True), ((LEFT,), False), ((LEFT, "ada"), False)],
)
def test_a_rollout_is_tied_to_its_console_until_it_paused_for_that(pauses: tuple[str, ...], stays: bool) -> None:
    """Whoever else paused it and lets it go on still has to stay."""
    begun = Accepted(release="r1", was="", plan="", by="ada", host="laptop", steps=(), allowed=(), attached=True)
    assert is_attached([begun, *(event for by in pauses for event in (Paused(by), Resumed("ada")))]) is stays
    assert not is_attached([replace(begun, attached=False)])


def test_an_attached_rollout_stays_tied_until_its_pause_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, clock = left_alone(tmp_path)
    errors = unheard(monkeypatch)
    rest = without(controller)
    over_with(begun(controller))
    assert (len(errors), controller.recorder.status.held) == (1, "")
    restored(controller, rest)
    assert controller.watchdog.attached
    clock.go(ATTACHED_SECONDS + 1)
    over_with(begun(controller))
    assert controller.recorder.status.why == f"paused by {LEFT}"
    assert not controller.watchdog.attached


@pytest.mark.parametrize(
    "meanwhile", [[Entered("awaiting-confirmation")], [Paused("eve from desk")], [Failed("promote", "disk full")]]
)
def test_a_pause_that_waited_while_the_rollout_came_to_a_stand_is_not_stored(
    tmp_path: Path, meanwhile: list[Event]
) -> None:
    controller, _ = left_alone(tmp_path)
    with controller.lock:
        waiting = begun(controller)
        for event in meanwhile:
            controller.recorder.store(event)
        before = controller.recorder.status
    over_with(waiting)
    assert len(waiting) == 1
    assert (controller.recorder.status, controller.watchdog.attached) == (before, True)


def test_a_pause_that_waited_until_the_console_was_back_or_the_next_rollout_began_is_not_stored(tmp_path: Path) -> None:
    for name in ("back", "next"):
        controller, _ = left_alone(tmp_path / name)
        with controller.lock:
            waiting = begun(controller)
            if name == "back":
                controller.recorder.watch(0, lambda _: None)
            else:
                controller.control("cancel", "eve from desk")
                accepted(controller, 2)
        over_with(waiting)
        assert len(waiting) == 1
        assert controller.recorder.status.held == ""
        assert controller.watchdog.attached


@pytest.mark.parametrize("up", [1.0, 5000.0])  # a host that has just started, and one that runs
def test_an_attached_rollout_pauses_only_once_its_console_has_been_gone_for_so_long(up: float) -> None:
    clock = ManualClock(steady=up)
    left = Watchdog(24.0, attached=True, clock=clock)
    clock.go(ATTACHED_SECONDS + 1.0)
    assert left.due(Status(rollout="web-1", state="backfilling"), False, True) == ("pause", LEFT)
    watchdog = Watchdog(24.0, attached=True, clock=clock)
    status = Status(rollout="web-1", state="backfilling")
    for seconds in (0.0, 3.0, ATTACHED_SECONDS - 3.0):
        clock.go(seconds)
        assert watchdog.due(status, False, True) is None
    for watched, carrying in ((True, True), (False, False)):  # it was back, or there is nothing to pause
        clock.go(1.0)
        assert watchdog.due(status, watched, carrying) is None
        clock.go(ATTACHED_SECONDS)
        assert watchdog.due(status, False, True) is None
    clock.go(0.1)
    assert watchdog.due(status, False, True) == ("pause", LEFT)
    assert watchdog.due(status, False, True) is None, "asked for again later"
