"""An edit with its true effect, and the tools of the modules that write edits."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from tests.planning.property import model
from tests.planning.property.build import Maker, World
from tests.planning.property.model import Expr, Query, Select, selects
from tests.planning.property.render import Style


@dataclass(frozen=True)
class Edit:
    """One pair of queries and the truth about it.

    group   `harmless`: the old columns keep rows and values, so that only `added`, `removed` and `renamed` may differ;
            `value`: the rows stay and exactly `changed` get other values;
            `hazard`: rows differ, or `changed` values do: the answer must not be "nothing old has changed"
    """

    kind: str
    group: str
    world: World
    old: str
    new: str
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    renamed: tuple[tuple[str, str], ...] = ()
    changed: frozenset[str] = frozenset()
    rows: bool = False  # a hazard in which the rows themselves differ
    columns: tuple[str, ...] = ()  # of the old query


@dataclass
class Hand:
    """What a writer of edits has at hand: dice, a maker of expressions, and the style both texts begin with."""

    rng: random.Random
    world: World
    maker: Maker = field(init=False)
    style: Style = field(init=False)

    def __post_init__(self) -> None:
        self.maker = Maker(self.rng, self.world)
        self.style = Style(ctes=self.rng.random() < 0.3, qualified=self.rng.random() < 0.6)

    def pick(self, query: Query, wanted: Callable[[Select], bool]) -> Select | None:
        results = [select for select in selects(query) if wanted(select)]
        return self.rng.choice(results) if results else None

    def unused(self, select: Select) -> Expr | None:
        """A column of a plain table that nothing in this SELECT reads, so that nothing here determines it."""
        used = {column for expr in select.exprs() for column in expr.columns()}
        used |= {(s.alias, name) for s in select.sources for name in s.using}
        free = [
            model.col(s.alias, name, type)
            for s in select.sources
            for name, type in s.columns
            if isinstance(s.what, str) and (s.alias, name) not in used and not type.startswith("array")
        ]
        return self.rng.choice(free) if free else None


class Truth(TypedDict, total=False):
    """What is known of an edit from how it was made; `style` is the hand in which the new text is written."""

    added: set[str]
    removed: set[str]
    changed: set[str]
    renamed: dict[str, str]
    style: Style


Made = tuple[Query, Query, Truth] | None
