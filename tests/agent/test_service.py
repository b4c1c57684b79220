"""The region's service without Java: attached rollouts, pipelines that fail to load because of damage, events for watchers."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.agent import queries
from console.agent.region_agent import REPORT_SECONDS, RESTING_TICK_SECONDS, TICK_SECONDS
from console.agent.server import Server, _Connection
from console.agent.service import Service
from console.agent.settings import Settings
from console.errors import Conflict, DataError, RegionError
from console.model import codec
from console.model.event import Ended, Entered, Paused, Progress, Recorded
from console.model.identity import AgentReason, by_agent
from console.model.live import Release
from console.model.plan import Plan
from console.model.step import Promote
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

PLAN = bare_plan(steps=(Promote(),), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()))
OTHER = replace(PLAN, desired="e")
WHO = {"by": "ada@laptop", "host": "laptop"}
QUEUE = 500  # events that a slow watcher may be behind, in place of thousands


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Service]]:
    """Begins the region's agent, anew each time; all of them are ended."""
    (tmp_path / "_console").mkdir(exist_ok=True)
    begun: list[Service] = []

    def begin() -> Service:
        for service in begun:
            service.agent.stop()
        begun.append(Service(tmp_path, Settings(region="eu"), -1))
        begun[-1].agent.start()
        return begun[-1]

    yield begin
    for service in begun:
        service.agent.stop()


def accept(service: Service, plan: Plan, *, attached: bool = False, console: str = "") -> str:
    return service.accept(codec.encode(plan), **WHO, attached=attached, console=console)["rollout"]


