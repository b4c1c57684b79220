"""Runs plans without a screen: plan all regions, bind the shown plans, run them, report progress."""

import asyncio
import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from console.cli.interrupt import run_interruptible
from console.cli.output import Output, region_lead
from console.cli.plan.open_rollout import standing, standing_data, standing_text, waiting, waiting_data, waiting_text
from console.cli.plan.probes import probe_all
from console.cli.plan.text import plan_data, plan_text, summary, summary_line
from console.cli.plan.witness import witnesses_data, witnesses_text
from console.cli.progress import printing_progress
from console.cli.reports.reporter import Reporter
from console.cli.status_text import outcomes_data, outcomes_text
from console.cli.wiring import OpenProject, cli_context
from console.errors import Conflict, ConsoleError, Problem, Problems, Unreachable, UsageError, is_unreachable
from console.model.codec import encode
from console.model.event import RUNNING
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.project import load
from console.project.saved import made_by_another
from console.runner.exit_codes import exit_code
from console.runner.view import Outcome, RegionView

if TYPE_CHECKING:
    from console.cli.wiring import Planner
    from console.drivers.protocol import Driver, RegionState
    from console.planning import Baseline
    from console.witness import Witnesses


async def plan_and_ground(
    project: OpenProject, states: "dict[str, RegionState] | None" = None
) -> "tuple[tuple[Plan, ...], tuple[Baseline, ...]]":
    """Survey and plan every region; returns the plans with their baselines.

    states  filled with the regions' rollout states, if requested
    raises  Problems with those of all regions; else the first error of a survey
    """
    answers = await _answers(project, states)
    plans = _planned(project, answers)
    if project.probing:
        plans = await probe_all(project, plans)
    from console.planning import baseline

    lives = [live for live in answers if not isinstance(live, ConsoleError)]
    return plans, tuple(baseline(project.pipelines[live.region], live) for live in lives)


async def survey_all(project: OpenProject) -> tuple[Live, ...]:
    """The live state of every region.

    raises  the first error of a survey, the others named in it
    """
    answers = await _answers(project)
    failed = [(n, live) for n, live in zip(project.names, answers, strict=True) if isinstance(live, ConsoleError)]
    if failed:
        raise _joined(failed)
    return tuple(live for live in answers if not isinstance(live, ConsoleError))


async def _answers(project: OpenProject, states: "dict[str, RegionState] | None" = None) -> list[Live | ConsoleError]:
    async with project.drivers() as drivers:
        surveys = asyncio.gather(*(_survey(project, drivers[name], name, states) for name in project.names))
        # half a second of imports, in parallel with the process that reads the regions' logs
        await asyncio.to_thread(import_module, "console.planning")
        return await surveys


def _planned(project: OpenProject, lives: Sequence[Live | ConsoleError]) -> tuple[Plan, ...]:
    gc.freeze()  # surveys of a large fleet are millions of small values: exclude them from later garbage collections
    plans: list[Plan] = []
    problems: list[Problem] = []
    unanswered: list[tuple[str, ConsoleError]] = []
    for region, live in zip(project.regions, lives, strict=True):
        try:
            if isinstance(live, ConsoleError):
                if not (is_unreachable(live) and region.name in project.without):
                    unanswered.append((region.name, live))
                problems += _structural(project, region.name)
            else:
                plans.append(project.plan_of(project.pipelines[region.name], live, region))
        except Problems as survey:
            problems += survey.problems
    if problems:
        raise Problems.of(list(dict.fromkeys(problems)))
    if unanswered:
        raise _joined(unanswered)
    if not plans:
        raise Unreachable(f"all regions are unreachable: {', '.join(project.names)}", hint="console doctor")
    _all_used(project, plans)
    return tuple(plans)


def _all_used(project: OpenProject, plans: Sequence[Plan]) -> None:
    """An accepted loss that does not occur, or cannot be accepted, is a mistake that must be reported."""
    used = {name for plan in plans for name in plan.allowed}
    for name in sorted(project.allowed - used - {"C122:*"}):
        refused = sorted({f"{p.code}:{p.node}" for plan in plans for p in plan.refusals})
        hint = f"refused: {', '.join(refused)}" if refused else "nothing is refused; leave it out"
        raise UsageError(f"--allow-destructive {name} accepts nothing: no plan has this loss", hint=hint)


async def _survey(
    project: OpenProject, driver: "Driver", name: str, states: "dict[str, RegionState] | None"
) -> Live | ConsoleError:
    async def state() -> None:
        if states is not None:
            with suppress(ConsoleError):  # reported by the survey
                states[name] = await driver.state(project.pipeline)

    survey, _ = await asyncio.gather(
        driver.survey(project.pipeline, project.landing(name)), state(), return_exceptions=True
    )
    if isinstance(survey, BaseException) and not isinstance(survey, ConsoleError):
        raise survey
    return survey


