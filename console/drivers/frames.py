"""JSON-RPC 2.0, one object per line, over a pair of asyncio streams. Everything received is validated."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from typing import Protocol as Shape

from console.errors import BY_NAME, ConsoleError, DataError, FrameTooLong, Protocol, RegionError, Unreachable, received
from console.model import codec
from console.model.parts import BYTES, packed, unpacked

FRAME = 1 << 20  # bytes of one line, its end included
TAIL = 4096  # last bytes received that are kept for the log
_CHUNK = 1 << 16
_BACKLOG = 1024  # notifications buffered for their reader; beyond it the other side waits


async def frames(read: Callable[[int], Awaitable[bytes]]) -> AsyncIterator[bytes]:
    """The lines of a stream, without their ends; half a line at its end is dropped.

    `StreamReader.readline` fails past 64 KiB and reads without a bound below it, hence chunks.

    read    returns up to n bytes, b"" at the end
    raises  Protocol for a line longer than FRAME, before it is held in memory
    """
    buffer = bytearray()
    while chunk := await read(_CHUNK):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            buffer += line
            if len(buffer) >= FRAME:
                break
            yield bytes(buffer)
            buffer.clear()
        else:
            buffer += rest
        if len(buffer) >= FRAME:
            raise Protocol(f"a line of more than {FRAME >> 10} KiB", code="E_FRAME")


def rebuild(error: Any, region: str) -> ConsoleError:
    """The error raised by the other side, from the `error` object of its answer.

    raises  Protocol if it is not such an object
    """
    match error:
        case {"code": int(), "message": str(message)}:
            pass
        case _:
            raise Protocol(f"an answer with an invalid error: {str(error)[:80]!r}")
    match data := error.get("data", {}):
        case {"type": str(name)} if name in BY_NAME:
            hint, code = data.get("hint", ""), data.get("code", "")
            if not isinstance(hint, str) or not isinstance(code, str):
                raise Protocol(f"an error whose hint or code is not text: {message[:80]!r}")
            return received(name, message, hint=hint, code=code, region=region)
        case _:
            return RegionError(message)


def error_in(answer: object, region: str) -> ConsoleError | None:
    """The error that a command of the agent printed as its answer, `{"error": {"message": …, "type": …, …}}`; None if it is another one.

    raises  Protocol if it is an error that cannot be
    """
    match answer:
        case {"error": {"message": message, **rest}}:
            return rebuild({"code": 0, "message": message, "data": rest}, region)
    return None


class ByteSource(Shape):
    """A source of bytes: an `asyncio.StreamReader`, or an object that reads like one."""

    async def read(self, n: int, /) -> bytes: ...


class ByteSink(Shape):
    """A sink of bytes: an `asyncio.StreamWriter`, or an object that writes like one."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _FirstPart:
    """Of a result that is longer than a frame: the name by which to ask for its other parts, and the number of all."""

    of: str
    parts: int
    text: str


