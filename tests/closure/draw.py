"""Pairs by seed: a deployed pipeline, the rows that its region still holds, and the pipeline that its operators want instead."""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from console.model.schema import history_word
from tests.closure.edits import KINDS, Kind
from tests.closure.facts import DAYS, Facts
from tests.closure.follow import Attempt
from tests.closure.shapes import FURTHER, WORLD, Fed, World

SEED = 20261123
_OLDER = (" as computed", " as default", " as null")
_BROKEN = ("id FROM hits", "id, ts", "*, row_number() OVER (ORDER BY n) AS more", "* EXCEPT (n), no_such AS n")


def _taken(word: str) -> bool:
    with suppress(ValueError):
        return history_word(word) is not None
    return False


WORDS = tuple(word for word in ("carry", "from now") if _taken(word))  # beside `since`, which has a day


@dataclass(frozen=True, kw_only=True)
class Pair:
    """seed: by which it is drawn again;  then: another change, once the first one is live"""

    seed: str
    attempt: Attempt
    facts: Facts
    then: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        attempt = self.attempt
        options = [f"{name}={word}" for name, word in attempt.history.items()]
        queries = [f"{fed.name} by {fed.forward_query}" for fed in attempt.world.fed if fed.forward_query]
        text = ", ".join(f"{name} lost {count}" for name, count in self.facts.gone.items())
        then = f", then {' + '.join(map(str, self.then))}" if self.then else ""
        return f"[{self.seed}] {' + '.join(map(str, attempt.edits))}{then} {options} {queries} ({text or 'nothing lost'}; vague: {sorted(self.facts.vague)})"


def drawn(count: int, seed: int = SEED) -> Iterator[Pair]:
    for number in range(count):
        yield pair(f"{seed}/{number}")


def pair(seed: str) -> Pair:
    rng = random.Random(seed)
    world = _variant(rng)
    attempt = Attempt(old=world, edits=_edits(world, rng))
    words, facts = _with_words(attempt, rng), _facts(rng)
    then = _then(attempt, rng) if rng.random() < 0.25 else ()
    return Pair(seed=seed, attempt=words, facts=facts, then=then)


def has_effect(kind: Kind, world: World) -> bool:
    """Whether a table is still there for an edit, with the columns that it takes, and is another one then."""
    with suppress(StopIteration):
        return kind.apply(world) != world and kind.apply(world).is_whole()
    return False


def stands_alone(kind: Kind, before: Sequence[Kind], old: World) -> bool:
    """Whether an edit means behind others of its table what it means by itself: of a table that is fed, in either order.

    before  edits of the pipeline `old`, each of another table
    """
    touching = [edit for edit in before if edit.table == kind.table]
    if not touching or any(table.name == kind.table for table in old.landing):
        return True
    if len(touching) > 1 or kind in touching:  # an edit, and what a remedy made of it; or the same filter twice
        return False
    with suppress(StopIteration):
        (edit,) = touching
        orders = (edit.apply(kind.apply(old)), kind.apply(edit.apply(old)))
        first, second = (_sorted(world.table(kind.table)) for world in orders)
        other = kind.needs == "own" and _other_values(edit, old)  # from which the second one would be computed
        stored = _new_values(edit, old)
        known = {*edit.columns} & {*kind.columns} or stored & (_new_values(kind, old) | _newly_filtered(kind, old))
        return first == second and not known and not other
    return False


def _new_values(edit: Kind, old: World) -> set[str]:
    """Expressions that its table has only afterwards: what the first edit stores, the second one need not compute."""
    before, after = ({sql for _, _, sql in world.table(edit.table).items} for world in (old, edit.apply(old)))
    return after - before


def _newly_filtered(edit: Kind, old: World) -> set[str]:
    """Words of the conditions that its table has only afterwards, columns among them."""
    before, after = ({*world.table(edit.table).where} for world in (old, edit.apply(old)))
    return {word for condition in after - before for word in re.findall(r"\w+", condition)}


