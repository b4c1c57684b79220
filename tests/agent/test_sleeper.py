"""Spark is ended while nothing needs it, and started again by whoever does. Real processes in place of a JVM: no Java."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent import spark_process, spark_session
from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.rollout.ownership import in_progress
from console.agent.settings import Settings
from console.agent.sleeper import SparkSleeper
from console.agent.spark_session import SparkHandle
from console.errors import RegionError
from console.model.breach import WatchProgress
from console.model.event import Accepted, Ended, Entered, Lagging, Paused
from console.model.live import Release
from console.model.region import Follow
from console.model.step import Promote
from tests.agent.copying import by_arrow
from tests.faults.rules.tables import SCHEMA, column_values, copying_feed, foreign, rows
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

AT_ONCE = Follow(idle_seconds=0.0)
PLAN = bare_plan(steps=(Promote(),), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()))


class Jvms:
    """What a Spark takes for its JVMs, each a process; `closing` happens while one is ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[subprocess.Popen[bytes]] = []
        self.command = ["cat"]  # it ends at the end of its input
        self.closing: Callable[[], object] = lambda: None
        self.beside_another = False
        monkeypatch.setattr(spark_process, "configuration", lambda *_, **__: SimpleNamespace(getAll=dict))
        monkeypatch.setattr(spark_process, "java_gateway", lambda *_: self._begin())
        monkeypatch.setattr(spark_process, "first_session", lambda *_: SimpleNamespace(newSession=SimpleNamespace))
        monkeypatch.setattr(spark_process, "close", lambda *_: self.closing())
        monkeypatch.setattr(spark_process, "forget_gateway", lambda: None)  # that of other tests in this process
        monkeypatch.setattr(spark_session, "EXIT_SECONDS", 5.0)

    def _begin(self) -> SimpleNamespace:
        self.beside_another |= any(each.poll() is None for each in self.begun)
        self.begun.append(subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return SimpleNamespace(proc=self.begun[-1])


@pytest.fixture
def jvms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jvms]:
    made = Jvms(monkeypatch)
    yield made
    for each in made.begun:
        with each, ExitStack() as stack:
            stack.callback(os.kill, each.pid, signal.SIGKILL) if each.poll() is None else None


class Sleeping:
    """A sleeper of a region with one pipeline, whose Spark has been started."""

    def __init__(self, place: Path, follow: Follow = AT_ONCE) -> None:
        settings = Settings(region="eu", follow_lag_seconds=follow.lag_seconds)
        self.spark = SparkHandle(settings, -1)
        self.follower = FeedFollower(self.spark, 1.0, lambda *_: None, follow)
        self.controller = PipelineController(place, "web", self.spark, self.follower, settings)
        self.maintained = False
        self.sleeper = SparkSleeper(
            spark=self.spark,
            follower=self.follower,
            follow=follow,
            controllers=lambda: (self.controller,),
            busy=(lambda: self.maintained,),
        )
        self.spark.session()

    def sleeps(self) -> bool:
        """Whether a tick ends Spark."""
        self.sleeper.tick()
        self.sleeper.stop()
        self.sleeper._ending.clear()
        return not self.spark.started

    def accept(self) -> None:
        begun = Accepted(release="r1", was="", plan="d", by="ada", host="laptop", steps=(("promote", 0),))
        self.controller.recorder.accept("web-1", PLAN, begun)


def test_a_spark_that_nothing_has_needed_is_ended_and_not_lost(tmp_path: Path, jvms: Jvms) -> None:
    setup, lost = Sleeping(tmp_path), list[bool]()
    assert setup.spark.asleep_since == 0.0

    def exits() -> None:
        jvms.begun[0].kill()
        jvms.begun[0].wait()
        lost.append(setup.spark.lost)

    jvms.closing, before = exits, time.time()
    assert setup.sleeps()
    assert lost == [False], "the agent would restart itself while its JVM is ended"
    assert (jvms.begun[0].poll() is not None, setup.spark.lost, setup.spark.ended) == (True, False, "")
    assert before <= setup.spark.asleep_since <= time.time()


@pytest.mark.parametrize("follow", [Follow(lag_seconds=5.0, idle_seconds=0.0), Follow(idle_seconds=None)])
def test_a_spark_that_could_not_be_awake_in_time_is_kept(tmp_path: Path, jvms: Jvms, follow: Follow) -> None:
    assert not Sleeping(tmp_path, follow).sleeps()


def test_a_lag_that_leaves_time_to_wake_keeps_no_spark(tmp_path: Path, jvms: Jvms) -> None:
    assert Sleeping(tmp_path, Follow(lag_seconds=15.0, idle_seconds=0.0)).sleeps()


