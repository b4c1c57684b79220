"""Transport to an agent: links, the greeting on them, and validated decoding of answers."""

import math
import os
from dataclasses import asdict, dataclass
from typing import Protocol, TypeVar

from console import errors
from console.drivers.frames import Link
from console.drivers.protocol import RegionState
from console.errors import Conflict, DataError, NewerFormat
from console.model import codec
from console.model.event import Recorded
from console.model.live import Live
from console.model.measured import FeedSample
from console.model.receipt import Past

PROTOCOL = 1
_SAME = "use the same version on both sides; `console follow --stop` ends that agent, the next one takes over"
T = TypeVar("T")
_GREETING = 30.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRequest:
    """One region and pipeline.

    landing  tables to survey even if no release names them
    tables   whether the survey itself is wanted, for which the log of every table is read; a host of an older version sends it always
    past     the rollout to return in full, `*` for the list alone, "" for neither
    hours    of the samples to return; 0 for none
    after    for the rollout in `past`, only a page of its comparison's records, after this many; None for its events
    later    whether the requesting console supports fields added after 0.1.0
    """

    region: str
    warehouse: str
    pipeline: str
    landing: tuple[str, ...] = ()
    tables: bool = True
    state: bool = False
    past: str = ""
    hours: float = 0.0
    after: int | None = None
    later: bool = True


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A region's answer without an agent. `live` and `state` are None if they were not requested."""

    live: Live | None
    state: RegionState | None
    past: Past | None = None
    samples: tuple[FeedSample, ...] = ()


class AgentTransport(Protocol):
    """Transport to one region's agent."""

    async def dial(self, *, start: bool) -> Link:
        """A new, greeted link to the region's agent.

        start   start an agent if none listens
        raises  Unreachable if there is none, or none can be started
        """
        ...

    async def survey(self, request: SurveyRequest) -> Surveyed:
        """Read the region's Delta logs directly, without an agent."""
        ...

    def save_tail(self, tail: bytes) -> str:
        """Save the last bytes received from a broken agent; returns the file's path."""
        ...


def decoded(cls: type[T], data: object, peer: str) -> T:
    """Decode an answer as a value of `cls`.

    raises  Protocol naming the part that does not fit; NewerFormat for content that only a newer console understands
    """
    try:
        return codec.decode(cls, data)
    except NewerFormat as error:
        raise NewerFormat(
            f"{peer}: its agent is newer: {error}", region=peer, hint=error.hint, code=error.code
        ) from None
    except DataError as error:
        raise errors.Protocol(
            f"{peer}: invalid answer of the agent: {error}",
            region=peer,
            hint="agent and console may be of different versions: `console follow --stop`, then try again",
            code="E_PROTOCOL",
        ) from None


def plausible(recorded: Recorded, peer: str) -> Recorded:
    """The event, if its figures are possible: no count below zero (-1 means unknown), no time that is not finite.

    raises  Protocol
    """
    answer = [value for value in asdict(recorded.event).values() if isinstance(value, (int, float))]
    low = min((recorded.seq, recorded.at, *(value + 1 for value in answer)))
    if low < 0 or not all(math.isfinite(value) for value in (recorded.at, *answer)):
        raise errors.Protocol(
            f"{peer}: {type(recorded.event).__name__} with impossible values", region=peer, code="E_PROTOCOL"
        )
    return recorded


async def greet(link: Link, warehouse: str) -> None:
    """Call `hello` and check that the right agent, of a known version, answers.

    raises  Conflict if it is another
    """
    try:
        answer = await link.call("hello", {"protocol": PROTOCOL}, seconds=_GREETING)
    except DataError as error:  # neither side knows the other's protocol
        raise Conflict(f"{link.peer}: {error}", region=link.peer, hint=error.hint or _SAME, code="E_VERSION") from None
    match answer:
        case {"protocol": int(protocol), "tool": str(tool), "pid": int(pid), "warehouse": str(held_warehouse)}:
            pass
        case _:
            raise errors.Protocol(
                f"{link.peer}: invalid greeting of the agent: {str(answer)[:80]!r}", region=link.peer, code="E_PROTOCOL"
            )
    if protocol != PROTOCOL:
        raise Conflict(
            f"{link.peer}: its agent (console {tool}, process {pid}) speaks protocol {protocol}, this console {PROTOCOL}",
            region=link.peer,
            hint=_SAME,
            code="E_VERSION",
        )
    if _same_path(held_warehouse) != _same_path(warehouse):
        raise Conflict(
            f"{link.peer}: the agent at its socket holds {held_warehouse}, not {warehouse}",
            region=link.peer,
            code="E_WAREHOUSE",
        )
    link.in_parts = answer.get("parts") is True
    if answer.get("later"):  # otherwise it would assume a console of 0.1.0, and omit fields added since
        await link.call("later", {"parts": True} if link.in_parts else {}, seconds=_GREETING)


def _same_path(warehouse: str) -> str:
    path = warehouse.removeprefix("file://")
    return path.replace("s3a://", "s3://", 1) if "://" in path else os.path.realpath(path)