def until(test: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not test():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_plan_that_is_refused_or_carried_already_ties_nothing_to_its_console(start: Callable[[], Service]) -> None:
    service = start()
    assert accept(service, PLAN) == "web-1"
    with pytest.raises(Conflict, match="web-1 by ada@laptop is under way"):
        accept(service, OTHER, attached=True)
    assert accept(service, PLAN, attached=True) == "web-1"
    assert not service.agent.controller("web").watchdog.attached


def test_a_rollout_stays_tied_across_a_restart_until_it_has_paused_for_that(start: Callable[[], Service]) -> None:
    service = start()
    accept(service, PLAN, attached=True)
    assert service.agent.controller("web").watchdog.attached
    service = start()
    assert service.agent.controller("web").watchdog.attached
    service.agent.controller("web").recorder.store(Paused(by_agent(AgentReason.CONSOLE_LEFT)))
    service.control("web", "resume", **WHO)
    assert not start().agent.controller("web").watchdog.attached


def test_what_no_rollout_can_do_is_refused_by_name(start: Callable[[], Service]) -> None:
    service = start()
    accept(service, PLAN)
    with pytest.raises(DataError, match="'explode' is none of pause, resume, retry, cancel, discard"):
        service.control("web", "explode", **WHO)


def test_a_plan_of_a_console_that_was_taken_over_is_refused(start: Callable[[], Service]) -> None:
    service = start()
    accept(service, PLAN, console="one")
    assert accept(service, PLAN, console="one") == "web-1"
    service.take_over("web", **WHO, console="two")
    with pytest.raises(Conflict, match="took it over") as refused:
        accept(service, PLAN, console="one")
    assert refused.value.code == "E_TAKEN_OVER"
    assert accept(service, PLAN, console="two") == "web-1"


def test_a_damaged_pipeline_keeps_no_other_down_and_is_taken_up_when_it_is_whole(
    start: Callable[[], Service], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start()
    for name in ("broken", "web"):
        accept(service, replace(PLAN, pipeline=name, release=replace(PLAN.release, pipeline=name)))
        until(lambda name=name: service.agent.controller(name).recorder.status.state == "awaiting-confirmation")
    last = max((tmp_path / "_console/broken/rollouts/_delta_log").glob("*.json"))
    was = last.read_bytes()
    last.write_bytes(b"")
    service = start()
    monkeypatch.setattr("console.agent.region_agent.RETRY_SECONDS", 0.0)
    for _ in range(2):
        service.agent.tick()
    assert service.state("web")["status"].state == "awaiting-confirmation"
    with pytest.raises(RegionError, match="is empty, as after a power loss") as error:
        service.state("broken")
    assert error.value.code == "E_LOG_EMPTY"
    output = [line for line in capsys.readouterr().err.splitlines() if "broken" in line]
    assert len(output) == 1
    assert "[E_LOG_EMPTY]" in output[0]
    assert "restore _delta_log/" in output[0]
    last.write_bytes(was)
    service.agent.tick()
    assert service.state("broken")["status"].state == "awaiting-confirmation"
    assert "broken: loaded" in capsys.readouterr().err


def test_the_ticks_of_a_region_at_rest_are_rare_until_somebody_watches_it_or_it_has_a_rollout(
    start: Callable[[], Service],
) -> None:
    service = start()
    accept(service, PLAN)
    controller = service.agent.controller("web")
    until(lambda: controller.recorder.status.state == "awaiting-confirmation")
    assert service.agent.tick_seconds == TICK_SECONDS, "a rollout is at its gate"
    controller.recorder.store(Ended("discarded", "ada"))
    assert service.agent.tick_seconds == RESTING_TICK_SECONDS
    leave = controller.recorder.watch(0, lambda _: None)
    assert service.agent.tick_seconds == TICK_SECONDS, "it is watched"
    leave()
    assert service.agent.tick_seconds == RESTING_TICK_SECONDS


def test_a_pipeline_whose_lag_cannot_be_read_is_looked_after_and_reported_once_a_minute(
    start: Callable[[], Service], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr("console.agent.rollout.watchdog.Watchdog.tick", lambda *_: looked.append("watchdog"))
    service = start()
    accept(service, PLAN)
    controller = service.agent.controller("web")
    controller.recorder.watch(0, lambda _: None)
    (tmp_path / "_console/web/holds.json").write_text("{")
    controller.cleaning._held = None
    capsys.readouterr()
    for _ in range(3):
        service.agent.tick()
    assert looked == ["watchdog"] * 3
    told = "warning web: LogDamaged"
    assert capsys.readouterr().err.count(told) == 1
    service.agent._reported = {
        failure: until - REPORT_SECONDS for failure, until in service.agent._reported.items()
    }  # a minute later
    service.agent.tick()
    assert capsys.readouterr().err.count(told) == 1


@asynccontextmanager
async def listening(service: Service, path: Path) -> AsyncIterator[Server]:
    server = Server(service, path)
    serving = asyncio.create_task(server.run())
    while not path.exists():
        await asyncio.sleep(0.01)
    yield server
    server.end()
    await serving


async def watching(path: Path, request_id: object = 1) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    request = {"jsonrpc": "2.0", "id": request_id, "method": "watch", "params": {"pipeline": "web", "after": 0}}
    writer.write(json.dumps(request).encode() + b"\n")
    assert "result" in json.loads(await reader.readline())
    return reader, writer


async def test_a_connection_that_closes_while_it_begins_to_watch_watches_no_more(
    start: Callable[[], Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start()
    recorder = service.agent.controller("web").recorder
    begun, go, done, closed = (threading.Event() for _ in range(4))
    watch, close = recorder.watch, _Connection.close

    def slowly(*asked: Any) -> Any:
        begun.set()
        go.wait(30)
        try:
            return watch(*asked)
        finally:
            done.set()

    def closing(connection: _Connection) -> None:
        close(connection)
        closed.set()

    monkeypatch.setattr(recorder, "watch", slowly)
    monkeypatch.setattr(_Connection, "close", closing)
    async with listening(service, tmp_path / "s"):
        _, writer = await watching(tmp_path / "s")
        assert await asyncio.to_thread(begun.wait, 30)
        writer.close()
        assert await asyncio.to_thread(closed.wait, 30)
        go.set()
        assert await asyncio.to_thread(done.wait, 30)
        async with asyncio.timeout(30):
            while recorder.watchers:
                await asyncio.sleep(0.01)


async def test_a_watch_begins_whatever_the_id_of_its_request(start: Callable[[], Service], tmp_path: Path) -> None:
    service = start()
    async with listening(service, tmp_path / "s"):
        _, writer = await watching(tmp_path / "s", request_id="error")
        async with asyncio.timeout(30):
            while not service.agent.controller("web").recorder.watchers:
                await asyncio.sleep(0.01)
        writer.close()


async def test_a_watcher_that_does_not_read_loses_what_is_fleeting_and_nothing_that_is_stored(
    start: Callable[[], Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.agent.server.WATCH_QUEUE", QUEUE)
    service = start()
    recorder, stored = service.agent.controller("web").recorder, 2 * QUEUE + 100
    async with listening(service, tmp_path / "s"):
        reader, writer = await watching(tmp_path / "s")
        while not recorder.watchers:
            await asyncio.sleep(0.01)

        def tell() -> None:
            for number in range(1, stored + 1):
                recorder._apply(Recorded("web-1", number, 1.0, Entered("backfilling")))
                recorder._apply(Recorded("web-1", 0, 1.0, Progress(step="backfill/requests", rows=number)))

        tell()
        seen: list[int] = []
        async with asyncio.timeout(60):
            while not seen or seen[-1] < stored:
                report = json.loads(await reader.readline())["params"]
                if report["seq"]:
                    seen.append(report["seq"])
        writer.close()
    assert seen == list(range(1, stored + 1))


async def test_an_end_that_was_asked_for_loses_no_jvm_and_a_restart_does(
    start: Callable[[], Service], tmp_path: Path
) -> None:
    service = start()
    async with listening(service, tmp_path / "s") as server:
        server.restart()
        assert not service.agent.spark.ending
        server.end()
        assert service.agent.spark.ending


def test_a_value_that_is_not_of_its_parameters_type_is_the_askers_mistake_and_starts_no_spark() -> None:
    line: Any = SimpleNamespace(readable=lambda _: PLAN.release)
    no_spark: Any = None
    with pytest.raises(DataError, match="parameter n: 'x' is not of type int") as refused:
        queries.query(queries.PipelineReader(line), no_spark, "SELECT :n", tables=[], args={"n": ["x", "int"]}, limit=1)
    assert refused.value.exit_code == 65


def test_the_agents_own_clock_shows_utc_on_any_host() -> None:
    script = "import time; from console.agent.__main__ import main; main(['survey']); print(time.strftime('%H', time.localtime(0)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        input="[]",
        check=False,
        env={**os.environ, "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["00"], done.stderr
