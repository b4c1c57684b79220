"""The latest view of every region, the watchers that keep it up to date, and the readers that wait for changes."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from console.drivers.protocol import Driver, RegionState, Who
from console.errors import ConsoleError, NoAgent, Unreachable, is_unreachable
from console.model.event import ENDED, Accepted, Ended, Promoted, Recorded, RolledBack
from console.model.live import Live
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status
from console.record import replace
from console.runner.journal import Journal
from console.runner.view import RegionView
from console.runner.view_events import with_event
from console.text import safe_text

if TYPE_CHECKING:
    from console.witness import WitnessProgress, WitnessWorker

HEARD_SECONDS = 4.0  # seconds between two updates of a region's last report
FIRST_SECONDS, LAST_SECONDS = 0.25, 15.0  # seconds between two attempts to reach a region


class Observer(Protocol):
    """Receives every change of a board, in order and without gaps."""

    def begin(self, views: Mapping[str, RegionView]) -> None:
        """The current views."""
        ...

    def __call__(self, before: RegionView, after: RegionView, recorded: Recorded | None) -> None:
        """One view was replaced. recorded: the event that makes the whole difference, if there is one"""
        ...

    def close(self) -> None: ...


class Changes:
    """Changes since this reader was created, region by region; a slow reader gets the latest of each, not all."""

    def __init__(self) -> None:
        self._latest: dict[str, RegionView] = {}
        self._news = asyncio.Event()
        self._over = False

    def __aiter__(self) -> "Changes":
        return self

    async def __anext__(self) -> RegionView:
        while not self._latest:
            if self._over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._latest.pop(next(iter(self._latest)))

    def put(self, view: RegionView) -> None:
        self._latest[view.region.name] = view
        self._news.set()

    def end(self) -> None:
        self._over = True
        self._news.set()


class RegionBoard:
    """Views of one pipeline by region name, in the order given. Belongs to one event loop."""

    def __init__(self, pipeline: str, regions: Iterable[Region], console: str = "") -> None:
        """console: id of this console among the watchers"""
        self.pipeline = pipeline
        self._views = {region.name: RegionView(region=region, console=console) for region in regions}
        self._readers: WeakSet[Changes] = WeakSet()
        self._observers: list[Observer] = []

    @property
    def views(self) -> Mapping[str, RegionView]:
        return MappingProxyType(self._views)

    def __getitem__(self, name: str) -> RegionView:
        return self._views[name]

    def set(self, name: str, **changes: Any) -> RegionView:
        """Change fields of one view; waiting readers are notified, unless nothing changed."""
        return self.put(replace(self._views[name], **changes))

    def happened(self, name: str, recorded: Recorded) -> RegionView:
        """Apply one event to a view."""
        return self.put(with_event(self._views[name], recorded), recorded)

    def put(self, view: RegionView, recorded: Recorded | None = None) -> RegionView:
        """Replace one view. recorded: the event that makes the whole difference, if there is one"""
        before = self._views[view.region.name]
        if view != before:
            self._views[view.region.name] = view
            for observer in self._observers:
                observer(before, view, recorded)
            for reader in tuple(self._readers):
                reader.put(view)
        return view

    def observe(self, observer: Observer) -> None:
        """Pass every change to this observer from now on, until `close`."""
        observer.begin(self._views)
        self._observers.append(observer)

    def changes(self) -> Changes:
        reader = Changes()
        self._readers.add(reader)
        return reader

    async def until(self, name: str, test: Callable[[RegionView], bool], seconds: float | None = None) -> RegionView:
        """The first view of a region that passes the test; the current one counts.

        raises  TimeoutError after `seconds`
        """
        changes = self.changes()
        async with asyncio.timeout(seconds):
            while not test(self._views[name]):
                await anext(changes)
        return self._views[name]

    def close(self) -> None:
        """End every reader's iteration, and the observers."""
        for reader in tuple(self._readers):
            reader.end()
        for observer in self._observers:
            observer.close()


