"""A region under fire: a ledger of every row sent, a reader that never stops, operators to be killed, a small disk."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from deltalake import DeltaTable

from console.errors import ConsoleError
from tests.faults.mirror import Mirror
from tests.life.region import LANDING, WRITES_EVERY, LiveRegion

HERE = Path(__file__).resolve().parent
CASE = HERE / "case"
PIPELINE = "web"
TIMEOUT = 600.0  # seconds; a JVM's cold start on a crowded machine included
WHOLE_SECONDS = 2400.0  # for a command that may outlive dozens of agents
T = TypeVar("T")
# a look at a bucket is a list of its objects, by a server that shares this machine
NURSE_SECONDS, BUCKET_NURSE_SECONDS = 0.2, 2.0
READS_EVERY, BUCKET_READS_EVERY = "2", "6"
AGAIN = (-signal.SIGKILL, 1, 5)  # exits after which the same command is given again


class EndedEarly(Exception):
    """A console ended before it had begun to carry, in a way after which the same command is given again."""


class Ledger:
    """Append-only account of what was sent, outside Delta: `sent` before a batch goes out, `stored` once it is told so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0

    def sent(self, batch: str, rows: Iterable[dict[str, Any]]) -> None:
        messages = [[row["id"], row["ts"] and row["ts"].isoformat(), row["payload"]] for row in rows]
        self.rows += len(messages)
        self._tell({"what": "sent", "batch": batch, "rows": messages})

    def stored(self, batch: str) -> None:
        self._tell({"what": "stored", "batch": batch})

    def _tell(self, entry: dict[str, Any]) -> None:
        with self.path.open("a") as out:
            out.write(json.dumps(entry) + "\n")


