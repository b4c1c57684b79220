"""Regions of this machine: a real survey, a real agent, and the failures of both."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console import paths
from console.agent.lock import RegionLock
from console.agent.store.ledger import Releases
from console.drivers import local
from console.drivers import survey as survey_module
from console.drivers.local import LocalDriver, local_drivers
from console.drivers.protocol import RegionState, Who
from console.drivers.transport import Surveyed, SurveyRequest
from console.errors import Conflict, DataError, Protocol, RegionError, Unreachable
from console.model.codec import encode
from console.model.event import Entered, Recorded
from console.model.live import Release
from console.model.region import Region
from console.model.status import Status
from tests.faults.rules.tables import state

WHO = Who("ada@laptop", "laptop")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def place(folder: Path, name: str = "eu") -> Region:
    (folder / name).mkdir(exist_ok=True)
    return Region(name=name, warehouse=str(folder / name), where=f"regions/{name}.yaml:1:1")


@asynccontextmanager
async def agent(region: Region, **answers: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> AsyncIterator[None]:
    """A stand-in agent on the region's real socket, for what a real one would never say."""
    hello = {"protocol": 1, "tool": "0.1.0", "pid": 1, "region": region.name, "warehouse": region.warehouse}

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            question = json.loads(line)
            message = answers.get(question["method"], lambda _: [{"result": hello}])(question["params"])
            for part in message:
                head = {"jsonrpc": "2.0"} if "method" in part else {"jsonrpc": "2.0", "id": question["id"]}
                writer.write(json.dumps({**head, **part}).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(served, paths.socket_path(region.warehouse))
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.slow
async def test_three_regions_are_surveyed_by_one_process_and_each_has_its_own_answer(tmp_path: Path) -> None:
    regions = [place(tmp_path, name) for name in ("eu", "us", "ap")]
    gone = Region(name="mars", warehouse=str(tmp_path / "mars"), where="regions/mars.yaml:1:1")
    drivers = local_drivers([*regions, gone])
    processes = 0
    run = survey_module._run

    async def counted(question: bytes, **more: Any) -> bytes:
        nonlocal processes
        processes += 1
        return await run(question, **more)

    survey_module._run = counted
    try:
        asked = [driver.survey("web", ["landing"]) for driver in drivers.values()]
        states = [driver.state("web") for driver in drivers.values()]
        *result, missing, eu, us, ap, mars = await asyncio.gather(*asked, *states, return_exceptions=True)
    finally:
        survey_module._run = run
    assert processes == 1
    assert [live.region for live in result if not isinstance(live, BaseException)] == ["eu", "us", "ap"]
    assert isinstance(missing, DataError)
    assert str(tmp_path / "mars") in str(missing)
    assert "regions/mars.yaml" in missing.hint
    assert all(isinstance(state, RegionState) for state in (eu, us, ap))
    assert isinstance(mars, DataError)


@pytest.mark.slow
async def test_a_state_is_read_without_the_log_of_a_table_that_no_feed_reads(tmp_path: Path) -> None:
    region = place(tmp_path)
    releases = Releases(Path(region.warehouse), "web")
    releases.propose(
        Release(id="r1", pipeline="web", digest="d", tables=(state("lone"),), feeds=()), "web-1", "ada", "ops"
    )
    releases.swap("", "r1", "ada", "ops")
    log = Path(region.warehouse) / "lone" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{")
    assert (await LocalDriver(region).state("web")).live == "r1"
    assert [row.state for row in (await LocalDriver(region).state("web")).releases] == ["live"]
    with pytest.raises(Unreachable, match="lone"):
        await LocalDriver(region).survey("web", [])


def test_what_a_host_of_an_older_version_sends_unasked_is_left_aside() -> None:
    asked = SurveyRequest(region="eu", warehouse="/w", pipeline="web", tables=False, state=True)
    line = json.dumps({"live": {"type": "NoLive"}, "state": encode(RegionState(Status(), None, ()))}).encode()
    answer = survey_module.surveyed(asked, line)
    assert isinstance(answer, Surveyed)
    assert (answer.live, answer.state) == (None, RegionState(Status(), None, ()))
    assert isinstance(survey_module.surveyed(replace(asked, tables=True), line), Protocol)
    assert isinstance(survey_module.surveyed(replace(asked, tables=True), b'{"state":null}'), Protocol)


async def test_a_warehouse_that_is_a_file_is_wrong_as_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="not a directory"):
        await LocalDriver(Region(name="eu", warehouse=str(tmp_path / "file"))).survey("web", [])


async def test_without_an_agent_a_watch_is_unreachable_and_starts_none(tmp_path: Path) -> None:
    driver = LocalDriver(place(tmp_path))
    with pytest.raises(Unreachable, match="no agent runs"):
        await anext(aiter(driver.watch("web")))
    assert not (tmp_path / "eu" / "_console").exists()


@pytest.mark.slow
async def test_a_real_agent_is_started_found_by_others_and_stopped(tmp_path: Path) -> None:
    region = place(tmp_path)
    one, two = LocalDriver(region), LocalDriver(region)
    await asyncio.gather(one.start_agent(), two.start_agent())
    state = await one.state("web")
    assert state.status.state == "none"
    assert (await two.survey("web", [])).region == "eu"
    log = paths.log_dir() / "agent-eu.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    holder = json.loads((tmp_path / "eu" / "_console" / "agent.lock").read_text())
    assert os.getsid(holder["pid"]) == holder["pid"]

    # another runtime directory: the socket is elsewhere, and the region's lock says where
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path / "home")
    three = LocalDriver(region)
    assert (await three.state("web")).status.state == "none"
    await three.stop()
    until = time.monotonic() + 10
    while Path(holder["socket"]).exists() and time.monotonic() < until:
        await asyncio.sleep(0.05)
    with pytest.raises(Unreachable):
        await anext(aiter(two.watch("web")))
    for driver in (one, two, three):
        await driver.close()


