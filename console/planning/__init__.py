"""Desired pipeline and live release to a plan: pure functions, no Spark, no clock, no I/O."""

from collections.abc import Collection
from dataclasses import replace

from console.errors import Problem, Problems
from console.model.live import Live, Release
from console.model.pipeline import Parameter, Pipeline
from console.model.plan import Plan, Price
from console.model.receipt import LEDGER, LEDGER_VIEW
from console.model.region import Region
from console.model.schema import types
from console.planning import build, fingerprints, rules
from console.planning.cache.compiler import Compiler, rules_of
from console.planning.cache.planner_cache import Memo, Memory, PlannerCache
from console.planning.cache.releases import release_key
from console.planning.compare import QueryDifference, compare
from console.planning.desired import Desired, desired
from console.planning.landing.table_name import called, new_names
from console.planning.loss.allowed import accepted
from console.planning.loss.backward import rollback
from console.planning.review.answers import answers
from console.planning.review.baseline import Baseline, baseline, baseline_changes
from console.planning.review.cost import with_cost
from console.planning.review.drift import drift
from console.planning.review.retention import with_retention
from console.planning.routes import routes
from console.planning.sql import compile
from console.planning.sql.compile import Compiled, NameScope
from console.planning.sql.tree import Text

__all__ = [
    "Baseline",
    "Compiled",
    "Memory",
    "PlannerCache",
    "QueryDifference",
    "baseline",
    "baseline_changes",
    "check",
    "compare",
    "compile_query",
    "plan",
]

FORMAT = 1
_DESIRED = Memo[Desired](64)


def plan(
    pipeline: Pipeline,
    live: Live,
    region: Region,
    tool: str,
    cache: PlannerCache | None = None,
    *,
    allowed: Collection[str] = (),
    planner: str = "",
) -> Plan:
    """The plan that brings one region from its live release to the pipeline as declared, table by table.

    live    the region's survey; its release None plans everything as new
    tool    version of console, bound into the plan;  planner  digest of its source: a release hashed by another one is rehashed
    cache   what plans share: one for all regions that are planned together; by default nothing is shared
    allowed losses that the operator accepts by name: `C101:requests`
    raises  Problems (exit 65) with everything that makes the pipeline impossible, here or anywhere, at once; what the
            rules find in a possible plan is in `Plan.problems`
    """
    wanted, here = _resolved(pipeline, live, cache := cache or PlannerCache(), rules_of(planner))
    verdicts = routes(wanted, here, cache)
    nodes = build.nodes(wanted, verdicts, here, region.limits, cache)
    price = sum((node.price for node in nodes), Price())
    problems, acceptances = accepted(rules.plan_problems(wanted, verdicts, here, cache), allowed)
    planned = Plan(
        format_version=FORMAT,
        tool=tool,
        pipeline=pipeline.name,
        region=region.name,
        desired=pipeline.digest(),
        live=live.release.id if live.release else "",
        content=baseline(pipeline, live, cache).digest,
        nodes=nodes,
        steps=build.with_promote(build.steps(verdicts, here, region.limits, cache), nodes),
        release=replace(build.release(pipeline, wanted, verdicts, here, tool), rules=rules_of(planner)),
        problems=problems,
        price=price,
        everything=build.everything(verdicts, here, region.limits),
        overrides=pipeline.overrides,
        rows_limit=region.limits.rows,
        bytes_limit=region.limits.bytes,
        target_seconds=region.limits.target_seconds,
        drift=drift(live, cache),
        answers=answers(wanted, here, cache),
        allowed=acceptances,
        rollback=rollback(pipeline, verdicts, here),
    )
    return with_retention(with_cost(planned, here, region), here, region, compile_query, cache)


def _resolved(pipeline: Pipeline, live: Live, cache: PlannerCache, hashed_by: str) -> tuple[Desired, Live]:
    """The compiled pipeline, and the region with the shared object for its release, fingerprinted by the same rules."""
    wanted = _compiled(pipeline, cache)
    names = new_names(pipeline.tables, live)
    live = called(live, names)
    if live.release is not None:
        release = cache.one_of(live.release, release_key)
        live = replace(live, release=fingerprints.restated(release, wanted, hashed_by, cache, names.values()))
    if problems := (*wanted.problems, *rules.region_problems(pipeline, live)):
        raise Problems.of(rules.dropped_but_read(problems, wanted.unknown, live))
    return wanted, live


def _compiled(pipeline: Pipeline, cache: PlannerCache) -> Desired:
    return cache.by_identity(_DESIRED, lambda: desired(pipeline, Compiler(cache.memory)), pipeline)


def check(pipeline: Pipeline, cache: PlannerCache | None = None) -> tuple[Problem, ...]:
    """All problems of a pipeline that do not depend on a region, each with its place in the files."""
    return _compiled(pipeline, cache or PlannerCache()).problems


def compile_query(sql: str, release: Release, parameters: tuple[Parameter, ...] = ()) -> Compiled:
    """A checked query over a release's logical tables, its copies' outputs, and the region's own `_console` tables.

    parameters  may occur as `:name` and stay in the SQL, for Spark to bind
    raises      Problems, a DataError: unreadable, refused, or naming what the release does not have
    """
    tables = {state.table.name: types(state.table.columns) for state in release.tables}
    for copy in release.copies:
        output = compile.query(Text(sql=copy.sql, where="", node=copy.name), NameScope(tables))
        tables = {**tables, copy.into: dict.fromkeys(output.columns, "string")} if output else tables
    console_tables = {LEDGER_VIEW + table: columns for table, columns in LEDGER.items()}
    text = Text(sql=sql, own=True)
    compiled = compile.query(text, NameScope({**tables, **console_tables}), parameters)
    if compiled is None:
        raise Problems.of(text.problems)
    return compiled
