"""The agent's socket: JSON-RPC 2.0, one object per line, at most 1 MiB (docs/architecture.md)."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.agent.agent_log import describe
from console.agent.long_answers import LongAnswers
from console.agent.receipts.listener import AuditListener, AuditStopped
from console.agent.service import Service
from console.errors import ConsoleError, DataError, FrameTooLong, type_name
from console.model import beside, codec
from console.model.event import Recorded
from console.model.parts import unpacked
from console.model.receipt import AuditProgress
from console.model.watcher import Watcher
from console.text import redacted, safe_text

FRAME = 1 << 20
REMEMBERED = 256
WATCH_QUEUE = 5_000  # unstored events queued for a slow watcher
WHO_CHARACTERS = 200  # maximum length of a console's name for itself
THREADS = 16
# In separate threads, so that they are answered while all other threads do slow work.
QUICK = frozenset(("hello", "state", "watch", "samples", "part", "control", "shutdown"))
QUICK_THREADS = 8


class Server:
    """Serves connections of this user; requests run in threads, concurrently."""

    def __init__(self, service: Service, path: Path) -> None:
        self._service = service
        self._path = path
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="rpc")
        self._quick = ThreadPoolExecutor(QUICK_THREADS, thread_name_prefix="quick")
        self._ending = asyncio.Event()
        self._connections = 0

    @property
    def unattended(self) -> bool:
        """Whether no console is connected, so that no request is being answered."""
        return not self._connections

    async def run(self) -> None:
        """Serve until `shutdown` or `end`."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # a dead agent's: we hold the region's lock
        mask = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._connected, str(self._path), limit=FRAME)
        finally:
            os.umask(mask)
        try:
            await self._ending.wait()
        finally:
            server.close()  # not awaited: from Python 3.12 on wait_closed() waits until every console has left
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def end(self) -> None:
        """End on request: by a signal or by `shutdown`."""
        self._service.agent.expect_driver_exit()
        self._ending.set()

    def restart(self) -> None:
        """End because the process is to be replaced: its JVM is lost, which the running step records, or it rests."""
        self._ending.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _same_user(writer):
            writer.close()
            return
        connection = _Connection(self, self._service, self._pool, self._quick, writer)
        self._connections += 1
        try:
            while line := await reader.readline():
                connection.take(line)
        except (ValueError, ConnectionError, asyncio.CancelledError):
            pass  # a frame over the limit, or either side closed it
        finally:
            self._connections -= 1
            connection.close()
            writer.close()


@dataclass(frozen=True, slots=True)
class _Response:
    """One response, ready to be sent.

    frame  the line
    ok     whether it holds a result rather than an error
    """

    frame: bytes
    ok: bool


