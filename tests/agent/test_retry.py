"""Which failures of a batch are retried, how often and how soon; the messages for those that are not."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, NumberFormatException, PySparkException

from console.agent.clock import WallClock
from console.agent.errors import CommitGone, WriteSkipped
from console.agent.execution import backfill_step, executor
from console.agent.execution.backfill_step import _unfinished
from console.agent.execution.executor import DRIVER_TRIES, PlanExecutor
from console.agent.failure import cause, kind
from console.agent.receipts import step_receipts
from console.agent.resilience.retry import Tries, pause
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.rollout.recorder import Recorder
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases, Rollouts
from console.errors import CheckFailed, FeedStopped, RegionError
from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    DriverLost,
    Event,
    Failed,
    Logged,
    Paused,
    Resumed,
    StepStarted,
)
from console.model.incident import SparkBack, TryFailed
from console.model.live import Release
from console.model.slices import Slice
from console.model.step import Backfill
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

STEP = Backfill(
    materialization="parse",
    source="landing",
    target="requests",
    route="replay",
    sql="SELECT id FROM landing",
    time="ts",
    rows=6000,
    bytes=1,
    days=3,
    batches=3,
)
DAYS = tuple(Slice(index=i, label=f"2026-11-0{8 - i}", first="", end="", rows=1000, bytes=1) for i in (1, 2, 3))
NOT_A_NUMBER = (
    '[CAST_INVALID_INPUT] The value \'c4rd 4111 1111\' of the type "STRING" cannot be cast to "INT" because it is'
    " malformed. Correct the value as per the syntax. SQLSTATE: 22018"
)


HOW = "its memory ran out"


def spark_says(text: str) -> Exception:
    return PySparkException(message=text)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NumberFormatException(NOT_A_NUMBER), "value"),
        (spark_says("[CAST_OVERFLOW] The value 300 of the type \"INT\" cannot be cast. SQLSTATE: 22003"), "value"),
        (spark_says("[CANNOT_PARSE_TIMESTAMP] Text 'x' could not be parsed. SQLSTATE: 22007"), "value"),
        (AnalysisException("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved. SQLSTATE: 42703"), "drift"),
        (spark_says("[DELTA_SCHEMA_CHANGED] Detected schema change"), "drift"),
        (spark_says("[FAILED_READ_FILE.FILE_NOT_EXIST] Error while reading file. SQLSTATE: KD001"), "gone"),
        (spark_says("Job aborted\nCaused by: java.io.FileNotFoundException: File file:/w/p.parquet does not exist"), "gone"),
        (CommitGone("landing has lost version 3"), "gone"),
        (spark_says("java.lang.OutOfMemoryError: Java heap space"), "memory"),
        (spark_says("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory"), "memory"),
        (PySparkException(message="[CAST_INVALID_INPUT] 'Java heap space'", errorClass="CAST_INVALID_INPUT"), "value"),
        (PySparkException(message="[TASK_WRITE_FAILED] 'SCHEMA_CHANGED'", errorClass="TASK_WRITE_FAILED"), "passing"),
        (spark_says("java.io.IOException: No space left on device"), "passing"),
        (spark_says("java.net.SocketTimeoutException: Read timed out"), "passing"),
        (OSError(28, "No space left on device"), "passing"),
        (DeltaError("Generic LocalFileSystem error: Unable to open file"), "passing"),
        (Py4JNetworkError("Answer from Java side is empty"), "passing"),
        (ConnectionRefusedError(111, "Connection refused"), "passing"),
        (WriteSkipped("another writer is ahead"), "final"),
        (CheckFailed("differs"), "final"),
        (KeyError("a bug"), "final"),
    ],
)  # fmt: skip
def test_a_failure_is_known_by_what_spark_says_of_it(error: Exception, expected: str) -> None:
    assert kind(error) == expected


class FakeClock(WallClock):
    """Waiting takes no time and is written down."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.meanwhile: Callable[[], None] | None = None

    def elapsed(self) -> float:
        return sum(self.waited)

    def wait(self, halt: threading.Event, seconds: float) -> None:
        self.waited.append(seconds)
        if self.meanwhile:
            self.meanwhile()


