"""Reads the rollouts of the regions and starts verifications, a few at a time; keeps the results for the screens."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from console.errors import ConsoleError
from console.runner.view import Cockpit
from console.text import safe_text
from console.tui.history.state import AuditState, HistoryState, RolloutKey

if TYPE_CHECKING:
    from console.model.receipt import AuditProgress

T = TypeVar("T")
AT_ONCE = 8
WHOLE_KEPT = 50  # rollouts in full


class HistoryStore:
    """Belongs to one event loop. A verification continues while other screens are shown.

    changed  called after every change of `state`
    ended    called with every verification that was not cancelled
    """

    def __init__(
        self, cockpit: Cockpit, changed: Callable[[], None], ended: Callable[[RolloutKey, AuditState], None]
    ) -> None:
        self.state = HistoryState()
        self._cockpit, self._changed, self._ended, self._clock = cockpit, changed, ended, cockpit.now
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._audits: dict[RolloutKey, asyncio.Task[None]] = {}
        self._again: set[str] = set()  # regions that were asked for while they were being read
        self._newest: dict[RolloutKey, object] = {}  # rollout → its last request

    async def read(self, regions: Iterable[str]) -> None:
        """Read the rollouts of these regions, all at once. A region that is already being read is read once more
        afterwards: its answer may be older than this request, as in a playback that has moved since."""
        names = frozenset(regions)
        idle = names - self.state.reading
        self._again |= names - idle
        self._set(reading=self.state.reading | idle)
        await asyncio.gather(*map(self._read, sorted(idle)))

    async def _read(self, name: str) -> None:
        again = True
        while again:
            async with self._slots:
                self._again.discard(name)  # a request while this one waited for its turn is answered by it
                past, error = await _answer(self._cockpit.history(name))
            again = name in self._again
            errors = {region: why for region, why in self.state.errors.items() if region != name}
            listed = {**self.state.listed, name: past.rollouts} if past else self.state.listed
            reading = self.state.reading if again else self.state.reading - {name}
            self._set(listed=listed, errors={**errors, name: error} if error else errors, reading=reading)

    async def read_whole(self, key: RolloutKey) -> None:
        """Read one rollout with its events and receipts. Of several requests the last one's answer stays, whichever
        comes first."""
        request = self._newest[key] = object()
        past, error = await _answer(self._cockpit.history(*key))
        if self._newest.get(key) is not request:
            return
        del self._newest[key]
        if past:
            kept = dict(list(self.state.whole.items())[-WHOLE_KEPT:])
            self._set(whole={**kept, key: past})
        elif error:
            self._set(errors={**self.state.errors, key[0]: error})

    # -- verifications

    def runs(self, key: RolloutKey) -> bool:
        return key in self._audits

    def audit(self, key: RolloutKey) -> None:
        """Start verifying a rollout, unless that is already running."""
        if key not in self._audits:
            self._put(key, AuditState(began=self._clock()))
            self._audits[key] = asyncio.create_task(self._audit(key), name=f"verify {' '.join(key)}")

    def stop_audit(self, key: RolloutKey) -> None:
        """Cancel it, in the region too; its findings stay."""
        if task := self._audits.get(key):
            task.cancel()

    async def close(self) -> None:
        """Cancel all of them."""
        tasks = list(self._audits.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _audit(self, key: RolloutKey) -> None:
        def hear(progress: "AuditProgress") -> None:
            known = self.state.audits[key]
            self._put(key, replace(known, progress=progress, findings=(*known.findings, *progress.found)))

        try:
            findings = await self._cockpit.verify(*key, hear)
            self._end(key, outcome="done", findings=findings)
        except asyncio.CancelledError:
            self._end(key, outcome="stopped")
            raise
        except ConsoleError as error:
            self._end(key, outcome="failed", error=str(error))
        finally:
            self._audits.pop(key, None)

    def _end(self, key: RolloutKey, **changes: Any) -> None:
        ended = replace(self.state.audits[key], ended=self._clock(), **changes)
        self._put(key, ended)
        if ended.outcome != "stopped":
            self._ended(key, ended)

    def _put(self, key: RolloutKey, audit: AuditState) -> None:
        self._set(audits={**self.state.audits, key: audit})

    def _set(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self._changed()


async def _answer(asked: Awaitable[T]) -> tuple[T | None, str]:
    try:
        return await asked, ""
    except ConsoleError as error:
        return None, safe_text(str(error), 400)
