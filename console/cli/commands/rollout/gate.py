"""`console promote` and `console rollback` of one region: one commit, confirmed by typing its name."""

import time
from typing import TYPE_CHECKING

import click

from console.cli.commands.rollout.confirmed import NOTHING, Act, attached, then_text, unmoved, yes_suffices
from console.cli.commands.rollout.declared import (
    GateWords,
    asked_reason,
    asked_ticket,
    declarations,
    declared_text,
    gate_words,
)
from console.cli.commands.rollout.regions_read import views_of
from console.cli.commands.rollout.together import promote_together, return_together
from console.cli.flags import command, report_options
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.reports.reporter import Reporter, reporting
from console.cli.status_text import gate_text, way_back_lines
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import AtGate, Conflict, ConsoleError, UsageError
from console.runner import after_promotion
from console.runner.together.readiness import by_whom
from console.runner.waves import next_waves
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.consent import Declaration
    from console.runner.view import RegionView


@command(
    "promote",
    changes=True,
    examples="""console promote --region eu
console promote --regions @wave2
console promote --region eu --accept "requests: sums" --reason "two late rows, read again\"""",
)
@click.option("--accept", multiple=True, metavar="CHECK", help="Accept this inconclusive check; repeatable.")
@click.option("--reason", metavar="TEXT", default="", help="Why it is accepted; kept with the rollout.")
@click.option("--ticket", metavar="TEXT", default="", help="The ticket of this promotion; kept with the rollout.")
@report_options
def promote(accept: tuple[str, ...], reason: str, ticket: str) -> int:
    """Open the gate: make the checked release live, in one commit.

    Shows the checks and asks for the region's name. --yes skips the question if nothing keeps the gate closed and the
    region's policy is not `never`. Without a terminal and without --yes it exits 3.

    Several regions flip together: all of them are ready, or nothing is sent. It asks once, for the wave's name, and
    reports how far apart they flipped. Run again to finish the rest; regions that are live count as done.

    A check that is inconclusive keeps the gate closed until a person accepts it by name and says why; one that differs
    cannot be accepted. What people declare is a record of who said what, and grants no access.
    """
    words, output = gate_words(accept, reason, ticket), Output(cli_context().flags)
    with reporting("console promote", output) as reporter:
        project = open_project(need_regions=True)
        reporter.planned(project)
        try:
            if len(project.names) > 1:
                reporter.exit_code = promote_together(project, output, words, reporter)
            else:
                reporter.exit_code = _decide(project, output, "promote", words)
        except ConsoleError:  # after an interrupt nothing is requested
            _collect(project, reporter)
            raise
        _collect(project, reporter)
        return reporter.exit_code


def _collect(project: OpenProject, reporter: Reporter) -> None:
    """The regions after the promotion, for its report."""
    if reporter.wanted:
        views, errors = run_interruptible(views_of(project))
        run_interruptible(reporter.look(views, {**errors, **reporter.errors}))


@command(
    "rollback",
    changes=True,
    examples="""console rollback --region eu
console rollback --regions @wave2
console rollback --region eu --to r3 --yes""",
)
@click.option(
    "--to",
    metavar="RELEASE",
    default="",
    help="The release that becomes live; refused if it is not the one that is kept.",
)
def rollback(to: str) -> int:
    """Go back to the previous release, in one commit.

    Nothing is lost: the previous release is still fed. Asks for the region's name unless --yes is given.

    With --yes, a region that was rolled back already stays as it is: --to names the release that becomes live again.

    Of several regions it rolls back, at once, those that are live with the change, and leaves the others alone.
    """
    project, output = open_project(need_regions=True), Output(cli_context().flags)
    if len(project.names) == 1:
        return _decide(project, output, "rollback", GateWords(), to)
    if to:
        raise UsageError(
            "--to names a release of one region", hint=f"console rollback --region {project.names[0]} --to {to}"
        )
    return return_together(project, output)


def _decide(project: OpenProject, output: Output, act: Act, words: GateWords, to: str = "") -> int:
    """Of one region. to: as `Cockpit.rollback`"""
    view = run_interruptible(_look(project))
    declared = _answer(output, view, act, words)
    # a person has read and confirmed which release becomes live
    to = to if act == "promote" or to or output.flags.yes else view.previous
    return run_interruptible(_act(project, output, act, view, declared, to))


