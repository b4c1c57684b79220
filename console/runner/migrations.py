"""Migrations carried into many stores: wave by wave, each store through its gate, each deed journalled."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from console import paths
from console.drivers.protocol import Who
from console.errors import ConsoleError, Unreachable
from console.propagation.migration import Phase
from console.runner.journal import Journal
from console.runner.waves import Waves, waves
from console.stores.apply import MigrationRunner, StepPlan, StepResult, refuse_lossy, refuse_waiting
from console.stores.files import Site
from console.stores.lock import held
from console.stores.protocol import Store

AT_ONCE = 8  # stores of one wave

SiteState = Literal["applied", "unchanged", "waiting", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class SiteOutcome:
    """What became of one store.

    state  applied · unchanged (nothing was left) · waiting (its gate is shut) · failed · skipped (its wave never began)
    done   in the order in which it was done
    """

    site: str
    state: SiteState
    todo: tuple[StepPlan, ...] = ()
    done: tuple[StepResult, ...] = ()
    error: ConsoleError | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for.

    recorded  only write down that it is there already
    """

    phase: Phase
    allow_destructive: bool = False
    take_over: bool = False
    recorded: bool = False


class MigrationRun:
    """One run over the stores of one pipeline.

    carrier  a site's opened store → who carries migrations into it
    gate     why a site's work may not begin, or None; asked in the caller's thread, site by site
    told     hears of every operation, from any thread
    """

    def __init__(
        self,
        pipeline: str,
        journal: Journal,
        who: Who,
        *,
        carrier: Callable[[Site, Store], MigrationRunner],
        gate: Callable[[Site, Sequence[StepPlan]], ConsoleError | None],
        told: Callable[[Site, StepResult], None],
    ) -> None:
        self._pipeline = pipeline
        self._journal = journal
        self._who = who
        self._carrier = carrier
        self._gate = gate
        self._told = told

    def run(self, sites: Sequence[Site], order: Order) -> Iterator[SiteOutcome]:
        """One outcome a site, wave by wave; a wave that is not wholly through is the last one."""
        order_of = waves({site.region.name: site.region for site in sites}.values())
        self._journal.fleet(self._pipeline, order_of, {"what": f"schema-{order.phase}", "by": self._who.name})
        for rank, names in enumerate(order_of):
            mine = [site for site in sites if site.region.name in names]
            outcomes = self._wave(mine, order)
            yield from outcomes
            if any(outcome.error for outcome in outcomes):
                yield from _skipped(sites, order_of[rank + 1 :])
                return

    def _wave(self, sites: Sequence[Site], order: Order) -> list[SiteOutcome]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            looked = list(pool.map(lambda site: self._look(site, order), sites))
            ready: list[Site] = []
            for rank, (site, outcome) in enumerate(zip(sites, looked, strict=True)):
                if outcome.error is None and outcome.todo:
                    shut = self._gate(site, outcome.todo)
                    looked[rank] = SiteOutcome(site.name, "waiting", outcome.todo, (), shut) if shut else outcome
                    ready += [] if shut else [site]
            carried = {outcome.site: outcome for outcome in pool.map(lambda site: self._carry(site, order), ready)}
        return [carried.get(outcome.site, outcome) for outcome in looked]

    def _look(self, site: Site, order: Order) -> SiteOutcome:
        """What is left at a site: its first word, before anything is asked of a person."""
        store = site.open()
        try:
            todo = self._carrier(site, store).todo(order.phase, recorded=order.recorded)
            if all(one.waits for one in todo):
                refuse_waiting(site.name, todo, recorded=order.recorded)
            if not (order.allow_destructive or order.recorded):
                refuse_lossy(site.name, todo)
            return SiteOutcome(site.name, "unchanged", todo)
        except ConsoleError as error:
            return SiteOutcome(site.name, "failed", error=error)
        finally:
            store.close()

    def _carry(self, site: Site, order: Order) -> SiteOutcome:
        store, done = site.open(), []
        verb = f"schema-{order.phase}"
        try:
            intent = self._journal.intent(site.region.name, self._pipeline, verb, {"store": site.target.name})
            try:
                with alone(store, self._who, take_over=order.take_over):
                    for one in self._deeds(self._carrier(site, store), order):
                        done.append(one)
                        self._told(site, one)
            except ConsoleError as error:
                self._settle(intent, site, "unknown" if isinstance(error, Unreachable) else "refused", str(error))
                raise
            self._settle(intent, site, "done", "")
            return SiteOutcome(site.name, "applied", (), tuple(done))
        except ConsoleError as error:
            return SiteOutcome(site.name, "failed", (), tuple(done), error)
        finally:
            store.close()

    @staticmethod
    def _deeds(carrier: MigrationRunner, order: Order) -> Iterator[StepResult]:
        if order.recorded:
            return carrier.skip(order.phase)
        return carrier.apply(order.phase, allow_destructive=order.allow_destructive)

    def _settle(self, intent: int, site: Site, result: str, told: str) -> None:
        # an intent without an outcome says "ask the store", which is true
        with suppress(ConsoleError):
            self._journal.outcome(intent, site.region.name, self._pipeline, result, told)


def _skipped(sites: Sequence[Site], rest: Waves) -> Iterator[SiteOutcome]:
    for names in rest:
        yield from (SiteOutcome(site.name, "skipped") for site in sites if site.region.name in names)


@contextmanager
def alone(store: Store, who: Who, *, take_over: bool) -> Iterator[None]:
    """Be the only one of all consoles that changes this store.

    Those of one user and machine are told apart by a lock that dies with its process; all others by the store's own mark.

    raises  Conflict
    """
    name = hashlib.sha256(store.address.encode()).hexdigest()[:20]
    handle = os.open(paths.runtime_dir() / f"schema-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise held(store.name, "another console on this machine") from None
        with store.hold(who.name, who.host, take_over=take_over):
            yield
    finally:
        os.close(handle)