@dataclass
class RetrySetup:
    context: RolloutContext
    clock: FakeClock
    tries: Tries
    spark: SimpleNamespace

    def fails(self, error: Exception, run: tuple[Slice, ...] = DAYS) -> None:
        self.tries.begin(run)
        self.tries.back_off(error)


@pytest.fixture
def setup(tmp_path: Path) -> RetrySetup:
    recorder = Recorder(Rollouts(tmp_path, "web"))
    plan = bare_plan(
        content="", steps=(STEP,), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=())
    )
    recorder.accept(
        "web-1", plan, Accepted(release="r1", was="", plan="p", by="ada", host="laptop", steps=((STEP.id, 6000),))
    )
    spark = SimpleNamespace(lost=False, ended=HOW, session=lambda: None)
    context = RolloutContext(
        warehouse=tmp_path,
        spark=cast(Any, spark),
        releases=Releases(tmp_path, "web"),
        recorder=recorder,
        follower=cast(Any, None),
        keep_hours=1,
    )
    clock = FakeClock()
    return RetrySetup(context, clock, Tries(context=context, step=STEP, clock=clock, chance=lambda: 0.0), spark)


def test_what_passes_is_tried_three_times_each_after_a_longer_pause(setup: RetrySetup) -> None:
    broken = spark_says("java.io.IOException: No space left on device")
    setup.fails(broken)
    setup.fails(broken)
    assert setup.clock.waited == [4.0, 16.0]
    with pytest.raises(RegionError, match=r"failed 3 times: java.io.IOException: No space left on device") as error:
        setup.fails(broken)
    assert (error.value.code, error.value.hint) == ("E_BATCH", "console retry")
    assert error.value.__cause__ is broken


def test_a_batch_that_went_through_makes_the_next_failure_a_first_one(setup: RetrySetup) -> None:
    broken = OSError(5, "Input/output error")
    for _ in range(5):
        setup.fails(broken)
        setup.tries.done()
    assert setup.clock.waited == [4.0] * 5


def test_the_pause_is_shortened_by_chance_to_half_at_most(setup: RetrySetup) -> None:
    for chance, seconds in ((0.0, 4.0), (0.5, 3.0), (1.0, 2.0)):
        pause(setup.context, setup.clock, 1, "x", lambda chance=chance: chance)
        assert setup.clock.waited[-1] == seconds
    pause(setup.context, setup.clock, 9, "x", lambda: 0.0)
    assert setup.clock.waited[-1] == 60.0


@pytest.mark.parametrize(
    ("error", "code"),
    [(NumberFormatException(NOT_A_NUMBER), "C301"), (spark_says("[FAILED_READ_FILE.FILE_NOT_EXIST] x"), "E_FILES_GONE"),
     (AnalysisException("[UNRESOLVED_COLUMN] x"), "E_DRIFT")],
)  # fmt: skip
def test_what_does_not_heal_fails_at_once_with_a_remedy(error: Exception, code: str, setup: RetrySetup) -> None:
    with pytest.raises(RegionError) as refused:
        setup.fails(error)
    assert refused.value.code == code
    assert refused.value.hint
    assert setup.clock.waited == []


def test_values_stay_out_of_the_message(setup: RetrySetup) -> None:
    with pytest.raises(RegionError) as error:
        setup.fails(NumberFormatException(NOT_A_NUMBER))
    assert "4111" not in str(error.value)
    assert '[CAST_INVALID_INPUT] a value of the type "STRING" cannot be cast to "INT"' in str(error.value)


def test_our_own_errors_pass_as_they_are(setup: RetrySetup) -> None:
    ours = WriteSkipped("another writer is ahead")
    with pytest.raises(FeedStopped) as error:
        setup.fails(ours)
    assert error.value is ours


def test_out_of_memory_makes_the_next_try_smaller_and_a_lone_slice_fails_with_the_cause(setup: RetrySetup) -> None:
    full = spark_says("java.lang.OutOfMemoryError: Java heap space")
    setup.fails(full)
    assert setup.tries.limit(9e9) == 750
    setup.tries.done()
    assert setup.tries.limit(9e9) == 750, "what did not fit does not grow back"
    with pytest.raises(
        RegionError, match=r"2026-11-07 does not fit into memory alone: java.lang.OutOfMemoryError"
    ) as error:
        setup.fails(full, DAYS[:1])
    assert "limits.rows" in error.value.hint


