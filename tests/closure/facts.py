"""The contents of a region: which days of which table are gone, and how precisely its statistics show it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from console.model.live import Day, Live, TableStats
from console.model.pipeline import Pipeline
from console.model.plan import Plan, numbered
from console.model.region import Limits, Region
from console.model.schema import Column
from console.planning import PlannerCache, plan
from tests.closure.shapes import World

DAYS = tuple(f"2026-11-{number:02}" for number in range(1, 9))
ROWS = 100  # of each table and day
REGION = Region(name="eu", warehouse="/warehouse", limits=Limits(rows=200))


@dataclass(frozen=True, kw_only=True)
class Facts:
    """gone: table → how many of its oldest days are gone;  vague: tables whose statistics share rows out among days, besides
    those that are partitioned by a hash
    """

    gone: Mapping[str, int] = field(default_factory=dict)
    vague: frozenset[str] = frozenset()

    def days(self, table: str) -> tuple[str, ...]:
        """Days that a table holds, wholly."""
        return DAYS[self.gone.get(table, 0) :]


def deployed(world: World, facts: Facts, cache: PlannerCache) -> Live:
    """The region after its first release, some time later."""
    return after_first(world.pipeline(), facts, cache)


def after_first(pipeline: Pipeline, facts: Facts, cache: PlannerCache) -> Live:
    """The region after a pipeline's first release."""
    landing = tuple(
        _stats(table.name, table.name, table.columns, facts) for table in pipeline.tables if table.kind == "landing"
    )
    empty = Live(region="eu", pipeline="web", release=None, stats=landing, rows_per_second=1000.0)
    first = plan(pipeline, empty, REGION, "test", cache)
    assert not first.refusals, first.refusals
    return _live(empty, first, 1, facts)


def promoted(plan: Plan, before: Live, facts: Facts) -> Live:
    """The region once another change is live. facts: what its tables hold then"""
    return _live(before, plan, 2, facts)


def _live(before: Live, plan: Plan, number: int, facts: Facts) -> Live:
    release = numbered(plan, number).release
    stats = tuple(
        replace(
            _stats(state.table.name, state.version.path, state.version.columns, facts, hashed=state.newest is not None),
            partition_by=state.version.partition_by,
        )
        for state in release.tables
    )
    landing = tuple(table for table in before.stats if release.table(table.name) is None)
    return replace(before, release=release, stats=(*stats, *landing))


def _stats(name: str, path: str, columns: tuple[Column, ...], facts: Facts, *, hashed: bool = False) -> TableStats:
    exact = name not in facts.vague and not hashed
    days = tuple(Day(day, ROWS, ROWS * 100, exact=exact) for day in facts.days(name))
    rows = ROWS * len(days)
    return TableStats(
        name=name, path=path, version=7, rows=rows, bytes=rows * 100, files=len(days), columns=columns, days=days
    )
