"""Whether the gate of a rollout is open, and if not, why: one function for agent, console and screens. Pure."""

import shlex
from collections.abc import Iterator
from typing import Literal, assert_never

from console.errors import AtGate, CheckFailed, Conflict, ConsoleError, DataError
from console.model.consent import (
    NO_RULES,
    AcceptedCheck,
    Approved,
    CheckAccepted,
    Consent,
    Declaration,
    GateApproval,
    GateRules,
    TicketNamed,
)
from console.model.event import Checked
from console.model.pipeline import digest
from console.model.status import Status
from console.model.way_back import age_text
from console.record import dataclass

ConditionKind = Literal["check", "soak", "return", "approvals", "ticket"]
DECLARED: frozenset[ConditionKind] = frozenset(("approvals", "ticket"))  # by people
ConditionState = Literal["passed", "failed", "inconclusive", "skipped", "waiting"]
OPEN: frozenset[ConditionState] = frozenset(("passed", "skipped"))
_WORST_FIRST: tuple[ConditionState, ...] = ("failed", "inconclusive", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCondition:
    """One condition of a gate.

    name   of a check `requests: rows per day`, else its kind
    state  skipped: an inconclusive check that a person accepted, or a release that its agent took back before, which only a
           person may promote; waiting: time or people are missing, no check
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


def gate_of(status: Status, rules: GateRules = NO_RULES) -> Gate:
    """The gate of a rollout. rules: of its accepted plan"""
    waits = (*_soak(status, rules), *_return(status))
    return Gate((*_checks(status), *waits, *_approvals(status, rules), *_ticket(status, rules)))


def refusal(gate: Gate, region: str) -> CheckFailed | AtGate | None:
    """The error with which a closed gate refuses a promotion in a region; None for an open gate."""
    if not gate.closed_by:
        return None
    first = gate.closed_by[0]
    message = f"{region}: {first.name}: {first.why}"
    match first.kind, first.state:
        case "check", "failed":
            hint = f"console status shows all checks; console discard --region {region} drops the new version"
            return CheckFailed(message, hint=hint, code="E_CHECK", region=region)
        case "check", _:
            accept = f"console promote --region {region} --accept {shlex.quote(first.name)} --reason TEXT"
            message = f"{region}: {first.name} is inconclusive: {first.why}"
            return AtGate(message, hint=f"once it is understood: {accept}", code="E_INCONCLUSIVE", region=region)
        case "soak", _:
            hint = f"console status shows what is left; where no agent runs, console follow --region {region} starts it"
            return AtGate(message, hint=hint, code="E_SOAK", region=region)
        case "return", _:  # a person may always promote
            return None
        case "approvals", _:
            hint = f"each of them runs: console approve --region {region}"
            return AtGate(message, hint=hint, code="E_APPROVALS", region=region)
        case "ticket", _:
            hint = f"console promote --region {region} --ticket TEXT"
            return AtGate(message, hint=hint, code="E_TICKET", region=region)


def objection_to(status: Status, declared: Declaration, region: str) -> ConsoleError | None:
    """Why a declaration does not apply to a rollout now; None if it does."""
    if status.shown != "awaiting-confirmation":
        why = f"{region}: {status.rollout or 'no rollout'} is not at the gate: {status.shown}"
        return Conflict(why, hint="console status", code="E_STATE", region=region)
    match declared:
        case CheckAccepted(table=table, check=name):
            return _not_acceptable(status, declared, f"{region}: {table}: {name}", region)
        case Approved(checks=checks):
            if checks != verdicts(status):
                why = f"{region}: its checks have changed since they were read"
                return Conflict(why, hint=f"console approve --region {region}", code="E_STALE", region=region)
            return refusal(Gate(tuple(_checks(status))), region)
        case TicketNamed():
            return None
        case _:
            assert_never(declared)


def _not_acceptable(status: Status, declared: CheckAccepted, label: str, region: str) -> ConsoleError | None:
    check = next((c for c in status.checks if (c.table, c.check) == (declared.table, declared.check)), None)
    shown = f"console status --region {region}"
    if check is None or check.ok:
        why = "passed, and needs no acceptance" if check else "there is no such check"
        return DataError(f"{label}: {why}", hint=shown, code="E_RANGE", region=region)
    if check.ok is False:
        hint = f"console discard --region {region} drops the new version"
        return CheckFailed(
            f"{label} differs, which nobody can accept: {check.detail}", hint=hint, code="E_CHECK", region=region
        )
    if check.detail != declared.detail:
        why = f"{label} has another result since it was read: {check.detail}"
        return Conflict(why, hint=shown, code="E_STALE", region=region)
    return None


def check_name(check: Checked | AcceptedCheck) -> str:
    """The name by which people accept a check: `requests: rows per day`."""
    return f"{check.table}: {check.check}"


def acceptance_of(consent: Consent, check: Checked) -> AcceptedCheck | None:
    """Who accepted an inconclusive check; None for any other check."""
    if check.ok is not None:
        return None
    accepted = consent.accepted
    return next((each for each in accepted if (each.table, each.check) == (check.table, check.check)), None)


def unaccepted(status: Status) -> tuple[Checked, ...]:
    """Inconclusive checks that nobody accepted."""
    return tuple(c for c in status.checks if c.ok is None and not acceptance_of(status.consent, c))


def checks_named(status: Status, text: str) -> tuple[Checked, ...]:
    """The checks of a name as people type it: `requests: rows per day`, with or without the colon."""
    words = text.replace(":", " ").split()
    return tuple(check for check in status.checks if check_name(check).replace(":", " ").split() == words)


def verdicts(status: Status) -> str:
    """Digest of the checks' verdicts: of a passed check only that, of others their figures as well.

    An approval is bound to it, since a passed check may be repeated with other figures.
    """
    results = sorted((check.table, check.check, check.ok, "" if check.ok else check.detail) for check in status.checks)
    return digest([[*each] for each in results])


def counted(status: Status) -> tuple[GateApproval, ...]:
    """Approvals that count; a status holds one of each identity."""
    return tuple(approval for approval in status.consent.approvals if not approval.void)


def _checks(status: Status) -> Iterator[GateCondition]:
    for check in status.checks:
        name = check_name(check)
        if by := acceptance_of(status.consent, check):
            why = f"inconclusive ({check.detail}), accepted: {by.reason}"
            yield GateCondition(kind="check", name=name, state="skipped", why=why, by=by.by)
        else:
            state: ConditionState = "inconclusive" if check.ok is None else "passed" if check.ok else "failed"
            yield GateCondition(kind="check", name=name, state=state, why=check.detail)


def _soak(status: Status, rules: GateRules) -> Iterator[GateCondition]:
    """Time at the gate, and rounds of checks; without an agent no round is counted."""
    if not rules.min_soak and not rules.clean_intervals:
        return
    soak = status.soak
    if soak is None:
        asked = [f"{age_text(rules.min_soak)} at the gate"] if rules.min_soak else []
        asked += [f"{rules.clean_intervals} clean rounds of checks"] if rules.clean_intervals else []
        why = f"waits for {' and '.join(asked)}; its agent has not reported how much of it is left"
        yield GateCondition(kind="soak", name="soak", state="waiting", why=why)
        return
    left = max(0.0, rules.min_soak - soak.waited)
    missing = max(0, rules.clean_intervals - soak.clean)
    parts = [f"{age_text(left + 1)} left" if left else f"waited {age_text(soak.waited)}"] if rules.min_soak else []
    if rules.clean_intervals:
        parts.append(f"{min(soak.clean, rules.clean_intervals)} of {rules.clean_intervals} clean rounds")
    parts += [f"the last round was not completed: {soak.unable}"] if missing and soak.unable else []
    state: ConditionState = "waiting" if left or missing else "passed"
    yield GateCondition(kind="soak", name="soak", state=state, why=", ".join(parts))


def _return(status: Status) -> Iterator[GateCondition]:
    """After its agent has rolled a release back, no gate opens by itself until a person has promoted."""
    if status.taken_back:
        why = f"{status.taken_back} was rolled back by its agent; a person has to promote"
        yield GateCondition(kind="return", name="taken back", state="skipped", why=why)


def _approvals(status: Status, rules: GateRules) -> Iterator[GateCondition]:
    if not rules.approvals:
        return
    who = [approval.by for approval in counted(status)]
    void = [f"{approval.by} (void: {approval.void})" for approval in status.consent.approvals if approval.void]
    listed = ", ".join([*who, *void]) or "none yet"
    why = f"{len(who)} of {rules.approvals} identities: {listed}"
    state: ConditionState = "passed" if len(who) >= rules.approvals else "waiting"
    yield GateCondition(kind="approvals", name="approvals", state=state, why=why, by=", ".join(who))


def _ticket(status: Status, rules: GateRules) -> Iterator[GateCondition]:
    consent = status.consent
    named = ((approval.ticket, approval.by) for approval in counted(status) if approval.ticket)
    ticket, by = (consent.ticket, consent.ticket_by) if consent.ticket else next(named, ("", ""))
    if ticket:
        yield GateCondition(kind="ticket", name="ticket", state="passed", why=ticket, by=by)
    elif rules.ticket:
        yield GateCondition(kind="ticket", name="ticket", state="waiting", why="the region's policy requires one")