class Link:
    """One connection to an agent: calls out, answers and notifications in.

    A line that is not JSON, not an answer, or an answer to no pending call ends the link: every pending and every later
    call raises Protocol, and `tail` holds the last bytes received. A lost connection raises Unreachable.

    peer      name of the other end, for messages: `eu`
    in_parts  whether it takes requests and sends results that are longer than a frame
    """

    def __init__(self, reader: ByteSource, writer: ByteSink, peer: str) -> None:
        self.peer = peer
        self.tail = b""
        self.in_parts = False
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._abandoned: set[int] = set()
        self._notifications: asyncio.Queue[tuple[str, dict[str, Any]] | None] | None = None
        self._ended: ConsoleError | None = None
        self._receiver = asyncio.create_task(self._receive(), name=f"link {peer}")

    @property
    def ended(self) -> ConsoleError | None:
        """Why the link ended; None while it is usable."""
        return copy.copy(self._ended)

    async def call(self, method: str, params: Mapping[str, Any], *, seconds: float) -> Any:
        """Send a request and wait for the answer.

        params   values that `codec.encode` knows
        seconds  timeout of the answer
        raises   the other side's error; Unreachable without an answer in time or if the link is lost;
                 Protocol; FrameTooLong if the request does not fit a frame, compressed where the other end takes that
        """
        result = await self._called(method, params, seconds)
        return await self._whole(result, method, seconds) if isinstance(result, _FirstPart) else result

    async def _whole(self, first: "_FirstPart", method: str, seconds: float) -> Any:
        """A result that was too long for a frame, from all of its parts."""
        parts = [first.text]
        for number in range(1, first.parts):
            part = await self._called("part", {"of": first.of, "number": number}, seconds)
            match part:
                case {"text": str(text)} if text and sum(map(len, parts)) < BYTES:
                    parts.append(text)
                case _:
                    raise Unreachable(
                        f"{self.peer}: the answer to {method} broke off", region=self.peer, hint="try again"
                    )
        try:
            return codec.loads(unpacked(parts))
        except DataError as error:
            raise Protocol(f"{self.peer}: {method}: {error}", region=self.peer, code="E_PROTOCOL") from None

    def _line(self, id: int, method: str, params: Mapping[str, Any]) -> bytes:
        """raises  FrameTooLong"""
        head = {"jsonrpc": "2.0", "id": id}
        line = codec.dumps({**head, "method": method, "params": dict(params)}).encode() + b"\n"
        long = len(line)
        if long > FRAME and self.in_parts:
            text = "".join(packed(codec.dumps({"method": method, "params": dict(params)})))
            line = codec.dumps({**head, "method": "packed", "params": {"text": text}}).encode() + b"\n"
        if len(line) > FRAME:
            raise FrameTooLong(
                f"{self.peer}: {method} needs a message of {long:,} bytes, more than the {FRAME:,} allowed",
                region=self.peer,
                hint="split it into smaller pieces",
            )
        return line

    async def _called(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """The result, or the first part of a long one."""
        if ended := self.ended:
            raise ended
        self._last_id += 1
        id = self._last_id
        line = self._line(id, method, params)
        answer = self._pending[id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                self._writer.write(line)
                with suppress(ConnectionError):  # the pump notices it as well, and has the reason
                    await self._writer.drain()
                return await answer
        except TimeoutError:
            raise Unreachable(
                f"{self.peer}: no answer to {method} in {seconds:g} s; it may still be working",
                region=self.peer,
                hint="look at `console status`, then try again",
            ) from None
        finally:
            if self._pending.pop(id, None) is not None:
                self._abandoned.add(id)
            elif not answer.cancelled():
                answer.exception()  # marks the exception as retrieved if the wait was cut short

    def listen(self) -> None:
        """Accept notifications from now on; before that, one is a protocol error."""
        self._notifications = asyncio.Queue(_BACKLOG)

    async def notifications(self) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Notifications as (method, params), without end.

        raises  Unreachable or Protocol when the link ends
        """
        assert self._notifications is not None, "listen() first"
        while True:
            item = await self._notifications.get()
            if item is None:
                break
            yield item
        if ended := self.ended:
            raise ended

    async def close(self) -> None:
        """Close the link; the process at the other end continues."""
        self._end(Unreachable(f"{self.peer}: the link was closed", region=self.peer))
        self._receiver.cancel()
        with suppress(asyncio.CancelledError):
            await self._receiver
        with suppress(OSError):
            await self._writer.wait_closed()
        if self._notifications:
            if self._notifications.full():
                self._notifications.get_nowait()
            self._notifications.put_nowait(None)

    async def _receive(self) -> None:
        why: ConsoleError
        try:
            async for line in frames(self._read):
                await self._dispatch(line)
            why = Unreachable(f"{self.peer}: the agent closed the connection", region=self.peer)
        except OSError as error:
            why = Unreachable(f"{self.peer}: the connection broke: {error}", region=self.peer)
        except (Protocol, DataError) as error:
            why = Protocol(
                f"{self.peer}: the agent does not speak the protocol: {error}", region=self.peer, code="E_PROTOCOL"
            )
        self._end(why)
        if self._notifications:
            await self._notifications.put(None)

    async def _read(self, size: int) -> bytes:
        chunk = await self._reader.read(size)
        self.tail = (self.tail + chunk)[-TAIL:]
        return chunk

    async def _dispatch(self, line: bytes) -> None:
        try:
            data = codec.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise Protocol(f"not UTF-8: {error.reason} at byte {error.start}") from None
        match data:
            case {"jsonrpc": "2.0", "method": str(method), "params": dict(params), **rest} if not rest:
                if self._notifications is None:
                    raise Protocol(f"a notification {method[:40]!r} that was not requested")
                await self._notifications.put((method, params))
            case {"jsonrpc": "2.0", "id": id, "result": result, **rest} if not rest:
                self._answer(id, result, None)
            case {
                "jsonrpc": "2.0",
                "id": id,
                "parts": {"of": str(of), "parts": int(parts), "text": str(text)},
                **rest,
            } if not rest:
                self._answer(id, _FirstPart(of, parts, text), None)
            case {"jsonrpc": "2.0", "id": id, "error": error, **rest} if not rest:
                self._answer(id, None, rebuild(error, self.peer))
            case _:
                raise Protocol(f"no answer and no notification: {json.dumps(data)[:80]}")

    def _answer(self, id: object, result: Any, error: ConsoleError | None) -> None:
        if type(id) is not int:
            raise Protocol(f"an answer whose id is not a number: {str(id)[:40]!r}")
        if id in self._abandoned:
            self._abandoned.discard(id)
            return
        waiter = self._pending.pop(id, None)
        if waiter is None:
            raise Protocol(f"an answer to {id}, which was not requested")
        if waiter.done():
            return
        if error:
            waiter.set_exception(error)
        else:
            waiter.set_result(result)

    def _end(self, why: ConsoleError) -> None:
        self._ended = self._ended or why
        for waiter in self._pending.values():
            if not waiter.done():
                waiter.set_exception(copy.copy(self._ended))
        self._pending.clear()
        self._writer.close()
