"""A link to an agent that may say anything at all, over a real socket."""

import asyncio
import copy
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.agent import errors as agent_errors
from console.drivers.frames import FRAME, TAIL, Link, frames, rebuild
from console.errors import (
    Conflict,
    ConsoleError,
    DataError,
    FrameTooLong,
    LoadMoved,
    NoAgent,
    NoWarehouse,
    Protocol,
    RegionError,
    SchemaMoved,
    Unreachable,
    type_name,
)

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def linked(folder: Path, talk: Talk) -> AsyncIterator[Link]:
    """A link to a server that behaves as `talk` says."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(served, folder / "s", limit=FRAME)
    reader, writer = await asyncio.open_unix_connection(folder / "s")
    link = Link(reader, writer, "eu")
    try:
        yield link
    finally:
        await link.close()
        server.close()
        await server.wait_closed()


def says(answer: Callable[[dict[str, object]], bytes]) -> Talk:
    """Answers each question with these bytes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(answer(json.loads(line)))
            await writer.drain()

    return talk


def line(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


async def test_calls_made_at_once_each_get_their_own_answer_in_any_order(tmp_path: Path) -> None:
    async def backwards(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = [json.loads(await reader.readline()) for _ in range(20)]
        for question in reversed(asked):
            writer.write(line(id=question["id"], result=question["params"]["n"]))
        await reader.read()

    async with linked(tmp_path, backwards) as link:
        answers = await asyncio.gather(*(link.call("double", {"n": n}, seconds=5) for n in range(20)))
    assert answers == list(range(20))


@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":1,"result":"\xff\xfe"}\n',
        b'{"jsonrpc":"2.0","id":1,"result":NaN}\n',
        b'{"jsonrpc":"2.0","id":1,"result":Infinity}\n',
        b'{"jsonrpc":"2.0","id":1,"result":1,"result":2}\n',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"9" * 5000 + b"}\n",
        b"[" * 200_000 + b"\n",
        b"Password: \n",
        b"\n",
        b'{"jsonrpc":"2.0","id":77,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":"1","result":{}}\n',
        b'{"jsonrpc":"2.0","id":true,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}\n',
        b'{"jsonrpc":"2.0","id":1,"error":"no"}\n',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":7}}\n',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":{"type":"Conflict","hint":7}}}\n',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}\n',
        b'{"jsonrpc":"2.0","method":"event","params":{}}\n',
        b'{"id":1,"result":{}}\n',
        b"[]\n",
        b"null\n",
        b"x" * (FRAME + 1),
    ],
)
async def test_what_is_no_answer_ends_the_link_and_every_call_on_it(message: bytes, tmp_path: Path) -> None:
    async with linked(tmp_path, says(lambda _: message)) as link:
        calls = await asyncio.gather(
            link.call("state", {}, seconds=5), link.call("survey", {}, seconds=5), return_exceptions=True
        )
        assert all(isinstance(error, Protocol) and "eu" in str(error) for error in calls)
        with pytest.raises(Protocol):
            await link.call("state", {}, seconds=5)
        assert link.tail.startswith(message[-TAIL:][:50])
        assert len(link.tail) <= TAIL


async def test_a_line_without_end_is_refused_before_it_is_held(tmp_path: Path) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readline()
        while sent < 1 << 30:
            writer.write(b"x" * (1 << 16))
            await writer.drain()
            sent += 1 << 16

    tracemalloc.start()
    try:
        async with linked(tmp_path, endless) as link:
            with pytest.raises(Protocol, match="1024 KiB"):
                await link.call("state", {}, seconds=10)
            assert len(link.tail) == TAIL
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert sent < 8 << 20


async def test_an_answer_of_almost_a_frame_arrives_whole(tmp_path: Path) -> None:
    big = "x" * (FRAME - 100)
    async with linked(tmp_path, says(lambda q: line(id=q["id"], result=big))) as link:
        assert await link.call("query", {}, seconds=5) == big


async def test_a_question_that_fits_no_frame_is_the_caller_s_error_and_the_link_lives(tmp_path: Path) -> None:
    async with linked(tmp_path, says(lambda q: line(id=q["id"], result=1))) as link:
        with pytest.raises(DataError, match="ingest"):
            await link.call("ingest", {"lines": ["x" * FRAME]}, seconds=5)
        assert await link.call("state", {}, seconds=5) == 1


