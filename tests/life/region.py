"""A real region in a folder: landing rows, a writer that never stops, the real agent, and the truth by DuckDB."""

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from console import planning, project
from console.agent.spark_process import BRIEF
from console.drivers.local import LocalDriver
from console.drivers.protocol import Who
from console.drivers.rpc import RpcDriver
from console.errors import ConsoleError, Unreachable
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status
from tests.doubts import accept_doubts

LANDING = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("payload", pa.string())])
FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 4
ME = Who("ada", "laptop")
# between two looks at a status: an answer holds plan and releases, and two a second took a third of what the agent's Python did
LOOK_SECONDS = 1.5
STILL = 2  # looks
# between two batches of a writer: each is a commit of every table on both sides of a change, by which a rollout comes to its end later
WRITES_EVERY = 4.0
SELDOM = 10.0  # where each batch is a commit of a dozen tables
# An agent of a few minutes and tables of a few rows: Java that is written for a query, and compiled, comes too late.
SHORT_LIVED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": BRIEF,
}


def event(n: int, rng: random.Random) -> dict[str, Any]:
    """One landing row: mostly of known days, some late, early or without a time, some equal but for the id."""
    at: datetime | None = FIRST_DAY + timedelta(seconds=rng.randrange(DAYS * 86400))
    odd = rng.random()
    if odd < 0.03:
        at = None
    elif odd < 0.05:
        at = datetime(rng.choice([1971, 2099]), 1, 1, tzinfo=UTC)
    payload = {
        "ip": f"192.0.2.{rng.randrange(40)}",
        "status": rng.choice([200, 200, 304, 404, 500]),
        "bytes": None if odd > 0.95 else rng.randrange(10_000),
        "ms": round(rng.expovariate(0.02), 3),
    }
    if rng.random() < 0.6:
        payload["ua"] = rng.choice(["curl/8", "Mozilla/5.0 (“X”; \\ 'q')", ""])
    return {"id": f"e{n}", "ts": at, "payload": json.dumps(payload)}


