"""A pipeline's gate across restarts of its agent, on real release tables. No Java: nothing here moves a row."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed
from console.agent.pipeline import PipelineController
from console.agent.rollout import rebind
from console.agent.rollout.watchdog import ATTACHED_SECONDS, HOUR, Watchdog, expiring
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases
from console.errors import Conflict
from console.model.event import (
    Accepted,
    Ended,
    Entered,
    Event,
    Expiring,
    Failed,
    Fenced,
    Lagging,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
)
from console.model.live import Release
from console.model.status import Status, Verb, fold
from console.model.step import Promote
from console.model.step_status import StepStatus
from tests.agent.manual_clock import ManualClock
from tests.agent.test_follower import counting_feed, table, ticking
from tests.plans import bare_plan

pytestmark = pytest.mark.slow
TICKS_SECONDS = 0.5  # of a follower that ticks every hundredth of a second


def opened(place: Path, follower: FeedFollower | None = None) -> PipelineController:
    """The pipeline as a fresh agent finds it."""
    spark = SparkHandle(Settings(region="eu"), -1)
    own = FeedFollower(spark, 1.0, lambda *_: None)
    return PipelineController(place, "web", spark, follower or own, Settings(region="eu"))


@pytest.fixture
def promoting(tmp_path: Path) -> Path:
    """A region whose agent died while it promoted r1: the intention is recorded, the outcome is not."""
    controller = opened(tmp_path)
    release = Release(id="r1", pipeline="web", digest="d", tables=(), feeds=())
    plan = bare_plan(steps=(Promote(),), release=release)
    controller.releases.propose(release, "web-1", "ada", "laptop")
    controller.recorder.accept(
        "web-1", plan, Accepted(release="r1", was="", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
    )
    controller.recorder.store(Entered("awaiting-confirmation"))
    controller.recorder.store(Entered("promoting"))
    return tmp_path


def test_a_promotion_whose_commit_was_made_is_recorded_once_by_the_next_agent(promoting: Path) -> None:
    opened(promoting).releases.swap("", "r1", "ada", "laptop")
    for _ in range(2):
        controller = opened(promoting)
        controller.resume()
        controller.halt()
        assert controller.recorder.status.state == "live"
    assert len(controller.recorder.events(Promoted)) == 1
    with pytest.raises(Conflict, match="r1 was already promoted by ada from laptop at "):
        controller.promote("web-1", "", "eve", "desk")


def test_what_was_broken_off_is_gone_on_with_though_nobody_asks(promoting: Path) -> None:
    controller = opened(promoting)
    controller.releases.swap("", "r1", "ada", "laptop")
    assert controller.recorder.status.state == "promoting"
    controller.tick()
    assert controller.recorder.status.state == "live"


def test_a_promotion_whose_commit_was_not_made_stands_at_its_gate_again(promoting: Path) -> None:
    controller = opened(promoting)
    controller.resume()
    assert controller.recorder.status.state == "awaiting-confirmation"
    assert controller.promote("web-1", "", "eve", "desk").by == "eve"
    assert controller.recorder.status.state == "live"


def test_while_a_gate_is_opened_everybody_can_read_by_whom(promoting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before the swap: of two who promote at once, the other one finds a rollout that is not at its gate."""
    controller, swap, seen = opened(promoting), Releases.swap, list[tuple[str, str]]()
    controller.resume()

    def looked_at(releases: Releases, *words: str) -> int:
        status = opened(promoting).recorder.status
        seen.append((status.state, status.decided_by))
        if len(seen) == 1:
            raise Conflict("another release is live")
        return swap(releases, *words)

    monkeypatch.setattr(Releases, "swap", looked_at)
    with pytest.raises(Conflict, match="another release"):
        controller.promote("web-1", "", "eve@desk", "desk")
    assert (controller.recorder.status.state, controller.recorder.status.decided_by) == ("awaiting-confirmation", "")
    controller.promote("web-1", "", "eve@desk", "desk")
    assert seen == [("promoting", "eve@desk")] * 2
    assert controller.recorder.status.decided_by == "eve@desk"


def promoted(place: Path, feed: LiveFeed) -> None:
    """By an agent that follows this feed meanwhile."""
    with ticking() as follower:
        controller = opened(place, follower)
        controller.resume()
        follower.follow("web", (feed,))
        follower.start()
        controller.promote("web-1", "", "eve", "desk")


