"""The part of a fleet rollout that each of its regions stores."""

from console.record import dataclass


@dataclass(frozen=True, slots=True)
class FleetWaves:
    """The waves of a fleet rollout. Each region stores them, so that they outlive the console that started the rollout.

    id       of this fleet rollout, the same in all its regions
    waves    region names, wave by wave
    desired  (region, digest of its pipeline at the start): a region whose files have since changed waits for a person
    attached whether rollouts of later waves are tied to their console as well
    """

    id: str
    waves: tuple[tuple[str, ...], ...]
    desired: tuple[tuple[str, str], ...] = ()
    attached: bool = False
