"""The interface between runner and faces: a frozen view of each region, and a protocol of operations."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from console.errors import ConsoleError
from console.model.codec import encode
from console.model.consent import NO_RULES
from console.model.event import Promoted, Recorded, RolledBack
from console.model.gate import Gate, gate_of
from console.model.live import ReleaseRow
from console.model.measured import FeedSample
from console.model.pipeline import digest
from console.model.plan import Plan
from console.model.region import Region
from console.model.rollout_id import release_number
from console.model.status import Status, Verb
from console.model.watcher import Watcher
from console.record import dataclass

if TYPE_CHECKING:  # not loaded before the screen's first picture
    from console.drivers.protocol import QueryResult
    from console.model.compared import DayExamples
    from console.model.consent import Declaration
    from console.model.receipt import AuditProgress, Finding, Past
    from console.model.tuning import Tuning
    from console.runner.flips import Flips
    from console.witness import WitnessProgress

_FIGURE = re.compile(r"\d[\d,.]* (?=rows|bytes|days)")
LABEL_CHARACTERS = 4
Link = Literal["idle", "connecting", "connected", "unreachable"]
Notice = Literal["noted", "waits", "starting", "building"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionView:
    """The current state of one region.

    plan     the pending plan, computed from the files against the live release; None before the first survey
    problem  why there is no plan (an error of the survey or the planner), or ""
    attended whether an agent runs there; None if unknown
    live_row row of the live release: who made it live, from which host and when; None if the region has not sent it
    accepted the plan that the region's rollout runs; None if the region has not sent it
    behind   the live release is not the one that the files describe; None if unknown
    note     a message from outside the rollout ("building: 3 of 14 days")
    notice   the kind of the note, as the state column shows it
    waits    the note says why the region may not begin yet
    guide    the demo's measurements in this region, line by line
    events   stored events of its rollout, oldest first, as far as they are known here; the latest ones of many
    samples  of its feeds and of the pipeline, oldest first, of the last hour or more
    heard    when its agent last reported or its logs answered, in whole seconds since 1970, UTC; 0 if never
    console  id of the console whose view it is, by which it recognises itself among the watchers
    witness  progress of the search for the pending plan's witnesses; None if there was no search
    """

    region: Region
    link: Link = "idle"
    link_why: str = ""
    status: Status = field(default_factory=Status)
    plan: Plan | None = None
    problem: str = ""
    note: str = ""
    live: str = ""
    live_row: ReleaseRow | None = None
    previous: str = ""
    witness: "WitnessProgress | None" = None
    behind: bool | None = None
    accepted: Plan | None = None
    attended: bool | None = None
    waits: bool = False
    notice: Notice = "noted"
    guide: tuple[str, ...] = ()
    heard: float = 0.0
    events: tuple[Recorded, ...] = ()
    samples: tuple[FeedSample, ...] = ()
    console: str = ""

    @property
    def went_back(self) -> bool:
        """Whether the kept release is newer than the live one: it was rolled back, and a rollback would make it live again."""
        return bool(self.live and self.previous) and release_number(self.previous) > release_number(self.live)

    @property
    def gate(self) -> Gate:
        """The gate of its rollout, by the rules of the accepted plan."""
        return gate_of(self.status, self.accepted.gate if self.accepted else NO_RULES)

    @property
    def others_watching(self) -> tuple[Watcher, ...]:
        """Other consoles that watch the region now, as far as the region names them."""
        watchers = self.status.watchers if self.link == "connected" else None
        return tuple(watcher for watcher in watchers or () if not self.console or watcher.console != self.console)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a headless run ended in one region. error is None if it is live or had nothing to do."""

    region: str
    # a state of the rollout, or `unchanged`, `skipped` (its wave never began), `behind` (unreachable and left out)
    state: str
    error: ConsoleError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position of a playback. Times are those of the recording: seconds since 1970, UTC.

    at, begins, ends
    speed      recorded seconds per second
    playing    it is running; else it is paused, or at the end
    next_at, next_what   the next decision, and its line; "" where none follows
    missing    missing parts of the recording, in words; "" if it has everything that a console received
    command    the command that starts a playback here
    """

    at: float
    begins: float
    ends: float
    speed: float
    playing: bool
    next_at: float = 0.0
    next_what: str = ""
    missing: str = ""
    command: str = ""


class Player(Protocol):
    """The controls of a playback."""

    @property
    def position(self) -> Position: ...

    def toggle(self) -> None:
        """Pause or continue; at the end, start over."""
        ...

    def faster(self, by: int) -> None:
        """This many steps of speed up, or down."""
        ...

    async def seek(self, at: float) -> None:
        """Go to a time, clamped to the recording."""
        ...

    async def seek_decision(self, by: int) -> bool:
        """Go to the next decision (1) or the previous one (-1); False if there is none."""
        ...


class Cockpit(Protocol):
    """Operations offered to the faces. `Fleet` implements them; none blocks the caller's event loop."""

    @property
    def player(self) -> Player | None:
        """The controls of a playback; None over live regions."""
        ...

    def now(self) -> float:
        """The time of the views, seconds since 1970, UTC; screens and commands show this time, not the machine's."""
        ...

    @property
    def views(self) -> Mapping[str, RegionView]:
        """Region name → latest view, in the order of waves (canaries first)."""
        ...

    def changes(self) -> AsyncIterator[RegionView]:
        """Every later change, region by region; a slow reader gets the latest, not all."""
        ...

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        """Survey and plan again (all by default), concurrently; failures land in the views. Attaches to running rollouts."""
        ...

    async def witness(self, region: str) -> None:
        """Search for the smallest rows on which the pending plan's edited queries differ; progress appears in the view.

        Starts a local Spark, none in the region. Results for the same edits are reused.
        """
        ...

    async def recorded(self, region: str) -> tuple[Recorded, ...]:
        """All stored events of the region's rollout, its first ones included, which a view may no longer hold."""
        ...

    async def history(self, region: str, rollout: str = "") -> "Past":
        """Every rollout that the region has stored, oldest first, and one of them in full. Starts no agent."""
        ...

    async def examples(self, region: str, table: str, day: str) -> "DayExamples":
        """Rows of one day that differ between the compared versions (`Driver.examples`)."""
        ...

    async def verify(self, region: str, rollout: str, tell: "Callable[[AuditProgress], None]") -> "tuple[Finding, ...]":
        """Check a rollout's receipts again; cancelling the call ends it in the region. tell: called with its progress"""
        ...

    async def note(self, region: str, text: str) -> Status:
        """Leave a note with the region's newest rollout."""
        ...

    async def declare(self, region: str, declared: "Declaration") -> Status:
        """Declare something at the gate of the region's rollout; `by` and `host` are filled in.

        raises  as `Driver.declare`
        """
        ...

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        """Run the pending plans in these regions, wave by wave, canaries first, up to the gate or (yes) to live.

        A wave starts when every region of the previous one is live. Without `yes` the run ends for a region at its gate;
        with it the gate opens if the policy is `ask` or `auto` and every check passed.
        """
        ...

    async def start(self, region: str) -> None:
        """Submit one region's pending plan and follow it; returns when the region has accepted it."""
        ...

    async def control(self, region: str, verb: "Verb") -> Status: ...

    async def tune(self, region: str, change: "Tuning", *, reset: bool = False) -> Status:
        """Change limits of a region's rollout from its next batch on.

        raises  Problems if its query does not compile over the live release
        """
        ...

    async def promote(self, region: str) -> Promoted: ...

    async def promote_together(
        self, confirmed: Mapping[str, str], declared: "Mapping[str, Sequence[Declaration]]"
    ) -> "Flips":
        """Promote several regions at once. Their states are read again: if one is not ready, nothing is sent anywhere. Regions
        that are live with the same change already count as done.

        confirmed  region → the rollout that was confirmed; "" for a region that was live already
        declared   stored with every rollout before any region is promoted
        """
        ...

    async def rollback(self, region: str, to: str = "") -> RolledBack:
        """Make the release before the last promotion live again.

        to      the release that becomes live; "" for the one before the last promotion
        raises  Conflict E_STALE if `to` is live already or not the one that is kept, or, where "" is given, if the last
                promotion was rolled back already: the release that would become live is the one that was taken back
        """
        ...

    async def cleanup(
        self, region: str, *, dry_run: bool = False, previous: bool = False, let_go: Sequence[str] = ()
    ) -> tuple[str, ...]: ...

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> "QueryResult": ...

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]: ...

    async def close(self) -> None:
        """Drop the links; agents continue."""
        ...


