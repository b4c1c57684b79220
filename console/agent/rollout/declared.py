"""Declarations at a gate: stored with the rollout, so that the next agent counts them as well."""

from dataclasses import replace
from typing import assert_never

from console.agent.rollout.ownership import OwnedPipeline
from console.errors import Conflict
from console.model.consent import (
    Approved,
    CheckAccepted,
    Declaration,
    TicketNamed,
    declared_text,
    reason_text,
    ticket_text,
)
from console.model.event import Logged
from console.model.gate import objection_to
from console.model.status import Status
from console.text import safe_text

NAME_CHARACTERS = 200


def declare(controller: OwnedPipeline, rollout: str, declared: Declaration) -> Status:
    """Store a declaration, as a log line that older versions can read, too. A repeated request is stored once.

    rollout  at whose gate it was made
    raises   Conflict E_STATE if that is not at its gate, E_STALE if its checks have changed since they were read;
             CheckFailed E_CHECK and AtGate E_INCONCLUSIVE for checks that do not allow it; DataError E_RANGE for its text
    """
    declared = _cleaned(declared)
    with controller.lock:
        recorder = controller.recorder
        status, plan = recorder.status, recorder.plan
        region = plan.region if plan else controller.pipeline
        if status.rollout != rollout:
            now = f"{status.rollout} is {status.shown}" if status.rollout else "there has been none"
            raise Conflict(f"{region}: {rollout} is not at the gate: {now}", hint="console status", code="E_STATE")
        if objection := objection_to(status, declared, region):
            raise objection
        if not status.consent.holds(declared):
            recorder.store(Logged(declared_text(declared), "info", declared))
        return recorder.status


def _cleaned(declared: Declaration) -> Declaration:
    by, host = safe_text(declared.by, NAME_CHARACTERS), safe_text(declared.host, NAME_CHARACTERS)
    match declared:
        case CheckAccepted(reason=reason):
            return replace(declared, by=by, host=host, reason=reason_text(reason))
        case Approved(ticket=ticket):
            return replace(declared, by=by, host=host, ticket=ticket and ticket_text(ticket))
        case TicketNamed(ticket=ticket):
            return replace(declared, by=by, host=host, ticket=ticket_text(ticket))
        case _:
            assert_never(declared)
