"""The order of waves: which regions run together, and which wait. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from console.model.event import ENDED
from console.model.fleet import FleetWaves
from console.model.region import Region
from console.record import dataclass
from console.runner import after_promotion
from console.runner.view import Outcome, RegionView

Waves = tuple[tuple[str, ...], ...]
_DONE_STATES = ("live", "unchanged", "behind")
_TAKEN_BACK = ("rolled-back", "cancelled", "discarded", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRegion:
    """A region whose wave of a fleet rollout has not begun.

    wave   its number, from 1
    after  unfinished regions of earlier waves; () if this region may begin
    ahead  regions of earlier waves that are live with the change
    """

    region: str
    wave: int
    fleet: FleetWaves
    after: tuple[str, ...]
    ahead: tuple[str, ...]


def waves(regions: Iterable[Region]) -> Waves:
    """Region names in the order in which they may begin.

    returns  the canaries of the lowest wave that has any first, wave by wave; then all others, wave by wave;
             within a wave in the order given
    """
    groups: dict[tuple[bool, int], list[str]] = {}
    for region in regions:
        groups.setdefault((not region.canary, region.wave), []).append(region.name)
    return tuple(tuple(groups[key]) for key in sorted(groups))


def in_waves(regions: Iterable[Region]) -> tuple[Region, ...]:
    """The regions themselves, in that order."""
    named = {region.name: region for region in regions}
    return tuple(named[name] for wave in waves(named.values()) for name in wave)


def may_go_on(outcomes: Sequence[Outcome]) -> bool:
    """True if every region of a wave is done: any failure, and any closed gate, holds back the next wave.

    An unreachable region counts as done if the operator allowed beforehand to leave it out.
    """
    return all(outcome.error is None and outcome.state in _DONE_STATES for outcome in outcomes)


def skipped(rest: Waves) -> tuple[Outcome, ...]:
    """The outcomes of regions whose wave never began."""
    return tuple(Outcome(name, "skipped") for wave in rest for name in wave)


def queued_regions(views: Mapping[str, RegionView], desired: Mapping[str, str]) -> dict[str, QueuedRegion]:
    """Regions whose wave has not begun although their fleet rollout has, according to the regions' own state.

    A region whose files have changed since the rollout began is not among them: that change has not been reviewed.

    desired  region → digest of its pipeline according to the files
    """
    waiting_of: dict[str, QueuedRegion] = {}
    for fleet in _under_way(views):
        reviewed = dict(fleet.desired)
        for number, wave in enumerate(fleet.waves[1:], 2):
            before = [views[name] for earlier in fleet.waves[: number - 1] for name in earlier if name in views]
            after = tuple(view.region.name for view in before if not _is_done(view, fleet))
            ahead = tuple(view.region.name for view in before if view.status.state == "live")
            for name in wave:
                if name in views and _waits_to_begin(views[name], fleet) and desired.get(name) == reviewed.get(name):
                    waiting_of[name] = QueuedRegion(region=name, wave=number, fleet=fleet, after=after, ahead=ahead)
    return waiting_of


def ready(
    views: Mapping[str, RegionView], desired: Mapping[str, str], fleet: FleetWaves, going: Mapping[str, int]
) -> Waves:
    """The waves of a fleet rollout that may begin now, the first one immediately; () if none may.

    going  regions that already run in this console
    """
    waiting = [t for t in queued_regions(views, desired).values() if t.fleet.id == fleet.id and not going.get(t.region)]
    first = min((queued.wave for queued in waiting), default=0)
    if any(queued.after for queued in waiting if queued.wave == first):
        return ()
    names = {queued.region for queued in waiting}
    return tuple(left for wave in fleet.waves if (left := tuple(name for name in wave if name in names)))


def next_waves(view: RegionView) -> Waves:
    """The wave of a region's rollout and the waves after it; () if no wave follows."""
    fleet = view.status.fleet
    order = fleet.waves if fleet else ()
    at = next((i for i, wave in enumerate(order[:-1]) if view.region.name in wave), None)
    return () if at is None else order[at:]


def _under_way(views: Mapping[str, RegionView]) -> Iterator[FleetWaves]:
    """Fleet rollouts with a region under way or live, the newest last: it wins if several name one region."""
    alive = [view for view in views.values() if view.status.fleet and view.status.state not in _TAKEN_BACK]
    ordered = sorted(alive, key=lambda view: view.status.started)
    yield from {view.status.fleet.id: view.status.fleet for view in ordered if view.status.fleet}.values()


def _is_done(view: RegionView, fleet: FleetWaves) -> bool:
    if _part_of(view, fleet):
        return view.status.state in ("live", "cleaned") and not after_promotion.holds(view)
    return not _has_pending_change(view) and not _is_moving(view)


def _waits_to_begin(view: RegionView, fleet: FleetWaves) -> bool:
    """It has a pending change, no rollout under way, and no part in this fleet rollout yet."""
    return not _part_of(view, fleet) and not _is_moving(view) and _has_pending_change(view)


def _part_of(view: RegionView, fleet: FleetWaves) -> bool:
    return view.status.fleet is not None and view.status.fleet.id == fleet.id


def _is_moving(view: RegionView) -> bool:
    return bool(view.status.held) or view.status.state not in (*ENDED, "none")


def _has_pending_change(view: RegionView) -> bool:
    return bool(view.plan.changes) if view.plan else view.behind is not False
