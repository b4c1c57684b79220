"""The reasons that hold a batch back, and their texts. The test owns the clock: hours pass in no time."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.agent.resilience.throttle import QUERY_SECONDS, Brake
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.model.event import Accepted, Lagging, Logged, Recorded, Waiting
from console.model.incident import Tuned
from console.model.live import Release
from console.model.policy import Throttle
from console.model.tuning import Tuning
from console.paths import paused
from tests.plans import bare_plan

pytestmark = pytest.mark.slow


@dataclass
class FakeClock:
    """Stands still unless it is waited for; `at` does something once so many seconds have passed."""

    start: float = datetime(2026, 11, 7, 12, 0, tzinfo=UTC).timestamp()
    passed: float = 0.0
    at: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def now(self) -> float:
        return self.start + self.passed

    def elapsed(self) -> float:
        return self.passed

    def wait(self, halt: threading.Event, seconds: float) -> None:
        self.passed += seconds
        assert self.passed < 3 * 86_400, "it waits for ever"
        for when, do in [entry for entry in self.at if entry[0] <= self.passed]:
            self.at.remove((when, do))
            do()


@dataclass
class ThrottleSetup:
    """A rollout between two batches, its clock, and its events."""

    context: RolloutContext
    clock: FakeClock
    lag: SimpleNamespace
    events: list[Recorded]

    def brake(self, ask: Callable[[RolloutContext], Any] = lambda _: True, poll: float = 60) -> Brake:
        return Brake(context=self.context, clock=self.clock, ask=ask, poll=poll)

    @property
    def reasons(self) -> list[str]:
        """Each reason shown, once, in order."""
        return list(dict.fromkeys(r.event.why for r in self.events if isinstance(r.event, Waiting)))

    @property
    def logged(self) -> list[str]:
        return [r.event.text for r in self.events if isinstance(r.event, Logged)]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ThrottleSetup]:
    monkeypatch.setenv("CONSOLE_PAUSE", str(tmp_path / "everywhere"))

    def make(throttle: Throttle) -> ThrottleSetup:
        (tmp_path / "_console").mkdir(exist_ok=True)
        recorder = Recorder(Rollouts(tmp_path, "web"))
        plan = bare_plan(
            content="",
            steps=(),
            release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()),
            throttle=throttle,
        )
        recorder.accept("web-1", plan, Accepted(release="r1", was="", plan="p", by="ada", host="laptop", steps=()))
        messages: list[Recorded] = []
        recorder.watch(9, messages.append)
        lag = SimpleNamespace(seconds=0.0)
        follower = SimpleNamespace(lag=lambda _: Lagging(commits=1, rows=1, seconds=lag.seconds))
        context = RolloutContext(
            warehouse=tmp_path,
            spark=cast(Any, None),
            releases=Releases(tmp_path, "web"),
            recorder=recorder,
            follower=cast(Any, follower),
            keep_hours=1,
        )
        return ThrottleSetup(context, FakeClock(), lag, messages)

    return make


def test_with_nothing_to_wait_for_nothing_is_reported(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle())
    here.brake().hold()
    assert (here.clock.passed, here.events) == (0, [])


def test_it_waits_for_the_hours_of_the_regions_own_zone_however_long(setup: Callable[..., ThrottleSetup]) -> None:
    """12:00 UTC is 13:00 in Madrid in November: nine hours to 22:00 there."""
    here = setup(Throttle(hours="22:00-06:00", zone="Europe/Madrid"))
    here.brake().hold()
    assert here.clock.passed == 9 * 3600
    assert here.reasons[0] == "outside of 22:00-06:00 Europe/Madrid; continues at 22:00, in 9 h 00 min"
    assert here.reasons[-1] == ""
    assert here.context.recorder.status.why == ""
    assert here.context.recorder.status.held == ""
    assert here.logged[-1] == "the backfill continues after 9 h 00 min"
    assert len(here.logged) == 2


def test_the_night_on_which_clocks_go_back_has_its_hours_too(setup: Callable[..., ThrottleSetup]) -> None:
    """25 October 2026, 02:30 in Madrid comes twice; the window opens at the first 03:00 that is one."""
    here = setup(Throttle(hours="03:00-04:00", zone="Europe/Madrid"))
    here.clock.start = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()
    here.brake().hold()
    assert datetime.fromtimestamp(here.clock.now(), UTC) == datetime(2026, 10, 25, 2, 0, tzinfo=UTC)


def test_the_operators_limit_of_the_lag_has_no_time_out(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle(lag_seconds=120))
    here.lag.seconds = 500.0
    here.clock.at = [(86_400, lambda: setattr(here.lag, "seconds", 120.0))]
    here.brake().hold()
    assert here.clock.passed == 86_400
    assert here.reasons == ["live rows are 500 s behind, the limit is 120 s", ""]


def test_without_a_limit_a_build_lets_live_rows_go_first_for_a_moment_only(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle())
    here.lag.seconds = 500.0
    here.brake(poll=1).hold()
    assert here.clock.passed == 30
    assert here.reasons == ["live rows are more than 60 s behind, and go first", ""]


@pytest.mark.parametrize("place", ["_console/pause", "everywhere"])
def test_a_pause_file_holds_until_it_is_gone_and_its_text_is_the_reason(
    place: str, setup: Callable[..., ThrottleSetup], tmp_path: Path
) -> None:
    here = setup(Throttle())
    file = tmp_path / place
    file.write_text("month\tend \x1b]0;x\x07\n")
    here.clock.at = [(7200, file.unlink)]
    here.brake().hold()
    assert here.clock.passed == 7200
    assert here.reasons[0].endswith(f"paused by {file}: month end \\x1b]0;x\\x07")


def test_a_pause_file_that_is_a_link_or_cannot_be_read_pauses_and_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not show")
    (tmp_path / "pause").symlink_to(tmp_path / "secret")
    (tmp_path / "folder").mkdir()
    assert paused(tmp_path / "pause") == ""
    assert paused(tmp_path / "folder") == ""
    assert paused(tmp_path / "none") is None


def test_the_query_must_answer_true_and_is_not_asked_all_the_time(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle(query="SELECT quiet FROM requests", tables=("requests",)))
    answers: list[Any] = [False, None, 0, [1], True]
    times: list[float] = []

    def ask(_: RolloutContext) -> Any:
        times.append(here.clock.passed)
        return answers.pop(0)

    brake = here.brake(ask, poll=1)
    brake.hold()
    assert times == [number * QUERY_SECONDS for number in range(5)]
    assert [text.removeprefix("throttle.query ") for text in here.reasons] == [
        "answers false, not true", "answers NULL, not true", "answers 0, not true", "answers [1], not true", "",
    ]  # fmt: skip
    brake.hold()  # the next batch, at once: the answer holds for a moment
    assert len(times) == 5


def test_a_query_that_cannot_be_asked_is_a_reason_to_wait_and_no_failure(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle(query="SELECT quiet FROM requests"))
    down = [True]

    def ask(_: RolloutContext) -> Any:
        if down[0]:
            raise RuntimeError("[BROKEN] no\nat java")
        return True

    here.clock.at = [(3600, lambda: down.__setitem__(0, False))]
    here.brake(ask).hold()
    assert here.clock.passed >= 3600
    assert here.reasons[0] == "throttle.query fails: [BROKEN] no"
    assert here.context.recorder.status.held == ""


def test_the_query_is_not_asked_while_anything_else_holds(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle(hours="13:00-14:00", query="SELECT true"))
    asked: list[float] = []

    def ask(_: RolloutContext) -> bool:
        asked.append(here.clock.passed)
        return True

    here.brake(ask).hold()
    assert asked == [3600]


def test_all_that_holds_is_told_at_once(setup: Callable[..., ThrottleSetup], tmp_path: Path) -> None:
    here = setup(Throttle(lag_seconds=5, hours="13:00-14:00"))
    here.lag.seconds = 9.0
    (tmp_path / "_console" / "pause").write_text("")
    here.clock.at = [(600, (tmp_path / "_console" / "pause").unlink), (1200, lambda: setattr(here.lag, "seconds", 0.0))]
    here.brake().hold()
    assert [text.count("; ") for text in here.reasons[:1]] == [3]
    assert here.clock.passed == 3600


def test_an_operators_pause_ends_the_waiting(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle(hours="22:00-06:00"))
    here.clock.at = [(60, here.context.halt.set)]
    with pytest.raises(RolloutStopped):
        here.brake().hold()
    assert here.clock.passed == 60


def tuned(here: ThrottleSetup, **change: Any) -> None:
    here.context.recorder.store(Logged("ada: tuned", "info", Tuned(by="ada", host="ops2", tuning=Tuning(**change))))


def test_a_limit_that_is_lifted_while_it_waits_lets_it_go_on(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle(hours="22:00-06:00", zone="UTC"))
    here.clock.at = [(300.0, lambda: tuned(here, hours=""))]
    here.brake().hold()
    assert 300 <= here.clock.passed < 600


def test_a_changed_lag_and_a_changed_query_hold_from_the_next_look_on(setup: Callable[..., ThrottleSetup]) -> None:
    here = setup(Throttle())
    here.lag.seconds = 20.0
    tuned(here, lag=10.0)
    here.clock.at = [(120.0, lambda: tuned(here, lag=30.0))]
    here.brake().hold()
    assert 120 <= here.clock.passed < 240
    asked: list[str] = []

    def ask(context: RolloutContext) -> bool:
        asked.append(context.limits.throttle.query)
        return "two" in asked[-1]

    tuned(here, query="SELECT one", lag=-1)
    here.clock.at = [(here.clock.passed + 2.0, lambda: tuned(here, query="SELECT two", lag=-1))]
    here.brake(ask, poll=1.0).hold()
    assert asked == ["SELECT one", "SELECT two"], "another query is asked at once, not after its fifteen seconds"