async def test_an_agent_that_cannot_start_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(*_: str) -> list[str]:
        return [sys.executable, "-c", "import sys; print('no Java 17 here', file=sys.stderr); sys.exit(1)"]

    monkeypatch.setattr("console.drivers.local.agent_command", command)
    with pytest.raises(RegionError, match="exit code 1: no Java 17 here") as caught:
        await LocalDriver(place(tmp_path)).start_agent()
    assert "agent-eu.log" in caught.value.hint


@pytest.mark.slow
async def test_an_agent_that_ends_says_why_in_its_own_words_and_with_its_own_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_OTHER_AGENT_SECONDS", 0.1)
    region = place(tmp_path)
    RegionLock(tmp_path / "eu").take({"tool": "test"})
    with pytest.raises(Conflict) as own:
        RegionLock(tmp_path / "eu").take({"tool": "test"}, timeout=0.1)
    with pytest.raises(Conflict) as caught:
        await LocalDriver(region).start_agent()
    assert str(caught.value) == str(own.value)
    assert (caught.value.code, caught.value.hint) == (own.value.code, own.value.hint)


@pytest.mark.slow
async def test_an_agent_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "console.drivers.local.agent_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(2)"]
    )
    with pytest.raises(Unreachable, match="does not answer"):
        await LocalDriver(place(tmp_path), start_seconds=0.2).start_agent()


@pytest.mark.parametrize(
    ("report", "kind", "says"),
    [
        ({"result": {"protocol": 2, "tool": "9.0", "pid": 7, "warehouse": "{}"}}, Conflict, "protocol 2"),
        ({"result": {"protocol": 1, "tool": "9.0", "pid": 7, "warehouse": "/other"}}, Conflict, "/other"),
        ({"error": {"code": 1, "message": "speaks 2", "data": {"type": "DataError"}}}, Conflict, "speaks 2"),
        ({"result": {"protocol": "1"}}, Protocol, "greeting"),
    ],
)
async def test_only_the_right_agent_of_the_right_version_is_talked_to(
    report: dict[str, Any], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    region = place(tmp_path)
    async with agent(region, hello=lambda _: [report]):
        with pytest.raises(kind, match=says):
            await LocalDriver(region).state("web")


EVENT = encode(Recorded("web-2", 1, 5.0, Entered("preparing")))


@pytest.mark.parametrize(
    "event",
    [
        {**EVENT, "seq": -1},
        {**EVENT, "seq": "1"},
        {**EVENT, "at": -5.0},
        {**EVENT, "event": {"type": "Entered", "state": "conquered"}},
        {**EVENT, "event": {"type": "Progress", "step": "x", "rows": -2}},
        {**EVENT, "event": {"type": "Rebooted"}},
        {**EVENT, "seq!0.9.0": "1"},
        {},
    ],
)
async def test_an_event_that_cannot_be_breaks_the_watch_and_is_kept_for_the_log(
    event: dict[str, Any], tmp_path: Path
) -> None:
    region = place(tmp_path)
    messages = [{"result": {}}, {"method": "event", "params": EVENT}, {"method": "event", "params": event}]
    async with agent(region, watch=lambda _: messages):
        events = aiter(LocalDriver(region).watch("web"))
        assert await anext(events) == Recorded("web-2", 1, 5.0, Entered("preparing"))
        with pytest.raises(Protocol) as caught:
            await anext(events)
        kept = paths.log_dir() / "protocol-eu.log"
        assert str(kept) in caught.value.hint or "versions" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("accept", {}),
        ("accept", {"rollout": 7}),
        ("control", {"state": "conquered"}),
        ("promote", []),
        ("cleanup", {"dropped": [7]}),
        ("restore", {"release": 7}),
        ("ingest", {"rows": True, "already": False}),
        ("run", {"rows": "many"}),
        ("query", {"columns": [["a"]], "rows": [], "release": "r1"}),
    ],
)
async def test_an_answer_of_the_wrong_shape_is_a_protocol_error(call: str, result: Any, tmp_path: Path) -> None:
    region = place(tmp_path)
    async with agent(region, **{call: lambda _: [{"result": result}]}):
        driver = LocalDriver(region)
        asks: dict[str, Callable[[], Any]] = {
            "accept": lambda: driver._call("accept", {}, 5),
            "control": lambda: driver.control("web", "pause", WHO),
            "promote": lambda: driver.promote("web", "web-2", "r1", WHO),
            "cleanup": lambda: driver.cleanup("web", WHO),
            "restore": lambda: driver.restore("web", WHO),
            "ingest": lambda: driver.ingest("web", "landing", "b", []),
            "run": lambda: driver.run("web", "copy", "daily", WHO),
            "query": lambda: driver.query("web", "SELECT 1", [], {}, 1),
        }
        if call == "accept":
            from tests.runner.worlds import PIPELINE, plan, survey

            live = survey("eu")
            asks["accept"] = lambda: driver.accept(plan(PIPELINE, live, region), WHO)
        with pytest.raises(Protocol):
            await asks[call]()
        await driver.close()


