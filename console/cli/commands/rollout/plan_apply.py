"""`console plan`, `console apply` and `console --headless`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.commands.review.saved import hold
from console.cli.commands.run import announce, plan_and_ground, refused, run, show_plans, survey_all
from console.cli.flags import command, loss_options, report_options, root_of, run_options
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.reports.reporter import Reporter, reporting
from console.cli.wiring import OpenProject, cli_context, open_project, tool
from console.errors import Conflict, DataError, UsageError
from console.project.saved import load_saved, save_plans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.drivers.protocol import RegionState
    from console.model.plan import Plan
    from console.planning import Baseline
    from console.project.saved import SavedPlans
    from console.witness import Witnesses


@command(
    "plan",
    examples="""console plan
    console plan --regions eu,us --explain
    console plan --witness
    console plan --out change.json && console apply change.json""",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also save the plans.")
@loss_options
@click.option("--explain", is_flag=True, help="List the steps of the rollout.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when there are changes.")
@click.option(
    "--witness", is_flag=True, help="Show, for each edited query, the fewest rows for which old and new results differ."
)
def plan(out: Path | None, explain: bool, detailed_exitcode: bool, witness: bool) -> int:
    """Show what `apply` would do in each region.

    Reads the files and the regions' Delta logs; starts nothing and writes only FILE. With --witness, old and new
    queries run over generated rows on a local Spark.
    """
    project = open_project()
    output = Output(cli_context().flags)
    states: dict[str, RegionState] = {}
    plans, grounds = _planned(project, states)
    witness_result = _witnesses(project, plans) if witness else None
    return _show(
        project, output, plans, out=out, grounds=grounds, explain=explain, detailed=detailed_exitcode, witness_result=witness_result,
        states=states,
    )  # fmt: skip


@command(
    "apply",
    changes=True,
    examples="""console apply --regions eu,us
    console apply change.json --yes
    console apply --yes --output json""",
)
@click.argument("planfile", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--dry-run", "--check", is_flag=True, help="Only plan; with PLANFILE, check that it is still valid.")
@click.option("--attached", is_flag=True, help="The agents stop when this console does.")
@report_options
@run_options
@loss_options
def apply(planfile: Path | None, dry_run: bool, attached: bool) -> int:
    """Roll a plan out to the regions, up to the gate; with --yes, through it.

    Without PLANFILE, plans first. A saved plan runs as it was reviewed, and is refused if the files, the live release
    or the version of console have changed since. Ctrl-C detaches: the agents continue up to the gate.
    """
    if planfile is None:
        return headless_run(dry_run=dry_run, attached=attached, command="console apply")
    output = Output(cli_context().flags)
    with reporting("console apply PLANFILE", output, summary=not dry_run) as reporter:
        saved = _saved(planfile)
        _select(saved)
        project = open_project()
        reporter.planned(project)
        plans, code = hold(project, output, saved, planfile, may_replan=not dry_run)
        reporter.exit_code = max(_go(project, output, plans, reporter, dry_run=dry_run, attached=attached), code)
        return reporter.exit_code


def headless_run(*, dry_run: bool, attached: bool, command: str = "console --headless") -> int:
    """Plan, and run the plans."""
    output = Output(cli_context().flags)
    with reporting(command, output, summary=not dry_run) as reporter:
        project = open_project()
        reporter.planned(project)
        reporter.exit_code = _go(project, output, _planned(project)[0], reporter, dry_run=dry_run, attached=attached)
        return reporter.exit_code


def _go(
    project: OpenProject, output: Output, plans: "list[Plan]", reporter: Reporter, *, dry_run: bool, attached: bool
) -> int:
    reporter.planned(project, plans)
    if dry_run:
        return _show(project, output, plans)
    announce(output, project, plans)
    if refusal := refused(plans):
        raise refusal
    return run(project, output, plans, reporter, attached=attached)


def _planned(
    project: OpenProject, states: "dict[str, RegionState] | None" = None
) -> "tuple[list[Plan], Sequence[Baseline]]":
    plans, grounds = run_interruptible(plan_and_ground(project, states))
    return list(plans), grounds


def _witnesses(project: OpenProject, plans: "list[Plan]") -> "Witnesses":
    from console.witness import witnesses_of

    return witnesses_of(plans, run_interruptible(survey_all(project)), project.regions)


def _show(
    project: OpenProject,
    output: Output,
    plans: "list[Plan]",
    *,
    out: Path | None = None,
    grounds: "Sequence[Baseline]" = (),
    explain: bool = False,
    detailed: bool = False,
    witness_result: "Witnesses | None" = None,
    states: "Mapping[str, RegionState] | None" = None,
) -> int:
    show_plans(output, project, plans, explain=explain, witness_result=witness_result, states=states)
    if refusal := refused(plans):
        # the document above already holds these problems
        output.print_error(refusal)
        return refusal.exit_code
    if out:
        save_plans(out, plans, grounds)
        output.info(f"saved to {out}; run it with: console apply {out}")
    return 2 if detailed and any(plan.changes for plan in plans) else 0


def _saved(path: Path) -> "SavedPlans":
    if not path.is_file():
        raise UsageError(f"{path}: no such file", hint="console plan --out FILE makes one")
    saved = load_saved(path, tool())
    if not saved.plans:
        raise DataError(f"{path}: holds no plan", hint="console plan --out FILE makes one")
    return saved


def _select(saved: "SavedPlans") -> None:
    """Without --regions, the regions and the pipeline of a saved plan are those it was made for.

    raises  Conflict for a region that is no longer in the inventory
    """
    context = cli_context()
    folder = root_of(context.flags) / "regions"
    if not context.flags.regions and (
        gone := [name for name in saved.regions if not (folder / f"{name}.yaml").exists()]
    ):
        rest = ",".join(name for name in saved.regions if name not in gone)
        hint = f"without it: --regions {rest}" if rest else "console plan --out FILE"
        raise Conflict(
            f"the saved plan is stale: no longer in the inventory: {', '.join(gone)}", hint=hint, code="E_STALE"
        )
    regions = context.flags.regions or ",".join(saved.regions)
    context.flags = replace(context.flags, regions=regions, pipeline=context.flags.pipeline or saved.pipeline)
