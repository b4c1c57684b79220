"""The throttle of a plan's backfills, and whether the files that they read are retained long enough."""

from dataclasses import replace

from console.errors import Problem, Problems
from console.model.live import Live, Release
from console.model.plan import Plan
from console.model.policy import Throttle, kept_hours, share_of_day
from console.model.region import Region
from console.model.step import Backfill, Step
from console.planning.cache.planner_cache import PlannerCache
from console.planning.loss.failing_casts import fragile
from console.planning.queries import compile_query
from console.remedy import Edit, Elsewhere

_MARGIN = 2  # times the expected duration; a retention below that is reported


def with_retention(plan: Plan, live: Live, region: Region, cache: PlannerCache) -> Plan:
    """The plan with the region's throttle, whose query is compiled over the live release, and with problems of throttle
    and retention."""
    if not any(isinstance(step, Backfill) for step in plan.steps):
        return plan  # no batch, nothing to throttle
    throttle, throttle_problems = _compiled_throttle(live, region)
    steps = tuple(_with_fragile(step, plan.release, cache) for step in plan.steps)
    prepared = replace(plan, steps=steps, throttle=throttle, quarantine_rows=region.policy.quarantine_rows)
    return replace(prepared, problems=(*prepared.problems, *throttle_problems, *_expiring_files(prepared, live)))


def _with_fragile(step: Step, release: Release, cache: PlannerCache) -> Step:
    """A backfill with the predicate for rows whose values do not convert."""
    source = release.table(step.source) if isinstance(step, Backfill) and not step.stored else None
    if source is None or not isinstance(step, Backfill):
        return step
    target = release.table(step.target)
    kinds = {column.name: column.type for column in target.version.columns} if target else {}
    by = target.version.partition_by if target else ()
    days = tuple(name for name in by if kinds.get(name, "").startswith(("date", "timestamp")))
    return replace(step, fragile=cache.by_value(fragile, step.sql, step.source, source.table, days))


def _compiled_throttle(live: Live, region: Region) -> tuple[Throttle, list[Problem]]:
    throttle = region.throttle
    if not throttle.query:
        return (throttle if throttle.given else Throttle()), []
    if live.release is None:
        message = f"throttle.query of {region.name} is not asked: nothing is live that it could read"
        return replace(throttle, query=""), [Problem(code="C124", message=message, where=region.where, severity="note")]
    try:
        compiled_query = compile_query(throttle.query, live.release)
        if len(compiled_query.columns) == 1:
            return replace(throttle, query=compiled_query.sql, tables=compiled_query.tables), []
        reason = f"it has {len(compiled_query.columns)} columns"
    except Problems as problems:
        reason = "; ".join(f"{problem.message} [{problem.code}]" for problem in problems.problems)
    message = f"throttle.query of {region.name} cannot be asked: {reason}"
    how = "one SELECT of one column that is true or false, over the tables of the pipeline's live release"
    return throttle, [
        Problem(code="C124", message=message, where=region.where, remedies=(Edit(node=region.name, how=how),))
    ]


def _expiring_files(plan: Plan, live: Live) -> list[Problem]:
    """C123: files that the backfill reads may be deleted before it reaches them."""
    open_share = share_of_day(plan.throttle.hours)
    expected = plan.price.seconds / open_share / 3600
    problems: list[Problem] = []
    for name in sorted({step.source for step in plan.steps if isinstance(step, Backfill)}):
        stats = live.table(name)
        kept_for = kept_hours(stats.properties) if stats is not None else 0.0
        if not kept_for or not expected or expected * _MARGIN < kept_for:
            continue
        refused = expected > kept_for
        within = f", within {plan.throttle.hours}" if plan.throttle.hours else ""
        message = f"the rollout takes about {_hours(expected)}{within}, and {name} keeps what it reads for {_hours(kept_for)} only"
        raised = (
            f"raise delta.deletedFileRetentionDuration of {name} (and delta.logRetentionDuration)"
            f" to {_hours(expected * _MARGIN)} or more"
        )
        remedies = (
            Elsewhere(what=raised),
            Edit(node=live.region, how="wider throttle.hours, more cores, or fewer tables in one change"),
        )
        problems.append(
            Problem(
                code="C123", message=message, severity="refuse" if refused else "warn", node=name, remedies=remedies
            )
        )
    return problems


def _hours(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    return f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.0f} minutes"
