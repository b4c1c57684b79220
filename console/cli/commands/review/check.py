"""`console snapshot` and `console check`: a change judged in the pull request, where no region can be reached."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.commands.review.base import base, believed
from console.cli.commands.review.markdown import comment
from console.cli.commands.review.sarif import below_repository, sarif
from console.cli.commands.review.snapshots import picture
from console.cli.commands.run import refused, show_plans, survey_all
from console.cli.flags import command, loss_options, root_of
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.plan.text import problem_lines
from console.cli.wiring import OpenProject, cli_context, open_project, tool
from console.errors import ConsoleError, DataError, Problem, Problems
from console.model.codec import encode

if TYPE_CHECKING:
    from console.model.live import Live
    from console.model.plan import Plan


@command(
    "snapshot",
    examples="""console snapshot --out snapshot.json
    console snapshot --regions @wave1 --out wave1.json && console check --against wave1.json""",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Output file (default: stdout)."
)
def snapshot(out: Path | None) -> int:
    """Write the live state of every region to a file, for planning elsewhere.

    Manifests and table statistics, without credentials, people or hosts.
    """
    project = open_project()
    output = Output(cli_context().flags)
    lives = run_interruptible(survey_all(project))
    landing = {name: project.landing(name) for name in project.names}
    text = json.dumps(
        picture(project.pipeline, tool(), dict(zip(project.names, lives, strict=True)), landing), allow_nan=False
    )
    if out is None:
        output.data(text)
    else:
        _write(out, text + "\n")
        output.info(f"saved to {out}; plan against it with: console check --against {out}")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        handle, written = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(written, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


@command(
    "check",
    forms=("markdown", "sarif"),
    examples="""console check
    console check --against snapshot.json --output markdown > comment.md
    console check --from-git origin/main --output sarif > console.sarif""",
)
@click.option(
    "--against", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Plan against a snapshot."
)
@click.option("--from-git", metavar="REF", help="Plan against the files as of a commit, as if they were live.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when there are changes.")
@loss_options
def check(against: Path | None, from_git: str | None, detailed_exitcode: bool) -> int:
    """Check the files, and plan them offline against a snapshot or an older commit.

    Contacts no region. Exits 0 also if there are changes, 4 if the snapshot is too old, 65 if the files are wrong or a
    rule refuses the change.
    """
    output = Output(cli_context().flags)
    try:
        project = open_project()
        plans = _planned(project, against, from_git)
        warnings = () if plans else _warnings(project)
    except Problems as error:
        if output.flags.output not in ("markdown", "sarif"):
            raise
        _show(output, None, (), error.problems)
        output.print_error(error)
        return error.exit_code
    _show(output, project, plans, warnings)
    if refusal := refused(plans):
        output.print_error(refusal)
        return refusal.exit_code
    return 2 if detailed_exitcode and any(plan.changes for plan in plans) else 0


def _planned(project: OpenProject, against: Path | None, ref: str | None) -> "tuple[Plan, ...]":
    """The plans of all regions; () where there is nothing to plan against.

    raises  Problems with all that is wrong in any region
    """
    problems: list[Problem] = []
    plans: list[Plan] = []
    with base(project, against, ref) as snapshot:
        for region in project.regions:
            pipeline = project.pipelines[region.name]
            if against is None and ref is None:
                problems += [problem for problem in project.planner.check(pipeline) if problem.severity == "refuse"]
                continue
            try:
                live: Live = snapshot.live(region, pipeline)
                plans.append(project.plan_of(pipeline, live if against else believed(live, pipeline), region))
            except Problems as error:
                problems += error.problems
    problems += _of_fixtures(project)
    if problems:
        raise Problems.of(list(dict.fromkeys(problems)))
    return tuple(plans)


def _of_fixtures(project: OpenProject) -> tuple[Problem, ...]:
    """Problems of the pipeline's fixture tests; its queries were compiled and saved just now."""
    from console.fixtures.check import problems_in
    from console.planning import PlannerCache
    from console.project import recent

    pipeline = project.files.pipeline(project.pipeline, None)
    return problems_in(project.files.root, pipeline, PlannerCache(recent.opened()))


def _warnings(project: OpenProject) -> tuple[Problem, ...]:
    """Warnings about keys and files without effect, in any region, and notes on queries."""
    from console.planning.review.parsing import parsed_often

    found = []
    for region in project.regions:
        pipeline = project.pipelines[region.name]
        found += [*pipeline.ineffective, *region.ineffective, *parsed_often(pipeline)]
    return tuple(dict.fromkeys(found))


def _show(output: Output, project: OpenProject | None, plans: "Sequence[Plan]", problems: Sequence[Problem]) -> None:
    match output.flags.output:
        case "sarif":
            root = project.files.root if project else _root()
            document = sarif(plans, problems, project.pipelines if project else {}, tool(), below_repository(root))
            output.data(json.dumps(document, indent=2, allow_nan=False))
        case "markdown":
            output.data(comment(plans, problems))
        case _ if plans and project:
            show_plans(output, project, plans)
        case "json" | "jsonl":
            summary = {"regions": len(project.names) if project else 0}
            output.document({"plans": [], "summary": summary, "problems": encode(problems)})
        case _:
            names = ", ".join(project.names) if project else ""
            output.data(f"{project.pipeline if project else ''}: the files are valid for {names}")
            for line in problem_lines(problems, output.paint):
                output.data(line)
            output.info("hint: --against SNAPSHOT or --from-git REF shows what would change")


def _root() -> Path:
    try:
        return root_of(cli_context().flags)
    except ConsoleError:
        return Path.cwd()
