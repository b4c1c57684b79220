"""The agent inside a fake region: runs an accepted plan through the events of a real one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import assert_never

from console.drivers.fake import gate, watched
from console.drivers.fake.disk import FakeDisk
from console.drivers.fake.scenario import Scenario
from console.drivers.protocol import Who
from console.errors import Conflict, DataError
from console.model.event import (
    ENDED,
    Accepted,
    BatchDone,
    BatchStarted,
    Checked,
    Ended,
    Entered,
    Failed,
    Fenced,
    Lagging,
    Logged,
    Paused,
    Progress,
    Promoted,
    Resumed,
    RolledBack,
    State,
    StepDone,
    StepStarted,
    TakenOver,
)
from console.model.fleet import FleetWaves
from console.model.gate import refusal
from console.model.identity import AgentReason, by_agent
from console.model.note import Noted, note_text
from console.model.plan import Plan, numbered
from console.model.rollout_id import release_number, rollout_id, rollout_number
from console.model.slices import Slice, by_day, cut, pack
from console.model.status import Status, Verb
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Promote, Step, Validate
from console.model.tuning import AS_PLANNED, Tuned, Tuning, check_ranges, described, limits, merged

_STATES: dict[type[Step], State] = {
    CreateTable: "preparing",
    AddColumns: "preparing",
    Backfill: "backfilling",
    CatchUp: "catching-up",
    Validate: "validating",
    Promote: "awaiting-confirmation",
}


class FakeAgent:
    """The region's one writer. `kill` loses what is in memory, `start` starts the next agent on the same disk."""

    def __init__(self, disk: FakeDisk, script: Scenario, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.disk = disk
        self.running = False
        self._script = script
        self._sleep = sleep
        self._work: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.running:
            return
        self.running = True
        self._recover_promotion()
        self._execute()

    async def kill(self) -> None:
        self.running = False
        await self._halt()

    def accept(self, plan: Plan, who: Who, fleet: FleetWaves | None = None) -> str:
        disk, status = self.disk, self.disk.status
        if plan.region != disk.region:
            raise DataError(f"the plan is for {plan.region}, this is {disk.region}")
        if status.state not in (*ENDED, "none"):
            self._refuse_taken_over(who)
            if status.plan == plan.digest():
                return status.rollout
            raise Conflict(
                f"{disk.region}: {status.rollout} by {status.by} is under way",
                region=disk.region,
                hint="console status",
            )
        if disk.live != plan.live:
            raise Conflict(
                f"{disk.region}: the plan starts from {plan.live or 'nothing'}, but live is {disk.live or 'nothing'}",
                region=disk.region,
                hint="console plan",
                code="E_STALE",
            )
        number = 1 + max((release_number(row.id) for row in disk.releases), default=0)
        number = max(number, 1 + max((rollout_number(r.rollout) for r in disk.stored), default=0))
        accepted = numbered(plan, number)
        disk.propose(accepted, who)
        steps = tuple((step.id, step.rows if isinstance(step, Backfill) else 0) for step in plan.steps)
        event = Accepted(
            release=accepted.release.id,
            was=plan.live,
            plan=plan.digest(),
            by=who.name,
            host=who.host,
            steps=steps,
            allowed=plan.allowed,
            fleet=fleet,
            taken_back=watched.taken_back(disk),
        )
        disk.keep(event, rollout=rollout_id(disk.pipeline, number))
        self._execute()
        return disk.status.rollout

    def take_over(self, who: Who) -> Status:
        status = self.disk.status
        if status.state in (*ENDED, "none"):
            raise Conflict(
                f"{self.disk.region}: nothing is under way",
                region=self.disk.region,
                hint="console status",
                code="E_STATE",
            )
        if status.console != who.console:
            self.disk.keep(TakenOver(who.name, who.host, who.console))
        return self.disk.status

    def _refuse_taken_over(self, who: Who) -> None:
        status = self.disk.status
        if who.console and status.console not in ("", who.console):
            raise Conflict(f"{status.rollout}: {status.taken_by} took it over", code="E_TAKEN_OVER")

    async def control(self, verb: Verb, who: Who) -> Status:
        self._refuse_taken_over(who)
        disk, status = self.disk, self.disk.status
        if watched.steer(disk, verb, who):
            return disk.status
        going = status.state not in (*ENDED, "none")
        fits = {
            "pause": going and not status.held,
            "resume": status.held == "paused",
            "retry": status.held == "failed" or (status.state == "awaiting-confirmation" and not status.held),
            "cancel": going,
            "discard": going,
        }
        if not fits[verb]:
            raise Conflict(
                f"{disk.region}: {verb} does not fit: the rollout is {status.shown}",
                region=disk.region,
                hint="console status",
            )
        await self._halt()
        match verb:
            case "pause":
                disk.keep(Paused(who.name))
            case "resume" | "retry":
                if verb == "retry" and status.state in ("validating", "awaiting-confirmation"):
                    disk.keep(Entered("catching-up"))
                disk.keep(Resumed(who.name))
                self._execute()
            case "cancel" | "discard":
                disk.drop([status.release])
                disk.keep(Ended("cancelled" if verb == "cancel" else "discarded", who.name))
            case _:
                assert_never(verb)
        return disk.status

    def tune(self, change: Tuning, who: Who, *, reset: bool) -> Status:
        self._refuse_taken_over(who)
        disk, status = self.disk, self.disk.status
        if disk.plan is None or status.state in (*ENDED, "none"):
            raise Conflict(
                f"{disk.region}: nothing is under way", region=disk.region, hint="console status", code="E_STATE"
            )
        check_ranges(change)
        tuning = merged(AS_PLANNED if reset else status.tuning, change)
        text = described(limits(disk.plan, status.tuning), limits(disk.plan, tuning))
        tuned = Tuned(by=who.name, host=who.host, tuning=tuning)
        if tuning != status.tuning:
            disk.keep(Logged(f"{who.name} from {who.host}: {text}", "info", tuned))
        return disk.status

    def accept_until(self, release: str, days: Mapping[str, str]) -> dict[str, str]:
        disk = self.disk
        if disk.live != release or release not in disk.manifests:
            raise Conflict(
                f"{disk.region}: {release} is not live", region=disk.region, hint="console status", code="E_STALE"
            )
        manifest = disk.manifests[release]
        now = {state.table.name: state.table.accepts_until for state in manifest.tables}
        disk.manifests[release] = manifest.accepting_until(days)
        return {table: day for table, day in days.items() if now[table] != day}

    def note(self, text: str, who: Who) -> Status:
        disk, noted = self.disk, Noted(by=who.name, host=who.host, text=note_text(text))
        if not disk.status.rollout:
            raise Conflict(
                f"{disk.region}: there has been no rollout", region=disk.region, hint="console apply", code="E_STATE"
            )
        disk.keep(Logged(f"note by {who.name} from {who.host}: {noted.text}", "info", noted))
        return disk.status

    async def promote(self, rollout: str, live: str, who: Who) -> Promoted:
        disk = self.disk
        await self._sleep(0.0)
        self._refuse_taken_over(who)
        status = disk.status
        if status.rollout == rollout and status.state == "live":
            row = disk.row(status.release)
            raise Conflict(
                f"{disk.region}: {row.id} was already promoted by {row.by} from {row.host} at {row.at:.0f}",
                region=disk.region,
                hint="console status",
                code="E_PROMOTED",
            )
        if status.rollout != rollout or status.shown != "awaiting-confirmation":
            raise Conflict(
                f"{disk.region}: {rollout} is not at the gate: {status.shown}",
                region=disk.region,
                hint="console status",
            )
        if closed := refusal(gate.gate_at(disk), disk.region):
            raise closed
        disk.keep(Entered("promoting", by=who.name))
        disk.swap(live, status.release, who)
        promoted = Promoted(release=status.release, was=live, by=who.name, host=who.host, version=disk.commits)
        disk.keep(promoted)
        self._execute()
        return promoted

    def rollback(self, live: str, who: Who) -> RolledBack:
        disk = self.disk
        if disk.status.state not in (*ENDED, "none"):
            raise Conflict(
                f"{disk.region}: {disk.status.rollout} is under way", region=disk.region, hint="console cancel"
            )
        previous = disk.in_state("previous")
        if not previous:
            raise Conflict(f"{disk.region}: nothing to go back to", region=disk.region, hint="console status")
        disk.swap(live, previous, who)
        rolled = RolledBack(release=previous, was=live, by=who.name, host=who.host, version=disk.commits)
        disk.keep(rolled)
        return rolled

    def cleanup(self, who: Who, *, dry_run: bool, previous: bool) -> tuple[str, ...]:
        disk = self.disk
        states = ("retired", "previous") if previous else ("retired",)
        staying = set() if previous else {held.release for held in disk.on_hold}
        gone = [row.id for row in disk.releases if row.state in states and row.id not in staying]
        dropped = disk.drop(gone, dry_run=dry_run)
        if previous and not dry_run and disk.status.state in ENDED:
            disk.keep(Ended("cleaned", who.name))
        return dropped

    def _recover_promotion(self) -> None:
        """Report a promotion that a killed agent committed but did not report."""
        disk = self.disk
        if disk.status.state != "promoting":
            return
        if disk.live == disk.status.release:
            row = disk.row(disk.live)
            disk.keep(Promoted(release=row.id, was=disk.status.was, by=row.by, host=row.host, version=disk.commits))
        else:
            disk.keep(Entered("awaiting-confirmation"))

    def _execute(self) -> None:
        status = self.disk.status
        if self.disk.plan and not status.held and status.state not in (*ENDED, "none", "awaiting-confirmation"):
            self._work = asyncio.create_task(self._steps(self.disk.plan), name=f"fake agent {self.disk.region}")
        elif watched.is_watched(self.disk):
            self._work = asyncio.create_task(watched.go_on(self, self._script, self._sleep))

    async def _halt(self) -> None:
        work, self._work = self._work, None
        if work and work is not asyncio.current_task():
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work

    async def _steps(self, plan: Plan) -> None:
        disk = self.disk
        for step in plan.steps:
            known = next((s.state for s in disk.status.steps if s.id == step.id), "waiting")
            again = isinstance(step, Validate) and disk.status.state in ("catching-up", "validating")
            if known == "done" and not again:
                continue
            if disk.status.state != _STATES[type(step)]:
                disk.keep(Entered(_STATES[type(step)]))
            await self._sleep(self._script.seconds / 10)
            if isinstance(step, Promote):
                disk.say(Lagging(commits=0, rows=0, seconds=0.4))
                if gate.opens_itself(disk):
                    by = Who(by_agent(AgentReason.POLICY), disk.region)
                    await self.promote(disk.status.rollout, disk.status.was, by)
                return
            disk.keep(StepStarted(step.id))
            if self._script.failures.get(step.id, 0) > 0:
                self._script.failures[step.id] -= 1
                disk.keep(Failed(step.id, f"{step.id}: its Spark driver was lost", "console retry"))
                return
            await self._step(step, plan)
            disk.keep(StepDone(step.id))

    async def _step(self, step: Step, plan: Plan) -> None:
        disk = self.disk
        match step:
            case CreateTable() | AddColumns():
                disk.write(step.id)
            case Backfill():
                await self._backfill(step, plan)
            case CatchUp():
                disk.say(Progress(step=step.id, rows=0, left=200))
                await self._sleep(self._script.seconds / 10)
                disk.write(step.id)
                disk.say(Progress(step=step.id, rows=200, left=0))
            case Validate():
                await self._validate(step)
            case Promote():
                return
            case _:
                assert_never(step)

    async def _backfill(self, step: Backfill, plan: Plan) -> None:
        disk = self.disk
        if step.id not in disk.cuts:
            stats = disk.stats.get(step.source)
            slices = cut(stats.days if stats else (), plan.heavy_rows, bytes_limit=plan.bytes_limit)
            version = stats.version if stats else 0
            disk.cuts[step.id] = slices
            disk.keep(
                Fenced(
                    step=step.id,
                    source=step.source,
                    version=version,
                    slices=len(slices),
                    rows=sum(piece.rows for piece in slices),
                    days=by_day(slices),
                )
            )
        slices = disk.cuts[step.id]
        done = disk.reached(step.id)
        stored = next((s.slices_done for s in disk.status.steps if s.id == step.id), 0)
        if stored < done:
            self._store_batch(step, slices[stored:done])
        while run := pack(slices, done, plan.rows_limit, plan.bytes_limit):
            await self._batch(step, run)
            done = run[-1].index

    async def _batch(self, step: Backfill, run: tuple[Slice, ...]) -> None:
        disk, rows = self.disk, sum(piece.rows for piece in run)
        of = len(disk.cuts[step.id])
        disk.keep(
            BatchStarted(step=step.id, label=_label(run), first=run[0].index, last=run[-1].index, of=of, rows=rows)
        )
        for part in (1, 2, 3, 4):
            await self._sleep(self._seconds(rows) / 4)
            disk.say(Progress(step=step.id, rows=rows * part // 4, batch=_label(run)))
        disk.write(step.id, run[0].index, run[-1].index)
        await self._sleep(0.0)  # the worst moment to be killed: committed, and the event not stored yet
        self._store_batch(step, run)

    def _store_batch(self, step: Backfill, run: tuple[Slice, ...]) -> None:
        disk = self.disk
        rows, size = sum(piece.rows for piece in run), sum(piece.bytes for piece in run)
        of, version = len(disk.cuts[step.id]), disk.commits if rows else -1
        label, seconds = _label(run), self._seconds(rows)
        disk.keep(
            BatchDone(
                step=step.id,
                label=label,
                position=run[-1].index,
                of=of,
                rows_in=rows,
                rows_out=rows,
                bytes=size,
                seconds=seconds,
                version=version,
            )
        )

    async def _validate(self, step: Validate) -> None:
        for comparison in step.comparisons:
            await self._sleep(self._script.seconds / 10)
            table, stats = comparison.table, self.disk.stats.get(comparison.table)
            ok: bool | None = True
            detail = f"{stats.rows if stats else 0:,} rows equal"
            if table in self._script.differ:
                ok, detail = False, "2026-01-08: 1,204 rows live, 1,203 new"
            if table in self._script.inconclusive:
                ok, detail = None, "no live row has passed since the fence"
            self.disk.keep(Checked(table=table, check="rows per day", ok=ok, detail=detail))

    def _seconds(self, rows: int) -> float:
        return rows / self._script.rows_per_second if self._script.rows_per_second else self._script.seconds


def _label(run: tuple[Slice, ...]) -> str:
    return run[0].label if len(run) == 1 else f"{run[0].label} … {run[-1].label}"
