"""Plays a recording: the views of a fleet at a recorded time, with a clock that can be paused, sped up and set."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn

from console.drivers.protocol import QueryResult
from console.errors import Conflict, ConsoleError
from console.model.compared import DayExamples
from console.model.consent import Declaration
from console.model.event import Promoted, Recorded, RolledBack
from console.model.receipt import AuditProgress, Finding, Past
from console.model.status import Status, Verb
from console.model.tuning import Tuning
from console.runner.flips import Flips
from console.runner.recording.entry import decision_line
from console.runner.recording.reader import RecordingReader
from console.runner.recording.times import shown
from console.runner.together.barrier import Declared
from console.runner.view import Outcome, Position, RegionView
from console.runner.watch import Changes, RegionBoard

SPEEDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1000.0)
TICK_SECONDS = 0.1
MOMENTS = 256  # snapshots of all views that are kept, so that going back need not start at the beginning
FEWEST = 500  # entries between two snapshots
CHUNK = 200  # entries applied before other tasks get a turn
STORED_ONLY = (
    "stored events and samples only: progress within a batch, Spark's job and the lag of each second are missing"
)


class Playback:
    """Implements `runner.view.Cockpit` and its `Player` over a recording. Actions on a region are refused.

    command  the command of this recording: `console playback FILE`
    clock    monotonic seconds
    """

    def __init__(
        self,
        recording: RecordingReader,
        command: str,
        *,
        speed: float = 1.0,
        at: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._recording, self._command = recording, command
        self._clock, self._sleep = clock, sleep
        self._board = RegionBoard(recording.header.pipeline, recording.header.regions)
        self._stride = max(FEWEST, len(recording) // MOMENTS)
        self._moments: list[Mapping[str, RegionView]] = [dict(self._board.views)]
        self._applied = 0  # entries
        self._ends = recording.ends
        self._damage = ""
        self._speed = speed
        self._from = (self._clamped(recording.begins if at is None else at), clock())  # recorded and monotonic time
        self._playing = True
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._next: tuple[int, float, str] = (-1, 0.0, "")  # decision: its index, time and line

    # -- the clock

    @property
    def player(self) -> "Playback":
        return self

    def now(self) -> float:
        at, since = self._from
        return min(self._ends, at + (self._clock() - since) * self._speed) if self._playing else at

    @property
    def position(self) -> Position:
        at, (_, next_at, what) = self.now(), self._next
        missing = [STORED_ONLY] if self._recording.header.source == "stored" else []
        if at >= self._ends and (cut := self._damage or self._recording.cut):
            missing.append(f"it ends here: {cut}")
        return Position(
            at=at,
            begins=self._recording.begins,
            ends=self._ends,
            speed=self._speed,
            playing=self._playing and at < self._ends,
            next_at=next_at,
            next_what=what,
            missing="; ".join(missing),
            command=f"{self._command} --at {shown(at)}",
        )

    def toggle(self) -> None:
        if self.now() >= self._ends:
            self._set(self._recording.begins)
            self._playing = True
        else:
            self._set(self.now())
            self._playing = not self._playing

    def faster(self, by: int) -> None:
        self._set(self.now())
        nearest = min(range(len(SPEEDS)), key=lambda n: abs(SPEEDS[n] - self._speed))
        self._speed = SPEEDS[max(0, min(len(SPEEDS) - 1, nearest + by))]

    async def seek(self, at: float) -> None:
        self._set(at)
        await self._follow_clock()

    async def seek_decision(self, by: int) -> bool:
        now, decisions = self.now(), self._recording.decisions
        ats = [self._recording.times[index] for index in decisions if self._recording.times[index] <= self._ends]
        later = next((at for at in ats if at > now), None)
        # a decision that was just shown is the current one: go to the one before it
        earlier = next((at for at in reversed(ats) if at < now - (self._speed if self._playing else 0.0)), None)
        wanted = later if by > 0 else earlier
        if wanted is not None:
            await self.seek(wanted)
        return wanted is not None

    def _clamped(self, at: float) -> float:
        return max(self._recording.begins, min(self._ends, at))

    def _set(self, at: float) -> None:
        self._from = (self._clamped(at), self._clock())

    # -- the views

    @property
    def views(self) -> Mapping[str, RegionView]:
        return self._board.views

    def changes(self) -> Changes:
        if self._task is None:
            self._task = asyncio.create_task(self._play(), name="playback")
        return self._board.changes()

    async def _play(self) -> None:
        while True:
            await self._follow_clock()
            await self._sleep(TICK_SECONDS)

    async def _follow_clock(self) -> None:
        """Bring the views to the clock's time."""
        async with self._turn:
            wanted = self._recording.until(self.now())
            if wanted != self._applied:
                await self._bring(wanted)
            self._look_ahead()

    async def _bring(self, wanted: int) -> None:
        views, applied = dict(self._board.views), self._applied
        known = min(wanted // self._stride, len(self._moments) - 1)
        if wanted < applied or known * self._stride > applied:
            views, applied = dict(self._moments[known]), known * self._stride
        while applied < wanted:
            try:
                entry = self._recording.entry(applied)
            except ConsoleError as error:
                self._end_before(applied, str(error))
                break
            if entry.region:
                views[entry.region] = entry.applied(views[entry.region])
            applied += 1
            if applied == len(self._moments) * self._stride:
                self._moments.append(dict(views))
            if applied % CHUNK == 0:
                await asyncio.sleep(0)
        self._applied = applied
        for view in views.values():
            self._board.put(view)

    def _end_before(self, index: int, why: str) -> None:
        """The recording is damaged from here on."""
        self._damage = why
        self._ends = self._recording.times[index - 1] if index else self._recording.begins
        self._set(self._ends)

    def _look_ahead(self) -> None:
        """Find the next decision."""
        index = next((i for i in self._recording.decisions if i >= self._applied), -1)
        if index == self._next[0]:
            return
        self._next = (index, 0.0, "")
        if index < 0 or self._recording.times[index] > self._ends:
            return
        try:
            entry = self._recording.entry(index)
        except ConsoleError:
            return  # it is reported when it is reached
        self._next = (index, entry.at, decision_line(entry))

    async def recorded(self, region: str) -> tuple[Recorded, ...]:
        """All stored events of the region's rollout that the recording holds up to now."""
        view, events = RegionView(region=self._board[region].region), dict[int, Recorded]()
        rollout = self._board[region].status.rollout
        for index in range(self._applied):
            entry = self._recording.entry(index)
            if entry.region == region:
                for known in entry.fields.get("events", view.events):
                    events |= {known.seq: known} if known.rollout == rollout else {}
                if entry.event and entry.event.seq and entry.event.rollout == rollout:
                    events[entry.event.seq] = entry.event
            if index % CHUNK == 0:
                await asyncio.sleep(0)
        return tuple(events[seq] for seq in sorted(events))

    async def history(self, region: str, rollout: str = "") -> Past:
        """The rollout that is shown; a recording has no receipts, and no earlier ones."""
        status = self._board[region].status
        events = await self.recorded(region) if rollout and rollout == status.rollout else ()
        return Past((status,) if status.rollout else (), events)

    # -- operations that a recording does not support

    async def examples(self, region: str, table: str, day: str) -> DayExamples:
        self._refuse("no table is read")

    async def verify(self, region: str, rollout: str, tell: Callable[[AuditProgress], None]) -> tuple[Finding, ...]:
        self._refuse("no table is read")

    async def note(self, region: str, text: str) -> Status:
        self._refuse()

    async def declare(self, region: str, declared: Declaration) -> Status:
        self._refuse()

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        self._refuse("nothing is read again")

    async def witness(self, region: str) -> None:
        self._refuse("it holds no witnesses, and none are sought")

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        self._refuse()

    async def start(self, region: str) -> None:
        self._refuse()

    async def control(self, region: str, verb: Verb) -> Status:
        self._refuse()

    async def tune(self, region: str, change: Tuning, *, reset: bool = False) -> Status:
        self._refuse()

    async def promote(self, region: str) -> Promoted:
        self._refuse()

    async def promote_together(self, confirmed: Mapping[str, str], declared: Declared) -> Flips:
        self._refuse()

    async def rollback(self, region: str, to: str = "") -> RolledBack:
        self._refuse()

    async def cleanup(
        self, region: str, *, dry_run: bool = False, previous: bool = False, let_go: Sequence[str] = ()
    ) -> tuple[str, ...]:
        self._refuse()

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> QueryResult:
        self._refuse()

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]:
        self._refuse()

    def _refuse(self, what: str = "nothing can be changed") -> NoReturn:
        raise Conflict(f"a recording is played: {what}", hint="console opens the screen on the regions themselves")

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._board.close()
        self._recording.close()