async def _look(project: OpenProject) -> "RegionView":
    (view,), errors = await views_of(project)
    for error in errors.values():
        raise error
    return view


def _answer(output: Output, view: "RegionView", act: Act, words: GateWords) -> "tuple[Declaration, ...]":
    """The declarations to store first; returns if the operation is confirmed.

    raises  Conflict if there is nothing to confirm; AtGate without a confirmation
    """
    name = view.region.name
    declared: tuple[Declaration, ...] = ()
    if act == "promote":
        _fit_for_promotion(view)
        asks = output.may_ask and not output.flags.yes
        declared = declarations(view, words, asked_reason if asks else None, asked_ticket if asks else None)
        question = f"{view.live or NOTHING} → {view.status.release}"
    else:
        if not view.previous:
            raise Conflict(
                f"{name}: no previous release to go back to", region=name, hint=f"console status --region {name}"
            )
        question = (
            f"{view.live} → {view.previous}, {'which was rolled back' if view.went_back else 'the release before'}"
        )
        for line in way_back_lines(view, time.time()):
            output.info(f"{name}: {line}")
    if output.flags.yes:
        if act == "promote":
            yes_suffices(view)
        return declared
    if not output.may_ask:
        hint = _without_terminal(view, act, declared)
        raise AtGate(f"{name}: {act} ({question}) needs confirmation", region=name, hint=hint)
    _ask(output, view, act, question)
    return declared


def _fit_for_promotion(view: "RegionView") -> None:
    name, status = view.region.name, view.status
    if status.held:
        raise Conflict(
            f"{name}: {status.held}: {status.why}", region=name, hint=status.hint or f"console status --region {name}"
        )
    if status.state != "awaiting-confirmation":
        now = "no rollout is under way" if status.state == "none" else f"the rollout is {status.state}, not at its gate"
        raise Conflict(f"{name}: {now}{by_whom(status)}", region=name, hint=f"console status --region {name}")


def _without_terminal(view: "RegionView", act: Act, declared: "tuple[Declaration, ...]") -> str:
    """The command that works where nobody can be asked."""
    command = f"console {act} --region {view.region.name}"
    if act == "promote" and view.region.policy.promote == "never":
        return f"{command}, on a terminal: the region's policy never lets --yes open the gate"
    if act == "rollback" and view.went_back:
        return f"{command} --to {view.previous} --yes"
    return "the same command with --yes" if declared else f"{command} --yes"


def _ask(output: Output, view: "RegionView", act: Act, question: str) -> None:
    name = view.region.name
    place = f" ({view.region.environment})" if view.region.environment else ""
    click.echo(f"{act} in {name}{safe_text(place)}: {safe_text(question)}", err=True)
    if act == "promote":
        click.echo(gate_text(view, time.time()), err=True)
    typed = click.prompt(f"type {name} to {act}", default="", show_default=False, err=True)
    if typed.strip() != name:
        raise AtGate(f"{name}: not done: another name was typed", region=name, hint=f"console {act} --region {name}")
    output.detail(f"{name}: confirmed")


async def _act(
    project: OpenProject,
    output: Output,
    act: Act,
    confirmed: "RegionView",
    declared: "tuple[Declaration, ...]",
    to: str,
) -> int:
    name = confirmed.region.name
    async with project.fleet() as fleet:
        await attached(fleet, project.names)
        unmoved(confirmed, fleet.views[name])
        for each in declared:
            await fleet.declare(name, each)
            output.info(f"{name}: {safe_text(declared_text(each))}")
        event = await (fleet.promote(name) if act == "promote" else fleet.rollback(name, to))
        rest = next_waves(fleet.views[name]) if act == "promote" else ()
        watched = bool(rest) and after_promotion.is_watched(fleet.views[name])
    if watched:
        output.info(after_promotion.waits_text([name]))
    output.info(f"{name}  {safe_text(f'{event.was or NOTHING} → {event.release}')}")
    if output.json:
        entry = {"region": name, "release": event.release, "was": event.was, "version": event.version}
        output.document({"regions": [entry]})
    else:
        output.data(f"{name}: {safe_text(event.release)} is live (was {safe_text(event.was or NOTHING)})")
    if rest:
        output.info(then_text(rest, project.names))
    return 0