def test_no_feed_moves_between_its_alignment_and_the_swap(promoting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else readers saw more rows of the release before than they see of the next one."""
    landing = table(promoting, "landing", 2)
    before, swap, seen = counting_feed(promoting, landing, "before"), Releases.swap, []

    def beside_a_sender(releases: Releases, *words: str) -> int:
        table(promoting, "landing", 1)
        time.sleep(TICKS_SECONDS)
        seen.append(before.seen)
        return swap(releases, *words)

    monkeypatch.setattr(Releases, "swap", beside_a_sender)
    promoted(promoting, before)
    assert seen == [1]


def test_no_feed_moves_between_its_alignment_and_the_last_table_that_is_rebound(
    promoting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each rebinding waited for one more turn of all feeds, which under traffic takes seconds."""
    landing = table(promoting, "landing", 2)
    before, seen = counting_feed(promoting, landing, "before"), []

    def beside_a_sender(*_: object) -> None:
        table(promoting, "landing", 1)
        time.sleep(TICKS_SECONDS)
        seen.append(before.seen)

    monkeypatch.setattr(rebind, "rebindings_for", lambda *_: ("one", "another"))
    monkeypatch.setattr(rebind, "_rebind", beside_a_sender)
    monkeypatch.setattr(SparkHandle, "session", lambda _: None)
    promoted(promoting, before)
    assert seen == [1, 1]


def failed(place: Path, ago_hours: float) -> PipelineController:
    """A rollout that failed so long ago, as the agent of today finds it."""
    controller = opened(place)
    release = Release(id="r1", pipeline="web", digest="d", tables=(), feeds=())
    controller.releases.propose(release, "web-1", "ada", "laptop")
    plan = bare_plan(steps=(Promote(),), release=release)
    controller.recorder.accept(
        "web-1", plan, Accepted(release="r1", was="", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
    )
    controller.recorder.store(Failed("promote", "disk full", "make room"))
    controller.recorder._status = replace(controller.recorder.status, changed=time.time() - ago_hours * 3600)
    return controller


def test_a_failed_rollout_keeps_what_it_built_for_its_time_and_is_then_discarded(tmp_path: Path) -> None:
    clock = ManualClock(time.time())
    kept, over = failed(tmp_path / "kept", 70.9), failed(tmp_path / "over", 71.1)
    for controller in (kept, over):
        controller.watchdog = Watchdog(72.0, clock=clock)
        controller.tick()
    clock.go(HOUR)
    for controller in (kept, over):
        controller.tick()
    until = time.monotonic() + 10
    while over.recorder.status.state != "discarded" and time.monotonic() < until:
        time.sleep(0.01)
    assert over.recorder.status.state == "discarded"
    assert over.recorder.status.decided_by == "the agent, 72 h after the failure"
    assert (kept.recorder.status.state, kept.recorder.status.held) == ("planned", "failed")


def test_who_comes_too_late_learns_who_decided_before(tmp_path: Path) -> None:
    controller = failed(tmp_path, 1.0)
    messages = []
    stories: tuple[tuple[Event, Verb], ...] = (
        (Failed("promote", "disk full"), "pause"),
        (Resumed("eve from desk"), "retry"),
        (Paused("bob from phone"), "retry"),
        (Resumed("eve from desk"), "resume"),
        (Entered("awaiting-confirmation"), "resume"),
        (Promoted(release="r1", was="", by="eve", host="desk", version=2), "cancel"),
        (RolledBack(release="r0", was="r1", by="bob", host="phone", version=3), "cancel"),
        (Ended("discarded", "eve from desk"), "discard"),
        (Accepted(release="r2", was="", plan="digest", by="ada", host="laptop", steps=()), "retry"),
    )
    for event, verb in stories:
        controller.recorder.store(event)
        with pytest.raises(Conflict) as refused:
            controller.control(verb, "ada from laptop")
        assert refused.value.code == "E_STATE"
        messages.append(str(refused.value))
    assert messages == [
        "pause does not fit: web is failed",
        "retry does not fit: web is planned, resumed by eve from desk",
        "retry does not fit: web is paused by bob from phone",
        "resume does not fit: web is planned, resumed by eve from desk",
        "resume does not fit: web is awaiting-confirmation, resumed by eve from desk",
        "cancel does not fit: web is live, promoted by eve from desk",
        "cancel does not fit: web is rolled-back by bob from phone",
        "discard does not fit: web is discarded by eve from desk",
        "retry does not fit: web is planned, begun by ada from laptop",
    ]
    with pytest.raises(Conflict, match=r"resume does not fit: web has had no rollout$"):
        opened(tmp_path / "nothing").control("resume", "ada from laptop")


def test_a_failure_grows_old_while_somebody_looks(tmp_path: Path) -> None:
    controller = failed(tmp_path, 1.0)
    since = controller.recorder.status.changed
    controller.recorder.publish(Lagging(commits=1, rows=2, seconds=3.0))
    controller.recorder.log("looked at")
    assert controller.recorder.status.lag_rows == 2
    assert controller.recorder.status.changed == since
    controller.recorder.store(Resumed("ada"))
    assert controller.recorder.status.changed > since


def test_an_attached_rollout_pauses_only_when_nobody_has_watched_for_a_while() -> None:
    watchdog = Watchdog(72.0, attached=True)
    assert [watchdog.due(Status(), watched, True) for watched in (True, False)] == [None, None]
    watchdog._watched -= ATTACHED_SECONDS + 1
    assert watchdog.due(Status(), True, True) is None
    watchdog._watched -= ATTACHED_SECONDS + 1
    assert watchdog.due(Status(), False, True) == ("pause", "the agent, since its console left")
    assert watchdog.due(Status(), False, True) is None


def test_a_rollout_is_warned_of_files_that_will_be_deleted_under_it_once_a_level(tmp_path: Path) -> None:
    now = 1_800_000_000.0
    reading = Status(rollout="web-1", state="backfilling", held="paused", until=now + 25 * HOUR)
    warnings: list[tuple[float, int]] = []
    for hours in (0, 0.5, 1, 2, 23, 24, 24.5, 25, 30):
        if warning := expiring(reading, now + hours * HOUR):
            reading = fold(reading, Recorded("web-1", reading.seq + 1, now, warning))
            warnings.append((hours, warning.level))
            assert reading.hint == warning.told
    assert warnings == [(1, 1), (24, 2), (25, 3)]
    assert reading.shown == "paused"
    assert fold(reading, Recorded("web-1", 9, now, Resumed("ada"))).hint == ""


MAY_BE = "files of its history may be deleted from 2027-01-15 08:30Z on: "


@pytest.mark.parametrize(
    ("stored", "message"),
    [("paused", "console resume before then"), ("", "it must have read them by then"), ("failed", "it must have read them by then")],
)  # fmt: skip
@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_what_to_do_before_files_are_deleted_depends_on_whether_somebody_holds_it(
    stored: Any, message: str, seconds: float
) -> None:
    """Half an hour before; at its rate, where it has one, it needs less than two minutes more."""
    now = 1_800_000_000.0
    step = StepStatus(id="backfill/requests", rows_done=1000, rows_total=2000, slices=40, seconds=seconds)
    steps = (step,) if seconds else ()
    reading = Status(rollout="web-1", state="backfilling", held=stored, until=now + HOUR / 2, steps=steps)
    warning = expiring(reading, now)
    assert warning is not None
    assert (warning.level, warning.told) == (2, MAY_BE + message)


def test_a_rollout_that_would_end_too_late_is_warned_long_before(tmp_path: Path) -> None:
    now = 1_800_000_000.0
    step = StepStatus(id="backfill/requests", rows_done=1000, rows_total=4_000_000, slices=40, seconds=100.0)
    slow = Status(
        rollout="web-1", state="backfilling", until=now + 100 * HOUR, steps=(step,)
    )  # 111 h at 10 rows a second
    warning = expiring(slow, now)
    assert warning is not None
    assert (warning.level, warning.told[:26]) == (2, "at its rate it ends after ")
    assert expiring(replace(slow, state="validating"), now) is None


def test_a_warning_is_kept_with_the_rollout_and_a_disk_that_is_full_does_not_end_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = failed(tmp_path, 1.0)
    controller.recorder.store(Entered("backfilling"))
    controller.recorder.store(
        Fenced(step="backfill/requests", source="landing", version=3, slices=2, rows=10, until=time.time() + 60)
    )
    broken = Broken()
    monkeypatch.setattr(controller.rollouts, "append", broken)
    controller.tick()
    assert broken.asked == 1
    monkeypatch.undo()
    controller.tick()
    assert [warning.level for warning in opened(tmp_path).recorder.events(Expiring)] == [2]
    assert opened(tmp_path).recorder.status.expiring == 2


class Broken:
    asked = 0

    def __call__(self, *_: object) -> None:
        self.asked += 1
        raise OSError("no space left on device")
