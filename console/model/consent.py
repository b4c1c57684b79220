"""Declarations at a gate: an inconclusive check accepted, an approval, a ticket. They are records: they grant no access,
and a name is never verified."""

from dataclasses import replace
from typing import assert_never

from console.errors import DataError
from console.model.breach import OnBreach
from console.model.identity import identity
from console.record import dataclass
from console.text import safe_text

REASON_CHARACTERS = 500
TICKET_CHARACTERS = 100
APPROVALS_KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """The part of a region's policy that its agent applies to the gate of a rollout, and after it; stored with the
    accepted plan.

    auto       the agent promotes by itself once every condition has passed
    approvals  different identities that must approve
    ticket     a ticket must be named
    min_soak   seconds that a rollout waits at its gate, at least
    clean_intervals  rounds in a row, the last ones there, after which every check had passed
    watch      seconds after the promotion for which the checks continue; 0: they end with it
    on_breach  the consequence if one of them fails
    watch_query, watch_tables  compiled over the plan's release: one value, true unless something is wrong; the tables that
               it reads
    """

    auto: bool = False
    approvals: int = 0
    ticket: bool = False
    min_soak: float = 0.0
    clean_intervals: int = 0
    watch: float = 0.0
    on_breach: OnBreach = "pause"
    watch_query: str = ""
    watch_tables: tuple[str, ...] = ()


NO_RULES = GateRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAccepted:
    """A person accepts an inconclusive check, as it was when its `detail` was read."""

    by: str = ""
    host: str = ""
    table: str
    check: str
    detail: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A person approves the promotion. checks: `verdicts` of the checks that the person saw; ticket: "" for none"""

    by: str = ""
    host: str = ""
    checks: str
    ticket: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketNamed:
    """A person names the ticket of the promotion."""

    by: str = ""
    host: str = ""
    ticket: str


Declaration = CheckAccepted | Approved | TicketNamed


def reason_text(text: str) -> str:
    """A reason as it is stored: one line, made safe. raises  DataError E_RANGE for an empty or too long one"""
    return _line(text, "the reason", REASON_CHARACTERS)


def ticket_text(text: str) -> str:
    """A ticket as it is stored: one line, made safe. raises  DataError E_RANGE for an empty or too long one"""
    return _line(text, "the ticket", TICKET_CHARACTERS)


def declared_text(declared: Declaration) -> str:
    """`requests: sums accepted by ada from laptop: late rows`"""
    who = f"by {declared.by} from {declared.host}"
    match declared:
        case CheckAccepted(table=table, check=check, reason=reason):
            return f"{table}: {check} accepted {who}: {reason}"
        case Approved(ticket=ticket):
            return f"promotion approved {who}" + (f", ticket {ticket}" if ticket else "")
        case TicketNamed(ticket=ticket):
            return f"ticket {ticket} named {who}"
        case _:
            assert_never(declared)


def _line(text: str, what: str, longest: int) -> str:
    line = " ".join(text.split())
    if not line or len(line) > longest:
        why = f"has {len(line):,} characters" if line else "is empty"
        raise DataError(f"{what} {why}", hint=f"one line of 1 … {longest} characters", code="E_RANGE")
    return safe_text(line, 2 * longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedCheck:
    """An accepted check of a status. at: seconds since 1970, UTC"""

    at: float
    by: str
    host: str
    table: str
    check: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateApproval:
    """An approval of a status. at: seconds since 1970, UTC; void: why it no longer counts, "" while it does"""

    at: float
    by: str
    host: str
    ticket: str = ""
    void: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The declarations at the gate of one rollout.

    accepted    inconclusive checks that a person accepted
    approvals   the last one of each identity, void ones as well
    ticket      of the promotion, and who named it; "" for none
    """

    accepted: tuple[AcceptedCheck, ...] = ()
    approvals: tuple[GateApproval, ...] = ()
    ticket: str = ""
    ticket_by: str = ""

    def holds(self, declared: Declaration) -> bool:
        """Whether it already counts: a repeated request is stored once."""
        match declared:
            case CheckAccepted(by=by, table=table, check=check, reason=reason):
                return any((a.by, a.table, a.check, a.reason) == (by, table, check, reason) for a in self.accepted)
            case Approved(by=by, ticket=ticket):
                return any((a.by, a.ticket, a.void) == (by, ticket, "") for a in self.approvals)
            case TicketNamed(by=by, ticket=ticket):
                return (self.ticket, self.ticket_by) == (ticket, by)
            case _:
                assert_never(declared)

    def after(self, declared: Declaration, at: float) -> "Consent":
        """With one more declaration. at: seconds since 1970, UTC"""
        match declared:
            case CheckAccepted(by=by, host=host, table=table, check=check, reason=reason):
                now = AcceptedCheck(at=at, by=by, host=host, table=table, check=check, reason=reason)
                others = (each for each in self.accepted if (each.table, each.check) != (table, check))
                return replace(self, accepted=(*others, now))
            case Approved(by=by, host=host, ticket=ticket):
                name = identity(by).name  # the same person over another connection is the same
                before = next((each for each in self.approvals if identity(each.by).name == name), None)
                if not ticket and before is not None and not before.void:
                    ticket = before.ticket
                approval = GateApproval(at=at, by=by, host=host, ticket=ticket)
                kept = (each for each in self.approvals if identity(each.by).name != name)
                return replace(self, approvals=(*kept, approval)[-APPROVALS_KEPT:])
            case TicketNamed(by=by, ticket=ticket):
                return replace(self, ticket=ticket, ticket_by=by)
            case _:
                assert_never(declared)

    def voided(self, why: str, table: str = "", check: str = "") -> "Consent":
        """Without the acceptance of a check that has another result, or of all checks; no approval counts any more."""
        if self == NO_CONSENT:
            return self
        kept = tuple(each for each in self.accepted if table and (each.table, each.check) != (table, check))
        approvals = tuple(each if each.void else replace(each, void=why) for each in self.approvals)
        return replace(self, accepted=kept, approvals=approvals)


NO_CONSENT = Consent()
