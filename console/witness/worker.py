"""Witness searches for a fleet's screen: in a thread, one at a time, with progress."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from console.model.live import Release
from console.model.plan import Plan
from console.model.region import Region
from console.witness.plans import QueryEdit, WitnessFinder, query_edits
from console.witness.search import WitnessResult


@dataclass(frozen=True, slots=True)
class WitnessProgress:
    """How far the search has come for one plan's edited queries.

    edits    (table, materialization) of each; () if the plan edits none
    results  of the first edits, in their order
    done     the search has ended
    """

    edits: tuple[tuple[str, str], ...]
    results: tuple[WitnessResult, ...] = ()
    done: bool = False

    @property
    def final(self) -> bool:
        """Whether another search would give the same results."""
        return self.done and not any(result.unavailable for result in self.results)


class WitnessWorker:
    """Searches witnesses of the plans of regions; equal edits are searched once. Belongs to one event loop.

    report  called with a region and its progress
    """

    def __init__(self, report: Callable[[str, WitnessProgress], object]) -> None:
        self._report = report
        self._finder = WitnessFinder()
        self._lock = asyncio.Lock()
        self._progress: dict[str, tuple[tuple[QueryEdit, ...], WitnessProgress]] = {}

    async def search(self, region: Region, plan: Plan, was: Release | None) -> None:
        """Return once every edited query has its result; at once if it has, or if that search is running."""
        edits = query_edits(plan, was)
        known = self.progress(region.name, plan, was)
        if known is not None and (known.final or not known.done):
            return
        started = WitnessProgress(tuple((edit.table, edit.materialization) for edit in edits))
        self._progress[region.name] = edits, started
        self._report(region.name, started)
        async with self._lock:
            search = self._finder.search(edits, dict(region.spark.conf))
            results: tuple[WitnessResult, ...] = ()
            while (result := await asyncio.to_thread(next, search, None)) is not None:
                results += (result,)
                self._update(region.name, edits, WitnessProgress(started.edits, results))
        self._update(region.name, edits, WitnessProgress(started.edits, results, done=True))

    def progress(self, region: str, plan: Plan, was: Release | None) -> WitnessProgress | None:
        """Progress of the search for exactly the edits of this plan; None if there was none."""
        edits, progress = self._progress.get(region, ((), None))
        return progress if progress is not None and edits == query_edits(plan, was) else None

    def stop(self) -> None:
        """End the running search and its Spark at once, for good."""
        self._finder.stop()

    def _update(self, region: str, edits: tuple[QueryEdit, ...], progress: WitnessProgress) -> None:
        if self._progress[region][0] is edits:  # else a later plan has other edits
            self._progress[region] = edits, progress
            self._report(region, progress)
