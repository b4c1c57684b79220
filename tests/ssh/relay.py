"""A link of our own between the two sides, in user space: it delays, loses as TCP shows loss, swallows and breaks."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any, Literal

from console.model.region import Region
from tests.ssh.host import Host

Way = Literal["up", "down"]  # to the region's host, and back
_SEGMENT = 1460  # bytes of one TCP segment on Ethernet
_STALL = (0.2, 0.8)  # seconds until a lost segment has come again: what came after it waits, as TCP makes it wait


class Relay:
    """Carries bytes between a port of ours and the region's sshd.

    delay    seconds from one side to the other, each way
    loss     share of the segments that arrive only after a stall; none ever overtakes another
    carried  bytes that came through, each way
    """

    def __init__(self, host: Host, *, delay: float = 0.0, loss: float = 0.0, seed: int = 1) -> None:
        self.carried: dict[Way, int] = {"up": 0, "down": 0}
        self.stalls = 0
        self.opened = 0
        self.port = 0
        self._host = host
        self._delay = delay
        self._loss = loss
        self._draw = Random(seed)
        self._swallowed: set[Way] = set()
        self._breaks: dict[Way, int] = {}  # bytes until the reset
        self._shut = False
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> "Relay":
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        key = (self._host.folder / "known_hosts").read_text().split(maxsplit=1)[1]
        with (self._host.folder / "known_hosts").open("a") as known:
            known.write(f"[127.0.0.1]:{self.port} {key}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def region(self, region: Region | None = None) -> Region:
        """The region as it is reached through here."""
        region = region or self._host.region()
        assert region.transport
        return replace(region, transport=replace(region.transport, host="127.0.0.1", port=self.port))

    def swallow(self, way: Way) -> None:
        """From now on nothing arrives that goes this way, and nobody is told; what goes the other way does."""
        self._swallowed.add(way)

    def cut(self, *, shut: bool = False) -> None:
        """Reset all connections. shut: whoever comes is reset as well, until `mend`."""
        self._shut = shut
        for end in self._ends:
            end.transport.abort()

    def cut_after(self, way: Way, size: int) -> None:
        """Reset all connections once so many more bytes have gone this way."""
        self._breaks = {way: size}

    def mend(self) -> None:
        self._swallowed.clear()
        self._shut = False

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            if self._shut:
                writer.transport.abort()
                return
            self.opened += 1
            far_reader, far_writer = await asyncio.open_connection(self._host.address, 22)
            self._ends |= {writer, far_writer}
            try:
                ways = (self._way("up", reader, far_writer), self._way("down", far_reader, writer))
                await asyncio.gather(*ways)
            finally:
                self._ends -= {writer, far_writer}
                for end in (writer, far_writer):
                    end.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)

    async def _way(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """All that goes one way, until the side it comes from hangs up, which is heard after the delay like all it said."""
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def take() -> None:
            due, data = 0.0, b"-"
            while data:
                try:
                    data = await reader.read(_SEGMENT)
                except OSError:
                    data = b""
                lost = self._draw.random() < self._loss
                self.stalls += lost
                stall = self._draw.uniform(*_STALL) if lost else 0.0
                due = max(due, loop.time() + self._delay + stall)
                under_way.put_nowait((due, data))

        taking = asyncio.create_task(take())
        try:
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(due - loop.time())
                if way in self._swallowed:
                    if not data:
                        return
                    continue
                if not data:
                    break
                room = self._breaks.get(way, len(data) + 1)
                writer.write(data[:room])
                await writer.drain()
                self.carried[way] += len(data[:room])
                if way in self._breaks:
                    self._breaks[way] -= len(data)
                if room <= len(data):
                    self._breaks.clear()
                    self.cut()
            writer.transport.abort()
        finally:
            taking.cancel()
