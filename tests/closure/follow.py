"""Remedies carried out: a program applies a refusal's advice to the files and the command line."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from console.errors import Problem, Problems
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.schema import Accepts, Column, Table
from console.planning import PlannerCache, plan
from console.remedy import (
    AnotherColumn,
    DropKey,
    Edit,
    Elsewhere,
    Flag,
    KeepLive,
    Remedy,
    RunCommand,
    SetKey,
    Stays,
    StopReading,
)
from tests.closure.edits import Kind
from tests.closure.facts import REGION
from tests.closure.shapes import Fed, World, fed_by

LITERALS = {"string": "'?'", "boolean": "false", "date": "DATE '1970-01-01'", "timestamp": "TIMESTAMP '1970-01-01'"}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What an operator has: edits of a pipeline, and what is typed.

    patches  edits of the declared tables beside them: table → what is done to it
    carried  the change before carried rows by the operator's word: not even a table's own rows then follow its query
    """

    old: World
    edits: tuple[Kind, ...]
    history: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    patches: tuple[tuple[str, Callable[[Table], Table]], ...] = ()
    carried: bool = False

    @property
    def world(self) -> World:
        world = self.old
        for edit in self.edits:
            world = edit.apply(world)
        return world

    def pipeline(self) -> Pipeline:
        wanted = self.world.pipeline()
        for name, change in self.patches:
            wanted = replace(wanted, tables=tuple(change(t) if t.name == name else t for t in wanted.tables))
        return _one_of(wanted)

    def settled(self) -> tuple[tuple[str, Callable[[Table], Table]], ...]:
        """The same patches once they are live: a forward query is the text that it was."""
        written = {table.name: table.forward_query for table in self.pipeline().tables}
        kept = {name for name, _ in self.patches if name in written}
        return (*self.patches, *((name, _with_query(written[name])) for name in sorted(kept)))

    def patched(self, name: str, change: Callable[[Table], Table]) -> "Attempt":
        return replace(self, patches=(*self.patches, (name, change)))


def _with_query(text: str) -> Callable[[Table], Table]:
    return lambda table: replace(table, forward_query=text)


@lru_cache(maxsize=64)
def _one_of(pipeline: Pipeline) -> Pipeline:
    """The same object for equal pipelines, by which the planner knows that it has compiled one."""
    return pipeline


def answer(attempt: Attempt, live: Live, cache: PlannerCache) -> tuple[Plan | None, tuple[Problem, ...]]:
    """The plan, or None where there is none at all; and what is refused."""
    try:
        made = plan(
            attempt.pipeline(), live, REGION, "test", cache, allowed=attempt.allowed, history=dict(attempt.history)
        )
    except Problems as problems:
        return None, problems.problems
    return made, made.refusals


def followed(attempt: Attempt, problem: Problem, remedy: Remedy, live: Live) -> Attempt | None:
    """The attempt with one remedy carried out; None where that is done outside of files and options."""
    match remedy:
        case SetKey(node=node, key="history", value=value):
            typed = {name: word for name, word in attempt.history.items() if name != node}
            return replace(attempt, history={**typed, node: value})
        case SetKey(node=node, key=key, value=value, columns=columns, without=other):
            set_ = attempt.patched(node, lambda table: _set(table, key, value, columns, live))
            return set_.patched(node, lambda table: _dropped(table, other)) if other else set_
        case DropKey(node=node, key="history"):
            rest = {name: word for name, word in attempt.history.items() if name != node}
            return replace(attempt, history=rest).patched(node, lambda table: replace(table, history=""))
        case DropKey(node=node, key=key):
            return attempt.patched(node, lambda table: _dropped(table, key))
        case KeepLive(node=node):
            return _undone(attempt, {node})
        case AnotherColumn(node=node, column=column):
            beside = _edited(attempt, node, lambda fed: fed.beside(column, attempt.old.table(node)))
            return beside and _with_what_is_declared(attempt, beside, node, column, live)
        case StopReading(node=node, column=column):
            return _edited(attempt, fed_by(node), lambda fed: fed.not_reading(column))
        case Flag(flag=flag):
            return _flagged(attempt, flag)
        case Edit(node=node):
            return _undone(attempt, {fed_by(node), problem.node})
        case Stays():
            return _undone(attempt, {fed_by(problem.node)})
        case RunCommand() | Elsewhere():
            return None


