"""The checks at a gate while a rollout waits there: its agent looks at both releases again. Never stored; what it finds
is. Pure.
"""

from console.model.way_back import age_text
from console.record import dataclass

CHECK_SECONDS = 60.0  # between two rounds, at least
UNABLE_ROUNDS = 3  # in a row, after which a person is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakProgress:
    """The progress of the checks at a gate, as the agent reports it each second.

    waited    seconds since the rollout reached the gate
    at        when the last completed round ended, seconds since 1970, UTC; 0 before the first one
    rounds    completed by this agent
    clean     of these the last ones in a row after which every check had passed, or was accepted by a person
    unable    why the last round could not be completed, "" if it was
    """

    waited: float = 0.0
    at: float = 0.0
    rounds: int = 0
    clean: int = 0
    unable: str = ""


def soak_text(soak: SoakProgress, now: float) -> str:
    """`checks go on: 12 rounds, the last one 40 s ago`. now: seconds since 1970, UTC"""
    if soak.unable:
        return f"checks do not go on: {soak.unable}"
    if not soak.rounds:
        return "checks go on: no round has ended yet"
    rounds = "1 round" if soak.rounds == 1 else f"{soak.rounds:,} rounds"
    return f"checks go on: {rounds}, the last one {age_text(now - soak.at)} ago"
