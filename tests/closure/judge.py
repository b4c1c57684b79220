"""Whether a plan keeps what the region still holds: from the edits as they were made and the plan's steps, by itself.

For each table and day: its rows stay (the live version goes on, or is copied) or come again (from a source that holds the
day, or whose new version will). A value that only a source can give must be computed for each day that the source still
has whole. What is neither is lost, and a plan may lose only what its operator has named.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from console.errors import Problem
from console.model.plan import Plan
from console.model.step import Backfill, CatchUp, CreateTable
from tests.closure.edits import Kind
from tests.closure.facts import DAYS, Facts
from tests.closure.shapes import Fed, World


@dataclass(frozen=True, slots=True)
class Cover:
    """Days of a table by what its new version makes of them. kept: its live version goes on"""

    kept: bool
    copied: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()

    @property
    def days_kept(self) -> frozenset[str]:
        return self.copied | self.computed


def covers(plan: Plan, world: World, facts: Facts) -> dict[str, Cover]:
    """Of every table of the wanted pipeline."""
    results = {table.name: Cover(True, frozenset(facts.days(table.was or table.name))) for table in world.landing}
    made = {step.table for step in plan.steps if isinstance(step, CreateTable)}
    for fed in world.fed:
        results[fed.name] = Cover(True, frozenset(facts.days(fed.name)))
    waiting = [name for name in results if name in made]
    for name in waiting:
        del results[name]
    while waiting:
        name = next(
            name for name in waiting if all(source in results or source == name for source in _sources(plan, name))
        )
        results[name] = _of(plan, name, results, facts)
        waiting.remove(name)
    return results


def _sources(plan: Plan, name: str) -> set[str]:
    backfills = {s.source for s in plan.steps if isinstance(s, Backfill) and s.target == name}
    return backfills | {s.source for s in plan.steps if isinstance(s, CatchUp) and s.target == name}


def _of(plan: Plan, name: str, result: dict[str, Cover], facts: Facts) -> Cover:
    """A day is computed where each of its queries reads it."""
    copied: set[str] = set()
    computed: dict[str, set[str]] = {}
    for step in plan.steps:
        if isinstance(step, Backfill) and step.target == name and step.source == name:
            copied |= {day for day in facts.days(name) if not step.until or day < step.until}
        elif isinstance(step, Backfill) and step.target == name:
            read = {day for day in result[step.source].days_kept if day >= step.since}
            computed.setdefault(step.materialization, set()).update(read)
        elif isinstance(step, CatchUp) and step.target == name and step.start == "log":
            computed.setdefault(step.materialization, set()).update(result[step.source].days_kept)
    every = frozenset(DAYS).intersection(*computed.values()) if computed else frozenset[str]()
    return Cover(False, frozenset(copied), every)


def losses(plan: Plan, old: World, new: World, edits: Iterable[Kind], facts: Facts) -> Iterator[str]:
    """What the plan loses although the region holds it and nobody has let it go, in words."""
    result = covers(plan, new, facts)
    let_go = {acceptance.partition(":")[2] for acceptance in plan.allowed}
    kinds = list(edits)
    for table in new.landing:
        if gone := frozenset(facts.days(table.was or table.name)) - result[table.name].days_kept:
            yield f"{table.name} loses its rows of {', '.join(sorted(gone))}"
    for fed in new.fed:
        if all(fed.name != before.name for before in old.fed):
            continue
        cover = result[fed.name]
        values = frozenset(facts.days(fed.name))
        if (gone := values - cover.days_kept) and fed.name not in let_go:
            yield f"{fed.name} loses its rows of {', '.join(sorted(gone))}"
        yield from _values(plan, fed, cover, result, [k for k in kinds if k.table == fed.name])


def left(plan: Plan, world: World, facts: Facts) -> Facts:
    """What tables hold once a plan is live. world: as it made it"""
    gone = {name: len(DAYS) - len(cover.days_kept) for name, cover in covers(plan, world, facts).items()}
    before = {table.was: gone[table.name] for table in world.landing if table.was}
    return replace(facts, gone={**gone, **before})


def needless(problem: Problem, edits: tuple[Kind, ...]) -> bool:
    """Refused for what its source has lost, although the table's own rows give all that its only edit wants."""
    lost = problem.code in ("C101", "C102")
    return lost and len(edits) == 1 and edits[0].table == problem.node and edits[0].needs != "source"


def _values(plan: Plan, fed: Fed, cover: Cover, result: dict[str, Cover], edits: Collection[Kind]) -> Iterator[str]:
    """Values and rows that only its sources give, of days that all of them still have and that are not computed."""
    name = fed.name
    chosen = any(node.name == name and node.history for node in plan.nodes) or _given(plan, name)
    if chosen:
        return
    whole = frozenset(DAYS).intersection(*(_whole(result[source].days_kept) for source in fed.sources()))
    for edit in edits:
        missing = whole - cover.computed if edit.needs == "source" else frozenset()
        if missing:
            what = ", ".join(edit.columns) or "rows"
            yield f"{name}: {what} ({edit.name}) is not computed for {', '.join(sorted(missing))}, which {fed.source} holds"


def _whole(stored: frozenset[str]) -> frozenset[str]:
    """Days that a table certainly has whole: of one that has lost days, the oldest that is left may have lost rows too."""
    return stored if stored >= {*DAYS} else stored - {min(stored, default="")}


def _given(plan: Plan, name: str) -> bool:
    """The operator's own query gives the values."""
    state = plan.release.table(name)
    copied = any(isinstance(step, Backfill) and step.target == step.source == name for step in plan.steps)
    return copied and state is not None and bool(state.table.forward_query)