async def test_a_hold_is_asked_for_by_a_parameter_that_an_older_agent_is_sent_only_then(tmp_path: Path) -> None:
    region, asked = place(tmp_path), list[dict[str, Any]]()

    def answer(params: dict[str, Any]) -> list[dict[str, Any]]:
        asked.append(params)
        return [{"result": {"dropped": ["requests/a-1"]}}]

    async with agent(region, cleanup=answer, restore=lambda _: [{"result": {"release": "r1"}}]):
        driver = LocalDriver(region)
        assert await driver.cleanup("web", WHO, previous=True) == ("requests/a-1",)
        await driver.cleanup("web", WHO, previous=True, hold=24.0)
        assert await driver.restore("web", WHO) == "r1"
        await driver.close()
    assert [params.get("hold") for params in asked] == [None, 24.0]


@pytest.mark.slow
async def test_a_survey_too_long_for_the_socket_is_answered_without_it(tmp_path: Path) -> None:
    region = place(tmp_path)
    error = {"code": 1, "message": "larger", "data": {"type": "DataError", "code": "E_FRAME"}}
    async with agent(region, survey=lambda _: [{"error": error}]):
        driver = LocalDriver(replace(region, zone="UTC"))
        assert (await driver.survey("web", [])).region == "eu"
        await driver.close()


ENDS = """
import asyncio, sys
from console.drivers import survey

async def ends(turns):
    begun = asyncio.create_task(survey._run(b"[]"))
    for _ in range(turns):
        await asyncio.sleep(0)

for turns in range(8):
    asyncio.run(ends(turns))
"""


@pytest.mark.slow
def test_a_command_that_is_done_while_a_survey_is_being_started_ends() -> None:
    """A loop that ends cancels what is under way in it, at whatever point it has reached."""
    subprocess.run([sys.executable, "-c", ENDS], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "error", "report"),
    [
        ("print('{}' * 100)", Protocol, "printed more than 64 bytes"),
        ("import sys; sys.stdin.read(); sys.stderr.write('x' * 1000)", Protocol, "printed more than"),
        ("import time; time.sleep(100)", Unreachable, "gave no answer in 1 s"),
        ("raise SystemExit('no such place')", RegionError, "ended with exit code 1: no such place"),
        ("print('[]')", None, "[]\n"),
    ],
)
async def test_a_survey_that_does_not_answer_as_it_should_is_ended_and_told(
    script: str, error: type[Exception] | None, report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "agent_command", lambda _: [sys.executable, "-c", script])
    monkeypatch.setattr(survey_module, "_ANSWER", 64)
    monkeypatch.setattr(survey_module, "_ERRORS", 64)
    question = b"x" * (1 << 20)  # more than a pipe holds
    if error is None:
        assert (await survey_module._run(question)).decode() == report
        return
    with pytest.raises(error, match=report):
        await survey_module._run(question, seconds=1.0 if "sleep" in script else 30.0)
