"""Edits that do no harm, and edits of one value: the effect of each on rows and columns is known by construction."""

import random
from collections.abc import Callable

from tests.planning.property.build import World
from tests.planning.property.edits.hand import Edit, Hand, Made
from tests.planning.property.edits.projections import PROJECTIONS
from tests.planning.property.edits.rewrites import REWRITES
from tests.planning.property.edits.values import other_value
from tests.planning.property.render import write

__all__ = ["HARMLESS", "Edit", "Hand", "harmless", "value"]

HARMLESS: dict[str, Callable[[Hand], Made]] = REWRITES | PROJECTIONS


def harmless(rng: random.Random, world: World) -> Edit:
    return _edit(rng, world, "harmless", HARMLESS)


def value(rng: random.Random, world: World) -> Edit:
    return _edit(rng, world, "value", {"value": other_value})


def _edit(rng: random.Random, world: World, group: str, makers: dict[str, Callable[[Hand], Made]]) -> Edit:
    kind = rng.choice(list(makers))
    while True:
        hand = Hand(rng, world)
        if made := makers[kind](hand):
            old, new, truth = made
            return Edit(
                kind,
                group,
                world,
                write(old, hand.style),
                write(new, truth.get("style", hand.style)),
                added=frozenset(truth.get("added", ())),
                removed=frozenset(truth.get("removed", ())),
                renamed=tuple(truth.get("renamed", {}).items()),
                changed=frozenset(truth.get("changed", ())),
                columns=tuple(name for name, _ in old.columns),
            )