def _structural(project: OpenProject, region: str) -> tuple[Problem, ...]:
    """Problems of the files that do not depend on a region; a region without an answer must not hide them."""
    problems = project.planner.check(project.pipelines[region])
    return tuple(problem for problem in problems if problem.severity == "refuse")


def _joined(errors: Sequence[tuple[str, ConsoleError]]) -> ConsoleError:
    """The first region's error, the others named in it."""
    region, first = errors[0]
    message = f"{region_lead(region, first)}{first}"
    others = "".join(f"; {name}: {error}" for name, error in errors[1:])
    return type(first)(message + others, hint=first.hint, code=first.code, region=region)


def refused(plans: Sequence[Plan]) -> Problems | None:
    """The refusals of these plans, all at once."""
    survey = [problem for plan in plans for problem in plan.refusals]
    return Problems.of(list(dict.fromkeys(survey))) if survey else None


def bound(shown: Mapping[str, Plan], plan: "Planner") -> "Planner":
    """A planner that returns the plans that were shown, as long as their baselines have not changed.

    Estimates may have changed with every row that arrived; the plan as reviewed is what runs.
    """

    def planner(pipeline: Pipeline, live: Live, region: Region) -> Plan:
        fresh = plan(pipeline, live, region)
        if region.name not in shown:
            raise Unreachable(
                f"{region.name}: it was unreachable when the others were planned, so its plan was not reviewed",
                region=region.name,
                hint=f"console apply --region {region.name}",
                code="E_BEHIND",
            )
        reviewed = shown[region.name]
        if not fresh.steps and fresh.desired == reviewed.desired:
            return fresh  # already completed by an earlier run of the same plan
        if changes := changes_since(reviewed, fresh):
            raise Conflict(
                f"{region.name}: the plan is stale: {', '.join(change.text for change in changes)}",
                region=region.name,
                hint=f"re-plan just this one: console plan --region {region.name} --out FILE",
                code="E_STALE",
            )
        return reviewed

    return planner


@dataclass(frozen=True, slots=True)
class PlanChange:
    """One fact that a reviewed plan rests on and that has changed since. text: in words."""

    what: Literal["tool", "pipeline", "files", "release", "tables", "limits", "throttle"]
    text: str


def changes_since(reviewed: Plan, fresh: Plan) -> list[PlanChange]:
    """Changes that make a reviewed plan stale; estimates and Delta log versions are not among them.

    Digests of two versions of console are not comparable: therefore a plan of another version is stale.
    """
    changes: list[PlanChange] = []
    same_tool = reviewed.tool == fresh.tool
    if not same_tool:
        changes.append(PlanChange("tool", made_by_another(reviewed.tool, fresh.tool)))
    if reviewed.pipeline != fresh.pipeline:
        changes.append(PlanChange("pipeline", f"it is for pipeline {reviewed.pipeline}, not {fresh.pipeline}"))
    if same_tool and reviewed.desired != fresh.desired:
        changes.append(PlanChange("files", "the pipeline's files have changed"))
    if reviewed.live != fresh.live:
        changes.append(
            PlanChange("release", f"the live release is {fresh.live or 'none'}, no longer {reviewed.live or 'none'}")
        )
    elif same_tool and reviewed.content != fresh.content:
        changes.append(PlanChange("tables", "the tables of the live release have changed (versions or columns)"))
    limits = (reviewed.rows_limit, reviewed.bytes_limit, reviewed.target_seconds)
    if limits != (fresh.rows_limit, fresh.bytes_limit, fresh.target_seconds):
        changes.append(PlanChange("limits", "the region's limits have changed"))
    if (reviewed.throttle, reviewed.quarantine_rows) != (fresh.throttle, fresh.quarantine_rows):
        changes.append(PlanChange("throttle", "the region's throttle or quarantine_rows have changed"))
    return changes


def show_plans(
    output: Output,
    project: OpenProject,
    plans: Sequence[Plan],
    *,
    explain: bool = False,
    witness_result: "Witnesses | None" = None,
    states: "Mapping[str, RegionState] | None" = None,
) -> None:
    """Print the plans as data: text, or one JSON document; with the witnesses where they were sought.

    states  the regions' rollout states; those under way are mentioned
    """
    open_rollouts, waits = standing(plans, states or {}), waiting(project.regions, plans, states or {})
    if output.json:
        more: dict[str, Any] = {}
        if states is not None:
            more["rollouts"] = [standing_data(*one) for one in open_rollouts]
            more["waits_for_wave"] = [waiting_data(queued) for queued in waits.values()]
        more |= {} if witness_result is None else {"witnesses": witnesses_data(witness_result)}
        output.document({**plan_data(plans), **more})
        return
    if witness_result is not None:
        output.data(witnesses_text(witness_result) + "\n")
    lead_lines = [*(standing_text(*one) for one in open_rollouts), *map(waiting_text, waits.values())]
    for line in lead_lines:
        output.data(line)
    output.data(("\n" if lead_lines else "") + plan_text(plans, explain=explain, paint=output.paint))