class _Connection:
    """One console. A request repeated under its id, after a broken link, gets the first one's response."""

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
        self._responses: OrderedDict[str, asyncio.Future[_Response]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stops: list[Callable[[], None]] = []
        self._watching: list[asyncio.Task[None]] = []
        self._closed = False
        self._later = False  # whether its console accepts messages that 0.1.0 would refuse
        self._in_parts = False  # whether it takes results of any length
        self._long_answers = LongAnswers()

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
        """Stop watching when the connection closes; at once if it was closed meanwhile."""
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
            self._write(_error(None, error).frame)
            return
        try:
            request = _unpacked(request)
        except DataError as error:
            self._write(_error(request.get("id"), error).frame)
            return
        key = json.dumps(request.get("id"))
        if key in self._responses:
            self._write((await asyncio.shield(self._responses[key])).frame)
            return
        pending: asyncio.Future[_Response] = self._loop.create_future()
        self._responses[key] = pending
        while len(self._responses) > REMEMBERED:
            self._responses.popitem(last=False)
        response = await self._respond(request)
        pending.set_result(response)
        self._write(response.frame)
        if request["method"] == "watch" and response.ok:
            self._watching.append(asyncio.create_task(self._watch(request.get("params") or {})))
        if request["method"] == "shutdown":
            with contextlib.suppress(ConnectionError):
                await self._writer.drain()
            self._server.end()

    async def _respond(self, request: dict[str, Any]) -> _Response:
        params = request.get("params") or {}
        if request["method"] == "later":
            self._later, self._in_parts = True, isinstance(params, dict) and params.get("parts") is True
            return _frame({"jsonrpc": "2.0", "id": request.get("id"), "result": {}})
        own: dict[str, Callable[..., Any]] = {"audit": self._audit, "part": self._long_answers.part}
        try:
            call = own.get(request["method"]) or self._service.method(request["method"])
            if not isinstance(params, dict):
                raise DataError("params must be an object")
            pool = self._quick if request["method"] in QUICK else self._pool
            # encoded there too: a result of many megabytes must not keep the others waiting
            return await self._loop.run_in_executor(pool, lambda: self._result(request.get("id"), call(**params)))
        except ConsoleError as error:
            return _error(request.get("id"), error)
        except AuditStopped:
            return _error(request.get("id"), ConsoleError("the audit was cancelled", code="E_STOPPED"))
        except TypeError as error:
            return _error(request.get("id"), DataError(f"{request['method']}: {error}"))
        except Exception as error:  # a bug is answered as well, or the caller would wait forever
            return _error(request.get("id"), ConsoleError(f"{type(error).__name__}: {str(error)[:500]}", code="E_BUG"))

    async def _watch(self, params: dict[str, Any]) -> None:
        try:
            await self._send_events(params)
        except Exception as error:
            # the watch was already confirmed: an open link would stay silent forever, a closed one is reconnected
            self._writer.close()
            self._service.agent.report(
                str(params["pipeline"]), "warning", f"a watching console was disconnected: {describe(error)}"
            )

    async def _send_events(self, params: dict[str, Any]) -> None:
        queue: asyncio.Queue[Recorded] = asyncio.Queue()

        def enqueue(recorded: Recorded) -> None:
            def put() -> None:
                # a slow watcher loses unstored events, never stored ones, of which there are few
                if recorded.seq or queue.qsize() < WATCH_QUEUE:
                    queue.put_nowait(recorded)

            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(put)

        def begin() -> None:
            controller = self._service.agent.controller(str(params["pipeline"]))
            stop = controller.recorder.watch(int(params.get("after", 0)), enqueue, _watcher(params))
            try:
                self._loop.call_soon_threadsafe(self._stopped_by, stop)
            except RuntimeError:  # the loop has ended
                stop()

        await self._loop.run_in_executor(self._quick, begin)
        while not self._closed:
            recorded = await queue.get()
            self._write(_frame({"jsonrpc": "2.0", "method": "event", "params": self._encoded(recorded)}).frame)
            with contextlib.suppress(ConnectionError):
                await self._writer.drain()

    def _audit(self, **params: Any) -> Any:
        """Runs in a thread; cancelled when the connection closes, since then its result has no recipient."""
        listener = AuditListener(self._notify_audit)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._stopped_by, listener.stop)
        return self._service.audit(listener, **params)

    def _notify_audit(self, progress: AuditProgress) -> None:
        """Progress that does not fit a frame, or whose console has left, is dropped: the response has all findings."""
        frame = _frame({"jsonrpc": "2.0", "method": "audited", "params": self._encoded(progress)})
        if frame.ok:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._write, frame.frame)

    def _result(self, request_id: Any, value: object) -> _Response:
        """A result as one line, or as the first of its parts; an error if its console takes none."""
        text = json.dumps(self._encoded(value), separators=(",", ":"), allow_nan=False)
        head: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        if len(text) < FRAME and (line := _line(head, "result", text)) is not None:
            return _Response(line, ok=True)
        if self._in_parts:
            return _frame({**head, "parts": self._long_answers.begin(text)})
        return _too_long(request_id)

    def _encoded(self, value: object) -> Any:
        """As JSON, in the version that the console at the other end understands."""
        return codec.encode(value) if self._later else beside.split(value)[0]

    def _write(self, data: bytes) -> None:
        if not self._closed:
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._writer.write(data)


def _watcher(params: dict[str, Any]) -> Watcher | None:
    """The name of the watching console; None for an older console, which sends none."""
    name, host, console = (safe_text(str(params.get(key, "")), WHO_CHARACTERS) for key in ("by", "host", "console"))
    return Watcher(name=name, host=host, since=time.time(), console=console) if name else None


def _same_user(writer: asyncio.StreamWriter) -> bool:
    """Whether the peer is this user: no other may connect, regardless of the socket's mode."""
    peer = writer.get_extra_info("socket")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] in (os.getuid(), 0))


def _frame(message: dict[str, Any]) -> _Response:
    """A message as one line; an error in its place if it would exceed a frame."""
    data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    return _Response(data, ok=True) if len(data) <= FRAME else _too_long(message.get("id"))


def _line(head: dict[str, Any], name: str, text: str) -> bytes | None:
    """A message with one more member, whose JSON is at hand; None if it would exceed a frame."""
    data = f"{json.dumps(head, separators=(',', ':'))[:-1]},{json.dumps(name)}:{text}}}\n".encode()
    return data if len(data) <= FRAME else None


def _too_long(request_id: Any) -> _Response:
    error = FrameTooLong("the answer is larger than 1 MiB", hint="ask for fewer rows (`--limit`)")
    return _error(request_id, error)


def _unpacked(request: dict[str, Any]) -> dict[str, Any]:
    """A request, or the one that was too long for a line and is in it, compressed.

    raises  DataError
    """
    if request["method"] != "packed":
        return request
    match request.get("params"):
        case {"text": str(text)}:
            inner = codec.loads(unpacked((text,)))
            if isinstance(inner, dict) and isinstance(inner.get("method"), str) and inner["method"] != "packed":
                return {**inner, "id": request.get("id")}
    raise DataError("no request is packed in this one")


def _error(request_id: Any, error: ConsoleError) -> _Response:
    fields = {"type": type_name(error), "hint": error.hint, "code": error.code}
    body = {"code": -32000, "message": redacted(str(error)), "data": fields}
    data = json.dumps({"jsonrpc": "2.0", "id": request_id, "error": body}, separators=(",", ":")).encode() + b"\n"
    return _Response(data, ok=False)
