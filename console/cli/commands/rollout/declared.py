"""Declarations at a gate from the command line; and `console approve`."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

import click

from console.cli.commands.rollout.regions_read import views_of
from console.cli.flags import command
from console.cli.gate_text import RECORDS, gate_data
from console.cli.interrupt import run_interruptible
from console.cli.output import Output, as_data
from console.cli.status_text import gate_text
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import Conflict, ConsoleError, UsageError
from console.model.consent import Approved, CheckAccepted, Declaration, TicketNamed, reason_text, ticket_text
from console.model.gate import check_name, checks_named, counted, refusal, verdicts
from console.record import dataclass
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.event import Checked
    from console.runner.view import RegionView


@dataclass(frozen=True, slots=True, kw_only=True)
class GateWords:
    """The declarations of a command line. accepted: names of checks;  reason, ticket: "" for none"""

    accepted: tuple[str, ...] = ()
    reason: str = ""
    ticket: str = ""


def gate_words(accepted: Iterable[str], reason: str, ticket: str) -> GateWords:
    """raises  UsageError for an acceptance without a reason, and a reason without one; DataError for an unfit text"""
    words = GateWords(accepted=tuple(accepted), reason=reason, ticket=ticket)
    if words.accepted and not reason.strip():
        raise UsageError("--accept needs --reason", hint='say why: --reason "two late rows, read again"')
    if reason and not words.accepted:
        raise UsageError("--reason is the reason of an acceptance", hint="name the check: --accept CHECK")
    if reason:
        reason_text(reason)
    if ticket:
        ticket_text(ticket)
    return words


def declarations(
    view: "RegionView",
    words: GateWords,
    ask_reason: "Callable[[RegionView, Checked], str] | None",
    ask_ticket: "Callable[[RegionView], str] | None",
) -> tuple[Declaration, ...]:
    """The declarations that the gate needs to open: those of the command, else the answers of a person on the terminal.

    They are made even if approvals or time are missing as well: both count only afterwards.

    ask_reason, ask_ticket  None where nobody may be asked; an answer of "" declares nothing
    raises  UsageError for a name that is not a check; CheckFailed and AtGate for a gate that stays closed
    """
    declared: list[Declaration] = []
    named = [check for text in words.accepted for check in _named(view, text)]
    for check in (check for check in view.status.checks if check.ok is None):
        reason = words.reason if check in named else ""
        if not reason and ask_reason and _keeps_closed(view, check):
            reason = ask_reason(view, check)
        if reason:
            accepted = CheckAccepted(
                table=check.table, check=check.check, detail=check.detail, reason=reason_text(reason)
            )
            declared.append(accepted)
    ticket = words.ticket
    if not ticket and ask_ticket and any(each.kind == "ticket" for each in view.gate.closed_by):
        ticket = ask_ticket(view)
    if ticket:
        declared.append(TicketNamed(ticket=ticket_text(ticket)))
    consent = view.status.consent
    for each in declared:
        consent = consent.after(each, 0.0)
    gate = replace(view, status=replace(view.status, consent=consent)).gate
    by_checks = any(each.kind == "check" for each in gate.closed_by)
    # an agent that starts with the request knows how long it has waited; a stored status does not
    only_unknown = view.status.soak is None and all(each.kind == "soak" for each in gate.closed_by)
    if (by_checks or not (declared or only_unknown)) and (closed := refusal(gate, view.region.name)):
        raise closed
    return tuple(declared)


def declared_text(declared: Declaration) -> str:
    match declared:
        case CheckAccepted(table=table, check=check):
            return f"accepted: {table}: {check}"
        case TicketNamed(ticket=ticket):
            return f"ticket: {ticket}"
        case Approved():
            return "approved"
        case _:
            assert_never(declared)


def _named(view: "RegionView", text: str) -> "tuple[Checked, ...]":
    """The checks that a person named. A check of that name that passed in this region needs no acceptance."""
    if matching := checks_named(view.status, text):
        return matching
    unclear = ", ".join(f'"{check_name(check)}"' for check in view.status.checks if check.ok is None)
    known = (
        f"inconclusive here: {unclear}"
        if unclear
        else f"no check is inconclusive here: console status --region {view.region.name}"
    )
    raise UsageError(f"{view.region.name}: there is no check {text!r:.80}", hint=known)


def _keeps_closed(view: "RegionView", check: "Checked") -> bool:
    return any(each.state == "inconclusive" and each.name == check_name(check) for each in view.gate.conditions)


def asked_reason(view: "RegionView", check: "Checked") -> str:
    """A reason typed on the terminal; "" if the check is not accepted."""
    click.echo(safe_text(f"{view.region.name}: {check_name(check)} is inconclusive: {check.detail}"), err=True)
    return str(click.prompt("reason to accept it (empty: leave it)", default="", show_default=False, err=True)).strip()


def asked_ticket(view: "RegionView") -> str:
    return str(click.prompt(f"ticket of {view.region.name}", default="", show_default=False, err=True)).strip()


@command(
    "approve",
    changes=True,
    examples="""console approve --region eu
console approve --regions @wave2 --ticket OPS-7""",
)
@click.option("--ticket", metavar="TEXT", default="", help="The ticket of this promotion; kept with the rollout.")
def approve(ticket: str) -> int:
    """Approve the promotion of a region that is at its gate.

    For a policy that asks for `approvals`. Shows the gate, and stores your name with the rollout; it opens nothing. An approval is void as soon as a check has
    another result or the region runs another plan. It is a record of who said what, and grants no access.
    """
    if ticket:
        ticket_text(ticket)
    project = open_project(need_regions=True)
    return run_interruptible(_approve(project, Output(cli_context().flags), ticket))


async def _approve(project: OpenProject, output: Output, ticket: str) -> int:
    entries: list[dict[str, Any]] = []
    errors: list[tuple[str, ConsoleError]] = []
    views, unanswered = await views_of(project)
    errors += unanswered.items()
    async with project.fleet() as fleet:
        for view in views:
            name = view.region.name
            try:
                await fleet.refresh([name])
                output.info(f"{name}:\n{gate_text(view, time.time())}")
                if fleet.views[name].status.rollout != view.status.rollout:
                    why = f"{name}: its gate now has another rollout than the one that was read"
                    raise Conflict(why, region=name, hint=f"console approve --region {name}", code="E_STALE")
                await fleet.declare(name, Approved(checks=verdicts(view.status), ticket=ticket))
                now = fleet.views[name]
                entries.append(_entry(now))
                output.detail(f"{name}: {RECORDS}")
            except ConsoleError as error:
                errors.append((name, error))
    if output.json:
        output.document({"regions": [*entries, *({"region": n, "error": as_data(e)} for n, e in errors)]})
    else:
        for entry in entries:
            output.data(safe_text(f"{entry['region']}: {entry['rollout']} approved, {_of(entry)}"))
    for name, missed in errors:
        output.print_region_error(name, missed)
    return max((missed.exit_code for _, missed in errors), default=0)


def _entry(view: "RegionView") -> dict[str, Any]:
    required = view.accepted.gate.approvals if view.accepted else 0
    by = [approval.by for approval in counted(view.status)]
    return {
        "region": view.region.name,
        "rollout": view.status.rollout,
        "approved_by": by,
        "required": required,
        "gate": gate_data(view),
    }


def _of(entry: dict[str, Any]) -> str:
    got, required = len(entry["approved_by"]), entry["required"]
    return f"{got} of {required} approvals" if required else "although its policy asks for none"
