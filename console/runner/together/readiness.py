"""Whether regions are ready to flip together, which of them are live with the change already, and waves that are live
in part. Judged by the regions' own state, so that an interrupted console gives the same answer again. Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from console.errors import Conflict, ConsoleError, Unreachable
from console.model.event import ENDED
from console.model.gate import refusal
from console.model.status import Status
from console.record import dataclass
from console.runner.view import RegionView

LIVE = ("live", "cleaned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """One region before a barrier. live: with the change already; error: why it is not ready; neither: it is ready"""

    region: str
    live: bool = False
    error: ConsoleError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitWave:
    """Regions of one wave of which some are live with a change and the others wait at their gates with it.

    live, waiting  region names; the latter are at their gates
    """

    wave: int
    live: tuple[str, ...]
    waiting: tuple[str, ...]

    @property
    def finish(self) -> str:
        """The command that promotes the rest."""
        return f"console promote --regions {','.join(self.waiting)}"

    @property
    def take_back(self) -> str:
        """The command that rolls back all that are live."""
        return f"console rollback --regions {','.join(self.live)}"

    @property
    def text(self) -> str:
        """`wave 2 is live in part: us, while eu and ap wait at their gates`."""
        wait = "waits at its gate" if len(self.waiting) == 1 else "wait at their gates"
        return f"wave {self.wave} is live in part: {', '.join(self.live)}, while {', '.join(self.waiting)} {wait}"


def readiness(views: Sequence[RegionView], desired: Mapping[str, str]) -> tuple[Readiness, ...]:
    """Whether each of these regions is ready to flip together with the others.

    desired  region → digest of its pipeline according to the files
    """
    change = _change_at_gates(views, desired)
    names = [view.region.name for view in views]
    return tuple(_ready(view, change, desired, names) for view in views)


def returnable(views: Sequence[RegionView], desired: Mapping[str, str]) -> dict[str, str]:
    """Region → why it is not rolled back; "" if it is: it is live with the change with which the others wait, or that went
    live last, and has a previous release.
    """
    flipped = [view for view in views if view.status.state == "live" and view.previous]
    last = max(flipped, key=lambda view: view.status.changed, default=None)
    change = next((view for view in views if under_way(view)), last)
    return {view.region.name: _stays(view, change, desired) for view in views}


def split_waves(views: Mapping[str, RegionView], desired: Mapping[str, str]) -> dict[str, SplitWave]:
    """Region → its wave, for the waves of which some regions are live with a change and all others wait at their gates."""
    waiting = [view for view in views.values() if _at_gate(view)]
    splits: dict[str, SplitWave] = {}
    for first in {_wave(view): view for view in reversed(waiting)}.values():
        wave = [view for view in views.values() if _wave(view) == _wave(first) and _same(view, first, desired)]
        live = tuple(view.region.name for view in wave if view.status.state == "live")
        rest = tuple(view.region.name for view in wave if _at_gate(view))
        if live and len(live) + len(rest) == len(wave):
            split = SplitWave(wave=first.region.wave, live=live, waiting=rest)
            splits |= dict.fromkeys((*live, *rest), split)
    return splits


def under_way(view: RegionView) -> bool:
    return bool(view.status.held) or view.status.state not in (*ENDED, "none")


def by_whom(status: Status) -> str:
    """Who has opened a rollout's gate: ` (promoted by eve@desk)`; "" before, or if that is unknown."""
    match status.state:
        case "promoting":
            verb = "being promoted"
        case "live":
            verb = "promoted"
        case _:
            return ""
    return f" ({verb} by {status.decided_by})" if status.decided_by else ""


def without(names: Iterable[str], left_out: Collection[str]) -> str:
    """The command that flips the others: `console promote --regions eu,us`; "" if none are left."""
    rest = [name for name in names if name not in left_out]
    return f"console promote --regions {','.join(rest)}" if rest else ""