def announce(output: Output, project: OpenProject, plans: Sequence[Plan]) -> None:
    """The plans at the start of a run: text, or the first lines of its stream."""
    if not output.json:
        show_plans(output, project, plans)
        return
    cli_context().streaming = True
    for plan in plans:
        for node in plan.changes:
            output.line({"type": "planned_change", "region": plan.region, "change": encode(node)})
        for problem in plan.problems:
            entry = {"code": problem.code, "severity": problem.severity, "message": problem.message}
            output.line(
                {
                    "type": "diagnostic",
                    "region": plan.region,
                    **entry,
                    "hint": problem.hint,
                    "remedies": encode(problem.remedies),
                }
            )
    output.line({"type": "change_summary", "text": summary_line(plans), **summary(plans)})


def farewell(views: Mapping[str, RegionView], attached: bool = False) -> str:
    """The rollouts that continue after this console has exited, and how to return to them."""
    going = [name for name, view in views.items() if view.status.state in RUNNING and not view.status.held]
    waiting = [name for name, view in views.items() if view.status.state == "awaiting-confirmation"]
    names = ",".join(going)
    parts = []
    if going and attached:
        parts.append(
            f"interrupted: {', '.join(going)} stop after this batch; continue with console resume --regions {names}"
        )
    elif going:
        parts.append(
            f"detached: {', '.join(going)} continue without this console, up to the gate. "
            f"Follow them with console watch, pause them with console pause --regions {names}"
        )
    if waiting:
        parts.append(f"at the gate: {', '.join(waiting)}; open it with console promote --region NAME")
    return "; ".join(parts) or "interrupted: nothing is under way"


def run(
    project: OpenProject, output: Output, plans: Sequence[Plan], reporter: Reporter, *, attached: bool = False
) -> int:
    """Run these plans in their regions and report each outcome.

    reporter  collects the content of reports
    returns  the exit code: the worst of the regions'
    raises   Interrupted once the console has detached from its agents
    """
    seen: dict[str, RegionView] = {}
    yes = output.flags.yes

    async def work() -> tuple[Outcome, ...]:
        planned = {plan.region for plan in plans}
        names = [name for name in project.names if name in planned or name in project.without]
        async with project.fleet(bound({plan.region: plan for plan in plans}, project.planner), steering=True) as fleet:
            try:
                await fleet.refresh(names)
                async with printing_progress(fleet, output), reporter.following(fleet):
                    return await fleet.run(names, yes=yes, attached=attached)
            finally:
                seen.update(fleet.views)

    outcomes = run_interruptible(work(), lambda: farewell(seen, attached))
    reporter.outcomes = {outcome.region: outcome for outcome in outcomes}
    code = conclude(output, outcomes)
    for line in inventory_changes(project):
        output.info(line)
    return code


def inventory_changes(project: OpenProject) -> list[str]:
    """Changes of the inventory during a run, which keeps its initial list of regions."""
    try:
        now = {region.name for region in load(project.files.root).regions}
    except ConsoleError as error:
        return [f"warning: the inventory cannot be read any more: {error}"]
    before = {region.name for region in project.files.regions}
    came = [
        f"warning: {name} was added to the inventory during this run and is not part of it: console plan --region {name}"
        for name in sorted(now - before)
    ]
    went = [
        f"warning: {name} was removed from the inventory during this run"
        + (", which includes it" if name in project.names else "")
        for name in sorted(before - now)
    ]
    return came + went


def conclude(output: Output, outcomes: Sequence[Outcome]) -> int:
    """Print the outcomes as data, and each failure's remedy as a message."""
    code = exit_code(outcomes)
    if output.json:
        line: dict[str, Any] = {"type": "outcome", "exit_code": code, "regions": outcomes_data(outcomes)}
        output.line(line)
    else:
        output.data(outcomes_text(outcomes))
    for outcome in outcomes:
        if outcome.state == "behind":
            output.info(f"{outcome.region}: unreachable; when it is back: console apply --region {outcome.region}")
        if outcome.error:
            output.print_region_error(outcome.region, outcome.error)
    return code
