"""Failed tries, waits and a lost Spark in the status: folded from stored events, closed by the next agent."""

import json
from dataclasses import replace

import pytest

from console.model import beside, codec
from console.model.event import (
    DriverLost,
    Entered,
    Event,
    Logged,
    Paused,
    Progress,
    Recorded,
    StepStarted,
)
from console.model.incident import SparkBack, WaitBegan, WaitEnded
from console.model.measured import SparkJob
from console.model.status import Status, replay
from tests.model.test_account import ACCEPTED, BEGUN, DONE, FAILED_TRY, STEP, recorded

BEGAN = WaitBegan(step=STEP, cause="lag", why="live rows are 70 s behind, the limit is 60 s", since=3.0)
WAITS = Logged("the backfill waits: live rows are 70 s behind", incident=BEGAN)
JOB = SparkJob(job=41, stage=3, stages=5, done=41, tasks=64, longest=38.0, median=2.0, spilled=1 << 30)


def status(*events: Event) -> Status:
    return replay(recorded(*((float(at), event) for at, event in enumerate((ACCEPTED, *events)))))


def test_a_wait_is_open_from_its_begin_to_its_end() -> None:
    waiting = status(WAITS)
    assert (waiting.waiting, waiting.why) == (BEGAN, BEGAN.why)
    over = status(WAITS, Logged("goes on", incident=WaitEnded(step=STEP, cause="lag", seconds=9.0)))
    assert (over.waiting, over.why) == (None, "")


@pytest.mark.parametrize(
    "next_event",
    [
        StepStarted(STEP, away_since=9.0),
        StepStarted(STEP),
        BEGUN,
        Paused("ada"),
        Entered("validating"),
        DriverLost(STEP),
    ],
)
def test_a_wait_whose_end_was_never_stored_is_closed_by_what_comes_next(next_event: Event) -> None:
    assert status(WAITS, next_event).waiting is None


def test_a_pause_keeps_its_reason_beside_a_wait() -> None:
    assert status(Paused("ada"), WAITS).why == "paused by ada"


def test_failed_tries_are_counted_by_step() -> None:
    result = status(BEGUN, Logged("failed", "warning", FAILED_TRY), BEGUN, Logged("failed", "warning", FAILED_TRY))
    assert [step.tries for step in result.steps] == [2]


def test_spark_is_lost_until_it_is_back_or_a_batch_begins() -> None:
    lost = status(DriverLost(STEP, "its memory ran out"))
    assert lost.spark_lost == 1.0
    assert status(DriverLost(STEP), Logged("back", incident=SparkBack(step=STEP, seconds=12.0))).spark_lost == 0.0
    assert status(DriverLost(STEP), StepStarted(STEP), BEGUN).spark_lost == 0.0


def test_the_job_is_that_of_the_running_batch() -> None:
    running = status(BEGUN, Progress(step=STEP, rows=9, batch="x", job=JOB), Progress(step=STEP, rows=10, batch="x"))
    assert running.steps[0].job == JOB
    assert JOB.skewed
    assert not replace(
        JOB, tasks=2, done=1, median=0.0
    ).skewed  # an empty one is nothing to compare its longest task with
    assert status(BEGUN, Progress(step=STEP, rows=9, batch="x", job=JOB), DONE).steps[0].job is None
    assert status(BEGUN, DONE, Progress(step=STEP, rows=9, batch="x", job=JOB)).steps[0].job is None


def test_an_older_console_gets_the_line_alone() -> None:
    logged = Recorded("web-1", 4, 1.0, Logged("it failed", "warning", FAILED_TRY))
    plain, rest = beside.split(logged)
    assert plain["event"] == {"type": "Logged", "text": "it failed", "level": "warning"}
    assert codec.decode(Recorded, beside.join(plain, rest)) == logged
    folded = replay([replace(recorded((0.0, ACCEPTED))[0]), replace(logged, seq=2)])
    assert folded.log[-1] == "00:00:01Z warning: it failed"


def test_an_incident_of_a_newer_version_leaves_the_line() -> None:
    """An optional field whose value only a newer version knows is passed over, as an unknown key is."""
    data = json.loads(codec.dumps(Recorded("web-1", 4, 1.0, Logged("it melted", "warning", FAILED_TRY))))
    data["event"]["incident"] = {"type": "Melted!9.0.0", "degrees": 3000}
    assert codec.decode(Recorded, data).event == Logged("it melted", "warning")