def test_a_spark_that_was_just_used_is_kept(tmp_path: Path, jvms: Jvms) -> None:
    setup = Sleeping(tmp_path, Follow(idle_seconds=60.0))
    assert not setup.sleeps()
    setup.spark.last_used -= 61.0
    setup.follower._session.get()
    setup.spark.last_used -= 61.0
    assert not setup.sleeps(), "a feed has just used its session"
    setup.follower._session.last_used -= 61.0
    assert setup.sleeps()


def test_a_rest_begins_when_the_work_ends(tmp_path: Path, jvms: Jvms) -> None:
    setup = Sleeping(tmp_path, Follow(idle_seconds=60.0))
    setup.spark.last_used -= 3600.0
    setup.maintained = True
    assert not setup.sleeps()
    setup.maintained = False
    assert not setup.sleeps()
    setup.sleeper._needed -= 61.0
    assert setup.sleeps()


def test_a_rollout_in_any_state_keeps_spark_until_it_has_ended(tmp_path: Path, jvms: Jvms) -> None:
    setup = Sleeping(tmp_path)
    setup.accept()
    for event in (Entered("backfilling"), Paused("ada"), Entered("awaiting-confirmation")):
        setup.controller.recorder.store(event)
        assert in_progress(setup.controller.recorder.status)
        assert not setup.sleeps(), event
    setup.controller.recorder.store(Ended("discarded", "ada"))
    assert setup.sleeps()


def test_a_region_rests_once_spark_is_ended_until_it_has_a_rollout(tmp_path: Path, jvms: Jvms) -> None:
    setup = Sleeping(tmp_path)
    assert not setup.sleeper.resting, "Spark is there"
    assert setup.sleeps()
    assert setup.sleeper.resting
    setup.accept()
    assert not setup.sleeper.resting


def test_the_watch_of_a_promoted_release_keeps_spark(tmp_path: Path, jvms: Jvms) -> None:
    setup = Sleeping(tmp_path)
    watched = Lagging(commits=0, rows=0, seconds=0.0, watch=WatchProgress(left=60.0))
    setup.controller.recorder.publish(watched)
    assert not setup.sleeps()
    setup.controller.recorder.publish(replace(watched, watch=None))
    assert setup.sleeps()


def test_a_preview_that_is_built_keeps_spark(tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch) -> None:
    setup, state = Sleeping(tmp_path), ["building"]

    def listed(_: object) -> tuple[SimpleNamespace, ...]:
        return (SimpleNamespace(state=state[0]),)

    monkeypatch.setattr("console.agent.sandboxes.sandboxes.Sandboxes.listed", listed)
    assert not setup.sleeps()
    state[0] = "ready"
    assert setup.sleeps()


def test_a_request_that_uses_spark_keeps_it_however_long_it_takes(tmp_path: Path, jvms: Jvms) -> None:
    setup = Sleeping(tmp_path)
    with setup.spark.in_use():
        assert not setup.sleeps()
        with setup.spark.in_use():
            pass
        assert not setup.sleeps(), "the other one still runs"
    assert setup.sleeps()


def test_who_asks_for_a_session_while_spark_is_ended_gets_one_of_the_next_jvm(tmp_path: Path, jvms: Jvms) -> None:
    """A landing commit, an `apply` and a query at that moment: the feeds, the executor and the request all ask for one."""
    setup, sessions = Sleeping(tmp_path), list[Any]()
    asking = [threading.Thread(target=lambda: sessions.append(setup.spark.session())) for _ in range(3)]

    def closing() -> None:
        for each in asking:
            each.start()
        asking[0].join(0.2)
        assert not sessions

    jvms.closing = closing
    assert setup.sleeper.tick() is None
    for each in asking:
        while not each.ident:
            time.sleep(0.01)
        each.join(60)
    assert (len(sessions), len(jvms.begun), jvms.beside_another) == (3, 2, False)
    assert (setup.spark.started, setup.spark.lost, setup.spark.asleep_since) == (True, False, 0.0)


def test_a_jvm_that_does_not_end_by_itself_is_killed(
    tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "EXIT_SECONDS", 0.1)
    jvms.command = ["sleep", "600"]
    assert Sleeping(tmp_path).sleeps()
    assert jvms.begun[0].poll() == -signal.SIGKILL


def test_a_jvm_whose_spark_does_not_stop_is_killed(tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "STOP_SECONDS", 0.1)
    jvms.command, waiting = ["sleep", "600"], threading.Event()
    jvms.closing = lambda: waiting.wait(60)
    assert Sleeping(tmp_path).sleeps()
    assert jvms.begun[0].poll() == -signal.SIGKILL
    waiting.set()


