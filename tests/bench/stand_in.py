"""An agent's socket without an agent: what a region at its gate answers, taken from one in memory, so that a command is measured alone."""

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from console import paths
from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring
from console.drivers.fake import FakeDriver, FakeRegion, Scenario
from console.drivers.protocol import Who
from console.model.codec import encode
from console.model.event import Promoted, Recorded
from console.model.live import Live
from console.model.region import Region

ROOT = Path(__file__).resolve().parents[2]
REGION = "us"


class AtGate:
    """The demo's project, with one region that waits at its gate, and what its agent answers there."""

    def __init__(self, root: Path) -> None:
        """root: of the project, made here"""
        self.root = root
        for name in ("plans", "regions"):
            shutil.copytree(ROOT / name, root / name)
        self.warehouse = root / ".console" / "demo" / REGION
        self.warehouse.mkdir(parents=True)
        worlds: dict[str, FakeRegion] = {}

        def drivers(regions: Any) -> dict[str, FakeDriver]:
            for region in regions:
                worlds.setdefault(region.name, FakeRegion(region, _bare(region), Scenario()))
            return {region.name: FakeDriver(worlds[region.name]) for region in regions}

        words = ["apply", "--region", REGION, "--no-input", "--project", str(root)]
        done = CliRunner().invoke(cli, words, obj=CliContext(Wiring(drivers)), catch_exceptions=False)
        assert done.exit_code == 3, done.output
        self.answers, self.promotion = asyncio.run(_promoted(FakeDriver(worlds[REGION])))

    @contextmanager
    def served(self) -> Iterator[None]:
        """The socket, served by a thread, of the region at its gate."""
        begun, ended = threading.Event(), asyncio.Event()
        loop = asyncio.new_event_loop()

        async def serve() -> None:
            server = await asyncio.start_unix_server(self._connected, str(paths.socket_path(str(self.warehouse))))
            begun.set()
            await ended.wait()
            server.close()

        def run() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())

        self._watching: set[asyncio.StreamWriter] = set()
        self._promoted = False
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert begun.wait(10)
        try:
            yield
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join(10)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = {
            "protocol": 1,
            "tool": "x",
            "pid": 1,
            "region": REGION,
            "warehouse": str(self.warehouse),
            "later": True,
        }
        while line := await reader.readline():
            request = json.loads(line)
            method = request["method"]
            result = {"hello": hello, "later": {}, "watch": {}, **self.answers}[method]
            _write(writer, {"jsonrpc": "2.0", "id": request["id"], "result": result})
            watching: set[asyncio.StreamWriter] = set()
            if method == "watch":
                self._watching.add(writer)
                watching = {writer} if self._promoted else watching
            if method == "promote":
                self._promoted, watching = True, self._watching
            for watcher in watching:
                for event in self.promotion:
                    _write(watcher, {"jsonrpc": "2.0", "method": "event", "params": event})
        self._watching.discard(writer)
        writer.close()


def _write(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")


def _bare(region: Region) -> Live:
    return Live(region=region.name, pipeline="web", release=None)


async def _promoted(driver: FakeDriver) -> tuple[dict[str, Any], list[Any]]:
    """Answers of a region at its gate, and the events of its promotion."""
    state = await driver.state("web")
    answers = {"survey": await driver.survey("web", []), "state": state}
    promoted = await driver.promote("web", state.status.rollout, state.live, Who("ada", "ops"))
    event = Promoted(release=promoted.release, was=promoted.was, by="ada", host="ops", version=promoted.version)
    recorded = Recorded(state.status.rollout, state.status.seq + 1, 1_794_000_000.0, event)
    return {name: encode(value) for name, value in {**answers, "promote": promoted}.items()}, [encode(recorded)]
