"""`console promote` and `console rollback`: one commit each, confirmed by typing the region's name."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from console.cli.commands.rollout.declared import (
    GateWords,
    asked_reason,
    asked_ticket,
    declarations,
    declared_text,
    gate_words,
)
from console.cli.commands.rollout.status import views_of
from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.status_text import gate_text, way_back_lines
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import AtGate, Conflict, ConsoleError, Unreachable
from console.runner import after_promotion
from console.runner.waves import next_waves
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.consent import Declaration
    from console.runner.view import Cockpit, RegionView
    from console.runner.waves import Waves

Act = Literal["promote", "rollback"]
NOTHING = "nothing"  # shown as the live release before a region's first one


@command(
    "promote",
    changes=True,
    examples="""console promote --region eu
console promote --regions eu,us --yes
console promote --region eu --accept "requests: sums" --reason "two late rows, read again\"""",
)
@click.option("--accept", multiple=True, metavar="CHECK", help="Accept this inconclusive check; repeatable.")
@click.option("--reason", metavar="TEXT", default="", help="Why it is accepted; kept with the rollout.")
@click.option("--ticket", metavar="TEXT", default="", help="The ticket of this promotion; kept with the rollout.")
def promote(accept: tuple[str, ...], reason: str, ticket: str) -> int:
    """Open the gate: make the checked release live, in one commit.

    Shows the checks and asks for the region's name. --yes skips the question if nothing keeps the gate closed and the
    region's policy is not `never`. Without a terminal and without --yes it exits 3.

    A check that is inconclusive keeps the gate closed until a person accepts it by name and says why; one that differs
    cannot be accepted. What people declare is a record of who said what, and grants no access.
    """
    return _decide("promote", gate_words(accept, reason, ticket))


@command("rollback", changes=True, examples="console rollback --region eu")
def rollback() -> int:
    """Go back to the previous release, in one commit.

    Nothing is lost: the previous release is still fed. Asks for the region's name unless --yes is given.
    """
    return _decide("rollback", GateWords())


def _decide(act: Act, words: GateWords) -> int:
    project = open_project(need_regions=True)
    output = Output(cli_context().flags)
    views = run_interruptible(_look(project))
    declared = {name: _answer(output, views[name], act, words) for name in project.names}
    return run_interruptible(_act(project, output, act, views, declared))


async def _look(project: OpenProject) -> "dict[str, RegionView]":
    views, errors = await views_of(project)
    for error in errors.values():
        raise error
    return {view.region.name: view for view in views}


def _answer(output: Output, view: "RegionView", act: Act, words: GateWords) -> "tuple[Declaration, ...]":
    """What is declared before this is done; returns if it may be done.

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
        question = f"{view.live} → {view.previous}, the release before"
        for line in way_back_lines(view, time.time()):
            output.info(f"{name}: {line}")
    if output.flags.yes:
        if act == "promote":
            _yes_suffices(view)
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
        by = f" (promoted by {status.decided_by})" if status.state == "live" and status.decided_by else ""
        raise Conflict(f"{name}: {now}{by}", region=name, hint=f"console status --region {name}")


def _yes_suffices(view: "RegionView") -> None:
    name = view.region.name
    if view.region.policy.promote == "never":
        raise AtGate(
            f"{name}: the region's policy never lets --yes open the gate",
            region=name,
            hint=f"console promote --region {name}, on a terminal",
        )


def _without_terminal(view: "RegionView", act: Act, declared: "tuple[Declaration, ...]") -> str:
    """What does it where nobody can be asked."""
    command = f"console {act} --region {view.region.name}"
    if act == "promote" and view.region.policy.promote == "never":
        return f"{command}, on a terminal: the region's policy never lets --yes open the gate"
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
    confirmed: "dict[str, RegionView]",
    declared: "dict[str, tuple[Declaration, ...]]",
) -> int:
    """Region by region, in the order of waves; the first failure ends it, since the confirmation assumed its success."""
    done: list[dict[str, Any]] = []
    later: dict[str, Waves] = {}
    async with project.fleet() as fleet:
        await refreshed(fleet, project.names)
        for name in project.names:
            try:
                _unmoved(confirmed[name], fleet.views[name])
                for each in declared[name]:
                    await fleet.declare(name, each)
                    output.info(f"{name}: {safe_text(declared_text(each))}")
                event = await (fleet.promote(name) if act == "promote" else fleet.rollback(name))
            except ConsoleError as error:
                _report(output, done)
                left = [other for other in project.names if other not in {entry["region"] for entry in done} | {name}]
                if left:
                    output.info(f"not tried: {', '.join(left)}")
                raise error
            done.append({"region": name, "release": event.release, "was": event.was, "version": event.version})
            if act == "promote" and (rest := next_waves(fleet.views[name])):
                later[name] = rest
                if after_promotion.is_watched(fleet.views[name]):
                    output.info(f"{name}: its checks go on; the next wave waits for their end: console status")
            output.info(f"{name}  {safe_text(f'{event.was or NOTHING} → {event.release}')}")
    _report(output, done)
    for line in dict.fromkeys(_then(rest, project.names) for rest in later.values()):
        output.info(line)
    return 0


def _then(rest: "Waves", promoted: Sequence[str]) -> str:
    """The waves that follow these promotions, and the command for them: without an open console no wave begins by itself."""
    beside, *waves = rest
    names = ",".join(safe_text(name) for name in waves[0])
    others = [safe_text(name) for name in beside if name not in promoted]
    first = f"when {', '.join(others)} {'is' if len(others) == 1 else 'are'} live too" if others else "next"
    return f"{first}: console apply --regions {names}"


def _unmoved(confirmed: "RegionView", now: "RegionView") -> None:
    """Ensure that the confirmed release is the one promoted."""
    before = (confirmed.live, confirmed.previous, confirmed.status.rollout)
    if before != (now.live, now.previous, now.status.rollout):
        name, by = now.region.name, now.status.decided_by
        state = f"{now.live or NOTHING} is live, {now.status.shown}" + (f" by {by}" if by else "")
        raise Conflict(
            f"{name}: changed while it was being confirmed: {state}",
            region=name,
            hint=f"console status --region {name}",
        )


def _report(output: Output, done: Sequence[dict[str, Any]]) -> None:
    if output.json and done:
        output.document({"regions": list(done)})
    elif not output.json:
        for entry in done:
            output.data(
                f"{entry['region']}: {safe_text(entry['release'])} is live (was {safe_text(entry['was'] or NOTHING)})"
            )


async def refreshed(cockpit: "Cockpit", names: Sequence[str]) -> None:
    """Attach to the regions; one without an answer is an error here, since it was named explicitly."""
    await cockpit.refresh(names)
    for name in names:
        view = cockpit.views[name]
        if view.link == "unreachable":
            raise Unreachable(f"{name}: {view.link_why}", region=name, hint="console doctor")
