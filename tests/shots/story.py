"""The script of the tour's pictures and the README's recording: recordings, times, keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOUR = Path(__file__).parents[2] / "docs" / "tour"
RECORDING = TOUR / "demo.jsonl.gz"  # made by tests/shots/record
FLEET = TOUR / "fleet.jsonl.gz"  # made by tests/shots/twenty
SMALL, MIDDLE, LARGE = (80, 24), (120, 36), (200, 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture. after: words of a decision; seconds: from then on; keys: pressed then, from the fleet's screen"""

    name: str
    after: str = ""
    seconds: float = 0.0
    keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A part of the README's recording: so many frames with so many recorded seconds between them, from its shot on."""

    shot: Shot
    frames: int = 1
    between: float = 1.0


IN_MIDST = Shot(name="fleet", after="in: awaiting-confirmation", seconds=1.0)
SERIES: Sequence[tuple[Path, Sequence[Shot], tuple[int, int]]] = (
    (
        RECORDING,
        (
            Shot(name="before", seconds=8.0),
            Shot(name="plan", seconds=8.0, keys=("3",)),
            Shot(name="canary", after="us: r1 → r2", seconds=45.0, keys=("2",)),
            Shot(name="gate", after="us: awaiting-confirmation", seconds=6.0, keys=("4",)),
            Shot(name="backfill", after="ap: r2 is live", seconds=120.0, keys=("down", "down", "2")),
            Shot(name="needs", after="ap: awaiting-confirmation", seconds=5.0),
            Shot(name="live", after="eu: r2 is live", seconds=11.0, keys=("down", "down")),
            Shot(name="history", after="eu: r2 is live", seconds=11.0, keys=("5",)),
            Shot(name="back", after="ap: r1 is live again", seconds=8.0, keys=("down",)),
        ),
        MIDDLE,
    ),
    (
        FLEET,
        (
            IN_MIDST,
            Shot(name="fleet-rollout", after="in: awaiting-confirmation", seconds=1.0, keys=("down", "2")),
        ),
        LARGE,
    ),
    (FLEET, (Shot(name="fleet-small", after="in: awaiting-confirmation", seconds=1.0),), SMALL),
)
SCENES: Sequence[Scene] = (
    Scene(shot=Shot(name="", seconds=8.0)),
    Scene(shot=Shot(name="", seconds=8.0, keys=("3",))),
    Scene(shot=Shot(name="", after="us: r1 → r2", seconds=10.0, keys=("2",)), frames=6, between=12.0),
    Scene(shot=Shot(name="", after="us: awaiting-confirmation", seconds=6.0, keys=("4",))),
    Scene(shot=Shot(name="", after="us: r2 is live", seconds=3.0), frames=5, between=12.0),
    Scene(shot=Shot(name="", after="ap: r2 is live", seconds=45.0, keys=("down", "down", "2")), frames=6, between=45.0),
    Scene(shot=Shot(name="", after="eu: awaiting-confirmation", seconds=8.0)),
    Scene(shot=Shot(name="", after="eu: r2 is live", seconds=11.0, keys=("down", "down"))),
)
