"""An unresponsive Spark is killed and reported as lost. Real processes in place of a JVM: no Java."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError

from console.agent import spark_session
from console.agent.execution import executor
from console.agent.execution.executor import PlanExecutor
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.recorder import Recorder
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases, Rollouts
from console.model.event import Accepted
from console.model.live import Release
from console.model.step import Promote, Step
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

PLAN = bare_plan(steps=(Promote(),), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()))
DEAF = 0.6
WHY = f"it did not stop its running job within {DEAF:.0f} s"


class Java:
    """A process that a Spark takes for its JVM. What is called in it answers nothing, and breaks when it is gone."""

    def __init__(self) -> None:
        self.proc = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.spark = SparkHandle(Settings(region="eu"), -1)
        self.spark._jvm = SimpleNamespace(proc=self.proc)
        self.context(lambda: False)

    def context(self, stopped: Callable[[], bool], **session: Any) -> None:
        """stopped: its answer to whether it is"""
        scala = SimpleNamespace(isStopped=stopped)
        self.spark._root = SimpleNamespace(
            sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala)), **session
        )

    def call(self) -> bool:
        assert self.proc.stdout
        os.read(self.proc.stdout.fileno(), 1)
        raise Py4JNetworkError("Answer from Java side is empty")

    @property
    def killed(self) -> bool:
        return self.proc.poll() == -signal.SIGKILL


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Java]:
    monkeypatch.setattr(executor, "UNRESPONSIVE_SECONDS", DEAF)
    monkeypatch.setattr(executor, "CANCEL_SECONDS", 0.01)
    monkeypatch.setattr(spark_session, "STOP_SECONDS", DEAF)
    made = Java()
    yield made
    with made.proc as proc:
        proc.kill()


@pytest.fixture
def context(java: Java, tmp_path: Path) -> RolloutContext:
    recorder = Recorder(Rollouts(tmp_path, "web"))
    recorder.accept(
        "web-1", PLAN, Accepted(release="r1", was="", plan="p", by="ada", host="laptop", steps=(("promote", 0),))
    )
    return RolloutContext(
        warehouse=tmp_path,
        spark=java.spark,
        releases=Releases(tmp_path, "web"),
        recorder=recorder,
        follower=cast(Any, None),
        keep_hours=1,
    )


class At(PlanExecutor):
    """A rollout's thread that is at one action."""

    def __init__(self, context: RolloutContext, action: Callable[[], object]) -> None:
        super().__init__(context, lambda: None)
        self.action, self.begun = action, threading.Event()
        self.start()
        assert self.begun.wait(60)

    def _run_step(self, step: Step) -> None:
        self.begun.set()
        self.action()


def stopped(carrier: PlanExecutor) -> None:
    stopping = threading.Thread(target=carrier.stop, daemon=True)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()
    assert not carrier.is_alive()


@pytest.mark.parametrize("how", ["a job that it does not let go of", "a job that it is not heard of", "no job"])
def test_a_spark_that_does_not_stop_is_killed_and_who_waited_for_it_goes_on(
    how: str, java: Java, context: RolloutContext
) -> None:
    if how == "no job":
        java.context(java.call)
    else:
        context.job = cast(Any, SimpleNamespace(cancel=java.call if "heard" in how else lambda: None))
    carrier = At(context, java.call)
    stopped(carrier)
    assert java.killed
    assert (java.spark.lost, java.spark.ended) == (True, WHY)
    assert f"Z error: Spark is killed: {WHY}" in "\n".join(context.recorder.status.log)
    assert context.recorder.status.held == ""


def test_what_cannot_be_cancelled_is_waited_for_as_long_as_spark_answers(java: Java, context: RolloutContext) -> None:
    """A long range of a feed that catches up, say, or a commit outside of any job."""
    done, began = threading.Event(), time.monotonic()

    def standing() -> bool:
        if time.monotonic() - began > 4 * DEAF:
            done.set()
        return False

    java.context(standing)
    At(context, done.wait).stop()
    assert done.is_set()
    assert java.proc.poll() is None


def test_an_agent_that_is_told_to_end_waits_no_longer_for_it(java: Java, context: RolloutContext) -> None:
    java.context(java.call)
    java.spark.ending = True
    carrier = At(context, java.call)
    stopped(carrier)
    assert java.killed
    assert not java.spark.lost


def test_a_job_is_cancelled_again_until_the_call_that_runs_it_ends(java: Java, context: RolloutContext) -> None:
    cancelled, broken = [0], threading.Event()

    def cancel() -> None:
        cancelled[0] += 1
        if cancelled[0] == 3:  # it was between two jobs before
            broken.set()

    context.job = cast(Any, SimpleNamespace(cancel=cancel))
    At(context, broken.wait).stop()
    assert cancelled[0] >= 3
    assert java.proc.poll() is None


@pytest.mark.parametrize("stopped", [True, False])
def test_a_context_that_was_stopped_is_a_lost_jvm_for_whoever_asks_it_for_a_session(stopped: bool, java: Java) -> None:
    def fails() -> None:
        raise Py4JNetworkError("Cannot call methods on a stopped SparkContext")

    java.context(lambda: stopped, newSession=fails)
    assert not java.spark.lost, "nobody asks it before something fails"
    with pytest.raises(Py4JNetworkError):
        java.spark.session()
    assert (java.spark.lost, java.killed) == (stopped, stopped)
    assert ("its context was stopped" in java.spark.ended) == stopped


def test_a_context_that_is_stopped_because_the_agent_ends_is_left_to_its_jvm(java: Java) -> None:
    java.context(lambda: True)
    java.spark.ending = True
    java.spark.look()
    assert java.proc.poll() is None


def test_a_context_that_is_being_stopped_is_not_lost_for_whoever_still_asks_it_for_a_session(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round of checks, say, that has not ended yet: the process has no other JVM."""
    monkeypatch.setattr(spark_session, "STOP_SECONDS", 60.0)
    down, asked = threading.Event(), threading.Event()

    def fails() -> None:
        raise Py4JNetworkError("Cannot call methods on a stopped SparkContext")

    def stop() -> None:
        down.set()
        asked.wait(60)

    java.context(down.is_set, stop=stop, newSession=fails)
    stopping = threading.Thread(target=java.spark.stop)
    stopping.start()
    assert down.wait(60)
    with pytest.raises(Py4JNetworkError):
        java.spark.session()
    asked.set()
    stopping.join(60)
    assert java.proc.poll() is None
    assert not java.spark.lost


def test_an_agent_ends_though_its_spark_does_not(java: Java) -> None:
    java.context(lambda: False, stop=java.call)
    java.spark.stop()
    assert java.killed
    assert not java.spark.started


@pytest.mark.parametrize("code", [3, 52])
def test_both_ways_in_which_a_jvm_says_that_it_found_no_memory_are_understood(code: int, java: Java) -> None:
    with subprocess.Popen(["sh", "-c", f"exit {code}"]) as ended:
        ended.wait()
    java.spark._jvm = SimpleNamespace(proc=ended)
    assert java.spark.ended == "its memory ran out"
