"""Kinds of edits dealt to tables by seed, several to a table where each still has its effect beside the others."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from tests.closure.carried import Carried, changed
from tests.closure.edits import KINDS, Kind
from tests.closure.shapes import Fed

OF = {(kind.table, kind.name): kind for kind in KINDS}
TOGETHER = 4  # edits of one table at most
_TABLES = ("hits", "named", "hourly", "last", "once")
# refused, or about a column that other tables read: these are the pairs' own. Retention counts from today.
_ALONE = ("a type that loses digits", "a column without NULLs", "another retention")
CARRIED = tuple(
    kind for kind in KINDS if kind.table in _TABLES and kind.name not in _ALONE and "table dropped" not in kind.name
)
# these want rows that were hidden behind others, which no copy has
HIDDEN = tuple(
    OF[key]
    for key in (
        ("last", "another order"), ("last", "another key"), ("last", "every row"),
        ("last", "a filter over columns that it keeps"), ("once", "every row"),
    )
)  # fmt: skip

# another layout or meaning of stored values, columns that tables below read, and what equal rows would not hold alike
_REFUSED_FROM_NOW = (
    ("hits", "another partition_by"), ("hits", "a type that loses digits"), ("hits", "a narrower type"),
    ("hits", "a column dropped"), ("hits", "a column renamed"),
    ("named", "another partition_by"), ("named", "a type that loses digits"), ("named", "a narrower type"),
    ("last", "another partition_by"), ("last", "a filter over its key"), ("once", "another partition_by"),
    ("once", "a wider type"), ("once", "a column that is the same for all rows"),
    ("hourly", "another measure under the name"),
)  # fmt: skip


def dealt(seed: str, kinds: Sequence[Kind], tables: int | None = None) -> list[Carried]:
    """Each kind to one table, for as many tables as are asked for. What a source that has lost days could not give is carried
    by the operator's word.
    """
    rng = random.Random(seed)
    left = rng.sample(kinds, len(kinds))
    made: list[Carried] = []
    while left and (tables is None or len(made) < tables):
        first = left.pop(0)
        name = f"t{len(made)}"
        if first.table in ("hits", "last", "once") and first not in HIDDEN and rng.random() < 0.3:
            declared = first.table == "hits" and first.name.endswith("with a default")
            lacks = first.needs == "source" and not declared
            made.append(Carried(name=name, kinds=(first,), lost=True, history="carry" if lacks else ""))
            continue
        together = [first]
        for kind in left:
            if len(together) < TOGETHER and kind.table == first.table and kind.needs in (first.needs, "none"):
                together += [kind] if fit((*together, kind)) else []
        left = [kind for kind in left if kind not in together]
        made.append(Carried(name=name, kinds=tuple(together)))
    return made


def drawn_from_now(rng: random.Random) -> tuple[tuple[Kind, ...], str]:
    """Edits of one table, and what its older rows are to show; one draw in six whether that makes sense or not."""
    table, sensible = rng.choice(_TABLES), rng.random() > 1 / 6
    own = [kind for kind in KINDS if kind.table == table and "table" not in kind.name]
    own = [kind for kind in own if not sensible or _can_be_taken_over(kind)]
    together: tuple[Kind, ...] = (rng.choice(own),)
    for kind in rng.sample(own, min(len(own), 6)):
        if len(together) < 3 and fit((*together, kind)):
            together = (*together, kind)
    if table == "hourly":
        return together, ""
    return together, rng.choice(("", "", "", *_words(together, sensible=sensible)))


def _can_be_taken_over(kind: Kind) -> bool:
    """Whether files can show an edit at all. The others are refused, and nothing is compared."""
    return not kind.groups and kind not in HIDDEN and (kind.table, kind.name) not in _REFUSED_FROM_NOW


def _words(kinds: Sequence[Kind], *, sensible: bool) -> Iterator[str]:
    changing = [kind for kind in kinds if kind.columns]
    if not sensible or changing:
        yield " as null"
    if not sensible or (changing and all(kind.name.endswith("with a default") for kind in changing)):
        yield " as default"
    if not sensible or (changing and all(kind.needs in ("own", "read") for kind in changing)):
        yield " as computed"


def fit(kinds: tuple[Kind, ...]) -> bool:
    """Whether each edit has its effect beside the others, in whatever order they are made."""
    whole = _made(kinds)
    if not whole.is_whole() or any(_made(order) != whole for order in permutations(kinds)):
        return False
    return all(_made(rest) != whole for rest in combinations(kinds, len(kinds) - 1) if rest)


def _made(kinds: tuple[Kind, ...]) -> Fed:
    """The table after some edits, whatever the order of its columns."""
    fed = changed(kinds).table(kinds[0].table)
    return replace(
        fed, items=tuple(sorted(fed.items)), where=tuple(sorted(fed.where)), defaults=tuple(sorted(fed.defaults))
    )
