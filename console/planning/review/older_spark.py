"""C146: queries that call functions which a region's older Spark lacks."""

from collections.abc import Iterator, Mapping
from functools import partial

from console.errors import Problem
from console.model.live import Live
from console.model.pipeline import Copy, Endpoint, Sink
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.fingerprint import Desired
from console.planning.sql.spark_functions import LACKING
from console.planning.sql.tree import called_in
from console.remedy import Edit, Elsewhere

_CALLS = Memo[Mapping[str, tuple[str, tuple[str, ...]]]](64)
_NOTHING: frozenset[str] = frozenset()


def lacking(desired: Desired, live: Live, cache: PlannerCache) -> list[Problem]:
    """One for each query that the region's Spark could not run; [] where its version is unknown, or as new as it has to be."""
    names = lacked_by(live.spark)
    if not names:
        return []
    calls = cache.by_identity(_CALLS, partial(_calls, desired, names), desired, names)
    return [
        Problem(
            code="C146",
            message=f"{node} needs {', '.join(functions)}, which Spark {live.spark} of {live.region} lacks",
            where=where,
            node=node,
            remedies=(
                Edit(node=node, how="compute it without"),
                Elsewhere(what=f"give the agent of {live.region} a newer Spark"),
            ),
        )
        for node, (where, functions) in calls.items()
    ]


def lacked_by(spark: str) -> frozenset[str]:
    """Functions that this version is known to lack. spark: "" if it is not known"""
    own = _series(spark)
    later = [(_series(version), names) for version, names in LACKING.items() if own and own <= _series(version)]
    return min(later, key=lambda entry: entry[0])[1] if later else _NOTHING


def _series(version: str) -> tuple[int, ...]:
    """Major and minor version; () if there is none. Functions come with these alone."""
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def _calls(desired: Desired, names: frozenset[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Node → its place in the files, and the functions that it calls."""
    found = {}
    for node, where, queries in _queries(desired):
        called = {name for query in queries for name in called_in(query)} & names
        if called:
            found[node] = (where, tuple(sorted(called)))
    return found


def _queries(desired: Desired) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for table in desired.tables.values():
        yield table.table.name, table.table.where, (table.read, *(feed.sql for feed in table.feeds))
    ends: tuple[Endpoint | Copy | Sink, ...] = (*desired.endpoints, *desired.copies, *desired.sinks)
    for end in ends:
        yield end.name, end.where, (end.sql,)
