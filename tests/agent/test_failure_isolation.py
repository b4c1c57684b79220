"""Failures beside the feeds end neither the agent nor a feed: its log, measuring a lag, a watch, maintenance. No Java."""

import asyncio
import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.__main__ import RESTART, _loop
from console.agent.feeds import app_ids, follower
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed
from console.agent.maintenance import maintainer
from console.agent.server import THREADS
from console.agent.service import PROTOCOL, Service
from console.agent.settings import Settings
from console.model.event import Accepted, Ended, Recorded
from console.model.live import Release
from console.model.step import Promote
from tests.agent.test_service import WHO, listening, watching
from tests.faults.rules.tables import SCHEMA, commit_rows, copying_feed, foreign, number, rows
from tests.faults.rules.test_maintainer import FEED, release
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

TOO_MANY = "Too many open files"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A region's agent that follows nothing yet."""
    (tmp_path / "_console").mkdir()
    begun = Service(tmp_path, Settings(region="eu", tick_seconds=0.01), -1)
    yield begun
    begun.agent.stop()


@pytest.fixture(params=["its disk is full", "its reader is gone", "it is closed"])
def unwritable(request: pytest.FixtureRequest) -> Iterator[TextIO]:
    """An agent's log. Tests put it in stderr's place themselves: pytest has its own there between two phases."""
    if request.param == "its reader is gone":
        reader, writer = os.pipe()
        os.close(reader)
        log = os.fdopen(writer, "w")
    else:
        log = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
    if request.param == "it is closed":
        log.close()
    yield log
    with suppress(OSError):
        log.close()


