"""What the faces draw of each region, and what they may ask: one frozen value and one protocol."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from console.drivers.protocol import QueryResult, Verb
from console.errors import ConsoleError
from console.model.event import Promoted, RolledBack
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status

if TYPE_CHECKING:
    from console.witness import WitnessProgress

_FIGURE = re.compile(r"\d[\d,.]* (?=rows|bytes|days)")
Link = Literal["idle", "connecting", "connected", "unreachable"]


@dataclass(frozen=True, slots=True)
class RegionView:
    """One region, now.

    plan     the pending plan, computed from the files against the live release; None before the first survey
    problem  why there is no plan (an error of the survey or the planner), or ""
    attended whether an agent runs there; None where that is not known
    accepted the plan that the region's rollout carries; None where the region has not told it
    behind   another release than the files say answers there; None where that is not known
    note     a word from outside the rollout that deserves the state column ("building the demo: 3 of 14 days")
    witness  how far the search for the pending plan's witnesses has come; None where none was asked for
    """

    region: Region
    link: Link = "idle"
    link_why: str = ""
    status: Status = field(default_factory=Status)
    plan: Plan | None = None
    problem: str = ""
    note: str = ""
    live: str = ""
    previous: str = ""
    witness: "WitnessProgress | None" = None
    behind: bool | None = None
    accepted: Plan | None = None
    attended: bool | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one region's part of a headless run ended. error is None when it is live or had nothing to do."""

    region: str
    # a state of the rollout, or `unchanged`, `skipped` (its wave never began), `behind` (away, and gone on without)
    state: str
    error: ConsoleError | None = None


class Cockpit(Protocol):
    """All that a face can do. `Fleet` is the one implementation; it never blocks the caller's loop."""

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
        """Seek the smallest rows that the pending plan's edited queries turn into others; how far it is lands in the view.

        Starts a Spark of this machine, none of the region's. What was found for the same edits is not sought again.
        """
        ...

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        """Carry the pending plans through these regions, wave after wave, canaries first, up to the gate or (yes) live.

        A wave starts when every region of the one before is live. Without `yes` the run ends for a region at its gate;
        with it the gate opens where the policy is `ask` or `auto` and every check passed.
        """
        ...

    async def start(self, region: str) -> None:
        """Hand one region's pending plan over and follow it; returns when the region has accepted it."""
        ...

    async def control(self, region: str, verb: Verb) -> Status: ...

    async def promote(self, region: str) -> Promoted: ...

    async def rollback(self, region: str) -> RolledBack: ...

    async def cleanup(self, region: str, *, dry_run: bool = False, previous: bool = False) -> tuple[str, ...]: ...

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> QueryResult: ...

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]: ...

    async def close(self) -> None:
        """Drop the links; agents go on."""
        ...


@dataclass(frozen=True, slots=True)
class Group:
    """Regions whose plans say the same, figures aside. People review these, not regions.

    label    `A` for the largest group that changes something, `B` …
    differs  in what it is another plan than A; () for A itself
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
    """Those that change something first, then the largest, else in the order of the first region of each."""
    alike: dict[object, list[Plan]] = {}
    for plan in plans:
        alike.setdefault(_said(plan), []).append(plan)
    ordered = sorted(alike.values(), key=lambda same: (bool(same[0].changes), len(same)), reverse=True)
    return tuple(
        Group(_label(i), tuple(same), _differs(same[0], ordered[0][0]) if i else ()) for i, same in enumerate(ordered)
    )


def _label(number: int) -> str:
    """A … Z, AA, AB …"""
    letters = ""
    while True:
        letters = chr(ord("A") + number % 26) + letters
        number = number // 26 - 1
        if number < 0:
            return letters


def _said(plan: Plan) -> object:
    """What a plan says but for figures: rows and days are its region's, and no reason to read it twice."""
    nodes = tuple((n.kind, n.name, n.action, _FIGURE.sub("#", n.why), n.columns, n.source) for n in plan.nodes)
    problems = tuple((p.code, p.severity, p.node, p.where) for p in plan.problems)
    drift = tuple((d.table, d.what, d.name, d.said if d.name else "", d.found) for d in plan.drift)
    return nodes, problems, drift, plan.answers, plan.rollback, plan.allowed, _overridden(plan)


def _overridden(plan: Plan) -> frozenset[tuple[str, str]]:
    return frozenset((override.path, override.value) for override in plan.overrides)


def _differs(plan: Plan, main: Plan) -> tuple[str, ...]:
    """In words, what makes it another plan than the main one."""
    told = [f"another {path}: {value or 'absent'}" for path, value in sorted(_overridden(plan) - _overridden(main))]
    told += [f"not {path}: {value or 'absent'}" for path, value in sorted(_overridden(main) - _overridden(plan))]
    if drift := [d for d in plan.drift if d not in main.drift]:
        told.append(f"drifted: {', '.join(dict.fromkeys('.'.join(filter(None, (d.table, d.name))) for d in drift))}")
    known = {(p.code, p.node) for p in main.problems}
    told += [f"{p.code} {p.node}".rstrip() for p in plan.problems if (p.code, p.node) not in known]
    if main.changes and not plan.changes:
        return tuple(dict.fromkeys([*told, "nothing to do"]))
    actions = {(n.kind, n.name): n.action for n in main.nodes}
    for node in plan.nodes:
        was = actions.get((node.kind, node.name))
        if was != node.action:
            told.append(f"{node.name}: {node.action}" + (f", not {was}" if was else ""))
    return tuple(dict.fromkeys(told)) or ("its tables or its live release are others",)
