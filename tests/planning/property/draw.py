"""Thousands of edits, the same for the same seed."""

import random
from collections.abc import Iterator

from tests.planning.property import edits, hazards, mutations
from tests.planning.property.build import World, world
from tests.planning.property.edits import Edit

SEED = 20261121
PER_WORLD = 40  # edits that share their tables and rows


def drawn(count: int, seed: int = SEED) -> Iterator[Edit]:
    """In every ten: four hazards, three harmless, one value and two mutations."""
    here: World | None = None
    for number in range(count):
        if number % PER_WORLD == 0 or here is None:
            here = world(random.Random(f"{seed}/world/{number}"))
        rng = random.Random(f"{seed}/{number}")
        match number % 10:
            case 0 | 1 | 2 | 3:
                yield hazards.hazard(rng, here)
            case 4:
                yield edits.value(rng, here)
            case 5 | 6:
                yield mutations.mutation(rng, here)
            case _:
                yield edits.harmless(rng, here)
