"""The latest view of every region: who keeps it in step with the region, and who waits for the next one."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from console.drivers.protocol import Driver, RegionState
from console.errors import ConsoleError, Unreachable, away
from console.model.event import ENDED, Accepted, Ended, Promoted, Recorded, RolledBack
from console.model.live import Live
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status, fold
from console.runner.journal import Journal
from console.runner.view import RegionView
from console.text import safe_text

if TYPE_CHECKING:
    from console.witness import WitnessProgress, WitnessWorker

FIRST_SECONDS, LAST_SECONDS = 0.25, 15.0  # between two attempts to reach a region


class Changes:
    """Every change after its making, region by region; a slow reader gets the latest of each, not all."""

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

    def __init__(self, pipeline: str, regions: Iterable[Region]) -> None:
        self.pipeline = pipeline
        self._views = {region.name: RegionView(region) for region in regions}
        self._readers: WeakSet[Changes] = WeakSet()

    @property
    def views(self) -> Mapping[str, RegionView]:
        return MappingProxyType(self._views)

    def __getitem__(self, name: str) -> RegionView:
        return self._views[name]

    def set(self, name: str, **changes: Any) -> RegionView:
        """Change fields of one view; who waits hears of it, unless nothing changed."""
        view = replace(self._views[name], **changes)
        if view != self._views[name]:
            self._views[name] = view
            for reader in tuple(self._readers):
                reader.put(view)
        return view

    def changes(self) -> Changes:
        reader = Changes()
        self._readers.add(reader)
        return reader

    async def until(self, name: str, test: Callable[[RegionView], bool], seconds: float | None = None) -> RegionView:
        """The first view of a region that passes the test, the present one included.

        raises  TimeoutError after `seconds`
        """
        changes = self.changes()
        async with asyncio.timeout(seconds):
            while not test(self._views[name]):
                await anext(changes)
        return self._views[name]

    def close(self) -> None:
        """End every reader's iteration."""
        for reader in tuple(self._readers):
            reader.end()


class WitnessSearch:
    """Witnesses of the pending plans, for those who ask."""

    def __init__(self, board: RegionBoard) -> None:
        self._board = board
        self._lives: dict[str, Live] = {}
        self._prover: WitnessWorker | None = None

    def beside(self, name: str, plan: Plan, live: Live) -> "WitnessProgress | None":
        """What is known of a region's new plan, which was computed against `live`."""
        self._lives[name] = live
        return self._prover.of(name, plan, live.release) if self._prover else None

    async def seek(self, region: Region, plan: Plan) -> None:
        """What is found lands in the view."""
        if self._prover is None:
            from console.witness import WitnessWorker  # loads an engine that nobody else needs

            self._prover = WitnessWorker(lambda name, witness: self._board.set(name, witness=witness))
        await self._prover.seek(region, plan, self._lives[region.name].release)

    def stop(self) -> None:
        """End what is being sought, for good."""
        if self._prover:
            self._prover.stop()


def under_way(status: Status) -> bool:
    """True while a rollout is being carried, waits at its gate, or is held."""
    return status.state not in ENDED and status.state != "none"


