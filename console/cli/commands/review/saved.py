"""Whether a saved plan still holds, region by region: a changed region alone is refused, with the changed facts and the remedy."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.commands.run import changes_since, plan_and_ground, show_plans
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject
from console.errors import Conflict, UsageError
from console.model.plan import Plan

if TYPE_CHECKING:
    from console.planning import Baseline
    from console.project.saved import Rests, SavedPlans

_SHOWN = 12  # maximum of listed facts of one region


def hold(
    project: OpenProject, output: Output, saved: "SavedPlans", file: Path, *, may_replan: bool
) -> tuple[list[Plan], int]:
    """The plans to run, in the order of waves, and exit code 4 if a region's was refused, else 0.

    A stale plan stays among them: the runner refuses its region and the later waves, and runs the others.
    On a terminal the operator may have just that one planned again and read it.

    raises  Conflict if no region's plan is valid any longer; UsageError for a region that the file does not contain
    """
    reviewed = {plan.region: plan for plan in saved.plans}
    if missing := [name for name in project.names if name not in reviewed]:
        hint = f"it is for {', '.join(reviewed)}"
        raise UsageError(f"the saved plan has nothing for {', '.join(missing)}", hint=hint)
    fresh, grounds = run_interruptible(plan_and_ground(project))
    stale = {
        new.region: why
        for new, now in zip(fresh, grounds, strict=True)
        if (why := _why(reviewed[new.region], new, saved.grounds[new.region], now))
    }
    if len(stale) == len(fresh):
        reasons = "; ".join(f"{region}: {reason}" for region, why in stale.items() for reason in why)
        raise Conflict(f"the saved plan is stale: {reasons}", hint=_again(tuple(stale), file), code="E_STALE")
    chosen = []
    for plan in fresh:
        before, moved = reviewed[plan.region], stale.get(plan.region)
        if moved:
            output.print_error(_refusal(plan.region, moved, file))
        chosen.append(plan if moved and may_replan and _anew(project, output, plan) else before)
    left = [plan.region for plan in chosen if plan.region in stale and plan is reviewed[plan.region]]
    return chosen, Conflict.exit_code if left else 0


def _why(before: Plan, fresh: Plan, was: "Rests | None", now: "Baseline") -> list[str]:
    """The changes in one region, with the facts if the file holds them; [] if the plan is valid or already done."""
    if not fresh.steps and fresh.desired == before.desired:
        return []
    changes = changes_since(before, fresh)
    if before.content == fresh.content or was is None:
        return [change.text for change in changes]
    from console.planning import Baseline, baseline_changes

    facts = baseline_changes(Baseline(now.release, was.tables, was.shapes), now)  # the changes above name the release
    more = [f"and {len(facts) - _SHOWN} more"] if len(facts) > _SHOWN else []
    return [*(change.text for change in changes if change.what != "tables"), *facts[:_SHOWN], *more]


def _refusal(region: str, why: list[str], file: Path) -> Conflict:
    message = f"{region}: the saved plan is stale: {'; '.join(why)}"
    return Conflict(message, hint=_again((region,), file), code="E_STALE")


def _anew(project: OpenProject, output: Output, fresh: Plan) -> bool:
    """Show one region's new plan; returns whether the person at the terminal accepts it."""
    if not output.may_ask or fresh.refusals:
        return False
    show_plans(output, project, [fresh])
    return click.confirm(f"use this new plan for {fresh.region}?", default=False, err=True)


def _again(regions: tuple[str, ...], file: Path) -> str:
    one = file.with_name(f"{file.stem}.{regions[0]}{file.suffix}") if len(regions) == 1 else file
    just = "re-plan just this one" if len(regions) == 1 else "re-plan"
    return f"{just}: console plan --regions {','.join(regions)} --out {one} && console apply {one}"