@contextmanager
def no_more_files() -> Iterator[None]:
    """Whatever this process opens meanwhile fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def failing(place: Path, name: str) -> LiveFeed:
    """A feed whose source is nowhere."""
    return copying_feed(str(place / "nowhere"), str(place / name))


# -- the log


def test_an_agent_starts_over_a_damaged_pipeline_though_its_log_cannot_be_written(
    service: Service, unwritable: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", unwritable)
    damaged = service.agent.warehouse / "_console/broken/rollouts/_delta_log"
    damaged.mkdir(parents=True)
    (damaged / f"{0:020}.json").touch()
    service.agent.start()
    service.agent.tick()
    assert service.agent.follower.is_alive()


def test_a_failure_that_cannot_be_logged_holds_up_no_other_feed(
    service: Service, tmp_path: Path, unwritable: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", unwritable)
    feeds = [failing(tmp_path, name) for name in ("first", "second")]
    service.agent.follower.follow("web", tuple(feeds))
    service.agent.follower._move_pipeline("web")
    assert [each.health.tries for each in feeds] == [1, 1]


def test_a_follower_goes_on_though_nobody_can_be_told(tmp_path: Path) -> None:
    def full_disk(*_: str) -> None:
        raise OSError(28, "No space left on device")

    follower = FeedFollower(
        cast(Any, SimpleNamespace(session=object, live_session=object, give_up=lambda _: None)), 0.01, full_disk
    )
    follower.start()
    for name in ("first", "second"):
        tried = failing(tmp_path, name)
        follower.follow("web", (tried,))
        while not tried.health.tries:
            assert follower.is_alive()
            follower.join(0.01)
    follower.stop()
    follower.join(30)


# -- a lag


class Measured:
    """A follower of one feed that is two commits behind, whose lag is measured whenever it is asked for."""

    def __init__(self, place: Path) -> None:
        self.full_disk: list[tuple[str, str, str]] = []
        self.landing, self.copy = foreign(place / "landing", rows(0), rows(1), rows(2)), str(place / "copy")
        DeltaTable.create(self.copy, schema=SCHEMA, partition_by=["day"])
        self.follower = FeedFollower(cast(Any, None), 1.0, lambda *each: self.full_disk.append(each))
        self.follower.follow("web", (copying_feed(self.landing, self.copy),))

    @property
    def lag(self) -> tuple[int, int]:
        result = self.follower.lag("web")
        return result.commits, result.rows


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    for limit in ("LAG_SECONDS", "LAG_SHARE"):
        monkeypatch.setattr(follower, limit, 0.0)
    return Measured(tmp_path)


def test_a_lag_that_cannot_be_measured_is_the_last_that_was_known_and_said_once(measured: Measured) -> None:
    assert measured.lag == (2, 2)
    for _ in range(2):
        with no_more_files():
            assert [measured.lag, measured.lag] == [(2, 2), (2, 2)]
        assert [(level, TOO_MANY in text) for _, level, text in measured.full_disk] == [("warning", True)]
        measured.follower.lag("web")
        measured.full_disk.pop()
    write_deltalake(measured.landing, rows(3, 4), mode="append", partition_by=["day"])
    assert measured.lag == (3, 4)
    assert not measured.full_disk


def test_a_feed_of_which_nothing_was_known_yet_is_left_out_and_keeps_no_other_from_being_measured(
    measured: Measured, tmp_path: Path
) -> None:
    gone = copying_feed(measured.landing, str(tmp_path / "gone"))
    measured.follower.follow("web", (gone, copying_feed(measured.landing, measured.copy)))
    assert [measured.lag, measured.lag] == [(2, 2), (2, 2)]
    assert [level for _, level, _ in measured.full_disk] == ["warning"]


def test_a_state_is_answered_where_a_feeds_target_is_gone(service: Service, tmp_path: Path) -> None:
    landing = foreign(tmp_path / "landing", rows(0))
    service.agent.follower.follow("web", (copying_feed(landing, str(tmp_path / "gone")),))
    assert service.state("web")["status"].state == "none"


def test_one_who_cannot_be_told_a_lag_keeps_nobody_else_from_it(service: Service) -> None:
    def broken(_: Recorded) -> None:
        raise OSError(116, "Stale file handle")

    messages: list[Recorded] = []
    service.agent.controller("bad").recorder.watch(0, broken)
    service.agent.controller("web").recorder.watch(0, messages.append)
    service.agent.tick()
    assert len(messages) == 1


async def test_the_agent_outlives_whatever_it_looks_at_once_a_second_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        raise RuntimeError("can't start new thread")

    agent = SimpleNamespace(
        warehouse="w",
        tick=look,
        tick_seconds=1.0,
        driver_lost=lambda: len(looks) == 2,
        sleeper=SimpleNamespace(may_restart=False),
    )
    service = SimpleNamespace(agent=agent)
    assert await _loop(service, tmp_path / "s") == RESTART
    assert capsys.readouterr().err.count("error agent: RuntimeError: can't start new thread") == 1


# -- who watches, and who asks


async def test_a_watch_that_cannot_begin_ends_its_connection_and_is_reported(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(service, "web")
    last = max((tmp_path / "_console/web/rollouts/_delta_log").glob("*.json"))
    was = last.read_bytes()
    last.write_bytes(b"")
    async with listening(service, tmp_path / "s"), asyncio.timeout(60):
        reader, writer = await watching(tmp_path / "s")
        assert await reader.read() == b""
        writer.close()
        assert "[E_LOG_EMPTY]" in capsys.readouterr().err
        last.write_bytes(was)
        reader, writer = await watching(tmp_path / "s")
        assert json.loads(await reader.readline())["params"]["seq"] == 1
        writer.close()


async def test_an_agent_at_much_slow_work_still_answers_who_asks_for_its_state(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, go = threading.Semaphore(0), threading.Event()

    def slow(**_: Any) -> dict[str, Any]:
        at_work.release()
        go.wait(300)
        return {}

    monkeypatch.setitem(service._methods, "verify", slow)
    asked = [("hello", {"protocol": PROTOCOL}), ("state", {"pipeline": "web"}), ("watch", {"pipeline": "web"})]
    async with listening(service, tmp_path / "s"):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        try:
            for id in range(THREADS):
                writer.write(request(id, "verify", {}))
            await asyncio.to_thread(lambda: [at_work.acquire(timeout=60) for _ in range(THREADS)])
            async with asyncio.timeout(60):
                for id, (method, params) in enumerate(asked, THREADS):
                    writer.write(request(id, method, params))
                    assert json.loads(await reader.readline())["id"] == id
                while not service.agent.controller("web").recorder.watchers:
                    await asyncio.sleep(0.01)
        finally:
            go.set()
            writer.close()


def request(id: int, method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


# -- VACUUM beside a pipeline that is down


def recorded(service: Service, pipeline: str, made: Release | None = None) -> None:
    """The pipeline had one rollout, which has ended; `made` is its live release."""
    made = made or Release(id="r1", pipeline=pipeline, digest="d", tables=(), feeds=())
    line = service.agent.controller(pipeline)
    line.releases.propose(made, f"{pipeline}-1", "ada", "laptop")
    line.releases.swap("", "r1", "ada", "laptop")
    plan = bare_plan(pipeline=pipeline, steps=(Promote(),), release=made)
    line.recorder.accept(
        f"{pipeline}-1",
        plan,
        Accepted(release="r1", was="", plan="digest", by="ada", host="laptop", steps=(("promote", 0),)),
    )
    line.recorder.store(Ended("discarded", "ada"))


@pytest.fixture
def shared(service: Service, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A managed landing table whose first files were replaced long ago. `web` has carried all of it, `broken` one commit.
    Returns a pass over `web`: what VACUUM says of landing."""
    place, landing = service.agent.warehouse, str(service.agent.warehouse / "landing")
    no_time = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    DeltaTable.create(landing, schema=SCHEMA, partition_by=["day"], configuration=no_time)
    foreign(place / "landing", *(rows(n) for n in range(3)))
    DeltaTable(landing).optimize.compact()
    for pipeline, reached in (("web", 4), ("broken", 1)):
        copy = str(place / pipeline / "copy")
        DeltaTable.create(copy, schema=SCHEMA, partition_by=["day"])
        commit_rows(copy, app_ids.live_id(copy, FEED), number(1, reached), rows())
        recorded(service, pipeline, release("r1", f"{pipeline}/copy"))
    spark = SimpleNamespace(
        session=lambda **_: None, live_session=lambda **_: None, give_up=lambda _: None, started=False, asleep_since=1.0
    )
    monkeypatch.setattr(maintainer, "vacuum", lambda *_: None)

    def keep() -> list[str]:
        monkeypatch.setattr(service.agent.maintainer, "_spark", spark)
        done = service.maintain("web", **WHO)["done"]
        return [f"{each.what} {each.detail}" for each in done if each.table == "landing"]

    return keep


def test_nothing_is_vacuumed_while_a_pipeline_is_down_that_may_still_need_it(
    service: Service,
    shared: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    last = max((service.agent.warehouse / "_console/broken/rollouts/_delta_log").glob("*.json"))
    was = last.read_bytes()
    last.write_bytes(b"")
    service.agent._controllers.clear()  # as a fresh agent
    for pipeline in ("broken", "web"):
        service.agent._load(pipeline)
    for _ in range(2):
        assert shared() == ["left broken has failed to load and may need its old files"]
    output = capsys.readouterr().err
    assert output.count("warning web: maintenance: nothing is vacuumed while broken fails to load") == 1
    last.write_bytes(was)
    monkeypatch.setattr("console.agent.region_agent.RETRY_SECONDS", 0.0)
    service.agent.tick()
    (report,) = shared()
    assert report.startswith("left its old files are still needed: broken: every into copy of r1, version 1")
    copy = str(service.agent.warehouse / "broken/copy")
    commit_rows(copy, app_ids.live_id(copy, FEED), number(1, 4), rows())
    (report,) = shared()
    assert report.startswith("vacuumed")
