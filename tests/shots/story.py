"""What the tour's pictures and the README's recording show: which recording, when, after which keys."""

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
        FLEET,
        (
            IN_MIDST,
            Shot(name="fleet-rollout", after="in: awaiting-confirmation", seconds=1.0, keys=("down", "2")),
        ),
        LARGE,
    ),
    (FLEET, (Shot(name="fleet-small", after="in: awaiting-confirmation", seconds=1.0),), SMALL),
)
SCENES: Sequence[Scene] = ()
