"""Asking a region to change something: the intent is on disk before the question leaves. And who may open a gate."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from console.drivers.protocol import Driver, Who
from console.errors import AtGate, CheckFailed, ConsoleError, Unreachable
from console.model.event import RolledBack
from console.process import birth
from console.runner.journal import Journal
from console.runner.view import RegionView

T = TypeVar("T")


class JournaledActions:
    """Where this console's actions begin: each is written down, asked, and its outcome written down."""

    def __init__(self, journal: Journal, pipeline: str, who: Who) -> None:
        self.who = who
        self._journal = journal
        self._pipeline = pipeline
        self._own: set[int] = set()

    async def act(self, region: str, verb: str, body: Mapping[str, Any], ask: Callable[[], Awaitable[T]]) -> T:
        """Ask a region for something.

        raises  ConsoleError if the intent cannot be written: then nothing was asked; else what the region answered
        """
        known = {"by": self.who.name, "host": self.who.host, "pid": os.getpid(), "born": birth(os.getpid()), **body}
        intent = await asyncio.to_thread(self._journal.intent, region, self._pipeline, verb, known)
        self._own.add(intent)
        try:
            answer = await ask()
        except Unreachable as error:
            await self._settle(intent, region, "unknown", str(error))
            raise
        except ConsoleError as error:
            await self._settle(intent, region, "refused", str(error))
            raise
        await self._settle(intent, region, "done", "")
        return answer

    async def roll_back(self, driver: Driver, region: str, live: str, previous: str) -> RolledBack:
        """Go back, once: the same asked again would undo it.

        So a lost answer is asked for, and who asks again because nobody could tell, or because the console died, is told
        that it is done.

        raises  what the region answered; Unreachable if it cannot be told whether it was done
        """
        if asked := await asyncio.to_thread(self._unanswered, region, live):
            await self._settle(asked.id, region, "done", "found done when asked again")
            return RolledBack(live, str(asked.body["live"]), self.who.name, self.who.host, -1)
        known = {"live": live, "to": previous}
        return await self.act(
            region, "rollback", known, lambda: _went_back(driver, self._pipeline, live, previous, self.who)
        )

    def _unanswered(self, region: str, live: str) -> Any:
        """The last way back from this machine, if nobody was told what came of it and it led to what is live."""
        intents = [entry for entry in self._journal.entries("intent", region) if entry.pipeline == self._pipeline]
        last = next((entry for entry in reversed(intents) if entry.body.get("verb") == "rollback"), None)
        if last is None or last.body.get("to") != live:
            return None
        told = {entry.about: entry.body.get("result") for entry in self._journal.entries("outcome", region)}
        return last if told.get(last.id, "unknown") == "unknown" else None

    async def note_fleet(self, waves: tuple[tuple[str, ...], ...], body: Mapping[str, Any]) -> None:
        """Write down the waves of a run."""
        known = {"by": self.who.name, "host": self.who.host, **body}
        await asyncio.to_thread(self._journal.fleet, self._pipeline, waves, known)

    def tried(self, region: str, verb: str, rollout: str) -> bool:
        """True if this very console asked for it: a lost answer may have been a yes."""
        return any(entry.id in self._own for entry in self._intents(region, verb, rollout))

    def tried_elsewhere(self, region: str, verb: str, rollout: str) -> bool:
        """True if another console of this machine asked for it and lives, or was told that it is done."""
        outcomes = {entry.about: entry.body.get("result") for entry in self._journal.entries("outcome", region)}
        return any(
            outcomes.get(entry.id) == "done" or _lives(entry.body)
            for entry in self._intents(region, verb, rollout)
            if entry.id not in self._own
        )

    def _intents(self, region: str, verb: str, rollout: str) -> list[Any]:
        entries = self._journal.entries("intent", region)
        return [e for e in entries if e.body.get("verb") == verb and e.body.get("rollout") == rollout]

    async def _settle(self, intent: int, region: str, result: str, told: str) -> None:
        # the deed is done or refused already; an intent without an outcome says "ask the region", which is true
        with suppress(ConsoleError):
            await asyncio.to_thread(self._journal.outcome, intent, region, self._pipeline, result, told)


async def _went_back(driver: Driver, pipeline: str, live: str, previous: str, who: Who) -> RolledBack:
    """raises  what the region answered; Unreachable if it cannot be told whether it was done"""
    try:
        return await driver.rollback(pipeline, live, who)
    except Unreachable:
        if (await driver.state(pipeline)).live != previous:
            raise
        return RolledBack(previous, live, who.name, who.host, -1)


def _lives(body: Mapping[str, Any]) -> bool:
    """Whether the console that wrote an intent still runs here."""
    pid, born = body.get("pid"), body.get("born")
    return isinstance(pid, int) and born not in (None, "") and birth(pid) == born


def gate(view: RegionView, yes: bool) -> AtGate | CheckFailed | None:
    """Why the run stops at this region's gate; None where it may open it.

    yes  the operator lets gates open by themselves: where the policy is not `never`, and every check passed
    """
    name, policy = view.region.name, view.region.policy.promote
    bad = [check for check in view.status.checks if check.ok is False]
    unsure = [check for check in view.status.checks if check.ok is None]
    release = view.status.release
    if bad:
        first = bad[0]
        told = f"{name}: {first.table}: {first.check}: {first.detail}"
        return CheckFailed(told, hint=f"console status, then console discard --region {name}", code="E_GATE_CHECK")
    if unsure:
        first = unsure[0]
        told = f"{name}: {first.table}: {first.check} is inconclusive: {first.detail}"
        return AtGate(told, hint=f"console retry --region {name} checks again", code="E_GATE_CHECK")
    ask = f"console promote --region {name}"
    if policy == "never":
        return AtGate(f"{name}: {release} waits for a person: its policy is never", hint=ask, code="E_GATE_POLICY")
    if not yes:
        return AtGate(f"{name}: {release} is ready and waits at the gate", hint=ask, code="E_GATE")
    return None
