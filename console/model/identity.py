"""The identity of a person or program, and its source, as one text in events."""

import re
from enum import Enum

from console.record import dataclass

OS_USER = "OS user"  # source of a name without one, as in the events of earlier versions
AGENT = "the agent itself"
_SOURCE = re.compile(r" \(([^()]{1,120})\)")
_MOST = 200
_BY_AGENT = "the agent, "


@dataclass(frozen=True, slots=True)
class Identity:
    """Recorded, never trusted for access.

    name    `ada@laptop`, or the subject that a CI's token or variables name
    source  `OS user`, `SSH login from 192.0.2.7`, `OIDC of gitlab.example.com, unverified` …
    """

    name: str
    source: str = OS_USER

    def __str__(self) -> str:
        """The value of an event's `by`: the name, with its source in brackets unless it is the usual one."""
        name = _plain(self.name)
        return name if self.source == OS_USER else f"{name} ({_plain(self.source)[:120]})"


class AgentReason(Enum):
    """Why the agent acted by itself; the value ends the `by` of such an event."""

    CONSOLE_LEFT = "since its console left"
    FAILED_LONG_AGO = "after the failure"
    POLICY = "as its region's policy says"
    BREACH = "since a check failed"


def by_agent(reason: AgentReason, after: str = "") -> str:
    """The value of an event's `by` if the agent acted by itself: `the agent, since its console left`.

    after  how long it waited, if that is part of the reason: `72 h`
    """
    return f"{_BY_AGENT}{after} {reason.value}" if after else f"{_BY_AGENT}{reason.value}"


def agent_reason(by: str) -> AgentReason | None:
    """Why the agent acted by itself, from the `by` of an event; None if a person did."""
    if not by.startswith(_BY_AGENT):
        return None
    return next((reason for reason in AgentReason if by.endswith(reason.value)), None)


def identity(by: str) -> Identity:
    """The name and its source, from the `by` of an event."""
    if by.startswith(_BY_AGENT):
        return Identity(by, AGENT)
    if named := _SOURCE.search(by):
        return Identity(by[: named.start()] + by[named.end() :], named[1])
    return Identity(by)


def _plain(text: str) -> str:
    """The text without brackets, which could be mistaken for a source."""
    kept = "".join(char if char.isprintable() else "?" for char in text[:_MOST])
    return kept.replace("(", "[").replace(")", "]")
