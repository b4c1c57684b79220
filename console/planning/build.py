"""The planner's stages in order: read → resolve → fingerprint → diff → route → plan.

Each stage is a module that makes one frozen value from the earlier ones. The first three depend on the files alone, so
regions with the same pipeline share their results; from `diff` on, the live release is an input.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from console.errors import Problem, Problems
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.planning import rules
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.cache.queries import QueryMemory, rules_of
from console.planning.cache.releases import one_release
from console.planning.derived.plan import gated, planned
from console.planning.diff import diff
from console.planning.fingerprint import Desired, fingerprint
from console.planning.landing.adapter import behind_adapters
from console.planning.landing.table_name import called, new_names
from console.planning.read import read
from console.planning.resolve import resolve
from console.planning.restate import restated
from console.planning.review.in_bucket import with_limits_of_bucket
from console.planning.review.watch_query import with_watch_query
from console.planning.routes import NOTHING_CHOSEN, route

_DESIRED = Memo[Desired](64)


def plan(
    pipeline: Pipeline,
    live: Live,
    region: Region,
    tool: str,
    cache: PlannerCache | None = None,
    *,
    allowed: Collection[str] = (),
    history: Mapping[str, str] = NOTHING_CHOSEN,
    planner: str = "",
) -> Plan:
    """The plan that brings one region from its live release to the pipeline as declared, table by table.

    live    the region's survey; its release None plans everything as new
    tool    version of console, bound into the plan;  planner  digest of its source: a release hashed by another planner
            is rehashed
    cache   results that plans share: one cache for all regions that are planned together; by default nothing is shared
    allowed losses that the operator accepts by name: `C101:requests`
    history table → choice for its stored rows (`carry`) that overrides the one in its file
    raises  Problems (exit 65) with everything that makes the pipeline impossible, here or anywhere, at once; findings
            of the rules in a possible plan are in `Plan.problems`
    """
    cache, hashed_by = cache or PlannerCache(), rules_of(planner)
    wanted = desired(pipeline, cache)  # read, resolve, fingerprint
    here = _restated(pipeline, live, wanted, hashed_by, cache)
    _refuse_impossible(pipeline, wanted, here)
    diffs = diff(wanted, here.release, cache)
    verdicts = route(wanted, here, diffs, cache, history)
    made = planned(
        pipeline, wanted, verdicts, here, live, region, cache=cache, tool=tool, rules_by=hashed_by, allowed=allowed
    )
    return with_limits_of_bucket(with_watch_query(gated(made, region.policy), region), region)


def check(pipeline: Pipeline, cache: PlannerCache | None = None) -> tuple[Problem, ...]:
    """All problems of a pipeline that do not depend on a region, each with its place in the files."""
    return (*desired(pipeline, cache or PlannerCache()).problems, *pipeline.ineffective)


def desired(pipeline: Pipeline, cache: PlannerCache) -> Desired:
    """The pipeline as wanted: read, resolved and fingerprinted, once for all regions that share it."""
    return cache.by_identity(_DESIRED, lambda: compiled(pipeline, QueryMemory(cache.memory)), pipeline)


def compiled(pipeline: Pipeline, memory: QueryMemory) -> Desired:
    """The stages that depend on the files alone. memory: queries compiled by earlier runs, extended by this one"""
    return fingerprint(resolve(read(pipeline, memory), memory), memory)


def _restated(pipeline: Pipeline, live: Live, wanted: Desired, hashed_by: str, cache: PlannerCache) -> Live:
    """The region under its new table names, with the shared object for its release, fingerprinted by the same rules."""
    names = new_names(pipeline.tables, live)
    here = called(live, names)
    if here.release is None:
        return here
    behind = behind_adapters(here.release, wanted)
    adapters = tuple(state.table.name for state in behind.tables[len(here.release.tables) :])
    shared = one_release(behind, cache)
    return replace(here, release=restated(shared, wanted, hashed_by, cache, (*names.values(), *adapters)))


def _refuse_impossible(pipeline: Pipeline, wanted: Desired, live: Live) -> None:
    """raises Problems"""
    if problems := (*wanted.problems, *rules.region_problems(pipeline, live)):
        raise Problems.of(rules.dropped_but_read(problems, wanted.unknown, live))