class WitnessSearch:
    """Searches for witnesses of the pending plans, on request."""

    def __init__(self, board: RegionBoard) -> None:
        self._board = board
        self._lives: dict[str, Live] = {}
        self._worker: WitnessWorker | None = None

    def beside(self, name: str, plan: Plan, live: Live) -> "WitnessProgress | None":
        """The known witnesses of a region's new plan, which was computed against `live`."""
        self._lives[name] = live
        return self._worker.progress(name, plan, live.release) if self._worker else None

    async def seek(self, region: Region, plan: Plan) -> None:
        """Search; the results appear in the view."""
        if self._worker is None:
            from console.witness import WitnessWorker  # loads an engine that nothing else needs

            self._worker = WitnessWorker(lambda name, witness: self._board.set(name, witness=witness))
        await self._worker.search(region, plan, self._lives[region.name].release)

    def stop(self) -> None:
        """End the search, for good."""
        if self._worker:
            self._worker.stop()


def under_way(status: Status) -> bool:
    """True while a rollout is running, waits at its gate, or is paused or failed."""
    return status.state not in ENDED and status.state != "none"


class RegionWatcher:
    """Keeps one region's view up to date. A lost link is shown as such and retried with back-off.

    A lost link never means that a rollout has failed or finished (docs/design.md, P2).

    who              shown to the other consoles that watch the region
    active_runs      runs of this console that wait for the region: while there are any, each attempt also starts the agent
    fatal_error      why watching ended permanently: the agent's answers are invalid, or access is denied
    on_live_changed  called after an event that changed the live release
    on_missed        called if the region's rollout has stored events that this watcher did not receive
    """

    def __init__(
        self,
        driver: Driver,
        board: RegionBoard,
        journal: Journal,
        *,
        who: Who,
        sleep: Callable[[float], Awaitable[None]],
        on_live_changed: Callable[[str], None],
        on_missed: Callable[[str], None] = lambda name: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._who = who
        self.active_runs = 0
        self.fatal_error: ConsoleError | None = None
        self._driver = driver
        self._name = driver.region.name
        self._pipeline = board.pipeline
        self._board = board
        self._journal = journal
        self._sleep = sleep
        self._on_live_changed = on_live_changed
        self._on_missed = on_missed
        self._accepted: tuple[str, Plan | None] = ("", None)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start watching, unless already started."""
        if self._task is None or self._task.done():
            self.fatal_error = None
            self._task = asyncio.create_task(self._follow(), name=f"follow {self._name}")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def adopt_state(self, state: RegionState) -> None:
        """Replace the view by the region's own state, unless the view is already newer, its live release included."""
        ours, theirs = self._board[self._name].status, state.status
        if ours.rollout == theirs.rollout and theirs.rollout:
            if theirs.seq < ours.seq:
                self._board.set(self._name, heard=self._now())
                return
            if not (theirs.lag_commits or theirs.lag_seconds):
                # the region does not store fleeting events, and we may have received some
                commits, rows, seconds = ours.lag_commits, ours.lag_rows, ours.lag_seconds
                theirs = replace(theirs, lag_commits=commits, lag_rows=rows, lag_seconds=seconds)
            theirs = replace(theirs, log=theirs.log or ours.log)
        view = self._board.set(
            self._name,
            status=theirs,
            live=state.live,
            live_row=state.live_row,
            previous=state.previous,
            accepted=state.plan,
            attended=state.attended,
            heard=self._now(),
        )
        self._accepted = (state.status.rollout, state.plan)
        newest = next((known.seq for known in reversed(view.events) if known.rollout == theirs.rollout), 0)
        if newest < theirs.seq:
            self._on_missed(self._name)

    def _resync(self, state: RegionState) -> None:
        """Adopt the region's state, and plan again if the pending plan is for another release than the live one."""
        self.adopt_state(state)
        view = self._board[self._name]
        if view.plan is not None and view.plan.live != view.live:
            self._on_live_changed(self._name)

    def _now(self) -> float:
        """The time of the region's last report: updated every few seconds only, so that the view does not change for this alone."""
        known, now = self._board[self._name].heard, float(int(self._clock()))
        return known if 0 <= now - known < HEARD_SECONDS else now

    async def accepted(self) -> Plan | None:
        """The plan that the region's rollout runs; requested if the last one received belongs to another rollout."""
        if self._accepted[0] != self._board[self._name].status.rollout:
            self.adopt_state(await self._driver.state(self._pipeline))
        return self._accepted[1]

    async def _follow(self) -> None:
        backoff = FIRST_SECONDS
        while True:
            going = under_way(self._board[self._name].status)
            try:
                if self.active_runs:
                    await self._driver.start_agent()
                self._resync(await self._driver.state(self._pipeline))
                self._board.set(self._name, link="connected" if self.active_runs else "connecting", link_why="")
                async with aclosing(self._watched()) as events:
                    async for recorded in events:
                        backoff = FIRST_SECONDS
                        self._board.set(self._name, link="connected", link_why="", heard=self._now())
                        if not await self._handle(recorded):
                            break  # an event is missing: request the whole state again
            except Unreachable as error:
                if self._needs_no_agent(error):
                    return
                # before a rollout begins no agent is required: submitting a plan starts one
                lost = going or not isinstance(error, NoAgent)
                self._board.set(self._name, link="unreachable" if lost else "connecting", link_why=str(error))
            except ConsoleError as error:
                if not (is_unreachable(error) and under_way(self._board[self._name].status)):
                    self._give_up(error)
                    return
                self._board.set(self._name, link="unreachable", link_why=str(error))
            except Exception as error:  # a bug in console; runs that wait for this region must still be notified
                reason = f"{self._name}: watching it failed: {type(error).__name__}: {safe_text(str(error))[:300]}"
                self._give_up(ConsoleError(reason, hint="console status; the region's rollout continues", code="E_BUG"))
                return
            # links that were lost together must not all reconnect to their host at once
            await self._sleep(backoff * random.uniform(0.5, 1.0))
            backoff = min(LAST_SECONDS, backoff * 2)

    def _give_up(self, error: ConsoleError) -> None:
        self.fatal_error = error
        self._board.set(self._name, link="unreachable", link_why=str(error))

    async def _watched(self) -> AsyncGenerator[Recorded, None]:
        """The region's events after our view's last one; closing this generator drops the link."""
        events = self._driver.watch(self._pipeline, self._board[self._name].status.seq, self._who)
        try:
            async for recorded in events:
                yield recorded
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _needs_no_agent(self, error: Unreachable) -> bool:
        """True if no agent runs and none is needed: then there is nothing to watch."""
        if not isinstance(error, NoAgent) or self.active_runs or under_way(self._board[self._name].status):
            return False
        self._board.set(self._name, link="idle", link_why=str(error))
        return True

    async def _handle(self, recorded: Recorded) -> bool:
        status = self._board[self._name].status
        same = recorded.rollout == status.rollout
        if recorded.seq and same and recorded.seq <= status.seq:
            return True
        if not recorded.seq and not same:
            return True
        begins = isinstance(recorded.event, Accepted) and not same
        if recorded.seq and not begins and not (same and recorded.seq == status.seq + 1):
            return False
        if recorded.seq:
            await self._record(recorded)
        self._board.happened(self._name, recorded)
        match recorded.event:
            case Promoted() | RolledBack() | Ended():
                self._on_live_changed(self._name)
        return True

    async def _record(self, recorded: Recorded) -> None:
        try:
            await asyncio.to_thread(self._journal.record_event, self._name, self._pipeline, recorded)
        except ConsoleError as error:
            # watching continues: the region keeps its events, and no action is taken without an intent
            self._board.set(self._name, note=str(error), waits=False)