def test_every_failed_try_is_stored_with_its_batch_its_cause_and_what_is_asked_next(setup: RetrySetup) -> None:
    full, broken = spark_says("java.lang.OutOfMemoryError: Java heap space"), OSError(5, "Input/output error")
    setup.tries.begin(DAYS)
    setup.clock.waited.append(7.0)
    setup.tries.back_off(full)
    setup.fails(broken, DAYS[:1])
    with pytest.raises(RegionError, match="failed 3 times"):
        setup.fails(broken, DAYS[:1])
    lines = setup.context.recorder.events(Logged)
    tries = [line.incident for line in lines if isinstance(line.incident, TryFailed)]
    assert [(t.number, t.cause, t.first, t.last, t.rows, t.rows_next) for t in tries] == [
        (1, "memory", 1, 3, 3000, 750),
        (2, "passing", 1, 1, 1000, 0),
        (3, "passing", 1, 1, 1000, 0),
    ]
    assert (tries[0].label, tries[0].seconds, tries[0].of) == ("2026-11-07 … 2026-11-05", 7.0, 3)
    assert lines[0].text == "java.lang.OutOfMemoryError: Java heap space; try 2 of 3, with at most 750 rows, in 4 s"
    assert "Z warning: requests: batch 2026-11-07 failed 3 times" in setup.context.recorder.status.log[-1]
    assert [step.tries for step in setup.context.recorder.status.steps] == [3]