class RegionWatcher:
    """Keeps one region's view in step with the region; a lost link is shown as that and tried again, with back-off.

    Nothing is believed to have failed or to be done because the link is lost (docs/design.md, P2).

    carrying  someone here wants the rollout carried: each new attempt also sees that an agent runs
    broken    why following ended for good: the agent speaks nonsense or is not ours to talk to
    decided   called after an event that changed what is live
    """

    def __init__(
        self,
        driver: Driver,
        board: RegionBoard,
        journal: Journal,
        *,
        sleep: Callable[[float], Awaitable[None]],
        decided: Callable[[str], None],
    ) -> None:
        self.carrying = 0
        self.broken: ConsoleError | None = None
        self._driver = driver
        self._name = driver.region.name
        self._pipeline = board.pipeline
        self._board = board
        self._journal = journal
        self._sleep = sleep
        self._decided = decided
        self._accepted: tuple[str, Plan | None] = ("", None)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if not yet begun or ended."""
        if self._task is None or self._task.done():
            self.broken = None
            self._task = asyncio.create_task(self._follow(), name=f"follow {self._name}")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def meet(self, state: RegionState) -> None:
        """Take over what the region says it is, unless our view is already further: what is live is then ours, too."""
        mine, told = self._board[self._name].status, state.status
        if mine.rollout == told.rollout and told.rollout:
            if told.seq < mine.seq:
                return
            if not (
                told.lag_commits or told.lag_seconds
            ):  # what is fleeting the region does not keep, and we may have heard it
                told = replace(told, lag_commits=mine.lag_commits, lag_rows=mine.lag_rows, lag_seconds=mine.lag_seconds)
            told = replace(told, log=told.log or mine.log)
        self._board.set(
            self._name,
            status=told,
            live=state.live,
            previous=state.previous,
            accepted=state.plan,
            attended=state.attended,
        )
        self._accepted = (state.status.rollout, state.plan)

    def _met(self, state: RegionState) -> None:
        """Likewise, where nobody plans anew of himself: a plan from another release is none."""
        self.meet(state)
        view = self._board[self._name]
        if view.plan is not None and view.plan.live != view.live:
            self._decided(self._name)

    async def accepted(self) -> Plan | None:
        """The plan that the region carries, asked for where the last one told is of another rollout."""
        if self._accepted[0] != self._board[self._name].status.rollout:
            self.meet(await self._driver.state(self._pipeline))
        return self._accepted[1]

    async def _follow(self) -> None:
        pause = FIRST_SECONDS
        while True:
            going = under_way(self._board[self._name].status)
            try:
                if self.carrying:
                    await self._driver.wake()
                self._met(await self._driver.state(self._pipeline))
                self._board.set(self._name, link="connected" if self.carrying else "connecting", link_why="")
                async with aclosing(self._watched()) as events:
                    async for recorded in events:
                        pause = FIRST_SECONDS
                        self._board.set(self._name, link="connected", link_why="")
                        if not await self._take(recorded):
                            break  # something is missing: ask for the whole state again
            except Unreachable as error:
                if self._at_rest(error):
                    return
                # before a rollout begins nobody need be there: whoever hands it over starts an agent
                lost = error.code != "E_NO_AGENT" or going
                self._board.set(self._name, link="unreachable" if lost else "connecting", link_why=str(error))
            except ConsoleError as error:
                if not (away(error) and under_way(self._board[self._name].status)):
                    self._break(error)
                    return
                self._board.set(self._name, link="unreachable", link_why=str(error))
            except Exception as error:  # ours to mend; who waits for this region must hear of it all the same
                told = f"{self._name}: following it broke: {type(error).__name__}: {safe_text(str(error))[:300]}"
                self._break(ConsoleError(told, hint="console status; what the region carries goes on", code="E_BUG"))
                return
            # what went away together must not come back to its host together
            await self._sleep(pause * random.uniform(0.5, 1.0))
            pause = min(LAST_SECONDS, pause * 2)

    def _break(self, error: ConsoleError) -> None:
        self.broken = error
        self._board.set(self._name, link="unreachable", link_why=str(error))

    async def _watched(self) -> AsyncGenerator[Recorded, None]:
        """The region's events from where our view stands; the link behind them is dropped with this generator."""
        events = self._driver.watch(self._pipeline, self._board[self._name].status.seq)
        try:
            async for recorded in events:
                yield recorded
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _at_rest(self, error: Unreachable) -> bool:
        """True where no agent runs and none is needed: then there is nothing to follow."""
        if error.code != "E_NO_AGENT" or self.carrying or under_way(self._board[self._name].status):
            return False
        self._board.set(self._name, link="idle", link_why=str(error))
        return True

    async def _take(self, recorded: Recorded) -> bool:
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
            await self._keep(recorded)
        self._board.set(self._name, status=fold(self._board[self._name].status, recorded))
        match recorded.event:
            case Promoted(release, was) | RolledBack(release, was):
                self._board.set(self._name, live=release, previous=was)
                self._decided(self._name)
            case Ended():
                self._decided(self._name)
        return True

    async def _keep(self, recorded: Recorded) -> None:
        try:
            await asyncio.to_thread(self._journal.saw, self._name, self._pipeline, recorded)
        except ConsoleError as error:
            # following goes on: the region keeps its events, and no action passes without an intent
            self._board.set(self._name, note=str(error))