def _change_at_gates(views: Sequence[RegionView], desired: Mapping[str, str]) -> RegionView | None:
    """A region at its gate with the change to promote, preferably that of the files; None if no region is at its gate."""
    waiting = [view for view in views if _at_gate(view)]
    return next((view for view in waiting if _current(view, desired)), waiting[0] if waiting else None)


def _ready(view: RegionView, change: RegionView | None, desired: Mapping[str, str], names: Sequence[str]) -> Readiness:
    name, status = view.region.name, view.status
    if view.link == "unreachable":
        return Readiness(region=name, error=Unreachable(f"{name}: {view.link_why}", region=name, hint="console doctor"))
    flipped = status.state in LIVE and (_current(view, desired) or _same(view, change, desired))
    if not under_way(view) and (flipped or _as_files(view)):
        return Readiness(region=name, live=True)
    if status.held:
        hint = status.hint or f"console {'resume' if status.held == 'paused' else 'retry'} --region {name}"
        return _not_ready(view, f"{status.held}: {status.why}", hint)
    if not under_way(view):
        now = "no rollout is under way" if status.state == "none" else f"its rollout is {status.state}{by_whom(status)}"
        return _not_ready(view, f"{now}, and {view.live or 'nothing'} is live", f"console apply --regions {name}")
    if status.state != "awaiting-confirmation":
        return _not_ready(
            view, f"{status.state}, not at its gate{by_whom(status)}", f"console watch --regions {name} waits for it"
        )
    if status.was != view.live:
        why = f"its plan is stale: it starts from {status.was or 'nothing'}, and {view.live or 'nothing'} is live"
        return _not_ready(view, why, _anew(name), "E_STALE")
    if change is not None and not _same(view, change, desired):
        why = f"its plan is stale: {status.rollout} makes another change than the rollout of {change.region.name}"
        return _not_ready(view, why, _anew(name), "E_STALE")
    return Readiness(region=name, error=refusal(view.gate, name))


def _not_ready(view: RegionView, why: str, hint: str, code: str = "E_STATE") -> Readiness:
    name = view.region.name
    return Readiness(region=name, error=Conflict(f"{name}: {why}", region=name, hint=hint, code=code))


def _anew(name: str) -> str:
    return f"console cancel --region {name}, then console apply --regions {name}"


def _stays(view: RegionView, change: RegionView | None, desired: Mapping[str, str]) -> str:
    status = view.status
    if under_way(view):
        return f"{view.live or 'nothing'} is live; {status.rollout} is {status.shown}"
    if status.state == "rolled-back":
        return f"{view.live} is already live again"
    if status.state != "live" or not view.previous:
        return f"{view.live or 'nothing'} is live, and there is no release to go back to"
    if change is not None and not _same(view, change, desired):
        return f"{view.live} made another change than {change.status.release} of {change.region.name}"
    return ""


def _at_gate(view: RegionView) -> bool:
    return view.status.state == "awaiting-confirmation" and not view.status.held


def _wave(view: RegionView) -> tuple[bool, int]:
    return not view.region.canary, view.region.wave


def _same(view: RegionView, other: RegionView | None, desired: Mapping[str, str]) -> bool:
    """Whether the rollouts of two regions make the same change: one fleet's, the same files, or both that of the current files.

    Overrides give each region a digest of its own.
    """
    if other is None:
        return False
    ours, theirs = view.status.fleet, other.status.fleet
    if view is other or (ours is not None and theirs is not None and ours.id == theirs.id):
        return True
    if view.accepted is None or other.accepted is None:
        return False
    alike = view.accepted.desired == other.accepted.desired
    return alike or (_current(view, desired) and _current(other, desired))


def _current(view: RegionView, desired: Mapping[str, str]) -> bool:
    """Whether its rollout makes the change that the files declare."""
    return view.accepted is not None and view.accepted.desired == desired.get(view.region.name)


def _as_files(view: RegionView) -> bool:
    """Whether its live release is what the files declare."""
    if view.behind is not None:
        return not view.behind
    return view.plan is not None and view.plan is not view.accepted and not view.plan.changes