class World(LiveRegion):
    """One region whose agent, consoles and disks can be hurt.

    root  a directory of this world's own; the region lies in `root/disk`, which may be a mount
    """

    def __init__(
        self, root: Path, *, rows: int = 900, seed: int = 1, address: str = "", store: Mapping[str, str] | None = None
    ) -> None:
        self.base = root
        self._began = time.monotonic()
        self.crashes = root / "crashes"
        self.scratch = root / "scratch"
        for place in (self.crashes / "fired", self.scratch, root / "disk"):
            place.mkdir(parents=True, exist_ok=True)
        super().__init__(
            root / "disk" / "region", rows=rows, seed=seed, conf={"spark.local.dir": str(self.scratch)},
            address=address, store=store,
        )  # fmt: skip
        # of a warehouse in a bucket, `warehouse` is a copy of its objects
        self._mirror = Mirror(address, self.warehouse, self.store) if self.store else None
        self.ledger = Ledger(root / "ledger.ndjson")
        landing = DeltaTable(f"{self.address}/landing", storage_options=self.store)
        first = landing.to_pyarrow_table().cast(LANDING).to_pylist()
        self.ledger.sent("first", first)
        self.ledger.stored("first")
        self.reads = root / "reads.ndjson"
        self._reader: subprocess.Popen[bytes] | None = None
        self._nurse: asyncio.Task[None] | None = None
        self.agents: list[int] = []  # pids of all agents seen, in order
        self.hurt: list[str] = []  # every fault that hit, in order
        self.consoles: list[subprocess.Popen[str]] = []

    # -- traffic and reads

    def nurse(self) -> None:
        """Start what a service manager does: an agent that died is started again."""

        async def watch() -> None:
            while True:
                with suppress(ConsoleError):
                    await self.driver.start_agent()
                self.agent()
                await asyncio.sleep(NURSE_SECONDS if self._mirror is None else BUCKET_NURSE_SECONDS)

        self._nurse = asyncio.create_task(watch())

    def write(self, pipeline: str = PIPELINE, every: float = WRITES_EVERY) -> None:
        """Start a producer that goes on until `quiet`, sending each batch until it is told that it is stored."""

        async def produce() -> None:
            batch = 0
            while not self._enough.is_set():
                batch += 1
                name = f"p{os.urandom(4).hex()}-{batch}"
                rows = [self._next() for _ in range(self._rng.randrange(1, 15))]
                lines = [json.dumps({**row, "ts": row["ts"] and row["ts"].isoformat()}) for row in rows]
                self.ledger.sent(name, rows)
                await self.until_answered(partial(self.driver.ingest, pipeline, "landing", name, lines))
                self.ledger.stored(name)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._enough.wait(), every)

        self._enough.clear()
        self._writer = asyncio.create_task(produce())

    async def until_answered(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask again until the region answers: it may be dead, dying, starting, or out of space."""
        until = asyncio.get_running_loop().time() + TIMEOUT
        while True:
            try:
                return await ask()
            except ConsoleError:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.2)

    def read(self) -> None:
        """Start the reader, once a release is live."""
        command = [sys.executable, str(HERE / "reader.py"), "--reads", str(self.reads), "--every"]
        if self._mirror:
            command += [BUCKET_READS_EVERY, "--warehouse", str(self.base / "read"), "--mirrored", self.address]
        else:
            command += [READS_EVERY, "--warehouse", str(self.warehouse)]
        self._reader = subprocess.Popen(command, env={**os.environ, **(self.store or {})})

    def look(self) -> None:
        """Bring `warehouse` to what the region holds now; a warehouse on this disk is that itself."""
        if self._mirror:
            self._mirror.sync()

    def paths(self, release: str) -> list[str]:
        """Where the tables of a release lie below the warehouse; landing is not among them."""
        self.look()
        rows = DeltaTable(str(self.warehouse / "_console" / PIPELINE / "releases")).to_pyarrow_table().to_pylist()
        tables = json.loads(next(row["manifest"] for row in rows if row["id"] == release))["tables"]
        return [state["version"]["path"] for state in tables if state["table"]["kind"] != "landing"]

    def promoted_at(self) -> float:
        """When, by the region's own clock, the live release became live."""
        self.look()
        rows = DeltaTable(str(self.warehouse / "_console" / PIPELINE / "releases")).to_pyarrow_table().to_pylist()
        return float(next(row["at"] for row in rows if row["state"] == "live"))

    def seen(self) -> list[dict[str, Any]]:
        """All reads so far, oldest first."""
        if not self.reads.exists():
            return []
        return [json.loads(line) for line in self.reads.read_text().splitlines() if line.endswith("}")]

    def bad_reads(self) -> list[dict[str, Any]]:
        return [read for read in self.seen() if "release" not in read]

    async def judged(self, *, whole: bool = False) -> dict[str, Any]:
        """What the judge says; with `whole`, after the producer stopped and every feed arrived."""
        if whole:
            await self.drained()
        await asyncio.to_thread(self.look)
        command = [sys.executable, str(HERE / "judge.py"), "--warehouse", str(self.warehouse)]
        command += ["--ledger", str(self.ledger.path), *(["--whole"] if whole else [])]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            return {"faults": [done.stderr[-2000:]]}
        data: dict[str, Any] = json.loads(done.stdout)
        return data

    async def drained(self) -> None:
        """Stop the producer and wait for the last row of every feed."""
        await self.end_writing()
        await self.until_answered(self.driver.start_agent)
        await self.followed(PIPELINE)

    def age(self) -> float:
        """Seconds since this world began."""
        return time.monotonic() - self._began

    def at_most(self, rows: int) -> None:
        """No batch of a plan that is made from now on carries more rows than this."""
        place = self.root / "regions" / "eu.yaml"
        place.write_text(re.sub(r"rows: \d+", f"rows: {rows}", place.read_text()))

    # -- who can be hurt

    def agent(self) -> int:
        """The pid of the agent that holds the region, 0 where none lives."""
        try:
            if self._mirror:
                holder = self._mirror.newest("_console/lease", ".json")
            else:
                holder = (self.warehouse / "_console" / "agent.lock").read_bytes()
            pid = int(json.loads(holder)["pid"])
        except (OSError, ValueError, KeyError):
            return 0
        if not self._serves(pid):
            return 0
        if pid not in self.agents:
            self.agents.append(pid)
        return pid

    def jvm(self) -> int:
        """The pid of the agent's JVM, 0 where there is none."""
        agent = self.agent()
        command = ["pgrep", "-P", str(agent), "java"]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split() if agent else []
        return int(output[0]) if output else 0

    def arm(self, points: Iterable[str]) -> None:
        for point in points:
            (self.crashes / point).touch()

    def armed(self) -> set[str]:
        return {path.name for path in self.crashes.iterdir() if path.is_file()}

    def died(self) -> dict[str, int]:
        """Which process reached each point that was armed and met."""
        fired = (path.name.rpartition(".") for path in (self.crashes / "fired").iterdir())
        return {name: int(pid) for name, _, pid in fired}

    async def ended(self) -> None:
        """Everything that was started here is gone."""
        for task in (self._writer, self._nurse):
            if task is not None:
                task.cancel()
        if self._reader is not None:
            self._reader.terminate()
            self._reader.wait(30)
        for console in self.consoles:
            if console.poll() is None:
                console.kill()
        for name in self.armed():
            (self.crashes / name).unlink()
        with suppress(ConsoleError):
            await self.driver.stop()
        await self.driver.close()
        for pid in {self.agent(), *self.agents} - {0}:
            if self._serves(pid):
                os.kill(pid, signal.SIGKILL)

    def _serves(self, pid: int) -> bool:
        """Whether this is a living agent of this region: the pid of one that is dead may be anybody's by now."""
        with suppress(OSError):
            return self.address in Path(f"/proc/{pid}/cmdline").read_text()  # "" of a zombie
        return False


async def before_long(process: subprocess.Popen[str], read: Callable[[], T], seconds: float = WHOLE_SECONDS) -> T:
    """What a process says, or its end.

    raises  AssertionError where it keeps silent for so long; it is killed
    """
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.to_thread(read)
    except TimeoutError:
        process.kill()
        words = [str(word) for word in process.args] if isinstance(process.args, list) else [str(process.args)]
        raise AssertionError(f"{' '.join(words)}: silent for {seconds:g} s") from None


class Operator:
    """One person's console: commands of the real command line, with a journal of its own."""

    def __init__(self, world: World, name: str, home: Path | None = None) -> None:
        self._world = world
        self.home = home or world.base / name
        self.killed = 0
        self.console: subprocess.Popen[str] | None = None  # the last one that was started
        self.env = {**os.environ, "CONSOLE_HOME": str(self.home), "CONSOLE_CRASH_DIR": str(world.crashes)}

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "console.main", *words, "--project", str(self._world.root)]
        if words[0] != "doctor":
            command += ["--pipeline", PIPELINE]
        self.console = subprocess.Popen(
            command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )
        self._world.consoles.append(self.console)
        return self.console

    async def carrying(self, *words: str) -> subprocess.Popen[str]:
        """A console that has begun to carry, or to watch what the region carries."""
        process = self.start(*words, "--output", "json")
        assert process.stdout
        text = ""
        while '"apply_' not in text:
            text = await before_long(process, process.stdout.readline, TIMEOUT)
            if not text:
                process.communicate()
                assert process.returncode in AGAIN, f"{' '.join(words)}: ended with {process.returncode}"
                raise EndedEarly
        return process

    async def run(self, *words: str) -> tuple[int, str]:
        """Exit code and all that was said; -9 for a console that was killed."""
        process = self.start(*words)
        outcome, _ = await before_long(process, process.communicate)
        self.killed += process.returncode == -signal.SIGKILL
        return process.returncode, outcome

    async def until_done(self, *words: str, tries: int = 60, done: tuple[int, ...] = (0,)) -> int:
        """The same command again and again until it succeeds; returns how often it was given."""
        text = ""
        for attempt in range(1, tries + 1):
            code, text = await self.run(*words)
            if code in done:
                return attempt
            assert code in AGAIN, f"{' '.join(words)}: exit {code}: {text[-2000:]}"
        raise AssertionError(f"{' '.join(words)}: not done after {tries} tries: {text[-2000:]}")


