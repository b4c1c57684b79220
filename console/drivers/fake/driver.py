"""The whole Driver protocol, connected to a fake region."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from console.drivers.fake import gate
from console.drivers.fake.region import FakeRegion
from console.drivers.protocol import QueryResult, RegionState, Who
from console.errors import Conflict, DataError, NoAgent, Unreachable
from console.model.compared import PAGE, ComparedPage, DayExamples
from console.model.consent import Declaration
from console.model.event import Promoted, Recorded, RolledBack
from console.model.fleet import FleetWaves
from console.model.live import Live, Release
from console.model.load import EventRun, LoadState
from console.model.measured import FeedSample
from console.model.plan import Plan
from console.model.receipt import AuditProgress, Finding, Past
from console.model.sandbox import Sandbox, check_name
from console.model.sandbox_plan import cannot_preview
from console.model.status import Status, Verb, replay
from console.model.tuning import Tuning


class FakeDriver:
    """One console's link to a fake region. Implements `drivers.protocol.Driver`.

    lose_answer  verbs and calls whose next answer is lost after the region has done them: {"promote"}
    """

    def __init__(self, world: FakeRegion) -> None:
        self.world = world
        self.region = world.region
        self.lose_answer: set[str] = set()
        self.calls: list[str] = []

    async def survey(self, pipeline: str, landing: Sequence[str]) -> Live:
        await self._arrive("survey", pipeline)
        return self.world.survey()

    async def state(self, pipeline: str) -> RegionState:
        await self._arrive("state", pipeline)
        return self.world.state()

    async def history(self, pipeline: str, rollout: str = "") -> Past:
        await self._arrive("history", pipeline)
        stored = self.world.disk.stored
        names = dict.fromkeys(recorded.rollout for recorded in stored)
        events = {name: tuple(recorded for recorded in stored if recorded.rollout == name) for name in names}
        statuses = tuple(replay(each) for each in events.values())
        return Past(statuses, events.get(rollout, ()), self.world.receipts.get(rollout, ()))

    async def compared(self, pipeline: str, rollout: str, after: int = 0) -> ComparedPage:
        await self._arrive("compared", pipeline)
        records = self.world.compared.get(rollout, ())
        page = records[after : after + PAGE]
        return ComparedPage(page, after + PAGE if len(records) > after + PAGE else 0)

    async def examples(self, pipeline: str, table: str, day: str) -> DayExamples:
        await self._arrive("examples", pipeline)
        if (known := self.world.examples.get((table, day))) is None:
            raise DataError(f"{self.region.name}: no table {table} on {day} here", region=self.region.name)
        return known

    async def samples(self, pipeline: str, hours: float, feed: str | None = "") -> tuple[FeedSample, ...]:
        await self._arrive("samples", pipeline)
        newest = max((sample.at for sample in self.world.samples), default=0.0)
        wanted = (sample for sample in self.world.samples if feed in (None, sample.feed))
        return tuple(sample for sample in wanted if sample.at > newest - hours * 3600)

    async def verify(
        self, pipeline: str, rollout: str, tell: Callable[[AuditProgress], None] | None = None
    ) -> tuple[Finding, ...]:
        await self._arrive("verify", pipeline)
        if all(recorded.rollout != rollout for recorded in self.world.disk.stored):
            raise DataError(
                f"{self.region.name}: no rollout {rollout} here", region=self.region.name, hint="console history"
            )
        findings, reported = self.world.findings.get(rollout, ()), 0
        for number, check in enumerate(findings, 1):
            if tell:
                new, reported = findings[reported : number - 1], number - 1
                tell(
                    AuditProgress(
                        number=number,
                        of=len(findings),
                        table=check.table,
                        step=check.step,
                        what=check.what,
                        found=new,
                    )
                )
            await self.world.pass_time(1.0)
        return findings

    async def note(self, pipeline: str, text: str, who: Who) -> Status:
        await self._arrive("note", pipeline)
        self.world.agent.start()
        status = self.world.agent.note(text, who)
        self._leave("note")
        return status

    async def declare(self, pipeline: str, rollout: str, declared: Declaration, who: Who) -> Status:
        await self._arrive("declare", pipeline)
        self.world.agent.start()
        status = gate.declare(self.world.disk, rollout, declared, who)
        self._leave("declare")
        return status

    async def accept_until(self, pipeline: str, release: str, days: Mapping[str, str], who: Who) -> dict[str, str]:
        await self._arrive("accept_until", pipeline)
        self.world.agent.start()
        moved = self.world.agent.accept_until(release, days)
        self._leave("accept_until")
        return moved

    async def start_agent(self) -> None:
        await self._arrive("start_agent")
        self.world.agent.start()

    async def accept(self, plan: Plan, who: Who, *, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        await self._arrive("accept", plan.pipeline)
        self.world.agent.start()
        rollout = self.world.agent.accept(plan, who, fleet)
        self._leave("accept")
        return rollout

    async def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
        await self._arrive("watch", pipeline)
        if not self.world.agent.running:
            raise NoAgent(f"{self.region.name}: no agent runs", region=self.region.name)
        events = self.world.watch(after, who)
        try:
            async for recorded in events:
                yield recorded
        finally:
            await events.aclose()

    async def control(self, pipeline: str, verb: Verb, who: Who) -> Status:
        await self._arrive(verb, pipeline)
        self.world.agent.start()
        status = await self.world.agent.control(verb, who)
        self._leave(verb)
        return status

    async def tune(self, pipeline: str, change: Tuning, who: Who, *, reset: bool = False) -> Status:
        await self._arrive("tune", pipeline)
        self.world.agent.start()
        status = self.world.agent.tune(change, who, reset=reset)
        self._leave("tune")
        return status

    async def take_over(self, pipeline: str, who: Who) -> Status:
        await self._arrive("take_over", pipeline)
        self.world.agent.start()
        status = self.world.agent.take_over(who)
        self._leave("take_over")
        return status

    async def maintain(self, pipeline: str, who: Who, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        await self._arrive("maintain", pipeline)
        return ()

    async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
        await self._arrive("promote", pipeline)
        self.world.agent.start()
        promoted = await self.world.agent.promote(rollout, live, who)
        self._leave("promote")
        return promoted

    async def rollback(self, pipeline: str, live: str, who: Who) -> RolledBack:
        await self._arrive("rollback", pipeline)
        self.world.agent.start()
        rolled = self.world.agent.rollback(live, who)
        self._leave("rollback")
        return rolled

    async def cleanup(
        self,
        pipeline: str,
        who: Who,
        *,
        dry_run: bool = False,
        previous: bool = False,
        let_go: Sequence[str] = (),
        hold: float = 0.0,
    ) -> tuple[str, ...]:
        await self._arrive("cleanup", pipeline)
        if hold:
            return self.world.hold(who, hold, dry_run=dry_run)
        return self.world.agent.cleanup(who, dry_run=dry_run, previous=previous)

    async def restore(self, pipeline: str, who: Who) -> str:
        await self._arrive("restore", pipeline)
        return self.world.restore()

    async def preview(self, plan: Plan, who: Who, *, name: str, days: int, hours: float, live: bool = False) -> Sandbox:
        await self._arrive("preview", plan.pipeline)
        if why := cannot_preview(plan):
            raise DataError(f"this change cannot be previewed: {why}", hint="console apply", code="E_PREVIEW")
        return self.world.put_sandbox(plan, who, name=check_name(name), days=days, hours=hours, live=live)

    async def preview_release(self, pipeline: str, name: str) -> Release:
        await self._arrive("preview_release", pipeline)
        return self._release(name)

    async def drop_preview(self, pipeline: str, name: str, who: Who) -> tuple[str, ...]:
        await self._arrive("drop_preview", pipeline)
        self._release(name)
        return self.world.drop_sandbox(name)

    async def query(
        self,
        pipeline: str,
        sql: str,
        tables: Sequence[str],
        args: Mapping[str, tuple[str, str]],
        limit: int,
        *,
        release: str = "",
    ) -> QueryResult:
        await self._arrive("query", pipeline)
        manifest = self._release(release)
        for table in tables:
            if manifest.table(table) is None:
                raise DataError(
                    f"{self.region.name}: {manifest.id} has no table {table}",
                    region=self.region.name,
                    hint="console status",
                )
        counts = tuple((name, stats.rows) for name, stats in sorted(self.world.disk.stats.items()) if name in tables)
        blank = QueryResult((("table", "string"), ("rows", "bigint")), counts, manifest.id)
        answer = replace(self.world.answers.get(sql, blank), release=manifest.id)
        return replace(answer, rows=answer.rows[:limit], truncated=len(answer.rows) > limit)

    async def run(
        self, pipeline: str, kind: Literal["copy", "sink"], name: str, who: Who, run: str = "", *, release: str = ""
    ) -> dict[str, Any]:
        await self._arrive("run", pipeline)
        manifest = self._release(release)
        nodes = manifest.copies if kind == "copy" else manifest.sinks
        if all(node.name != name for node in nodes):
            raise DataError(
                f"{self.region.name}: {manifest.id} has no {kind} {name}", region=self.region.name, hint="console plan"
            )
        already = (name, run) in self.world.copied
        if kind == "copy":
            self.world.copied.add((name, run))
        rows = 0 if already else sum(stats.rows for stats in self.world.disk.stats.values())
        self._leave("run")
        return {"rows": rows, "already": already, "path": f"{self.region.warehouse}/{name}"}

    async def ingest(
        self, pipeline: str, table: str, batch: str, lines: Sequence[str], run: EventRun | None = None, shape: str = ""
    ) -> dict[str, Any]:
        await self._arrive("ingest", pipeline)
        if run is None and batch in self.world.ingested:
            return {"rows": self.world.ingested[batch], "already": True}
        if run is not None:
            end, _ = run.end(lines)
            if not self.world.loads.place(run, end):
                return {"rows": 0, "already": True}
            self.world.loads.add(end)
        stats = self.world.disk.stats.get(table)
        if stats is None:
            raise DataError(f"{self.region.name}: there is no landing table {table}", region=self.region.name)
        self.world.ingested[batch] = len(lines)
        self.world.disk.stats[table] = replace(stats, rows=stats.rows + len(lines), version=stats.version + 1)
        self._leave("ingest")
        return {"rows": len(lines), "already": False}

    async def check(
        self, pipeline: str, table: str, lines: Sequence[str], at: Sequence[tuple[int, int]], shape: str = ""
    ) -> str:
        await self._arrive("check", pipeline)
        return "any"

    async def landed(
        self, pipeline: str, table: str, load: str, first: str, *, named: bool, batch: str = "", after: int = 0
    ) -> LoadState:
        await self._arrive("landed", pipeline)
        return self.world.loads.state_for(load, first, named=named, batch=batch, after=after, most=2000)

    async def marks(self, pipeline: str, table: str, load: str, rows: int) -> bytes:
        await self._arrive("marks", pipeline)
        return b""

    async def stop(self) -> None:
        await self._arrive("stop")
        await self.world.kill_agent()

    async def close(self) -> None:
        return None

    def _release(self, sandbox: str = "") -> Release:
        if sandbox and sandbox not in self.world.sandboxes:
            raise DataError(
                f"{self.world.pipeline} has no preview {sandbox!r:.60}",
                region=self.region.name,
                hint="console preview --list",
                code="E_NO_PREVIEW",
            )
        if sandbox:
            return self.world.sandboxes[sandbox][0].release
        release = self.world.survey().release
        if release is None:
            raise Conflict(f"{self.region.name}: no release is live yet", region=self.region.name, hint="console apply")
        return release

    async def _arrive(self, call: str, pipeline: str = "") -> None:
        self.calls.append(call)
        await asyncio.sleep(0)
        if not self.world.reachable:
            raise Unreachable(f"{self.region.name}: no route to the region", region=self.region.name)
        if pipeline and pipeline != self.world.pipeline:
            raise DataError(
                f"{self.region.name}: no pipeline {pipeline} here; it has {self.world.pipeline}",
                region=self.region.name,
            )

    def _leave(self, call: str) -> None:
        if call in self.lose_answer:
            self.lose_answer.discard(call)
            raise Unreachable(
                f"{self.region.name}: the connection was lost before the answer to {call}", region=self.region.name
            )
        if not self.world.reachable:
            raise Unreachable(
                f"{self.region.name}: the connection was lost before the answer to {call}", region=self.region.name
            )
