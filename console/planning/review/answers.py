"""Endpoints, copies and sinks whose answers change, by an edit of their own query or of something that they read."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from console.model.live import Live, Release
from console.model.pipeline import Copy, Endpoint, Sink
from console.model.plan import Answer
from console.model.schema import types
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.cache.releases import shared_release
from console.planning.diff import split_value
from console.planning.fingerprint import Desired
from console.planning.reuse.columns_read import columns_of_query
from console.planning.sql.compile import NameScope, query, reads
from console.planning.sql.relation import physical
from console.planning.sql.tree import Text

Reader = Endpoint | Copy | Sink
Read = frozenset[tuple[str, str]]
Reasons = Mapping[tuple[str, str], str]
_READS = Memo[Read]()
_CHANGED = Memo[Reasons](256)
_KINDS = ("endpoint", "copy", "sink")


def answers(desired: Desired, live: Live, cache: PlannerCache) -> tuple[Answer, ...]:
    """Endpoints, copies and sinks of either release whose answer changes, or may change, at promotion.

    A query's answer changes if the rows of its tables or the values of its columns do. The reason names them.
    """
    release = live.release
    if release is None:
        return ()
    shared: Reasons = cache.by_identity(_CHANGED, partial(_changed, desired, release), desired, release)
    changed = dict(shared)
    affected: list[Answer] = []
    groups: tuple[tuple[Literal["copy", "endpoint", "sink"], Sequence[Reader], Sequence[Reader]], ...] = (
        ("copy", desired.copies, release.copies),
        ("endpoint", desired.endpoints, release.endpoints),
        ("sink", desired.sinks, release.sinks),
    )
    for kind, new, old in groups:
        before = {node.name: node for node in old}
        for node in new:
            if why := _why(node, before.get(node.name), release, changed, cache):
                affected.append(Answer(kind=kind, name=node.name, owner=node.owner, why=why))
                if isinstance(node, Copy):
                    changed[node.into, ""] = f"{node.into} is copied again"
        gone = [node for name, node in before.items() if name not in {other.name for other in new}]
        affected += [Answer(kind=kind, name=node.name, owner=node.owner, why="no longer declared") for node in gone]
    return tuple(sorted(affected, key=lambda answer: (_KINDS.index(answer.kind), answer.name)))


def _why(node: Reader, was: Reader | None, release: Release, changed: Reasons, cache: PlannerCache) -> str:
    if was is None:
        return "new"
    if node.sql != was.sql:
        return "its query changed"
    if isinstance(node, Endpoint) and isinstance(was, Endpoint) and node.parameters != was.parameters:
        return "its parameters changed"
    if not any(table in node.sql for table, _ in changed):  # a compiled query names every table that it reads
        return ""
    shared = shared_release(release, cache)
    read = cache.by_identity(_READS, lambda: _read(node.sql, shared, cache), shared, node.sql)
    reasons = [
        reason for key, reason in changed.items() if key in read or (key[1] == "" and key[0] in {t for t, _ in read})
    ]
    return "; ".join(dict.fromkeys(reasons))


def _read(sql: str, release: Release, cache: PlannerCache) -> Read:
    named = set(reads(Text(sql=sql)))
    tables = {s.table.name: types(s.table.columns) for s in release.tables if s.table.name in named}
    for copy in release.copies:
        if copy.into in named:
            known = {s.table.name: types(s.table.columns) for s in release.tables}
            done = query(Text(sql=copy.sql), NameScope(known))
            tables[copy.into] = dict.fromkeys(done.columns if done else (), "string")
    relations = {name: physical(name, "", columns) for name, columns in tables.items()}
    return columns_of_query(sql, NameScope(tables, relations), cache)


def _changed(desired: Desired, release: Release) -> Reasons:
    """(table, column) → why its values change; (table, "") → why its rows do."""
    reasons: dict[tuple[str, str], str] = {}
    for state in release.tables:
        name, now = state.table.name, desired.tables.get(state.table.name)
        if now is None:
            reasons[name, ""] = f"{name} is dropped"
        elif now.rows != state.rows:
            reasons[name, ""] = f"{name} holds other rows"
        elif now.values != state.values:  # equal in nearly every table of a fleet
            for column, value in state.values.items():
                new = now.values.get(column)
                if new is not None and new != value:
                    reasons[name, column.lower()] = f"{name}.{column} has {_another(new, value)}"
    return reasons


def _another(new: str, old: str) -> str:
    (expression, type), (was, of) = split_value(new), split_value(old)
    if type == of:
        return "another value"
    return "another type" if expression == was else "another type, by another expression"