@dataclass(frozen=True, slots=True)
class Group:
    """Regions whose plans are the same apart from figures. People review groups, not regions.

    label    the first four characters of its digest, the same on every screen and in `console plan`
    differs  differences from the plan of the first group; () for that one itself
    """

    label: str
    plans: tuple[Plan, ...]
    differs: tuple[str, ...] = ()

    @property
    def regions(self) -> tuple[str, ...]:
        return tuple(plan.region for plan in self.plans)

    @property
    def drifted(self) -> bool:
        return bool(self.plans[0].drift)


def grouped(plans: Iterable[Plan]) -> tuple[Group, ...]:
    """Groups with changes first, then by size, then in the order of their first regions."""
    alike: dict[object, list[Plan]] = {}
    for plan in plans:
        alike.setdefault(_content(plan), []).append(plan)
    ordered = sorted(alike.items(), key=lambda item: (bool(item[1][0].changes), len(item[1])), reverse=True)
    return tuple(
        Group(_label(content), tuple(same), _differs(same[0], ordered[0][1][0]) if i else ())
        for i, (content, same) in enumerate(ordered)
    )


def plan_label(plan: Plan) -> str:
    """The name of a plan: four characters of a digest of its reviewed content, equal in all regions with the same plan."""
    return _label(_content(plan))