class LiveRegion:
    """One warehouse with its agent and, once `write` was called, a producer."""

    def __init__(
        self,
        root: Path,
        *,
        rows: int = 1500,
        seed: int = 1,
        conf: Mapping[str, str] | None = None,
        most: int = 600,
        master: str = "local[2]",
        spark: Mapping[str, Any] | None = None,
        address: str = "",
        store: Mapping[str, str] | None = None,
    ) -> None:
        """most     rows a batch
        spark    of the inventory, in place of a master and its `conf`
        address  URI of a warehouse that lies elsewhere, "" for the folder `warehouse` below `root`
        store    deltalake's storage options for it
        """
        self.root = root
        self.store = dict(store) if store else None
        self.warehouse = root / "warehouse"
        self.warehouse.mkdir(parents=True)
        self.address = address or str(self.warehouse)
        self._rng = random.Random(seed)
        self._written = 0
        self._writer: asyncio.Task[None] | None = None
        self._enough = asyncio.Event()
        (root / "regions").mkdir()
        setting = spark or {"master": master, "conf": {**SHORT_LIVED, **(conf or {})}}
        (root / "regions" / "eu.yaml").write_text(
            f"name: eu\nwarehouse: {address or 'warehouse'}\nspark: {json.dumps(setting)}\nlimits: {{rows: {most}}}\n"
        )
        (root / "plans").mkdir()
        per = rows // 3
        for _ in range(3):
            batch = pa.Table.from_pylist([self._next() for _ in range(per)], LANDING)
            write_deltalake(f"{self.address}/landing", batch, mode="append", storage_options=self.store)
        self._driver: RpcDriver | None = None

    def _next(self) -> dict[str, Any]:
        self._written += 1
        return event(self._written, self._rng)

    @property
    def region(self) -> Region:
        return project.load(self.root).regions[0]

    @property
    def driver(self) -> RpcDriver:
        if self._driver is None:
            self._driver = LocalDriver(self.region)
        return self._driver

    def install(self, pipeline: str, files: Path) -> None:
        """Make `files` the desired state of a pipeline."""
        target = self.root / "plans" / pipeline
        for old in sorted(target.rglob("*"), reverse=True):
            old.unlink() if old.is_file() else old.rmdir()
        for source in files.rglob("*"):
            if source.is_file():
                place = target / source.relative_to(files)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(source.read_text())

    async def plan(self, pipeline: str) -> Plan:
        loaded = project.load(self.root)
        desired = loaded.pipeline(pipeline, loaded.regions[0])
        live = await self.driver.survey(pipeline, [t.name for t in desired.tables if t.kind == "landing"])
        return planning.plan(desired, live, loaded.regions[0], "test")

    async def until(self, pipeline: str, *states: str, seconds: float = 900) -> Status:
        """The status as soon as it is in one of these states.

        raises  AssertionError with what it says instead, when it failed or time is up
        """
        deadline = asyncio.get_running_loop().time() + seconds
        status = Status()
        while asyncio.get_running_loop().time() < deadline:
            try:
                status = (await self.driver.state(pipeline)).status
            except Unreachable:
                await asyncio.sleep(0.2)
                continue
            if status.shown in states:
                return status
            assert status.held != "failed", f"{pipeline}: {status.why} ({status.hint})"
            await asyncio.sleep(LOOK_SECONDS)
        raise AssertionError(f"{pipeline}: still {status.shown} after {seconds} s: {status.why}")

    async def roll_out(self, pipeline: str, filtered: Collection[str] = ()) -> Status:
        """Plan, carry to the gate, require every check, promote. filtered: as of `to_the_gate`"""
        status = await self.to_the_gate(pipeline, filtered)
        await self.driver.promote(pipeline, status.rollout, status.was, ME)
        return status

    async def to_the_gate(self, pipeline: str, filtered: Collection[str] = ()) -> Status:
        """Plan, carry to the gate, require every check. filtered: tables of which other rows are wanted, which no check can
        compare day by day"""
        plan = await self.plan(pipeline)
        assert not plan.refusals, plan.refusals
        await self.driver.accept(plan, ME)
        status = await self.until(pipeline, "awaiting-confirmation")
        undecided = {(table, "rows per day", None) for table in filtered}
        bad = [c for c in status.checks if c.ok is not True and (c.table, c.check, c.ok) not in undecided]
        assert not bad, bad
        await accept_doubts(self.driver, pipeline, status, ME)
        return status

    async def roll_back(self, pipeline: str) -> None:
        state = await self.driver.state(pipeline)
        await self.driver.rollback(pipeline, state.live, ME)

    # -- traffic

    def write(self, pipeline: str, every: float = WRITES_EVERY) -> None:
        """Start a producer that goes on until `quiet`."""

        async def produce() -> None:
            batch = 0
            while not self._enough.is_set():
                batch += 1
                rows = [self._next() for _ in range(self._rng.randrange(1, 15))]
                lines = [json.dumps({**row, "ts": row["ts"] and row["ts"].isoformat()}) for row in rows]
                while True:
                    try:
                        await self.driver.ingest(pipeline, "landing", f"p{batch}", lines)
                        break
                    except Unreachable:
                        await asyncio.sleep(0.2)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._enough.wait(), every)

        self._enough.clear()
        self._writer = asyncio.create_task(produce())

    async def quiet(self, pipelines: Sequence[str]) -> None:
        """Stop the producer and wait until every feed has passed its last row."""
        await self.end_writing()
        await self.driver.start_agent()
        await asyncio.gather(*(self.followed(pipeline) for pipeline in pipelines))

    async def end_writing(self) -> None:
        """Stop the producer. What is on its way is stored first: broken off, its rows could land after the lag was read."""
        if self._writer is not None:
            self._enough.set()
            await self._writer
            self._writer = None

    async def followed(self, pipeline: str, seconds: float = 300) -> None:
        """Wait until no feed has had anything to read for some seconds: longer than a lag that is told is old, and a
        table that was just written shows rows to what hangs below it.
        """
        until, still = asyncio.get_running_loop().time() + seconds, 0
        while True:
            assert asyncio.get_running_loop().time() < until, f"{pipeline}: feeds lag after {seconds:g} s"
            with suppress(ConsoleError):
                still = still + 1 if (await self.driver.state(pipeline)).status.lag_commits == 0 else 0
            if still > STILL:
                return
            await asyncio.sleep(LOOK_SECONDS)

    # -- truth

    def truth(self, sql: str, **more: pa.Table) -> list[tuple[Any, ...]]:
        """DuckDB over the whole landing table. more: further tables, by name"""
        db = duckdb.connect()
        db.execute("SET TimeZone = 'UTC'")
        for name, rows in more.items():
            db.register(name, rows)
        landing = DeltaTable(f"{self.address}/landing", storage_options=self.store)
        db.register("landing", landing.to_pyarrow_table())
        return db.execute(sql).fetchall()

    async def table(self, pipeline: str, columns: str, name: str) -> list[tuple[Any, ...]]:
        """All rows of a logical table, through the agent."""
        answer = await self.driver.query(pipeline, f"SELECT {columns} FROM {name}", [name], {}, 100_000)
        return list(answer.rows)

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.cancel()
        await self.driver.stop()
        await self.driver.close()


def multiset(rows: Sequence[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset, values in one form whoever computed them."""
    return Counter(tuple(_form(value) for value in row) for row in rows)


def _form(value: Any) -> Any:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case date():
            return value.isoformat()
        case str() if len(value) >= 19 and value[4:5] == "-" and value[10:11] == "T":
            return datetime.fromisoformat(value).replace(tzinfo=None).isoformat()
        case bool() | None | str():
            return value
        case float() | Decimal() | int():
            # Sums of doubles differ in their last bits with the order of adding; cut where no decimal fraction ends.
            return f"{int(value)}" if value == int(value) else f"~{math.floor(float(value) * 1e5 + 0.271828)}"
    return value


def near(value: Any, truth: Any, relative: float = 0.1, slack: float = 2.0) -> bool:
    if value is None or truth is None:
        return value is truth
    return math.isclose(float(value), float(truth), rel_tol=relative, abs_tol=slack)
