"""Whether a rollback would work now: the findings of an agent's minutely proof. Never stored. Pure."""

from collections.abc import Iterable
from typing import Literal

from console.record import dataclass

PROOF_SECONDS = 60.0  # between two proofs
STALE_SECONDS = 3 * PROOF_SECONDS  # after which a proof is not evidence for the present
FINDINGS_SENT = 10

WayBackState = Literal["passed", "failed", "inconclusive"]
WayBackPart = Literal["feed", "file", "endpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBackFinding:
    """A finding against a rollback.

    table  of a file: its table; "" otherwise
    name   of the feed or the endpoint; of a file its path below the table
    state  inconclusive: it could not be decided
    """

    part: WayBackPart
    name: str
    state: Literal["failed", "inconclusive"]
    why: str
    table: str = ""

    def __str__(self) -> str:
        of = f"{self.table}: " if self.table else ""
        return f"{of}{self.part} {self.name}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBackProof:
    """One check of the previous release.

    release    its id
    at         seconds since 1970, UTC
    until      likewise: from then on the policy permits its cleanup
    feeds, files, endpoints   their numbers
    findings   failed ones first, at most FINDINGS_SENT;  more  the number of the others
    """

    release: str
    at: float
    until: float = 0.0
    feeds: int = 0
    files: int = 0
    endpoints: int = 0
    findings: tuple[WayBackFinding, ...] = ()
    more: int = 0

    @property
    def state(self) -> WayBackState:
        return self.findings[0].state if self.findings else "passed"

    def state_at(self, now: float) -> WayBackState:
        """A proof that was not renewed is not evidence for the present; a failure is, until the next proof."""
        if self.state == "passed" and now - self.at > STALE_SECONDS:
            return "inconclusive"
        return self.state

    @property
    def reason(self) -> str:
        """The most severe finding and the number of the others; "" without findings. From outside."""
        if not self.findings:
            return ""
        others = len(self.findings) - 1 + self.more
        return f"{self.findings[0]}" + (f" (and {others} more)" if others else "")


def proof_text(known: WayBackProof | None, previous: str, now: float, *, attended: bool | None) -> str:
    """`proven 40 s ago: 3 feeds, 124 files, 5 endpoints`, or why not. From outside.

    previous  id of the release;  now  seconds since 1970, UTC;  attended  whether an agent runs there
    """
    if known is None or known.release != previous:
        why = "no agent runs" if attended is False else "its agent has sent no proof"
        return f"not proven: {why}"
    age = age_text(now - known.at)
    match known.state:
        case "failed":
            return f"failed its proof {age} ago: {known.reason}"
        case "inconclusive":
            return f"not proven, checked {age} ago: {known.reason}"
    if known.state_at(now) != "passed":
        return f"was proven {age} ago, and not since"
    parts = ((known.feeds, "feed"), (known.files, "file"), (known.endpoints, "endpoint"))
    looked = ", ".join(f"{number:,} {what}{'s' * (number != 1)}" for number, what in parts)
    return f"proven {age} ago: {looked}"


def cleanup_text(previous: str, until: float, now: float) -> str:
    """`r1 may be cleaned up in 71 h`; from then on, the command that does it. until: seconds since 1970, UTC"""
    if until <= now:
        return f"{previous} may be cleaned up for {age_text(now - until)}: console cleanup --previous"
    return f"{previous} may be cleaned up in {age_text(until - now)}"


def age_text(seconds: float) -> str:
    """In one unit, seconds in steps of ten, so that the text changes seldom."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole // 10 * 10 if whole >= 10 else whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFeed:
    """A feed of the previous release, as its agent moves it.

    followed   whether anything moves its target
    aligned    the last tick left all feeds of the pipeline at one landing position
    position   Delta version of the source that it has reached;  before  at the proof before; -1 at the first one
    live       position of live's feeds from the same source; None if live has none
    behind     waiting rows
    tries      failed ones in a row;  stopped  permanently failed;  why  the reason for either
    """

    name: str
    target: str
    followed: bool
    aligned: bool = False
    position: int = -1
    before: int = -1
    live: int | None = None
    behind: int = 0
    tries: int = 0
    stopped: bool = False
    why: str = ""


def judge_feed(feed: KeptFeed) -> WayBackFinding | None:
    """The finding against a feed, which has to bring its table to live's position."""
    if not feed.followed:
        return _of_feed(feed, "failed", f"nothing feeds {feed.target}")
    if feed.stopped:
        return _of_feed(feed, "failed", f"it has stopped: {feed.why}")
    if feed.tries:
        return _of_feed(feed, "inconclusive", f"it is failing, attempt {feed.tries}: {feed.why}")
    if feed.aligned or not feed.behind or (feed.live is not None and feed.position >= feed.live):
        return None
    unmoved = " and has not moved since the last proof" if feed.position == feed.before else ""
    return _of_feed(feed, "inconclusive", f"it is {feed.behind:,} rows behind its source{unmoved}")


def _of_feed(feed: KeptFeed, state: Literal["failed", "inconclusive"], why: str) -> WayBackFinding:
    return WayBackFinding(part="feed", name=feed.name, state=state, why=why)


def proof(
    release: str, at: float, findings: Iterable[WayBackFinding], *, until: float, feeds: int, files: int, endpoints: int
) -> WayBackProof:
    """The proof of these findings, the failed ones first."""
    ordered = sorted(findings, key=lambda finding: finding.state != "failed")
    return WayBackProof(
        release=release,
        at=at,
        until=until,
        feeds=feeds,
        files=files,
        endpoints=endpoints,
        findings=tuple(ordered[:FINDINGS_SENT]),
        more=max(0, len(ordered) - FINDINGS_SENT),
    )