def _label(content: object) -> str:
    return digest(encode(content))[:LABEL_CHARACTERS]


def _content(plan: Plan) -> object:
    """A plan without its figures: rows and days differ from region to region, and are no reason to review it twice."""
    nodes = tuple((n.kind, n.name, n.action, _FIGURE.sub("#", n.why), n.columns, n.source) for n in plan.nodes)
    # a problem without a node is about the region's own file, or has no place
    problems = tuple((p.code, p.severity, p.node, p.where if p.node else "") for p in plan.problems)
    drift = tuple((d.table, d.what, d.name, d.said if d.name else "", d.found) for d in plan.drift)
    return nodes, problems, drift, plan.answers, plan.rollback, plan.allowed, tuple(sorted(_overridden(plan)))


def _overridden(plan: Plan) -> frozenset[tuple[str, str]]:
    return frozenset((override.path, override.value) for override in plan.overrides)


def _differs(plan: Plan, main: Plan) -> tuple[str, ...]:
    """Differences from the main plan, in words."""
    differences = [
        f"another {path}: {value or 'absent'}" for path, value in sorted(_overridden(plan) - _overridden(main))
    ]
    differences += [f"not {path}: {value or 'absent'}" for path, value in sorted(_overridden(main) - _overridden(plan))]
    if drift := [d for d in plan.drift if d not in main.drift]:
        differences.append(
            f"drifted: {', '.join(dict.fromkeys('.'.join(filter(None, (d.table, d.name))) for d in drift))}"
        )
    known = {(p.code, p.node) for p in main.problems}
    differences += [f"{p.code} {p.node}".rstrip() for p in plan.problems if (p.code, p.node) not in known]
    if main.changes and not plan.changes:
        return tuple(dict.fromkeys([*differences, "nothing to do"]))
    actions = {(n.kind, n.name): n.action for n in main.nodes}
    for node in plan.nodes:
        was = actions.get((node.kind, node.name))
        if was != node.action:
            differences.append(f"{node.name}: {node.action}" + (f", not {was}" if was else ""))
    return tuple(dict.fromkeys(differences)) or ("its tables or its live release differ",)
