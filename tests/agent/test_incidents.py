"""The incidents that an agent stores: a bounded number of waits, every failed try, how long Spark and the agent were away."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from console.agent.resilience.waits import LAST_CHANGE_SECONDS, STORED_SECONDS, Waits
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Rollouts
from console.model.account import account
from console.model.event import Event, Logged, Paused, Recorded, StepStarted, Waiting
from console.model.incident import Incident, WaitBegan, WaitEnded
from tests.agent.manual_clock import ManualClock
from tests.model.test_account import ACCEPTED, STEP

pytestmark = pytest.mark.slow

DAY = 86_400.0


@dataclass
class StoredLines:
    """A recorder's place where nothing is written; what was stored and published stays here."""

    stored: list[Incident] = field(default_factory=list)
    published: list[Event] = field(default_factory=list)

    def report(self, text: str, incident: Incident | None) -> None:
        assert incident
        self.stored.append(incident)

    def publish(self, event: Event) -> None:
        self.published.append(event)


def wait_for(causes: Callable[[float], str], seconds: float) -> tuple[list[Incident], StoredLines, ManualClock]:
    """One wait whose cause is a function of the time; returns what was stored of it."""
    lines, clock = StoredLines(), ManualClock()
    waits = Waits(recorder=lines, clock=clock, step=STEP, what="the backfill")
    began = clock.elapsed()
    while clock.elapsed() - began < seconds:
        waits.go_on(causes(clock.elapsed() - began), "why")
        clock.go(1.0)
    waits.end()
    return lines.stored, lines, clock


def test_a_short_wait_is_shown_and_not_stored() -> None:
    stored, lines, _ = wait_for(lambda _: "lag", STORED_SECONDS - 1)
    assert stored == []
    assert lines.published == [Waiting("")]


def test_a_wait_is_stored_with_its_true_begin_and_its_length() -> None:
    stored, _, clock = wait_for(lambda _: "lag", 60)
    began, ended = stored
    assert began == WaitBegan(step=STEP, cause="lag", why="why", since=clock.wall - 60)
    assert ended == WaitEnded(step=STEP, cause="lag", seconds=60.0)


def test_without_a_wait_nothing_is_reported() -> None:
    lines = StoredLines()
    Waits(recorder=lines, clock=ManualClock()).end()
    assert (lines.stored, lines.published) == ([], [])


def test_another_cause_counts_from_where_it_began_once_it_has_stood() -> None:
    stored, _, clock = wait_for(lambda at: "lag" if at < 30 else "hours", 100)
    causes = [
        (incident.cause, incident.since - (clock.wall - 100)) for incident in stored if isinstance(incident, WaitBegan)
    ]
    assert causes == [("lag", 0.0), ("hours", 30.0)]


@pytest.mark.parametrize("period", [1, 7, 20, 100, 1300])
def test_a_cause_that_flaps_for_a_week_costs_a_commit_in_ten_minutes_at_most(period: int) -> None:
    stored, _, _ = wait_for(lambda at: "lag" if int(at / period) % 2 else "hours", 7 * DAY)
    assert len(stored) <= 7 * DAY / LAST_CHANGE_SECONDS + 10


# -- what is on disk, and what the next agent makes of it

KILLED = """
import sys
from pathlib import Path
from console.agent.resilience.waits import Waits
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Rollouts
from console.model.event import Logged
from tests.agent.manual_clock import ManualClock
from tests.model.test_account import FAILED_TRY, STEP
recorder = Recorder(Rollouts(Path(sys.argv[1]), "web"))
clock = ManualClock(wall=recorder.status.started)
waits = Waits(recorder=recorder, clock=clock, step=STEP, what="the backfill")
for _ in range(9):
    waits.go_on("lag", "live rows are 70 s behind")
    clock.go(1.0)
waits.end()
recorder.report("the batch failed", FAILED_TRY, "warning")
print("alive")
"""


def begun(warehouse: Path) -> Recorder:
    recorder = Recorder(Rollouts(warehouse, "web"))
    Rollouts(warehouse, "web").append("web-1", 1, ACCEPTED)
    Rollouts(warehouse, "web").append("web-1", 2, StepStarted(STEP))
    return recorder


@pytest.mark.parametrize(
    ("at", "waits", "stored"),
    [
        ("before-WaitBegan", False, 0),
        ("after-WaitBegan", True, 1),
        ("before-WaitEnded", True, 1),
        ("after-WaitEnded", False, 2),
        ("before-TryFailed", False, 2),
        ("after-TryFailed", False, 3),
    ],
)
def test_killed_anywhere_in_a_wait_the_next_agent_closes_it(at: str, waits: bool, stored: int, tmp_path: Path) -> None:
    begun(tmp_path)
    armed = tmp_path / "armed"
    armed.mkdir()
    (armed / at).touch()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "CONSOLE_CRASH_DIR": str(armed), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -9, killed.stdout + killed.stderr
    following = Recorder(Rollouts(tmp_path, "web"), last_seen=9e9)
    assert len([event for event in following.progress() if isinstance(event, Logged)]) == stored
    assert (following.status.waiting is not None) == waits
    following.store(StepStarted(STEP, following.away_since()))
    assert following.status.waiting is None
    events = Rollouts(tmp_path, "web").events("web-1")
    assert events[-1].event == StepStarted(STEP, away_since=9e9)
    divided = account(events, events[-1].at)
    assert sum(part.seconds for part in divided.parts) == pytest.approx(divided.seconds)


def test_the_next_agent_says_once_since_when_none_ran(tmp_path: Path) -> None:
    begun(tmp_path)
    events = Rollouts(tmp_path, "web").events("web-1")
    following = Recorder(Rollouts(tmp_path, "web"))
    assert following.away_since() == events[-1].at
    assert following.away_since() == 0.0
    sampled = Recorder(Rollouts(tmp_path, "web"), last_seen=events[-1].at + 40)
    assert sampled.away_since() == events[-1].at + 40


def test_an_agent_that_begins_beside_a_paused_rollout_was_not_missed(tmp_path: Path) -> None:
    begun(tmp_path)
    Rollouts(tmp_path, "web").append("web-1", 3, Paused("ada"))
    assert Recorder(Rollouts(tmp_path, "web"), last_seen=9e9).away_since() == 0.0
    assert Recorder(Rollouts(tmp_path, "other"), last_seen=9e9).away_since() == 0.0


def test_on_a_full_disk_a_line_is_published_and_the_rollout_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = begun(tmp_path)
    recorder = Recorder(Rollouts(tmp_path, "web"))
    heard: list[Recorded] = []
    recorder.watch(9, heard.append)

    def full(*_: object) -> Recorded:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorder._rollouts, "append", full)
    recorder.report("the backfill goes on", WaitEnded(step=STEP, cause="lag", seconds=9.0))
    (line,) = heard
    assert (line.seq, line.event) == (
        0,
        Logged("the backfill goes on", "info", WaitEnded(step=STEP, cause="lag", seconds=9.0)),
    )