def test_beside_a_jvm_that_does_not_die_no_second_one_is_started(
    tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EXIT_SECONDS", "KILLED_SECONDS"):
        monkeypatch.setattr(spark_session, name, 0.1)
    jvms.command = ["sleep", "600"]
    setup = Sleeping(tmp_path)
    monkeypatch.setattr(jvms.begun[0], "kill", lambda: None)
    assert setup.sleeps()
    with pytest.raises(RegionError, match=f"the JVM {jvms.begun[0].pid} .* does not exit") as refused:
        setup.spark.session()
    assert (refused.value.code, len(jvms.begun), setup.spark.lost) == ("E_JVM", 1, False)
    os.kill(jvms.begun[0].pid, signal.SIGKILL)
    jvms.begun[0].wait()
    setup.spark.session()
    assert (len(jvms.begun), jvms.beside_another) == (2, False)


def test_a_process_is_replaced_only_after_its_jvm_has_exited_and_while_nothing_needs_another(
    tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Sleeping(tmp_path)
    assert not setup.sleeper.may_restart, "its Spark is awake"
    jvms.closing = lambda: during.append(setup.sleeper.may_restart)
    during = list[bool]()
    assert setup.sleeps()
    assert (during, setup.sleeper.may_restart) == ([False], True)
    setup.maintained = True
    assert not setup.sleeper.may_restart
    setup.maintained = False
    setup.accept()
    assert not setup.sleeper.may_restart, "a rollout has begun, which has not asked for a session yet"
    setup.controller.recorder.store(Ended("discarded", "ada"))
    assert setup.sleeper.may_restart
    jvms.command = ["sleep", "600"]
    setup.spark.session()
    assert not setup.sleeper.may_restart
    for name in ("EXIT_SECONDS", "KILLED_SECONDS"):
        monkeypatch.setattr(spark_session, name, 0.1)
    jvms.closing = lambda: None
    monkeypatch.setattr(jvms.begun[-1], "kill", lambda: None)
    assert setup.sleeps()
    assert not setup.sleeper.may_restart, "a fresh process would know nothing of the JVM that does not exit"


def test_an_agent_that_ends_meanwhile_waits_for_the_jvm(tmp_path: Path, jvms: Jvms) -> None:
    setup, ending = Sleeping(tmp_path), threading.Event()
    jvms.closing = lambda: ending.wait(60)
    setup.sleeper.tick()
    threading.Timer(0.2, ending.set).start()
    setup.sleeper.stop()
    assert jvms.begun[0].poll() is not None
    setup.spark.session()
    assert not setup.sleeper.tick()
    assert setup.spark.started, "an agent that ends begins nothing more"


class Following:
    """A follower, moved by hand, of one feed from `landing` to `copy`; `sessions` are those that it asked for."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, follow: Follow) -> None:
        self.landing, self.copy, self.sessions = foreign(place / "landing", rows(0)), str(place / "copy"), 0
        DeltaTable.create(self.copy, schema=SCHEMA, partition_by=["day"])
        by_arrow(monkeypatch)
        self.follower = FeedFollower(
            cast(Any, SimpleNamespace(live_session=self._session, give_up=lambda _: None)),
            0.01,
            lambda *_: None,
            follow,
        )
        self.feed = copying_feed(self.landing, self.copy)
        self.follower.follow("web", (self.feed,))

    def _session(self) -> object:
        self.sessions += 1
        return object()

    def tick(self) -> int:
        """Sessions asked for by a tick."""
        before, _ = self.sessions, self.follower._move_pipeline("web")
        return self.sessions - before


def test_a_region_without_new_rows_is_followed_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = Following(tmp_path, monkeypatch, AT_ONCE)
    assert (setup.tick(), setup.feed.writer is not None, setup.feed.seen) == (0, True, 0)
    DeltaTable(setup.landing).optimize.compact()
    write_deltalake(setup.landing, rows(), mode="append", partition_by=["day"])
    assert (setup.tick(), setup.follower.last_used) == (0, 0.0)
    write_deltalake(setup.landing, rows(7), mode="append", partition_by=["day"])
    assert (setup.tick(), column_values(setup.copy)) == (1, [7])
    assert setup.follower.let_go(0.0)
    assert setup.tick() == 0
    write_deltalake(setup.landing, rows(8), mode="append", partition_by=["day"])
    assert (setup.tick(), column_values(setup.copy)) == (1, [7, 8])


def test_where_spark_is_kept_it_is_started_before_the_first_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Following(tmp_path, monkeypatch, Follow(lag_seconds=5.0)).tick() == 1


def test_a_follower_that_moves_a_feed_lets_nothing_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = Following(tmp_path, monkeypatch, AT_ONCE)
    with setup.follower._tick_lock:
        assert not setup.follower.let_go(0.0)
    assert setup.follower.let_go(0.0)