@contextmanager
def mounted(place: Path, megabytes: int) -> Iterator[Path]:
    """A small disk of its own, gone afterwards whatever happened."""
    place.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(place)]
    subprocess.run(["mount", *options], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """No byte is free on this disk meanwhile."""
    ballast = disk / "ballast"
    handle = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12):
        with suppress(OSError):
            while True:
                os.write(handle, b"\0" * size)
    os.close(handle)
    try:
        yield
    finally:
        ballast.unlink()


def summary(report: dict[str, Any], reads: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of one run for the account: rows, reads, and all that must be 0."""
    wrong = verdict(report, reads)
    zeros = {name: wrong[name] for name in ("lost", "duplicated", "unexpected", "torn", "failed")}
    result = "whole" if not wrong else "; ".join(report["faults"])[:500] or "bad reads"
    return {"rows": report.get("sent", 0), "reads": len(reads), **zeros, "result": result}


def verdict(report: dict[str, Any], reads: list[dict[str, Any]]) -> Counter[str]:
    """Lost, duplicated and unexpected rows, torn and failed reads, and anything else that is wrong, counted."""
    wrong: Counter[str] = Counter({name: report.get(name, 0) for name in ("lost", "duplicated", "unexpected")})
    wrong["other"] = len(report["faults"])
    wrong["torn"] = sum("torn" in read for read in reads)
    wrong["failed"] = sum("failed" in read for read in reads)
    if +wrong:  # shown with the test that fails
        print(
            json.dumps([report["faults"], [read for read in reads if "release" not in read][:5]], indent=1, default=str)
        )
    return +wrong
