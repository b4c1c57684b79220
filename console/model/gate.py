"""Whether the gate of a rollout is open, and if not, why: one function for agent, console and screens. Pure."""

from collections.abc import Iterator
from typing import Literal

from console.errors import AtGate, CheckFailed
from console.model.consent import NO_RULES, AcceptedCheck, GateApproval, GateRules
from console.model.event import Checked
from console.model.pipeline import digest
from console.model.status import Status
from console.record import dataclass

ConditionKind = Literal["check", "approvals", "ticket"]
ConditionState = Literal["passed", "failed", "inconclusive", "skipped", "waiting"]
OPEN: frozenset[ConditionState] = frozenset(("passed", "skipped"))
_WORST_FIRST: tuple[ConditionState, ...] = ("failed", "inconclusive", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCondition:
    """One condition of a gate.

    name   of a check `requests: rows per day`, else its kind
    state  skipped: an inconclusive check that a person accepted; waiting: time or people are missing, no check
    why    one line
    by     who decided it: accepted the check, approved, named the ticket; "" for nobody
    """

    kind: ConditionKind
    name: str
    state: ConditionState
    why: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """All conditions of a gate, checks first."""

    conditions: tuple[GateCondition, ...]

    @property
    def open(self) -> bool:
        """Whether a person may promote."""
        return all(condition.state in OPEN for condition in self.conditions)

    @property
    def opens_itself(self) -> bool:
        """Whether an agent may promote by itself, if the policy is `auto`: nothing is left to a person's judgement."""
        return all(condition.state == "passed" for condition in self.conditions)

    @property
    def closed_by(self) -> tuple[GateCondition, ...]:
        """Conditions that keep it closed: failed ones, then inconclusive ones, then those that wait."""
        return tuple(each for state in _WORST_FIRST for each in self.conditions if each.state == state)


def gate_of(status: Status, rules: GateRules = NO_RULES, *, ticket: str = "") -> Gate:
    """The gate of a rollout.

    rules   of its accepted plan
    ticket  named by the request that is about to promote, "" for none
    """
    return Gate((*_checks(status), *_approvals(status, rules), *_ticket(status, rules, ticket)))


def refusal(gate: Gate, place: str) -> CheckFailed | AtGate | None:
    """The error with which a closed gate refuses a promotion; None for an open one.

    place  start of its message: the region's name
    """
    if not gate.closed_by:
        return None
    first = gate.closed_by[0]
    message = f"{place}: {first.name}: {first.why}"
    match first.kind, first.state:
        case "check", "failed":
            hint = "console status shows all checks; `console discard` drops the new version"
            return CheckFailed(message, hint=hint, code="E_CHECK")
        case "check", _:
            hint = f'once it is understood: console promote --accept "{first.name}" --reason TEXT'
            message = f"{place}: {first.name} is inconclusive: {first.why}"
            return AtGate(message, hint=hint, code="E_INCONCLUSIVE")
        case "approvals", _:
            return AtGate(message, hint="another person runs: console approve", code="E_APPROVALS")
        case "ticket", _:
            return AtGate(message, hint="console promote --ticket TEXT", code="E_TICKET")


def check_name(check: Checked | AcceptedCheck) -> str:
    """The name by which people accept a check: `requests: rows per day`."""
    return f"{check.table}: {check.check}"


def verdicts(status: Status) -> str:
    """Digest of what the checks say: of a check that passed only that, of others their figures as well.

    An approval is bound to it, since a passed check may be repeated with other figures.
    """
    said = sorted((check.table, check.check, check.ok, "" if check.ok else check.detail) for check in status.checks)
    return digest([[*each] for each in said])


def counted(status: Status) -> tuple[GateApproval, ...]:
    """Approvals that count; a status holds one of each identity."""
    return tuple(approval for approval in status.consent.approvals if not approval.void)


def _checks(status: Status) -> Iterator[GateCondition]:
    accepted = {(each.table, each.check): each for each in status.consent.accepted}
    for check in status.checks:
        name = check_name(check)
        by = accepted.get((check.table, check.check))
        if check.ok is None and by is not None:
            why = f"inconclusive, accepted: {by.reason}"
            yield GateCondition(kind="check", name=name, state="skipped", why=why, by=by.by)
        else:
            state: ConditionState = "inconclusive" if check.ok is None else "passed" if check.ok else "failed"
            yield GateCondition(kind="check", name=name, state=state, why=check.detail)


def _approvals(status: Status, rules: GateRules) -> Iterator[GateCondition]:
    if not rules.approvals:
        return
    who = [approval.by for approval in counted(status)]
    void = [f"{approval.by} (void: {approval.void})" for approval in status.consent.approvals if approval.void]
    said = ", ".join([*who, *void]) or "none yet"
    why = f"{len(who)} of {rules.approvals} identities: {said}"
    state: ConditionState = "passed" if len(who) >= rules.approvals else "waiting"
    yield GateCondition(kind="approvals", name="approvals", state=state, why=why, by=", ".join(who))


def _ticket(status: Status, rules: GateRules, given: str) -> Iterator[GateCondition]:
    named = [(approval.ticket, approval.by) for approval in counted(status) if approval.ticket]
    consent = status.consent
    first = [(given, ""), (consent.ticket, consent.ticket_by), *named, ("", "")]
    ticket, by = next(one for one in first if one[0] or one is first[-1])
    if ticket:
        yield GateCondition(kind="ticket", name="ticket", state="passed", why=ticket, by=by)
    elif rules.ticket:
        yield GateCondition(kind="ticket", name="ticket", state="waiting", why="the region's policy requires one")
