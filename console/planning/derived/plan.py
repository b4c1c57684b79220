"""Stage 6, plan: the release, the steps, their prices and every problem, as one value."""

from collections.abc import Collection
from dataclasses import replace

from console.model.consent import GateRules
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Policy, Region
from console.planning import rules
from console.planning.cache.planner_cache import PlannerCache
from console.planning.derived.calls import with_calls
from console.planning.derived.changes import nodes
from console.planning.derived.options import followable
from console.planning.derived.prices import NOTHING, everything
from console.planning.derived.release import release
from console.planning.derived.steps import steps, with_promote
from console.planning.fingerprint import Desired
from console.planning.loss.allowed import accepted
from console.planning.loss.backward import rollback
from console.planning.review.answers import answers
from console.planning.review.baseline import baseline
from console.planning.review.cost import with_cost
from console.planning.review.drift import drift
from console.planning.review.retention import with_retention
from console.planning.routes.verdict import Verdicts

FORMAT = 1


def planned(
    pipeline: Pipeline,
    wanted: Desired,
    verdicts: Verdicts,
    here: Live,
    live: Live,
    region: Region,
    *,
    cache: PlannerCache,
    tool: str,
    rules_by: str,
    allowed: Collection[str],
) -> Plan:
    """The plan, bound to the region as it is.

    here   the region under its new table names, from which everything is computed;  live  as it is
    tool, allowed  as of `build.plan`;  rules_by  the rules by which `wanted` was fingerprinted
    """
    changes = nodes(wanted, verdicts, here, region.limits, cache=cache, allowed=allowed)
    problems, acceptances = accepted(rules.plan_problems(wanted, verdicts.tables, here, cache), allowed)
    plan = Plan(
        format_version=FORMAT,
        tool=tool,
        pipeline=pipeline.name,
        region=region.name,
        desired=pipeline.digest(),
        live=live.release.id if live.release else "",
        content=baseline(pipeline, live, cache).digest,
        nodes=changes,
        steps=with_promote(steps(verdicts, here, region.limits, cache), changes),
        release=release(pipeline, wanted, verdicts, here, cache=cache, tool=tool, rules=rules_by),
        problems=(*followable(problems, changes), *pipeline.ineffective, *region.ineffective),
        price=sum((node.price for node in changes if node.price is not NOTHING), NOTHING),
        everything=everything(verdicts, here, region.limits),
        overrides=pipeline.overrides,
        drift=drift(live, cache),
        answers=answers(wanted, here, cache),
        allowed=acceptances,
        rollback=rollback(pipeline, verdicts.tables, here),
    )
    limited = with_limits(plan, region, here)
    return with_retention(with_cost(with_calls(limited, pipeline, live), here, region), here, region, cache)


def with_limits(plan: Plan, region: Region, live: Live) -> Plan:
    """With the limits of its batches, and that of a day, by the region's measured rate."""
    return replace(
        plan,
        rows_limit=region.limits.rows,
        bytes_limit=region.limits.bytes,
        target_seconds=region.limits.target_seconds,
        day_rows=region.limits.day_rows(live.rows_per_second),
    )


def gated(plan: Plan, policy: Policy) -> Plan:
    """With the rules of its gate. `never` and `ask` are for consoles, which ask a person: no gate opens by itself there."""
    rules = GateRules(
        auto=policy.promote == "auto",
        approvals=policy.approvals,
        ticket=policy.ticket == "required",
        min_soak=policy.min_soak_seconds,
        clean_intervals=policy.clean_intervals,
        watch=policy.watch_seconds,
        on_breach=policy.on_breach if policy.watch_seconds else "pause",
    )
    return replace(plan, gate=rules)
