"""Plans the regions of one fleet or command: with this tool's version and one cache."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

import console
from console.errors import Problem, UsageError
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.model.tuning import Tuning
from console.project import recent

if TYPE_CHECKING:
    from console.planning import PlannerCache

NOTHING_CHOSEN: Mapping[str, str] = {}


def compiled(change: Tuning, live: Live) -> Tuning:
    """A change of limits with its query compiled over the live release.

    raises  Problems if it does not compile; UsageError if it is not a single column, or nothing is live
    """
    from console.planning import compile_query

    if live.release is None:
        hint = "console tune --region NAME query=none"
        raise UsageError(f"{live.region}: nothing is live that a query could read", region=live.region, hint=hint)
    query = compile_query(str(change.query), live.release)
    if len(query.columns) != 1:
        hint = "one SELECT of one column that is true or false"
        raise UsageError(f"query has {len(query.columns)} columns", hint=hint, code="C124")
    return replace(change, query=query.sql, tables=tuple(query.tables))


class RegionPlanner:
    """The planner with the cache that belongs to its owner; regions may be planned in threads.

    Queries that earlier runs compiled are reused, new ones are saved after each plan. Creating it loads nothing: importing
    the planner takes half a second, which the first plan does.
    """

    def __init__(self) -> None:
        self._opening = Lock()
        self._memory: recent.Remembered | None = None
        self._cache: PlannerCache | None = None

    def __call__(self, pipeline: Pipeline, live: Live, region: Region) -> Plan:
        return self.plan(pipeline, live, region)

    def plan(
        self,
        pipeline: Pipeline,
        live: Live,
        region: Region,
        allowed: Collection[str] = (),
        history: Mapping[str, str] = NOTHING_CHOSEN,
    ) -> Plan:
        """raises  Problems, as `console.planning.plan`, which also defines `allowed` and `history`"""
        from console.planning import plan

        tool = f"console {console.__version__}"
        with self._saving() as cache:
            return plan(pipeline, live, region, tool, cache, allowed=allowed, history=history, planner=recent.planner())

    def check(self, pipeline: Pipeline) -> tuple[Problem, ...]:
        """All problems of a pipeline that do not depend on a region."""
        from console.planning import check

        with self._saving() as cache:
            return check(pipeline, cache)

    @contextmanager
    def _saving(self) -> "Iterator[PlannerCache]":
        """The cache; queries compiled meanwhile are saved."""
        from console.planning import PlannerCache

        with self._opening:
            memory = self._memory = self._memory or recent.opened()
            cache = self._cache = self._cache or PlannerCache(memory)
        try:
            yield cache
        finally:
            with cache.lock:
                memory.save()