def test_how_long_spark_was_away_is_stored_once_it_is_back(setup: RetrySetup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.context.recorder.store(DriverLost(STEP.id, HOW))
    lost = setup.context.recorder.status.spark_lost
    carrier = PlanExecutor(setup.context, lambda: None)
    monkeypatch.setattr(backfill_step, "build", Mock())
    monkeypatch.setattr(step_receipts, "store", lambda *_: None)
    carrier.brake.clock = setup.clock
    monkeypatch.setattr(setup.clock, "now", lambda: lost + 42.0)
    carrier.run()
    backs = [line.incident for line in setup.context.recorder.events(Logged) if isinstance(line.incident, SparkBack)]
    assert backs == [SparkBack(step=STEP.id, seconds=42.0)]
    assert setup.context.recorder.status.spark_lost == 0.0


def test_a_lost_jvm_is_left_to_the_agent(setup: RetrySetup) -> None:
    gone = Py4JNetworkError("Answer from Java side is empty")
    setup.spark.lost = True
    for _ in range(5):
        with pytest.raises(Py4JNetworkError):
            setup.fails(gone)


def test_a_pause_by_the_operator_ends_the_waiting(setup: RetrySetup) -> None:
    setup.context.halt.set()
    with pytest.raises(RolloutStopped):
        setup.fails(OSError(5, "Input/output error"))


BEGUN, DONE = (
    BatchStarted(step=STEP.id, label="x", first=1, last=3, of=9, rows=4000),
    BatchDone(step=STEP.id, label="x", position=3, of=9, rows_in=1, rows_out=1, bytes=1, seconds=1.0, version=1),
)


@pytest.mark.parametrize(
    ("events", "rows"),
    [((), None), ((BEGUN,), 4000), ((BEGUN, DONE), None), ((BEGUN, DONE, replace(BEGUN, rows=400)), 400),
     ((BEGUN, Paused("ada"), Resumed("ada")), None), ((BEGUN, DriverLost(STEP.id), StepStarted(STEP.id)), 4000)],
)  # fmt: skip
def test_after_a_death_in_a_batch_the_next_one_is_smaller(
    events: tuple[Event, ...], rows: int | None, setup: RetrySetup
) -> None:
    for event in events:
        setup.context.recorder.store(event)
    assert _unfinished(setup.context, STEP) == rows


@pytest.mark.parametrize(("rows", "most"), [(4001, 2000.5), (3, 1.5), (1, 1.0), (0, 1.0), (None, None)])
def test_it_may_carry_half_of_what_was_under_way_then(
    rows: int | None, most: float | None, setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rows is not None:
        setup.context.recorder.store(replace(BEGUN, rows=rows))
    met: list[float | None] = []
    monkeypatch.setattr(backfill_step, "_attempt", lambda _, __, ___, tries, *____: met.append(tries.most))
    backfill_step.build(setup.context, STEP, PlanExecutor(setup.context, lambda: None).brake)
    assert met == [most]


def dying(setup: RetrySetup, monkeypatch: pytest.MonkeyPatch) -> Callable[[], PlanExecutor]:
    def carrier() -> PlanExecutor:
        made = PlanExecutor(setup.context, lambda: None)
        made.brake.clock = setup.clock
        monkeypatch.setattr(made, "_run_step", Mock(side_effect=Py4JNetworkError("Answer from Java side is empty")))
        return made

    return carrier


def test_a_step_that_loses_the_jvm_three_times_has_failed_and_a_retry_counts_anew(
    setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.spark.lost = True
    carrier = dying(setup, monkeypatch)
    for number in range(1, DRIVER_TRIES + 1):
        carrier().run()
        assert (setup.context.recorder.status.held == "failed") == (number == DRIVER_TRIES)
    assert setup.context.recorder.status.why == f"the driver was lost 3 times in {STEP.id}: {HOW}"
    setup.context.recorder.store(Resumed("ada"))
    carrier().run()
    assert setup.context.recorder.status.held == ""


GONE = Py4JNetworkError("Answer from Java side is empty")
FULL = spark_says("java.lang.OutOfMemoryError: Java heap space")


@dataclass
class Ends:
    """How a batch breaks: what is seen of the JVM and of the agent's end before the error is met, and while it waits."""

    setup: RetrySetup
    error: Exception
    early: bool
    lost: bool = True
    later: threading.Timer = field(init=False)

    def attempt(self, context: RolloutContext, step: Backfill, brake: object, tries: Tries, *_: object) -> None:
        tries.begin(DAYS)
        if self.early:
            self.now()
        elif self.error is GONE:
            self.later.start()  # while it looks whether the JVM is dying
        else:
            self.setup.clock.meanwhile = self.now  # while it pauses
        raise self.error

    def now(self) -> None:
        self.setup.spark.lost = self.lost
        self.setup.context.halt.set()

    def carried(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What one life of the agent leaves: the names of the events after its step began."""
        self.setup.spark.lost = False
        self.setup.context.halt.clear()
        self.setup.clock.meanwhile = None
        self.later = threading.Timer(0.2, self.now)
        monkeypatch.setattr(backfill_step, "_attempt", self.attempt)
        carrier = PlanExecutor(self.setup.context, lambda: None)
        carrier.brake.clock = self.setup.clock
        before = len(self.setup.context.recorder.progress())
        carrier.run()
        if self.later.ident:
            self.later.join()
        messages = [type(event).__name__ for event in self.setup.context.recorder.progress()[before:]]
        return [name for name in messages if name not in ("Entered", "StepStarted", "Logged")]


@pytest.mark.parametrize(("error", "early"), [(GONE, True), (GONE, False), (FULL, False)])
def test_a_jvm_that_dies_in_a_batch_counts_although_the_agent_ends_for_it_meanwhile(
    error: Exception, early: bool, setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = Ends(setup, error, early)
    assert dies.carried(monkeypatch) == ["DriverLost"]
    assert dies.carried(monkeypatch) == ["DriverLost"]
    assert dies.carried(monkeypatch) == ["DriverLost", "Failed"]
    assert setup.context.recorder.status.why == f"the driver was lost 3 times in {STEP.id}: {HOW}"
    assert any(
        line.endswith(f"warning: Spark was lost in {STEP.id}: {HOW}") for line in setup.context.recorder.status.log
    )


@pytest.mark.parametrize("early", [True, False])
def test_a_jvm_that_goes_because_the_agent_was_ended_is_no_loss(
    early: bool, setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Ends(setup, GONE, early, lost=False).carried(monkeypatch) == []


def test_an_agent_that_is_being_ended_calls_no_jvm_lost() -> None:
    spark = SparkHandle(Settings(region="eu"), -1)
    gone = SimpleNamespace(poll=lambda: 1)
    spark._jvm = SimpleNamespace(proc=gone)
    assert spark.lost
    spark.ending = True
    assert not spark.lost
    spark.stop()  # and asks nothing of one that is gone


def test_three_losses_that_a_full_disk_kept_from_being_a_failure_are_one_for_the_next_agent(
    setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(DRIVER_TRIES):
        setup.context.recorder.store(DriverLost(STEP.id))
    assert Ends(setup, KeyError("not met"), False).carried(monkeypatch) == ["Failed"]
    assert setup.context.recorder.status.why == f"the driver was lost 3 times in {STEP.id}"


NO_ROOM = OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("errors", "report", "tried"),
    [
        ([NO_ROOM, NO_ROOM, None], ["StepDone"], 3),
        ([NO_ROOM, NO_ROOM, NO_ROOM, None], ["Failed"], 3),
        ([KeyError("a bug"), None], ["Failed"], 1),
        ([RegionError("failed 3 times", code="E_BATCH"), None], ["Failed"], 1),  # a batch that had tries of its own
    ],
)
def test_a_step_is_done_again_as_a_whole_where_what_broke_may_pass(
    errors: list[Exception | None], report: list[str], tried: int, setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Mock(side_effect=errors)
    monkeypatch.setattr(backfill_step, "build", made)
    monkeypatch.setattr(step_receipts, "store", lambda *_: None)
    carrier = PlanExecutor(setup.context, lambda: None)
    monkeypatch.setattr(carrier, "_driver_lost", lambda _: False)
    carrier.brake.clock = setup.clock
    before = len(setup.context.recorder.progress())
    carrier.run()
    events = [type(event).__name__ for event in setup.context.recorder.progress()[before:]]
    assert [name for name in events if name not in ("Entered", "StepStarted")] == report
    assert made.call_count == tried
    assert len(setup.clock.waited) == tried - 1
    messages = [
        line.partition("; ")[2].partition(",")[0] for line in setup.context.recorder.status.log if "; try" in line
    ]
    assert messages == [f"try {n} of 3" for n in range(2, tried + 1)]


@pytest.mark.parametrize("halted", [False, True])
def test_a_failure_that_a_full_disk_does_not_hold_is_stored_once_there_is_room_unless_the_agent_ends(
    halted: bool, setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "UNSTORED_SECONDS", 0.01)
    stored, full = setup.context.recorder.store, iter([True, True])

    def store(event: Event) -> None:
        if next(full, False):
            raise NO_ROOM
        stored(event)

    monkeypatch.setattr(setup.context.recorder, "store", store)
    if halted:
        setup.context.halt.set()
    PlanExecutor(setup.context, lambda: None)._store_failure(Failed(STEP.id, "it broke"))
    status = setup.context.recorder.status
    assert (status.held, status.why) == (("", "") if halted else ("failed", "it broke"))
    assert sum("it broke), which cannot be stored: [Errno 28]" in line for line in status.log) == (1 if halted else 2)


def test_what_a_halt_breaks_off_has_not_failed(setup: RetrySetup, monkeypatch: pytest.MonkeyPatch) -> None:
    carrier = PlanExecutor(setup.context, lambda: None)

    def cancelled(_: object) -> None:
        setup.context.halt.set()
        raise spark_says("[SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job group")

    monkeypatch.setattr(carrier, "_run_step", cancelled)
    carrier.run()
    assert setup.context.recorder.status.held == ""


def test_a_live_row_that_does_not_convert_fails_its_step_without_its_value(
    setup: RetrySetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = PlanExecutor(setup.context, lambda: None)
    monkeypatch.setattr(made, "_driver_lost", lambda _: False)
    monkeypatch.setattr(made, "_run_step", Mock(side_effect=NumberFormatException(NOT_A_NUMBER)))
    made.run()
    status = setup.context.recorder.status
    assert status.held == "failed"
    assert status.why.startswith("NumberFormatException: [CAST_INVALID_INPUT] a value of the type")
    assert "4111" not in status.why


def test_deltalakes_error_is_named_by_the_end_of_its_chain(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"n": [1]}))
    DeltaTable(path).create_checkpoint()
    hint = tmp_path / "t" / "_delta_log" / "_last_checkpoint"
    hint.unlink()
    hint.symlink_to(hint)
    with pytest.raises(OSError, match="Generic LocalFileSystem error") as failed:
        DeltaTable(path)
    assert cause(failed.value) == f"Unable to open file {hint}: Too many levels of symbolic links (os error 40)"
