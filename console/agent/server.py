"""The agent's socket: JSON-RPC 2.0, one object a line, at most 1 MiB (docs/architecture.md)."""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from console.agent.service import Service, describe
from console.errors import ConsoleError, DataError
from console.model import codec
from console.model.event import Recorded
from console.text import redacted

FRAME = 1 << 20
REMEMBERED = 256
WATCH_QUEUE = 5_000  # fleeting events that a slow watcher may be behind
THREADS = 16
# In threads of their own, so that whoever asks is answered while all others are at slow work.
QUICK = frozenset(("hello", "state", "watch", "control", "shutdown"))
QUICK_THREADS = 8


class Server:
    """Answers connections of this user; requests run in threads, so many of them at once."""

    def __init__(self, service: Service, path: Path) -> None:
        self._service = service
        self._path = path
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="rpc")
        self._quick = ThreadPoolExecutor(QUICK_THREADS, thread_name_prefix="quick")
        self._ending = asyncio.Event()

    async def run(self) -> None:
        """Serve until `shutdown` or `end`."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # ours: we hold the region's lock
        mask = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._connected, str(self._path), limit=FRAME)
        finally:
            os.umask(mask)
        try:
            await self._ending.wait()
        finally:
            server.close()  # and no more: from Python 3.12 on, to wait for that is to wait until every console has left
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def end(self) -> None:
        """Because somebody asked for it."""
        self._service.expect_driver_exit()
        self._ending.set()

    def restart(self) -> None:
        """Because the JVM is gone: what it was in the middle of counts."""
        self._ending.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _same_user(writer):
            writer.close()
            return
        connection = _Connection(self, self._service, self._pool, self._quick, writer)
        try:
            while line := await reader.readline():
                connection.take(line)
        except (
            ValueError,
            ConnectionError,
            asyncio.CancelledError,
        ):  # a frame over the limit, the peer or we went away
            pass
        finally:
            connection.close()
            writer.close()


class _Connection:
    def __init__(
        self,
        server: Server,
        service: Service,
        pool: ThreadPoolExecutor,
        quick: ThreadPoolExecutor,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._server = server
        self._service = service
        self._pool = pool
        self._quick = quick
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._answers: OrderedDict[str, asyncio.Future[bytes]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stops: list[Callable[[], None]] = []
        self._watching: list[asyncio.Task[None]] = []
        self._closed = False
        self._later = False  # its console knows what came after 0.1.0, which would refuse it

    def take(self, line: bytes) -> None:
        task = asyncio.create_task(self._handle(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        self._closed = True
        for stop in self._stops:
            stop()
        for watching in self._watching:
            watching.cancel()

    def _stopped_by(self, stop: Callable[[], None]) -> None:
        """Remember how to stop watching; a connection that was closed while it began stops at once."""
        if self._closed:
            stop()
        else:
            self._stops.append(stop)

    async def _handle(self, line: bytes) -> None:
        try:
            request = codec.loads(line)
            if not isinstance(request, dict) or not isinstance(request.get("method"), str):
                raise DataError("not a request")
        except DataError as error:
            self._write(_error(None, error))
            return
        key = json.dumps(request.get("id"))
        if key in self._answers:
            self._write(await asyncio.shield(self._answers[key]))
            return
        promise: asyncio.Future[bytes] = self._loop.create_future()
        self._answers[key] = promise
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        answer = await self._answer(request)
        promise.set_result(answer)
        self._write(answer)
        if request["method"] == "watch" and b'"error"' not in answer[:80]:
            self._watching.append(asyncio.create_task(self._watch(request.get("params") or {})))
        if request["method"] == "shutdown":
            with contextlib.suppress(ConnectionError):
                await self._writer.drain()
            self._server.end()

    async def _answer(self, request: dict[str, Any]) -> bytes:
        params = request.get("params") or {}
        if request["method"] == "later":
            self._later = True
            return _frame({"jsonrpc": "2.0", "id": request.get("id"), "result": {}})
        try:
            call = self._service.method(request["method"])
            if not isinstance(params, dict):
                raise DataError("params must be an object")
            pool = self._quick if request["method"] in QUICK else self._pool
            result = await self._loop.run_in_executor(pool, lambda: call(**params))
            return _frame({"jsonrpc": "2.0", "id": request.get("id"), "result": self._told(result)})
        except ConsoleError as error:
            return _error(request.get("id"), error)
        except TypeError as error:
            return _error(request.get("id"), DataError(f"{request['method']}: {error}"))
        except Exception as error:  # a bug must answer too, else the caller waits for ever
            return _error(request.get("id"), ConsoleError(f"{type(error).__name__}: {str(error)[:500]}", code="E_BUG"))

    async def _watch(self, params: dict[str, Any]) -> None:
        try:
            await self._tell_all(params)
        except Exception as error:
            # the watch was answered already: a link that stays open would say nothing for ever, one that ends is made anew
            self._writer.close()
            self._service.report(
                str(params["pipeline"]), "warning", f"a console that watches has to come again: {describe(error)}"
            )

    async def _tell_all(self, params: dict[str, Any]) -> None:
        queue: asyncio.Queue[Recorded] = asyncio.Queue()

        def told(recorded: Recorded) -> None:
            def put() -> None:
                # a slow watcher loses fleeting events, never stored ones, of which there are few
                if recorded.seq or queue.qsize() < WATCH_QUEUE:
                    queue.put_nowait(recorded)

            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(put)

        def begin() -> None:
            controller = self._service.controller(str(params["pipeline"]))
            stop = controller.recorder.watch(int(params.get("after", 0)), told)
            try:
                self._loop.call_soon_threadsafe(self._stopped_by, stop)
            except RuntimeError:  # the loop has ended
                stop()

        await self._loop.run_in_executor(self._quick, begin)
        while not self._closed:
            recorded = await queue.get()
            self._write(_frame({"jsonrpc": "2.0", "method": "event", "params": self._told(recorded)}))
            with contextlib.suppress(ConnectionError):
                await self._writer.drain()

    def _told(self, value: object) -> Any:
        """In the words that the console at the other end knows."""
        return codec.encode(value) if self._later else codec.parted(value)[0]

    def _write(self, data: bytes) -> None:
        if not self._closed:
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._writer.write(data)


def _same_user(writer: asyncio.StreamWriter) -> bool:
    """Only this user may speak to the agent, whatever the socket's mode became."""
    peer = writer.get_extra_info("socket")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] in (os.getuid(), 0))


def _frame(message: dict[str, Any]) -> bytes:
    data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(data) > FRAME:
        return _error(
            message.get("id"),
            DataError("the answer is larger than 1 MiB", hint="ask for fewer rows (`--limit`)", code="E_FRAME"),
        )
    return data


def _error(request_id: Any, error: ConsoleError) -> bytes:
    data = {"type": type(error).__name__, "hint": error.hint, "code": error.code}
    body = {"code": -32000, "message": redacted(str(error)), "data": data}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": body}, separators=(",", ":")).encode() + b"\n"
