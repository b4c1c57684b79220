"""One writer per region on a store without file locks: a lease with an epoch (P4).

Objects in `_console/lease/`: `<epoch>.json` is put if absent by whoever becomes the holder of that epoch, and never
written again or deleted; `<epoch>.beat` is overwritten by that holder alone, at each renewal. Who finds the newest epoch
unrenewed over a whole term, by a clock of its own, puts the next one. No clocks of two hosts are ever compared.

The lease keeps two agents from working at the same time. What keeps a region's tables right if they do all the same,
because a process stood still between its check and its put, are the logs (`agent/lease/fence`).
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from console.agent.clock import Clock, WallClock
from console.agent.errors import LeaseLost, StoreUnreachable
from console.agent.lease.objects import Objects, claimed
from console.errors import Conflict

FOLDER = "_console/lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Seconds. A holder stops acting `hold` after its last renewal began, a successor waits for `term`: the difference
    is the room for clocks that run at different speeds.

    renew  between two renewals
    poll   between two reads of a waiting successor
    """

    term: float = 30.0
    hold: float = 20.0
    renew: float = 5.0
    poll: float = 1.0

    def __post_init__(self) -> None:
        assert self.poll <= self.term
        assert self.renew < self.hold < self.term


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Of the newest epoch, by what it wrote of itself. epoch: 0 if the lease was never taken"""

    epoch: int
    facts: Mapping[str, Any]
    released: bool = False

    @property
    def description(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(float(self.facts.get("since", 0))))
        return f"pid {self.facts.get('pid', '?')} on {self.facts.get('host', '?')} since {since}"


class Lease:
    """The lease of one region, as one process sees it.

    epoch  of this process's tenure; 0 before it
    facts  stored beside the holder's pid, host and time, for whoever has to wait
    """

    def __init__(
        self, objects: Objects, facts: Mapping[str, Any], *, times: LeaseTimes | None = None, clock: Clock | None = None
    ) -> None:
        self.epoch = 0
        self._objects = objects
        self._facts = facts
        self._times = times or LeaseTimes()
        self._clock = clock or WallClock()
        self._beats = 0
        self._until = 0.0
        self._lost: LeaseLost | None = None
        self._renewing = threading.Lock()

    def take(self, *, wait: float = 0.0, silent: float = 0.0, force: bool = False) -> None:
        """Become the holder of the next epoch.

        wait      seconds to wait for the present holder to release it or to fall silent; a silent one needs a whole term
        silent    seconds to wait, if that is longer, while the holder does not renew it
        force     without waiting: the present holder is fenced at once, in the middle of whatever it does
        raises    Conflict E_LOCK naming the holder; StoreUnreachable, and then the epoch may be taken in vain
        """
        began = self._clock.elapsed()
        deadlines = began + wait, began + max(wait, silent)
        while True:
            held = holder(self._objects)
            if held.epoch and not force:
                self._await_end(held, *deadlines)
            started = self._clock.elapsed()
            own = {"token": uuid.uuid4().hex, "pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
            text = json.dumps({**self._facts, **own}).encode()
            if claimed(self._objects, _claim(held.epoch + 1), text):
                self.epoch, self._until, self._lost, self._beats = held.epoch + 1, started + self._times.hold, None, 0
                return

    def renew(self) -> None:
        """Renew it; the holder may act for another `hold` seconds, counted from before the renewal.

        raises  LeaseLost if another process holds a later epoch; StoreUnreachable, and the time that is left runs on
        """
        with self._renewing:
            assert self.epoch, "renewed before it was taken"
            if self._lost:
                raise self._lost
            started = self._clock.elapsed()
            self._beats += 1
            self._objects.put(_beat(self.epoch), json.dumps({"beats": self._beats}).encode())
            if (text := self._objects.read(_claim(self.epoch + 1))) is not None:
                raise self.fenced(_decoded(text))
            self._until = started + self._times.hold

    def check(self) -> None:
        """Call it in front of every commit. It costs no request: the newest renewal counts.

        raises  LeaseLost if the last renewal is too long ago, or another process is known to hold the lease
        """
        if self._lost:
            raise self._lost
        late = self._clock.elapsed() - self._until
        if late >= 0 or not self.epoch:
            raise LeaseLost(
                f"{self._objects.address}: the lease was not renewed for {self._times.hold + max(late, 0.0):.0f} s",
                hint="the agent goes on by itself once its store answers and nobody took its place",
            )

    def keep(self, halt: threading.Event, lost: Callable[[LeaseLost], None]) -> None:
        """Renew until `halt` is set, in a thread of its own. A store that does not answer is asked again; the time runs on.

        lost  called once, when another process holds a later epoch
        """
        while not halt.is_set():
            try:
                self.renew()
            except LeaseLost as error:
                lost(error)
                return
            except Exception:  # of whatever kind: without this thread an agent would hold nothing and end never
                pass
            self._clock.wait(halt, self._times.renew)

    def release(self) -> None:
        """End this tenure: the next holder need not wait. If the store does not answer, it waits for a term."""
        with self._renewing:
            self._until = 0.0
            with suppress(StoreUnreachable):
                self._objects.put(_beat(self.epoch), json.dumps({"released": True}).encode())

    def fenced(self, later: Mapping[str, Any]) -> LeaseLost:
        """Note that another process holds a later epoch, for good. Returns the error for whoever noticed."""
        by = Holder(epoch=self.epoch + 1, facts=later)
        self._lost = LeaseLost(
            f"{self._objects.address}: the lease passed to {by.description}", hint="console lock show"
        )
        return self._lost

    def _await_end(self, held: Holder, deadline: float, silent_deadline: float) -> None:
        """Wait until the holder of the newest epoch has released it, or was silent over a term of reads that were answered."""
        seen: object = None  # not a beat: the first read begins the term
        since = 0.0
        halt = threading.Event()
        while True:
            started = self._clock.elapsed()
            try:
                beat = self._objects.read(_beat(held.epoch))
            except StoreUnreachable:
                seen = None  # a holder that was cut off as well gets the time to renew
            else:
                if _released(beat):
                    return
                if seen != (beat,):
                    seen, since = (beat,), self._clock.elapsed()
                elif started - since >= self._times.term:
                    return
            now = self._clock.elapsed()
            renewing = seen is not None and now - since <= 2 * self._times.renew
            if now >= (deadline if renewing else silent_deadline):
                raise Conflict(
                    f"{self._objects.address} is held by another agent: {held.description}",
                    hint="console lock show",
                    code="E_LOCK",
                )
            self._clock.wait(halt, self._times.poll)


def holder(objects: Objects) -> Holder:
    """The holder of the newest epoch, alive or not. raises  StoreUnreachable"""
    epochs = [int(name.removesuffix(".json")) for name in objects.names(FOLDER) if name.endswith(".json")]
    if not epochs:
        return Holder(epoch=0, facts={})
    newest = max(epochs)
    text = objects.read(_claim(newest))
    return Holder(epoch=newest, facts=_decoded(text or b"{}"), released=_released(objects.read(_beat(newest))))


def _claim(epoch: int) -> str:
    return f"{FOLDER}/{epoch:020}.json"


def _beat(epoch: int) -> str:
    return f"{FOLDER}/{epoch:020}.beat"


def _released(beat: bytes | None) -> bool:
    return beat is not None and _decoded(beat).get("released") is True


def _decoded(text: bytes) -> Mapping[str, Any]:
    """The fields of an object; none if it is not what this module writes."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
