"""Whether a plan's history stays readable for as long as the backfill takes, and what it waits for meanwhile."""

from collections.abc import Callable
from dataclasses import replace

from console.errors import Problem, Problems
from console.model.live import Live, Release
from console.model.plan import Plan
from console.model.policy import Throttle, kept_hours, share_of_day
from console.model.region import Region
from console.model.step import Backfill, Step
from console.planning.loss.failing_casts import fragile
from console.planning.sql.compile import Compiled

_ROOM = 2  # times the expected time: less is worth a word


def with_retention(plan: Plan, live: Live, region: Region, compiled: Callable[[str, Release], Compiled]) -> Plan:
    """The plan with the region's throttle, its query compiled over what is live, and with what retention says to both."""
    if not any(isinstance(step, Backfill) for step in plan.steps):
        return plan  # no batch, so nothing waits
    throttle, said = _asked(live, region, compiled)
    steps = tuple(_breakable(step, plan.release) for step in plan.steps)
    made = replace(plan, steps=steps, throttle=throttle, quarantine_rows=region.policy.quarantine_rows)
    return replace(made, problems=(*made.problems, *said, *_lasting(made, live)))


def _breakable(step: Step, release: Release) -> Step:
    """A backfill with the question which of its rows do not convert."""
    source = release.table(step.source) if isinstance(step, Backfill) and not step.stored else None
    if source is None or not isinstance(step, Backfill):
        return step
    target = release.table(step.target)
    kinds = {column.name: column.type for column in target.version.columns} if target else {}
    by = target.version.partition_by if target else ()
    days = tuple(name for name in by if kinds.get(name, "").startswith(("date", "timestamp")))
    return replace(step, fragile=fragile(step.sql, step.source, source.table, days))


def _asked(live: Live, region: Region, compiled: Callable[[str, Release], Compiled]) -> tuple[Throttle, list[Problem]]:
    throttle = region.throttle
    if not throttle.query:
        return (throttle if throttle.given else Throttle()), []
    if live.release is None:
        message = f"throttle.query of {region.name} is not asked: nothing is live that it could read"
        return replace(throttle, query=""), [Problem("C124", message, region.where, "", "note")]
    try:
        made = compiled(throttle.query, live.release)
        if len(made.columns) == 1:
            return replace(throttle, query=made.sql, tables=made.tables), []
        wrong = f"it has {len(made.columns)} columns"
    except Problems as found:
        wrong = "; ".join(f"{problem.message} [{problem.code}]" for problem in found.problems)
    message = f"throttle.query of {region.name} cannot be asked: {wrong}"
    hint = "one SELECT of one column that is true or false, over the tables of the pipeline's live release"
    return throttle, [Problem("C124", message, region.where, hint)]


def _lasting(plan: Plan, live: Live) -> list[Problem]:
    """C123: files that the backfill reads may be deleted before it comes to them."""
    open_share = share_of_day(plan.throttle.hours)
    expected = plan.price.seconds / open_share / 3600
    found: list[Problem] = []
    for name in sorted({step.source for step in plan.steps if isinstance(step, Backfill)}):
        stats = live.table(name)
        kept = kept_hours(stats.properties) if stats is not None else 0.0
        if not kept or not expected or expected * _ROOM < kept:
            continue
        refused = expected > kept
        within = f", within {plan.throttle.hours}" if plan.throttle.hours else ""
        message = f"the rollout takes about {_hours(expected)}{within}, and {name} keeps what it reads for {_hours(kept)} only"
        hint = (
            f"raise delta.deletedFileRetentionDuration of {name} (and delta.logRetentionDuration)"
            f" to {_hours(expected * _ROOM)} or more; wider throttle.hours, more cores, or fewer tables in one change"
        )
        found.append(Problem("C123", message, "", hint, "refuse" if refused else "warn", name))
    return found


def _hours(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    return f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.0f} minutes"
