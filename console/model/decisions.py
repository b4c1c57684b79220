"""The decisions in a rollout and their authors, from its stored events. Pure."""

from collections.abc import Iterable, Iterator

from console.model.breach import Breached, WatchSteered
from console.model.consent import Approved, CheckAccepted, TicketNamed
from console.model.event import (
    Accepted,
    Ended,
    Event,
    Logged,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
    TakenOver,
)
from console.model.identity import AgentReason, by_agent
from console.model.note import Noted
from console.model.tuning import Tuned
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonsDecision:
    """An action by a person, or by an agent in place of one.

    at    seconds since 1970, UTC
    what  `accepted`, `tuned (lag none → 30)`, `promoted r2`
    by    the recorded name;  host  "" if the name already has it, and from older agents
    """

    at: float
    what: str
    by: str
    host: str = ""


def decisions(events: Iterable[Recorded]) -> Iterator[PersonsDecision]:
    """Every decision and every note, oldest first."""
    for recorded in events:
        if decision := _decision(recorded.at, recorded.event):
            yield decision


def _decision(at: float, event: Event) -> PersonsDecision | None:
    match event:
        case Accepted(by=by, host=host):
            return PersonsDecision(at=at, what="accepted", by=by, host=host)
        case Logged(text=line, incident=Tuned(by=by, host=host)):
            return PersonsDecision(at=at, what=f"tuned ({line.partition(': ')[2]})", by=by, host=host)
        case Logged(incident=Noted(by=by, host=host, text=text)):
            return PersonsDecision(at=at, what=f"noted: {text}", by=by, host=host)
        case Logged(incident=CheckAccepted(by=by, host=host, table=table, check=check, reason=reason)):
            return PersonsDecision(at=at, what=f"accepted {table}: {check}: {reason}", by=by, host=host)
        case Logged(incident=Approved(by=by, host=host, ticket=ticket)):
            return PersonsDecision(at=at, what=f"approved{ticket and f' ({ticket})'}", by=by, host=host)
        case Logged(incident=TicketNamed(by=by, host=host, ticket=ticket)):
            return PersonsDecision(at=at, what=f"named the ticket {ticket}", by=by, host=host)
        case Logged(incident=Breached(table=table, check=check, detail=detail)):
            what = f"found after the promotion: {table}: {check} failed: {detail}"
            return PersonsDecision(at=at, what=what, by=by_agent(AgentReason.POLICY))
        case Logged(incident=WatchSteered(by=by, verb=verb)):
            return PersonsDecision(at=at, what="paused the watch" if verb == "pause" else "resumed the watch", by=by)
        case Paused(by):
            return PersonsDecision(at=at, what="paused", by=by)
        case Resumed(by) if by:
            return PersonsDecision(at=at, what="resumed", by=by)
        case TakenOver(by, host, _):
            return PersonsDecision(at=at, what="took over", by=by, host=host)
        case Promoted(release=release, by=by, host=host):
            return PersonsDecision(at=at, what=f"promoted {release}", by=by, host=host)
        case RolledBack(release=release, by=by, host=host):
            return PersonsDecision(at=at, what=f"rolled back to {release}", by=by, host=host)
        case Ended(state=state, by=by):
            return PersonsDecision(at=at, what=state, by=by)
        case _:
            return None