async def test_errors_come_back_as_what_they_were(tmp_path: Path) -> None:
    error = {
        "code": -32000,
        "message": "r2 was promoted by bob",
        "data": {"type": "Conflict", "hint": "h", "code": "E"},
    }
    async with linked(tmp_path, says(lambda q: line(id=q["id"], error=error))) as link:
        with pytest.raises(Conflict, match="bob") as caught:
            await link.call("promote", {}, seconds=5)
    assert (caught.value.hint, caught.value.code) == ("h", "E")
    assert type(rebuild({"code": -32601, "message": "no such method"}, "eu")) is RegionError


@pytest.mark.parametrize("narrow", [FrameTooLong, LoadMoved, NoAgent, NoWarehouse, SchemaMoved])
def test_an_error_for_one_code_travels_under_its_parents_name_and_comes_back_as_itself(
    narrow: type[ConsoleError],
) -> None:
    """Consoles and agents of other versions know the parent and the code."""
    error = narrow("eu: no", hint="h")
    data = {"type": type_name(error), "hint": error.hint, "code": error.code}
    assert data["type"] == narrow.__bases__[0].__name__
    again = rebuild({"code": -32000, "message": str(error), "data": data}, "eu")
    assert (type(again), str(again), again.hint, again.code) == (narrow, "eu: no", "h", error.code)


def test_a_code_never_changes_the_type_that_an_error_came_with() -> None:
    for code in ("E_NO_AGENT", "E_FRAME", "E_LOG_GONE", "", "ConsoleError"):
        error = rebuild({"code": 1, "message": "m", "data": {"type": "RegionError", "code": code}}, "eu")
        assert (type(error), error.code) == (RegionError, code)


def test_errors_of_the_agent_travel_as_types_that_every_console_knows() -> None:
    narrow = [
        cls for cls in vars(agent_errors).values() if isinstance(cls, type) and cls.__module__ == agent_errors.__name__
    ]
    assert len(narrow) >= 8
    for cls in narrow:
        error = cls("m")
        assert type_name(error) in ("RegionError", "FeedStopped", "CheckFailed", "Conflict", "Unreachable")
        assert error.code
        assert type(copy.copy(error)) is cls


async def test_a_lost_connection_is_unreachable_never_failed(tmp_path: Path) -> None:
    async def leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b'{"jsonrpc":"2.0","id":1,"resu')

    async with linked(tmp_path, leaves) as link:
        with pytest.raises(Unreachable, match="eu"):
            await link.call("accept", {}, seconds=5)
        assert isinstance(link.ended, Unreachable)


async def test_an_answer_too_late_is_dropped_and_the_next_one_counts(tmp_path: Path) -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, second = json.loads(await reader.readline()), json.loads(await reader.readline())
        writer.write(line(id=first["id"], result="late") + line(id=second["id"], result="in time"))
        await reader.read()

    async with linked(tmp_path, slow) as link:
        with pytest.raises(Unreachable, match="may still be working"):
            await link.call("query", {}, seconds=0.02)
        assert await link.call("state", {}, seconds=5) == "in time"


@pytest.mark.slow
async def test_notifications_reach_their_reader_in_order_and_end_with_the_link(tmp_path: Path) -> None:
    async def tells(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = json.loads(await reader.readline())
        writer.write(line(id=question["id"], result={}))
        for n in range(3000):
            writer.write(line(method="event", params={"n": n}))
            await writer.drain()

    async with linked(tmp_path, tells) as link:
        link.listen()
        await link.call("watch", {}, seconds=5)
        heard: list[object] = []

        async def listen() -> None:
            async for _, params in link.notifications():
                heard.append(params["n"])

        with pytest.raises(Unreachable):
            await listen()
    assert heard == list(range(3000))


@pytest.mark.slow
@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.integers(1, 17))
@settings(max_examples=60)
async def test_lines_do_not_depend_on_how_the_stream_is_cut(lines: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"half a li"

    async def read(_: int) -> bytes:
        nonlocal stream
        head, stream = stream[:size], stream[size:]
        return head

    assert [line async for line in frames(read)] == lines


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
keys = st.sampled_from(["code", "message", "data", "type", "hint"])


@pytest.mark.slow
@given(scalars | st.dictionaries(keys, scalars | st.dictionaries(keys, scalars)))
@settings(max_examples=60)
def test_an_error_of_any_shape_is_an_error_of_ours(shape: object) -> None:
    with suppress(Protocol):
        assert isinstance(rebuild(shape, "eu"), ConsoleError)
