"""Surveys, plans and states that are too long for a line of the protocol. No Java."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from console import paths
from console.agent import long_answers
from console.agent.long_answers import LongAnswers
from console.agent.pipeline import PipelineController
from console.agent.service import Service
from console.agent.settings import Settings
from console.agent.store.ledger import Releases
from console.agent.survey import survey
from console.drivers import survey as survey_module
from console.drivers.frames import FRAME
from console.drivers.local import LocalDriver
from console.drivers.protocol import Who
from console.errors import DataError, FrameTooLong, Unreachable
from console.model import codec, parts
from console.model.live import Live, Release, TableState
from console.model.region import Region
from console.model.step import Promote
from console.record import replace
from tests.agent.test_service import listening
from tests.faults.rules.tables import rows, state
from tests.plans import bare_plan

pytestmark = pytest.mark.slow
TABLES = 12


def noisy(name: str) -> TableState:
    """A table whose description no compression shortens much."""
    table = state(name)
    text = "".join(random.Random(name).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100_000))
    return replace(table, table=replace(table.table, description=text))


@asynccontextmanager
async def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Service, LocalDriver]]:
    """The service of a region of large manifests behind its socket, and a console's driver."""
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    warehouse = tmp_path / "w"
    tables = tuple(noisy(f"t{number}") for number in range(TABLES))
    for table in tables:
        write_deltalake(str(warehouse / table.version.path), rows(1, 2), partition_by=["day"])
    releases = Releases(warehouse, "web")
    releases.propose(Release(id="r1", pipeline="web", digest="d", tables=tables, feeds=()), "web-1", "ada", "ops")
    releases.swap("", "r1", "ada", "ops")
    service = Service(warehouse, Settings(region="eu"), -1)
    driver = LocalDriver(Region(name="eu", warehouse=str(warehouse)))
    async with listening(service, paths.socket_path(str(warehouse))):
        try:
            yield service, driver
        finally:
            await driver.close()
            service.agent.stop()


def here(warehouse: Path) -> Live:
    return survey(warehouse, "eu", "web", [])


async def test_it_is_the_survey_of_the_logs_and_no_process_is_begun_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_process(*_: Any, **__: Any) -> bytes:
        raise AssertionError("a process was begun")

    async with large(tmp_path, monkeypatch) as (service, driver):
        monkeypatch.setattr(survey_module, "_run", no_process)
        assert len(parts.packed(codec.dumps(service.survey("web", [])))) > 1
        for number in range(3):
            live = await driver.survey("web", [])
            assert replace(live, free_bytes=0) == replace(here(service.agent.warehouse), free_bytes=0)
            assert {stats.rows for stats in live.stats} == {2 + number}
            for name in (stats.path for stats in live.stats):  # somebody's commits
                write_deltalake(name, rows(10 + number), mode="append")
        DeltaTable(live.stats[0].path).delete()
        assert (await driver.survey("web", [])).stats[0].rows == 0


async def test_a_plan_too_long_for_a_line_is_accepted_and_stands_in_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with large(tmp_path, monkeypatch) as (_, driver):
        monkeypatch.setattr(PipelineController, "resume", lambda self: None)
        live = (await driver.survey("web", [])).release
        assert live is not None
        words = "one word after the other " * 5_000
        tables = tuple(replace(each, table=replace(each.table, description=words)) for each in live.tables)
        large_plan = bare_plan(live="r1", release=replace(live, id="", digest="e", tables=tables), steps=(Promote(),))
        assert len(codec.dumps(large_plan)) > FRAME
        rollout = await driver.accept(large_plan, Who("ada@laptop", "laptop"))
        state = await driver.state("web")
        assert (rollout, state.status.rollout) == ("web-2", "web-2")
        assert state.plan is not None
        assert state.plan.release.tables == tables


async def test_parts_that_are_not_kept_any_more_break_the_answer_off_and_it_may_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with large(tmp_path, monkeypatch) as (_, driver):
        monkeypatch.setattr(long_answers, "KEPT", 0)
        with pytest.raises(Unreachable, match="broke off"):
            await driver.survey("web", [])
        monkeypatch.setattr(long_answers, "KEPT", 8)
        assert (await driver.survey("web", [])).release


async def test_an_agent_of_an_older_version_is_sent_no_request_that_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hello = Service.hello
    monkeypatch.setattr(Service, "hello", lambda self, protocol: {**hello(self, protocol), "parts": False})
    async with large(tmp_path, monkeypatch) as (service, driver):
        live = await driver.survey("web", [])  # by a process of its own
        assert replace(live, free_bytes=0) == replace(here(service.agent.warehouse), free_bytes=0)
        assert live.release is not None
        with pytest.raises(FrameTooLong):
            await driver.accept(bare_plan(live="r1", release=live.release, steps=(Promote(),)), Who("ada", "ops"))


async def test_what_is_packed_and_no_request_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with large(tmp_path, monkeypatch) as (service, _):
        reader, writer = await asyncio.open_unix_connection(paths.socket_path(str(service.agent.warehouse)))
        inner = [parts.packed(text)[0] for text in ('{"method":"packed","params":{}}', "[]", '{"method":1}', "{")]
        for number, params in enumerate([{}, {"text": 1}, {"text": "!"}, *({"text": text} for text in inner)]):
            request = {"jsonrpc": "2.0", "id": number, "method": "packed", "params": params}
            writer.write(json.dumps(request).encode() + b"\n")
            answer = json.loads(await reader.readline())
            assert (answer["id"], answer["error"]["data"]["type"]) == (number, "DataError")
        writer.close()


def test_no_more_than_a_few_answers_are_kept_and_none_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "CHARACTERS", 8)
    answers = LongAnswers()
    begun = [answers.begin(f"a text of number {number}") for number in range(long_answers.KEPT + 2)]
    assert [answers.part(answer["of"], 1)["text"] != "" for answer in begun] == [False] * 2 + [True] * long_answers.KEPT
    last = begun[-1]
    assert answers.part(last["of"], last["parts"])["text"] == answers.part(last["of"], -1)["text"] == ""
    texts = [last["text"], *(answers.part(last["of"], number)["text"] for number in range(1, last["parts"]))]
    assert parts.unpacked(texts) == f"a text of number {long_answers.KEPT + 1}"
    assert answers.part(last["of"], 1) == {"text": ""}
    monkeypatch.setattr(long_answers, "SECONDS", -1.0)
    answers.begin("one more")
    assert len(answers._kept) == 1


@given(st.text(max_size=200), st.integers(1, 9))
def test_a_text_comes_out_of_its_parts_as_it_was_and_out_of_no_others(text: str, size: int) -> None:
    whole = parts.packed(text)
    assert parts.unpacked(whole) == text
    (data,) = whole
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    assert parts.unpacked(cut) == text
    for wrong in (cut[:-1], [*cut[:-1], "é"], ["AAAA"], []):
        with pytest.raises(DataError):
            parts.unpacked(wrong)


def test_a_text_that_grows_beyond_the_limit_is_refused_before_it_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BYTES", 1000)
    assert parts.unpacked(parts.packed("a" * 999)) == "a" * 999
    with pytest.raises(DataError, match="longer"):
        parts.unpacked(parts.packed("a" * 5000))
