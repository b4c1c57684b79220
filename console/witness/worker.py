"""Witnesses for whoever looks at a fleet: sought in a thread, one search at a time, told as far as they have come."""

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

    asked  (table, materialization) of each; () where the plan edits none
    found  what the search came to, in their order
    over   nothing is being sought any more
    """

    asked: tuple[tuple[str, str], ...]
    found: tuple[WitnessResult, ...] = ()
    over: bool = False

    @property
    def proven(self) -> bool:
        """Whether seeking again could say nothing else."""
        return self.over and not any(found.unproven for found in self.found)


class WitnessWorker:
    """Seeks for plans of regions; the same edits are never sought twice. Belongs to one event loop.

    tell  hears of a region's search whenever it has come further
    """

    def __init__(self, tell: Callable[[str, WitnessProgress], object]) -> None:
        self._tell = tell
        self._seeker = WitnessFinder()
        self._turn = asyncio.Lock()
        self._shown: dict[str, tuple[tuple[QueryEdit, ...], WitnessProgress]] = {}

    async def seek(self, region: Region, plan: Plan, was: Release | None) -> None:
        """Returns when every edited query has its answer; at once where it has, or where that search is under way."""
        wanted = query_edits(plan, was)
        known = self.of(region.name, plan, was)
        if known is not None and (known.proven or not known.over):
            return
        shown = WitnessProgress(tuple((edit.table, edit.materialization) for edit in wanted))
        self._shown[region.name] = wanted, shown
        self._tell(region.name, shown)
        async with self._turn:
            search = self._seeker.seek(wanted, dict(region.spark.conf))
            found: tuple[WitnessResult, ...] = ()
            while (sought := await asyncio.to_thread(next, search, None)) is not None:
                found += (sought,)
                self._come(region.name, wanted, WitnessProgress(shown.asked, found))
        self._come(region.name, wanted, WitnessProgress(shown.asked, found, over=True))

    def of(self, region: str, plan: Plan, was: Release | None) -> WitnessProgress | None:
        """What is shown beside a plan of this region: how far the search for its very edits has come, if there was one."""
        wanted, shown = self._shown.get(region, ((), None))
        return shown if shown is not None and wanted == query_edits(plan, was) else None

    def stop(self) -> None:
        """End what is being sought, and its Spark, at once and for good."""
        self._seeker.stop()

    def _come(self, region: str, wanted: tuple[QueryEdit, ...], shown: WitnessProgress) -> None:
        if self._shown[region][0] is wanted:  # else a later plan has other edits, and this answer is for nobody
            self._shown[region] = wanted, shown
            self._tell(region, shown)