def _flagged(attempt: Attempt, flag: str) -> Attempt:
    match flag.split():
        case ["--allow-destructive", loss]:
            return replace(attempt, allowed=attempt.allowed | {loss})
        case ["--allow-protocol"]:
            return replace(attempt, allowed=attempt.allowed | {"C122:*"})
        case ["--history", choice]:
            name, _, word = choice.partition("=")
            return replace(attempt, history={**attempt.history, name: word})
    raise AssertionError(f"no such option: {flag}")


def _edited(attempt: Attempt, table: str, change: Callable[[Fed], Fed]) -> Attempt | None:
    """With one more edit of a table that is fed; None where that leaves it as it was, or without what it is declared by."""
    if all(fed.name != table for fed in attempt.world.fed):
        return None
    fed = attempt.world.table(table)
    changed = change(fed)
    if changed == fed or not changed.is_whole() or not changed.items:
        return None
    edit = Kind(name="as the remedy says", table=table, apply=lambda world: world.with_fed(change(world.table(table))))
    return replace(attempt, edits=(*attempt.edits, edit))


def _with_what_is_declared(before: Attempt, beside: Attempt, node: str, column: str, live: Live) -> Attempt:
    """A column under another name: with the default that it was given, and computed by the forward query of its change."""
    was, now = before.pipeline().table(node), beside.pipeline().table(node)
    wanted = was.column(column) if was else None
    if was is None or now is None or wanted is None:
        return beside
    fresh = {c.name for c in now.columns} - {c.name for c in was.columns}
    if wanted.default is not None:
        beside = beside.patched(node, lambda table: _with_default(table, fresh, wanted.default))
    return beside.patched(node, lambda table: _given_anew(table, live))


def _with_default(table: Table, names: Collection[str], default: str | None) -> Table:
    return replace(table, columns=tuple(replace(c, default=default) if c.name in names else c for c in table.columns))


def _undone(attempt: Attempt, nodes: set[str]) -> Attempt | None:
    """An edit in words: its author takes back what the refusal is about."""
    kept = tuple(edit for edit in attempt.edits if edit.table not in nodes)
    return replace(attempt, edits=kept) if kept != attempt.edits else None


def _set(table: Table, key: str, value: str, columns: Sequence[str], live: Live) -> Table:
    if columns:
        return replace(table, columns=tuple(_column(c, key, value) if c.name in columns else c for c in table.columns))
    match key:
        case "forward_query":
            return replace(table, forward_query=", ".join(_computed(table, live)))
        case "partition_by":
            return replace(table, partition_by=tuple(value.strip("[]").split(", ")))
        case "managed":
            return replace(table, managed=True)
        case "was":
            return replace(table, was=value)
        case "accepts":
            return replace(table, accepts=Accepts(shape=value.removeprefix("{shape: ").removesuffix("}")))
    raise AssertionError(f"nobody knows how to write {key}")


def _given_anew(table: Table, live: Live) -> Table:
    """With a forward query of this change, if it has one, that computes the columns as they are called now."""
    state = live.release.table(table.name) if live.release else None
    if not table.forward_query or (state is not None and state.table.forward_query == table.forward_query):
        return table
    return replace(table, forward_query=", ".join(_computed(table, live)))


def _column(column: Column, key: str, value: str) -> Column:
    match key:
        case "default":
            return replace(column, default=value or LITERALS.get(column.type, "0"))
        case "nullable":
            return replace(column, nullable=value == "true")
        case "type":
            return replace(column, type=value)
    raise AssertionError(f"nobody knows how to write {key} of a column")


def _computed(table: Table, live: Live) -> Iterator[str]:
    """A forward query as an operator would write it: what is there stays, what is new is empty."""
    state = live.release.table(table.name) if live.release else None
    for column in table.columns:
        stored = state.table.column(column.name) if state else None
        if stored is not None and stored.type == column.type:
            yield column.name
        elif stored is not None:
            yield f"try_cast({column.name} AS {column.type}) AS {column.name}"
        elif column.nullable:
            yield f"CAST(NULL AS {column.type}) AS {column.name}"
        else:
            yield f"CAST({LITERALS.get(column.type, '0')} AS {column.type}) AS {column.name}"


def _dropped(table: Table, key: str) -> Table:
    match key:
        case "forward_query":
            return replace(table, forward_query="")
        case "partition_by":
            return replace(table, partition_by=())
        case "cluster_by":
            return replace(table, cluster_by=())
        case "managed":
            return replace(table, managed=False)
        case "backward_query":
            return replace(table, backward_query="")
    raise AssertionError(f"nobody knows how to drop {key}")
