"""Migrations applied to many stores: wave by wave, each store through its gate, each step journaled."""

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
from console.stores.lock import lock_conflict
from console.stores.protocol import Store

AT_ONCE = 8  # stores of one wave that are migrated at the same time

SiteState = Literal["applied", "unchanged", "waiting", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOutcome:
    """The result for one store.

    state  applied · unchanged (nothing to do) · waiting (its gate is closed) · failed · skipped (its wave never began)
    done   completed steps, in order
    """

    site: Site
    state: SiteState
    todo: tuple[StepPlan, ...] = ()
    done: tuple[StepResult, ...] = ()
    error: ConsoleError | None = None


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """The steps to run, and the operator's permissions.

    recorded  only record the steps as applied: the stores already have them
    """

    phase: Phase
    allow_destructive: bool = False
    take_over: bool = False
    recorded: bool = False


class MigrationRun:
    """One run over the stores of one pipeline.

    runner   returns the migration runner for a site's opened store
    gate     the error that keeps a site from starting, or None; called in the caller's thread, site by site
    on_step  called after every step, from any thread
    """

    def __init__(
        self,
        pipeline: str,
        journal: Journal,
        who: Who,
        *,
        runner: Callable[[Site, Store], MigrationRunner],
        gate: Callable[[Site, Sequence[StepPlan]], ConsoleError | None],
        on_step: Callable[[Site, StepResult], None],
    ) -> None:
        self._pipeline = pipeline
        self._journal = journal
        self._who = who
        self._runner = runner
        self._gate = gate
        self._on_step = on_step

    def run(self, sites: Sequence[Site], request: MigrationRequest) -> Iterator[SiteOutcome]:
        """Yield one outcome per site, wave by wave; a wave with an error is the last one."""
        order_of = waves({site.region.name: site.region for site in sites}.values())
        self._journal.fleet(self._pipeline, order_of, {"what": f"schema-{request.phase}", "by": self._who.name})
        for rank, names in enumerate(order_of):
            members = [site for site in sites if site.region.name in names]
            outcomes = self._wave(members, request)
            yield from outcomes
            if any(outcome.error for outcome in outcomes):
                yield from _skipped(sites, order_of[rank + 1 :])
                return

    def _wave(self, sites: Sequence[Site], request: MigrationRequest) -> list[SiteOutcome]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            inspected = list(pool.map(lambda site: self._inspect(site, request), sites))
            ready: list[Site] = []
            for rank, (site, outcome) in enumerate(zip(sites, inspected, strict=True)):
                if outcome.error is None and outcome.todo:
                    closed = self._gate(site, outcome.todo)
                    inspected[rank] = _waiting(outcome, closed) if closed else outcome
                    ready += [] if closed else [site]
            applied = {
                outcome.site.name: outcome for outcome in pool.map(lambda site: self._apply(site, request), ready)
            }
        return [applied.get(outcome.site.name, outcome) for outcome in inspected]

    def _inspect(self, site: Site, request: MigrationRequest) -> SiteOutcome:
        """Find the remaining steps of a site, before any question to a person."""
        store = site.open()
        try:
            todo = self._runner(site, store).todo(request.phase, recorded=request.recorded)
            if all(step.waits for step in todo):
                refuse_waiting(site.name, todo, recorded=request.recorded)
            if not (request.allow_destructive or request.recorded):
                refuse_lossy(site.name, todo)
            return SiteOutcome(site=site, state="unchanged", todo=todo)
        except ConsoleError as error:
            return SiteOutcome(site=site, state="failed", error=error)
        finally:
            store.close()

    def _apply(self, site: Site, request: MigrationRequest) -> SiteOutcome:
        store, done = site.open(), []
        verb = f"schema-{request.phase}"
        try:
            intent = self._journal.intent(site.region.name, self._pipeline, verb, {"store": site.target.name})
            try:
                with exclusive_access(store, self._who, take_over=request.take_over):
                    for step in self._steps(self._runner(site, store), request):
                        done.append(step)
                        self._on_step(site, step)
            except ConsoleError as error:
                self._record_outcome(
                    intent, site, "unknown" if isinstance(error, Unreachable) else "refused", str(error)
                )
                raise
            self._record_outcome(intent, site, "done", "")
            return SiteOutcome(site=site, state="applied", done=tuple(done))
        except ConsoleError as error:
            return SiteOutcome(site=site, state="failed", done=tuple(done), error=error)
        finally:
            store.close()

    @staticmethod
    def _steps(runner: MigrationRunner, request: MigrationRequest) -> Iterator[StepResult]:
        if request.recorded:
            return runner.skip(request.phase)
        return runner.apply(request.phase, allow_destructive=request.allow_destructive)

    def _record_outcome(self, intent: int, site: Site, result: str, message: str) -> None:
        # an intent without an outcome means "ask the store", which is correct
        with suppress(ConsoleError):
            self._journal.outcome(intent, site.region.name, self._pipeline, result, message)


def _waiting(outcome: SiteOutcome, closed: ConsoleError) -> SiteOutcome:
    return SiteOutcome(site=outcome.site, state="waiting", todo=outcome.todo, error=closed)


def _skipped(sites: Sequence[Site], rest: Waves) -> Iterator[SiteOutcome]:
    for names in rest:
        yield from (SiteOutcome(site=site, state="skipped") for site in sites if site.region.name in names)


@contextmanager
def exclusive_access(store: Store, who: Who, *, take_over: bool) -> Iterator[None]:
    """Keep all other consoles from changing this store.

    Consoles of the same user and machine are kept out by a lock that ends with its process, all others by the store's own mark.

    raises  Conflict
    """
    name = hashlib.sha256(store.address.encode()).hexdigest()[:20]
    handle = os.open(paths.runtime_dir() / f"schema-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise lock_conflict(store.name, "another console on this machine") from None
        with store.lock(who.name, who.host, take_over=take_over):
            yield
    finally:
        os.close(handle)
