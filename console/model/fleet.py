"""What the regions of one fleet rollout know of each other."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FleetWaves:
    """The waves of the fleet rollout that a region's rollout is part of. Each region keeps them, so that they outlive the
    console that began them.

    id       of this fleet rollout, the same in all its regions
    waves    region names, in the order in which the waves go
    desired  (region, digest of its pipeline as it was started): a region whose files have changed since waits for a person
    attached whether rollouts of later waves are tied to their console too
    """

    id: str
    waves: tuple[tuple[str, ...], ...]
    desired: tuple[tuple[str, str], ...] = ()
    attached: bool = False
