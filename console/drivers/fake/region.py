"""A region in memory that answers the whole Driver protocol. For tests, benches and replayed fleets only."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from console.drivers.fake.agent import FakeAgent
from console.drivers.fake.disk import FakeDisk
from console.drivers.fake.scenario import Scenario
from console.drivers.protocol import QueryResult, RegionState, Who
from console.errors import Conflict, Unreachable
from console.model.compared import ComparedColumn, DayExamples
from console.model.event import Event, Lagging, Recorded
from console.model.held_release import HeldRelease
from console.model.live import Live, ReleaseRow, TableState, TableStats
from console.model.load import Loads
from console.model.measured import FeedSample
from console.model.plan import Plan
from console.model.receipt import Finding, Receipt
from console.model.region import Region
from console.model.sandbox import Sandbox, SandboxFeeding, SandboxOrder
from console.model.sandbox_plan import described, own_paths, sandboxed
from console.model.status import Status
from console.model.watcher import Watcher


class FakeRegion:
    """One region that lives as long as the test. Several consoles may reach it, each through its own FakeDriver.

    It writes before it reports: every event is on disk before a watcher receives it.

    live    the survey before the first promotion; its release, if any, is the live one
    script  its behaviour: speed, failures, results of checks
    clock   seconds since 1970, UTC; the default one starts at a fixed moment and advances a second per event
    sleep   how it passes time; `asyncio.sleep(0)` by default, so that a rollout takes no time at all
    """

    def __init__(
        self,
        region: Region,
        live: Live,
        script: Scenario | None = None,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self.region = region
        self.pipeline = live.pipeline
        self.script = script or Scenario()
        self.reachable = True
        self.links = 0  # watchers connected now
        self.ingested: dict[str, int] = {}
        self.loads = Loads()
        self.copied: set[tuple[str, str]] = set()  # copies by name and run
        self.answers: dict[str, QueryResult] = {}  # SQL → the answer of a query
        self.receipts: dict[str, tuple[Receipt, ...]] = {}  # rollout → its stored history
        self.compared: dict[str, tuple[ComparedColumn, ...]] = {}  # rollout → the records of its comparison
        self.examples: dict[tuple[str, str], DayExamples] = {}  # (table, day) → rows that differ
        self.findings: dict[str, tuple[Finding, ...]] = {}  # rollout → the findings of its verification
        self.samples: list[FeedSample] = []  # stored by its agent, oldest first
        self.heard: list[Callable[[Recorded], None]] = []  # called with every event, before a watcher gets it
        self.sandboxes: dict[str, tuple[Plan, Sandbox]] = {}  # ready at once
        self._survey = live
        self._watchers: set[asyncio.Queue[Recorded | None]] = set()
        self._named: dict[asyncio.Queue[Recorded | None], Watcher] = {}
        self._left: int | None = None  # events still delivered before the link drops
        rows = live.releases or ((ReleaseRow(id=live.release.id, state="live"),) if live.release else ())
        self._clock = clock or _Steps()
        self.disk = FakeDisk(live, rows, self._clock, self._tell)
        self.pass_time = sleep or _no_time
        self.agent = FakeAgent(self.disk, self.script, self.pass_time)

    # -- controls for tests

    def drop_link(self, after: int = 0) -> None:
        """Lose the link after this many more events, until `heal`; the region continues."""
        self._left = after
        if after == 0:
            self._cut()

    def heal(self) -> None:
        """The network is back."""
        self.reachable, self._left = True, None

    async def kill_agent(self) -> None:
        """End the agent as kill -9 does; the next call that needs one starts another."""
        await self.agent.kill()
        self._hang_up()

    # -- requests of its drivers

    def survey(self) -> Live:
        disk = self.disk
        release = disk.manifests.get(disk.live)
        made = [state for state in release.tables if state.table.name not in disk.stats] if release else []
        stats = (*disk.stats.values(), *(_empty(state) for state in made))
        return replace(self._survey, release=release, releases=tuple(disk.releases), stats=stats)

    def state(self) -> RegionState:
        watchers = tuple(self._named.values()) or None
        status = replace(
            self.disk.status, watchers=watchers, sandboxes=self._sandboxes(), on_hold=tuple(self.disk.on_hold)
        )
        return RegionState(status, self.disk.plan, tuple(self.disk.releases))

    def put_sandbox(self, plan: Plan, who: Who, *, name: str, days: int, hours: float, live: bool = False) -> Sandbox:
        """A sandbox that is built at once, in place of one of that name."""
        now = self._clock()
        order = SandboxOrder(
            name=name, days=days, at=now, expires=now + hours * 3600, by=who.name, host=who.host, follows=live
        )
        built = sandboxed(plan, name, f"p{len(self.sandboxes)}", ())
        feeding = SandboxFeeding(0, 0.0) if live else None
        sandbox = replace(described(order, built, Status(), frozenset()), state="ready", feeding=feeding)
        self.sandboxes[name] = built, sandbox
        self.disk.say(Lagging(commits=0, rows=0, seconds=0.4, sandboxes=self._sandboxes()))
        return sandbox

    def drop_sandbox(self, name: str) -> tuple[str, ...]:
        plan, _ = self.sandboxes.pop(name)
        self.disk.say(Lagging(commits=0, rows=0, seconds=0.4, sandboxes=self._sandboxes()))
        return tuple(sorted(own_paths(plan)))

    def hold(self, who: Who, hours: float, *, dry_run: bool) -> tuple[str, ...]:
        previous, now = self.disk.in_state("previous"), self._clock()
        if not previous:
            raise Conflict("there is no previous release to hold", hint="console status", code="E_NO_PREVIOUS")
        paths = self.disk.drop([previous], dry_run=True)
        if not dry_run:
            held = HeldRelease(release=previous, live=self.disk.live, at=now, due=now + hours * 3600, by=who.name)
            self.disk.on_hold.append(held)
            self.disk.mark(previous, "retired")
        return paths

    def restore(self) -> str:
        if not self.disk.on_hold or self.disk.on_hold[-1].over(self._clock()):
            raise Conflict("no release is on hold", hint="console status", code="E_NO_HOLD")
        held = self.disk.on_hold.pop()
        self.disk.mark(held.release, "previous")
        return held.release

    def _sandboxes(self) -> tuple[Sandbox, ...]:
        return tuple(sandbox for _, sandbox in self.sandboxes.values())

    async def watch(self, after: int, who: Who | None = None) -> AsyncGenerator[Recorded]:
        queue: asyncio.Queue[Recorded | None] = asyncio.Queue()
        if who:
            self._named[queue] = Watcher(name=who.name, host=who.host, since=self._clock(), console=who.console)
        for recorded in self.disk.stored:
            if recorded.rollout == self.disk.status.rollout and recorded.seq > after:
                queue.put_nowait(recorded)
        self._watchers.add(queue)
        self.links += 1
        try:
            while (item := await queue.get()) is not None:
                yield item
        finally:
            self._watchers.discard(queue)
            self._named.pop(queue, None)
            self.links -= 1
        raise Unreachable(f"{self.region.name}: the connection was lost", region=self.region.name)

    def _tell(self, recorded: Recorded) -> None:
        for hear in tuple(self.heard):
            hear(recorded)
        for queue in self._watchers:
            queue.put_nowait(recorded)
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self._cut()

    def _cut(self) -> None:
        self.reachable, self._left = False, None
        self._hang_up()

    def _hang_up(self) -> None:
        for queue in self._watchers:
            queue.put_nowait(None)
        self._watchers = set()


class _Steps:
    """A clock that advances a second each time it is read."""

    def __init__(self) -> None:
        self._now = 1_768_000_000.0

    def __call__(self) -> float:
        self._now += 1.0
        return self._now


async def _no_time(_: float) -> None:
    await asyncio.sleep(0)


def stored_events(world: FakeRegion, kind: type[Event]) -> list[Event]:
    """The stored events of one kind, over all rollouts, in order."""
    return [recorded.event for recorded in world.disk.stored if isinstance(recorded.event, kind)]


def _empty(state: TableState) -> TableStats:
    """A version as created: the fake stores no rows."""
    version = state.version
    return TableStats(
        name=state.table.name,
        path=version.path,
        version=0,
        rows=0,
        bytes=0,
        files=0,
        columns=version.columns,
        partition_by=version.partition_by,
    )
