"""Events of one pipeline: stored in order, folded into a status, and sent to everyone who watches."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from deltalake.exceptions import DeltaError

from console import crash
from console.agent.errors import PASSING
from console.agent.store.ledger import Rollouts
from console.agent.store.ops import Ops
from console.errors import RegionError
from console.model.breach import WatchProgress
from console.model.event import RUNNING, Accepted, Entered, Event, Logged, Promoted, Recorded, point
from console.model.incident import Incident
from console.model.logline import Level
from console.model.plan import Plan
from console.model.soak import SoakProgress
from console.model.status import Status, fold, replay
from console.model.watcher import Watcher
from console.text import redacted

E = TypeVar("E")
Listener = Callable[[Recorded], None]


class Recorder:
    """Numbers and stores the events of the newest rollout. An event is on disk before anyone may act on it.

    This agent is their only writer while it holds the region, so they are cached: every step needs them, and a read
    opens a file for each event.
    """

    def __init__(self, rollouts: Rollouts, last_seen: float = 0.0) -> None:
        """last_seen: when an agent was last known to run here, seconds since 1970; 0 to use the rollout's events"""
        self._rollouts = rollouts
        self._ops = Ops(rollouts.path.parent)
        self._guard = threading.RLock()
        self._watchers: list[tuple[Listener, Watcher | None]] = []
        self._unmirrored: tuple[Recorded, ...] = ()  # events that are not among the receipts yet
        self.rollout = rollouts.latest()
        events = rollouts.events(self.rollout)
        self._stored = [*events]
        self._status = replay(events)
        self._ops.mirror(self.rollout, events)
        self._plan = rollouts.plan(self.rollout)
        runs = self._status.state in RUNNING and not self._status.held
        self._away_since = max(last_seen, events[-1].at) if runs else 0.0

    @property
    def status(self) -> Status:
        return self._status

    @property
    def plan(self) -> Plan | None:
        """The accepted plan of the newest rollout."""
        return self._plan

    @property
    def watchers(self) -> int:
        """Number of the pipeline's watchers."""
        return len(self._watchers)

    @property
    def named_watchers(self) -> tuple[Watcher, ...]:
        """Watchers that have given a name, the first one first."""
        return tuple(who for _, who in tuple(self._watchers) if who is not None)

    def events(self, kind: type[E]) -> tuple[E, ...]:
        """The stored events of one kind of the newest rollout."""
        return tuple(r.event for r in self._stored if isinstance(r.event, kind))

    def progress(self) -> tuple[Event, ...]:
        """All stored events of the newest rollout, oldest first."""
        return tuple(recorded.event for recorded in self._stored)

    def gate_since(self) -> float:
        """When the newest rollout reached its gate, seconds since 1970, UTC; 0 if it is not there. A promotion that failed
        does not count: it came back.
        """
        since, before = 0.0, ""
        for recorded in self._stored:
            if isinstance(recorded.event, Entered):
                if recorded.event.state == "awaiting-confirmation" and before != "promoting":
                    since = recorded.at
                before = recorded.event.state
        return since if before == "awaiting-confirmation" else 0.0

    def promoted_at(self) -> float:
        """When the newest rollout was promoted, seconds since 1970, UTC; 0 if it was not."""
        return max((recorded.at for recorded in self._stored if isinstance(recorded.event, Promoted)), default=0.0)

    def watched(self, progress: WatchProgress | None) -> None:
        """Update the progress of the checks that continue after the promotion."""
        with self._guard:
            if self._status.watch != progress:
                self._status = replace(self._status, watch=progress)

    def soaked(self, progress: SoakProgress | None) -> None:
        """Update the progress of the checks that continue at the gate; consoles get it with the lag."""
        with self._guard:
            if self._status.soak != progress:
                self._status = replace(self._status, soak=progress)

    def accept(self, rollout: str, plan: Plan, event: Accepted, carried: Sequence[Event] = ()) -> Recorded:
        """Begin a rollout with its first event; it is the newest one from now on.

        carried  events of work that a sandbox has already done, stored in the same commit
        """
        with self._guard:
            if self._unmirrored:  # of the previous rollout, which no later agent reads
                self._ops.mirror(self.rollout, self._unmirrored, owed=True)
                self._unmirrored = ()
            crash.point("before-Accepted")
            recorded, *more = self._rollouts.append_together(rollout, 1, (event, *carried), plan)
            crash.point("after-Accepted")
            self.rollout, self._plan, self._away_since, self._stored = rollout, plan, 0.0, []
            for each in (recorded, *more):
                self._apply(each)
            self._mirror(recorded)
            return recorded

    def away_since(self) -> float:
        """When the agent was last known to run whose rollout this one continues; once, and 0 for a rollout of its own."""
        since, self._away_since = self._away_since, 0.0
        return since

    def store(self, event: Event) -> Recorded:
        """Append an event to the newest rollout and send it to everyone who watches."""
        name = point(event)
        with self._guard:
            crash.point(f"before-{name}")
            recorded = self._rollouts.append(self.rollout, self._status.seq + 1, event)
            crash.point(f"after-{name}")
            self._apply(recorded)
            self._mirror(recorded)
            return recorded

    def publish(self, event: Event) -> None:
        """Send an event to everyone who watches, without storing it."""
        with self._guard:
            self._apply(Recorded(self.rollout, 0, time.time(), event))

    def report(self, text: str, incident: Incident | None, level: Level = "info") -> None:
        """Store a log line with the incident that it reports; without one, or on a full disk, the line is only published."""
        line = Logged(redacted(text), level, incident)
        try:
            if incident is not None:
                self.store(line)
                return
        except (OSError, DeltaError, RegionError, *PASSING):
            pass
        self.publish(line)

    def log(self, text: str, level: str = "info") -> None:
        """Publish a log line. level: info, warning or error"""
        text = redacted(text)
        self.publish(Logged(text, "error" if level == "error" else "warning" if level == "warning" else "info"))

    def watch(self, after: int, listener: Listener, who: Watcher | None = None) -> Callable[[], None]:
        """Call `listener` with every stored event after number `after`, then with each new one; returns how to stop."""
        entry = (listener, who)
        with self._guard:
            for recorded in self._rollouts.events(self.rollout, after):
                listener(recorded)
            self._watchers.append(entry)

        def stop() -> None:
            with self._guard:
                if entry in self._watchers:
                    self._watchers.remove(entry)

        return stop

    def _mirror(self, recorded: Recorded) -> None:
        """Write a decision to the receipts as well. If the disk is full, the next event or the next agent writes it."""
        late, self._unmirrored = bool(self._unmirrored), (*self._unmirrored, recorded)
        with suppress(OSError, DeltaError, RegionError, *PASSING):
            if late:
                self._ops.mirror(self.rollout, self._unmirrored, owed=True)
            else:
                self._ops.store_decision(recorded)
            self._unmirrored = ()

    def _apply(self, recorded: Recorded) -> None:
        self._status = fold(self._status, recorded)
        if recorded.seq:
            self._stored.append(recorded)
        for listener, _ in tuple(self._watchers):
            listener(recorded)