def _other_values(edit: Kind, old: World) -> bool:
    """Whether a column that its table keeps already gets other values, and not only another type."""
    before = {name: expression for name, _, expression in old.table(edit.table).items}
    after = {name: expression for name, _, expression in edit.apply(old).table(edit.table).items}
    changed = [after[name] for name in before.keys() & after.keys() if after[name] != before[name]]
    return any(not expression.upper().startswith(("CAST(", "TRY_CAST(")) for expression in changed)


def _sorted(fed: Fed) -> Fed:
    """The same table whatever the order of its columns and conditions."""
    return replace(fed, items=tuple(sorted(fed.items)), where=tuple(sorted(fed.where)))


def _then(attempt: Attempt, rng: random.Random) -> tuple[Kind, ...]:
    """The change after the first one: of any table, and as often of one that the first one has changed."""
    if rng.random() < 0.5:
        return _edits(attempt.world, rng)
    touched = {edit.table for edit in attempt.edits}
    return _edits(attempt.world, rng, [kind for kind in KINDS if kind.table in touched])


def _edits(world: World, rng: random.Random, among: Sequence[Kind] = KINDS) -> tuple[Kind, ...]:
    """One edit or several, of each table one."""
    kinds = [kind for kind in among if kind.table in {*_names(world), "again"}]
    if not kinds:  # the first change has dropped, or renamed, all tables that it is about
        return ()
    edits = [rng.choice(kinds)]
    while rng.random() < 0.3:
        edits.append(rng.choice(kinds))
    return tuple({edit.table: edit for edit in edits}.values())


def _names(world: World) -> set[str]:
    return {table.name for table in (*world.landing, *world.fed)} | {name for name, _ in world.endpoints}


def _variant(rng: random.Random) -> World:
    """The pipeline with a few turns of its own, as no two pipelines are alike."""
    world = _joined(rng)
    if rng.random() < 0.2:
        world = world.with_landing(replace(world.land("events"), managed=False))
    if rng.random() < 0.2:
        world = world.with_fed(replace(world.table("hourly"), source="hits", retention=30))
    if rng.random() < 0.2:
        world = world.with_fed(replace(world.table("hits"), time="", partition_by=("day",)))
    if rng.random() < 0.15:
        world = world.with_fed(replace(world.table("hits"), forward_query="*, 1 AS agent"))
    if rng.random() < 0.2:
        world = world.with_landing(replace(world.land("events"), retention_days=5))
    return world


def _joined(rng: random.Random) -> World:
    """The usual tables, and now and then those of another kind."""
    world = WORLD
    for which in ("last", "once", "both", rng.choice(("raw", "clean"))):
        if rng.random() < 0.25:
            more = FURTHER[which]
            landing = tuple(table for table in more.landing if table not in WORLD.landing)
            world = world.more(*(fed for fed in more.fed if fed not in WORLD.fed), landing=landing)
    return world


def _with_words(attempt: Attempt, rng: random.Random) -> Attempt:
    """With a `history` or a `forward_query`, sensible or not."""
    for edit in attempt.edits:
        if edit.table not in {fed.name for fed in attempt.world.fed} or edit.table == "again":
            continue
        dice = rng.random()
        if dice < 0.1:
            word = rng.choice(WORDS) + rng.choice(("", "", *_OLDER))
            attempt = replace(attempt, history={**attempt.history, edit.table: word})
        elif dice < 0.2:
            attempt = replace(attempt, history={**attempt.history, edit.table: f"since {rng.choice(DAYS)}"})
        elif dice < 0.25:
            written = rng.choice(_BROKEN)
            attempt = attempt.patched(edit.table, lambda table, written=written: replace(table, forward_query=written))
        elif dice < 0.3:
            attempt = attempt.patched(edit.table, lambda table: replace(table, forward_query="*"))
    return attempt


def _facts(rng: random.Random) -> Facts:
    gone: dict[str, int] = {}
    if rng.random() < 0.5:
        gone["events"] = rng.choice((1, 3, 3, len(DAYS)))
    if rng.random() < 0.3:
        gone["hits"] = rng.choice((1, 3, len(DAYS)))
    for name in ("raw", "later"):
        if rng.random() < 0.3:
            gone[name] = rng.choice((1, 3, len(DAYS)))
    vague = frozenset(name for name in ("events", "hits", "hourly") if rng.random() < 0.1)
    return Facts(gone=gone, vague=vague)
