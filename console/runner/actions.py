"""Actions that change a region, journaled: the intent is on disk before the request is sent. Also the gate's policy."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from console.drivers.protocol import Driver, Who
from console.errors import AtGate, CheckFailed, Conflict, ConsoleError, Unreachable
from console.model.event import RolledBack
from console.model.gate import refusal
from console.process import birth
from console.runner.journal import Journal
from console.runner.view import RegionView

T = TypeVar("T")


class JournaledActions:
    """Performs this console's actions: writes the intent, sends the request, writes the outcome."""

    def __init__(self, journal: Journal, pipeline: str, who: Who) -> None:
        self.who = who
        self._journal = journal
        self._pipeline = pipeline
        self._own: set[int] = set()

    async def perform(self, region: str, verb: str, body: Mapping[str, Any], request: Callable[[], Awaitable[T]]) -> T:
        """Send a request to a region, with its intent and its outcome in the journal.

        raises  ConsoleError if the intent cannot be written, and then sends nothing; else the region's error
        """
        facts = {"by": self.who.name, "host": self.who.host, "pid": os.getpid(), "born": birth(os.getpid()), **body}
        intent = await asyncio.to_thread(self._journal.intent, region, self._pipeline, verb, facts)
        self._own.add(intent)
        try:
            result = await request()
        except Unreachable as error:
            await self._record_outcome(intent, region, "unknown", str(error))
            raise
        except ConsoleError as error:
            await self._record_outcome(intent, region, "refused", str(error))
            raise
        await self._record_outcome(intent, region, "done", "")
        return result

    async def roll_back(self, driver: Driver, view: RegionView, to: str) -> RolledBack:
        """Roll back exactly once: repeating the request would undo it.

        So a lost answer is looked up in the region; and if an earlier rollback from this machine was carried out
        although its answer was lost or the console died, that one is returned. A rollback by somebody else is undone
        only by name.

        to      as `Cockpit.rollback`
        raises  Conflict E_STALE as `Cockpit.rollback`; the region's error; Unreachable if it cannot be determined whether
                the rollback was carried out
        """
        region, live, previous = view.region.name, view.live, view.previous
        if earlier := await asyncio.to_thread(self._unanswered_rollback, region, live):
            await self._record_outcome(earlier.id, region, "done", "found done when asked again")
            if to in ("", live):
                return RolledBack(
                    release=live, was=str(earlier.body["live"]), by=self.who.name, host=self.who.host, version=-1
                )
        if not_returnable := _other_target(view, to):
            raise not_returnable
        facts = {"live": live, "to": previous}
        return await self.perform(
            region, "rollback", facts, lambda: _rollback_once(driver, self._pipeline, live, previous, self.who)
        )

    def _unanswered_rollback(self, region: str, live: str) -> Any:
        """The last rollback from this machine, if its result is unknown and its target is live."""
        intents = [entry for entry in self._journal.entries("intent", region) if entry.pipeline == self._pipeline]
        last = next((entry for entry in reversed(intents) if entry.body.get("verb") == "rollback"), None)
        if last is None or last.body.get("to") != live:
            return None
        results = {entry.about: entry.body.get("result") for entry in self._journal.entries("outcome", region)}
        return last if results.get(last.id, "unknown") == "unknown" else None

    async def note_fleet(self, waves: tuple[tuple[str, ...], ...], body: Mapping[str, Any]) -> None:
        """Record the waves of a run, or regions that flipped together. raises  ConsoleError if that is not durable"""
        facts = {"by": self.who.name, "host": self.who.host, **body}
        await asyncio.to_thread(self._journal.fleet, self._pipeline, waves, facts)

    def tried(self, region: str, verb: str, rollout: str) -> bool:
        """True if this very process requested it: a lost answer may have been a success."""
        return any(entry.id in self._own for entry in self._intents(region, verb, rollout))

    def tried_elsewhere(self, region: str, verb: str, rollout: str) -> bool:
        """True if another console of this machine requested it and still runs, or recorded it as done."""
        outcomes = {entry.about: entry.body.get("result") for entry in self._journal.entries("outcome", region)}
        return any(
            outcomes.get(entry.id) == "done" or _is_running(entry.body)
            for entry in self._intents(region, verb, rollout)
            if entry.id not in self._own
        )

    def _intents(self, region: str, verb: str, rollout: str) -> list[Any]:
        entries = self._journal.entries("intent", region)
        return [e for e in entries if e.body.get("verb") == verb and e.body.get("rollout") == rollout]

    async def _record_outcome(self, intent: int, region: str, result: str, message: str) -> None:
        # the action is already done or refused; an intent without an outcome means "ask the region", which is correct
        with suppress(ConsoleError):
            await asyncio.to_thread(self._journal.outcome, intent, region, self._pipeline, result, message)


async def _rollback_once(driver: Driver, pipeline: str, live: str, previous: str, who: Who) -> RolledBack:
    """raises  the region's error; Unreachable if it cannot be determined whether it was carried out"""
    try:
        return await driver.rollback(pipeline, live, who)
    except Unreachable:
        if (await driver.state(pipeline)).live != previous:
            raise
        return RolledBack(release=previous, was=live, by=who.name, host=who.host, version=-1)


def _other_target(view: RegionView, to: str) -> Conflict | None:
    """Why this rollback would make another release live than the one who asks for it means; None if it would not."""
    name, status = view.region.name, view.status
    if to and to not in (view.live, view.previous):
        can = f"{view.previous} can become live again" if view.previous else "no previous release is kept"
        why, hint = f"{view.live} is live, and {can}, not {to}", f"console status --region {name}"
    elif to == view.live or (not to and view.went_back):
        by = f" (rolled back by {status.decided_by})" if status.state == "rolled-back" and status.decided_by else ""
        other = f"console rollback --region {name} --to {view.previous}, to make {view.previous} live instead"
        why, hint = f"{view.live} is live already{by}", other if view.previous else f"console status --region {name}"
    else:
        return None
    return Conflict(f"{name}: {why}", region=name, hint=hint, code="E_STALE")


def _is_running(body: Mapping[str, Any]) -> bool:
    """Whether the console that wrote an intent is still running on this machine."""
    pid, born = body.get("pid"), body.get("born")
    return isinstance(pid, int) and born not in (None, "") and birth(pid) == born


def gate(view: RegionView, yes: bool) -> AtGate | CheckFailed | None:
    """The error with which the run stops at this region's gate; None if it may promote.

    yes  gates open without a person, where the policy is not `never` and nothing keeps them closed
    """
    name, policy = view.region.name, view.region.policy.promote
    if closed := refusal(view.gate, name):
        return closed
    release = view.status.release
    request = f"console promote --region {name}"
    taken_back = view.status.taken_back
    if policy == "never" or (yes and taken_back):
        why = f"its agent rolled {taken_back} back" if policy != "never" else "its policy is never"
        return AtGate(
            f"{name}: {release} waits for a person: {why}",
            region=name,
            hint=request,
            code="E_GATE_POLICY",
        )
    if not yes:
        return AtGate(f"{name}: {release} is ready and waits at the gate", region=name, hint=request, code="E_GATE")
    return None
