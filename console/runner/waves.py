"""Which regions go together, and which wait. Pure."""

from collections.abc import Iterable, Sequence

from console.model.region import Region
from console.runner.view import Outcome

Waves = tuple[tuple[str, ...], ...]
THROUGH = ("live", "unchanged", "behind")


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
