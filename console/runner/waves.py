"""Which regions go together, and which wait. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.model.event import ENDED
from console.model.fleet import FleetWaves
from console.model.region import Region
from console.runner.view import Outcome, RegionView

Waves = tuple[tuple[str, ...], ...]
THROUGH = ("live", "unchanged", "behind")
_TAKEN_BACK = ("rolled-back", "cancelled", "discarded", "none")


@dataclass(frozen=True, slots=True)
class Turn:
    """A region whose wave of a rollout has not begun.

    wave   its number, from 1
    after  regions of the waves before that are not through; () where its turn has come
    ahead  regions of the waves before that are live with the change
    """

    region: str
    wave: int
    fleet: FleetWaves
    after: tuple[str, ...]
    ahead: tuple[str, ...]


def waves(regions: Iterable[Region]) -> Waves:
    """Region names in the order in which they may go.

    returns  the canaries of the lowest wave that has any first, wave by wave; then all others, wave by wave;
             within a wave in the order given
    """
    groups: dict[tuple[bool, int], list[str]] = {}
    for region in regions:
        groups.setdefault((not region.canary, region.wave), []).append(region.name)
    return tuple(tuple(groups[key]) for key in sorted(groups))


def may_go_on(outcomes: Sequence[Outcome]) -> bool:
    """True where every region of a wave is through: no failure is allowed, and a gate that is shut holds the next.

    One that is away is through where the operator said beforehand to go on without it.
    """
    return all(outcome.error is None and outcome.state in THROUGH for outcome in outcomes)


def skipped(rest: Waves) -> tuple[Outcome, ...]:
    """The outcomes of regions whose wave never began."""
    return tuple(Outcome(name, "skipped") for wave in rest for name in wave)


def turns(views: Mapping[str, RegionView], desired: Mapping[str, str]) -> dict[str, Turn]:
    """Regions whose wave has not begun although their rollout has, as the regions themselves keep it.

    A region whose files have changed since the rollout began is not among them: nobody has reviewed that for it.

    desired  region → digest of its pipeline as the files say
    """
    found: dict[str, Turn] = {}
    for fleet in _under_way(views):
        reviewed = dict(fleet.desired)
        for number, wave in enumerate(fleet.waves[1:], 2):
            before = [views[name] for earlier in fleet.waves[: number - 1] for name in earlier if name in views]
            after = tuple(view.region.name for view in before if not _through(view, fleet))
            ahead = tuple(view.region.name for view in before if view.status.state == "live")
            for name in wave:
                if name in views and _idle(views[name], fleet) and desired.get(name) == reviewed.get(name):
                    found[name] = Turn(name, number, fleet, after, ahead)
    return found


def ready(
    views: Mapping[str, RegionView], desired: Mapping[str, str], fleet: FleetWaves, going: Mapping[str, int]
) -> Waves:
    """The waves of a fleet rollout that may begin now, the first of them at once; () where it is no wave's turn.

    going  regions that somebody here carries already
    """
    waiting = [t for t in turns(views, desired).values() if t.fleet.id == fleet.id and not going.get(t.region)]
    first = min((turn.wave for turn in waiting), default=0)
    if any(turn.after for turn in waiting if turn.wave == first):
        return ()
    names = {turn.region for turn in waiting}
    return tuple(left for wave in fleet.waves if (left := tuple(name for name in wave if name in names)))


def next_waves(view: RegionView) -> Waves:
    """The wave that a region's rollout went in, and those after it; () where none is."""
    fleet = view.status.fleet
    order = fleet.waves if fleet else ()
    at = next((i for i, wave in enumerate(order[:-1]) if view.region.name in wave), None)
    return () if at is None else order[at:]


def _under_way(views: Mapping[str, RegionView]) -> Iterator[FleetWaves]:
    """Fleet rollouts of which a region is on its way, or live, the newest last: it counts where several name one region."""
    alive = [view for view in views.values() if view.status.fleet and view.status.state not in _TAKEN_BACK]
    ordered = sorted(alive, key=lambda view: view.status.started)
    yield from {view.status.fleet.id: view.status.fleet for view in ordered if view.status.fleet}.values()


def _through(view: RegionView, fleet: FleetWaves) -> bool:
    if _part_of(view, fleet):
        return view.status.state in ("live", "cleaned")
    return not _pending(view) and not _moves(view)


def _idle(view: RegionView, fleet: FleetWaves) -> bool:
    """It has a change to begin with, and has not begun this one."""
    return not _part_of(view, fleet) and not _moves(view) and _pending(view)


def _part_of(view: RegionView, fleet: FleetWaves) -> bool:
    return view.status.fleet is not None and view.status.fleet.id == fleet.id


def _moves(view: RegionView) -> bool:
    return bool(view.status.held) or view.status.state not in (*ENDED, "none")


def _pending(view: RegionView) -> bool:
    return bool(view.plan.changes) if view.plan else view.behind is not False
