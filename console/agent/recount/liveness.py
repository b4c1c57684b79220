"""Is a rebuilt feed alive, and are the rows right that it moves? By live commits computed again; where none came yet, by the
last commits of its source, read as live rows are read and as Delta reads them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import reduce
from typing import TYPE_CHECKING, Any

from console.agent.recount import live
from console.agent.recount import sample as samples
from console.agent.recount.files import Span, Unreadable, rows_of
from console.agent.recount.live import Again, Lane, computed, settled, shape_of, stored_as
from console.agent.recount.pinned_tables import reason
from console.agent.recount.rows import RowDifference, differences
from console.agent.resilience.failure import kind
from console.agent.store import log
from console.errors import ConsoleError, RegionError
from console.model.event import Checked

if TYPE_CHECKING:
    from console.agent.feeds.live_feed import LiveFeed

LOOKED_AT = 500  # commits of a source, for some that could have been live ones
QUIET_COMMITS = 2  # of them
ROWS, BYTES = 5_000_000, 1 << 30  # of one that may be computed again; not every writer counts its rows

# what the live path makes of one commit of the source, to be read inside
Dry = Callable[[Any, int, Mapping[str, int]], AbstractContextManager[Any]]


def alive(session: Any, edge: "LiveFeed", pins: Mapping[str, int], seed: str, beat: int | None, dry: Dry) -> Checked:
    """One check of a rebuilt feed.

    pins  table path → version, all at one landing position
    seed  which commits are computed again
    beat  the version of our heartbeat in a managed landing table without traffic
    """
    name, lane = f"feed {edge.spec.materialization}", live.lane(edge, pins)
    if why := samples.strays(edge.target_path):
        return Checked(edge.spec.target, name, False, why)
    again = live.recount(session, lane, seed)
    if again is not None:
        told = f"alive: {again.moved:,} rows passed it live; {again.told}"
        return Checked(edge.spec.target, name, again.ok, told, again.commits, again.rows)
    if edge.source.table.kind != "landing":
        return Checked(edge.spec.target, name, edge.writer is not None, "moves with the table above it")
    again = quiet(session, lane, dry)
    if beat is not None:
        passed = edge.seen >= beat
        told = f"no traffic; passed our heartbeat, version {beat}; {again.told}"
        ok = again.ok if passed else False
        return Checked(edge.spec.target, name, ok, told, again.commits, again.rows)
    return Checked(edge.spec.target, name, again.ok, again.told, again.commits, again.rows)


def quiet(session: Any, lane: Lane, dry: Dry) -> Again:
    """Whether the live path would move the last rows of a quiet source as they are: nothing is written.

    A source that nobody writes at the moment is no reason to wait: what is to be proven is the way of its rows.
    """
    driving = lane.source.driving
    name, commits = driving.state.table.name, _last(driving.path, driving.version)
    if commits is None:
        return Again(True, f"quiet: {name} has no row yet")
    if not commits:
        held = f"the last {LOOKED_AT} commits that {name}'s log still holds"
        return Again(True, f"quiet: none of {held} could have been a live one")
    since = f"quiet since {time.strftime('%Y-%m-%d %H:%MZ', time.gmtime(commits[0].at_ms / 1000))}"
    small = sorted(commits, key=lambda commit: (_bytes(commit), -commit.version))[:QUIET_COMMITS]
    fit = [commit for commit in small if _rows(commit) <= ROWS and _bytes(commit) <= BYTES]
    chosen = sorted(fit, key=lambda commit: commit.version)
    if not chosen:
        return Again(True, f"{since}; its last commits are too large to be computed again")
    try:
        found = _tried(session, lane, dry, chosen)
    except Unreadable as gone:
        return Again(True, f"{since}; nothing was computed again: {gone}")
    except ConsoleError as error:
        return Again(False, f"{since}; rows of {name} cannot be moved: {error}")
    except Exception as error:
        if kind(error) in ("value", "day"):  # a live feed stops at it by name, and history may have set it aside
            return Again(
                True, f"{since}; nothing was computed again, for a live feed would stop there: {reason(error)}"
            )
        return Again(None, f"{since}; rows of {name} could not be moved: {reason(error)}")
    rows = sum(map(_rows, chosen))
    if found:
        versions = [commit.version for commit in chosen]
        return Again(False, f"{since}; of {name}, {_would(found[0], versions)}", len(chosen), rows)
    return Again(
        True,
        f"{since}; {len(chosen)} of its last commits ({rows:,} rows), read as live rows are, are what Delta reads",
        len(chosen),
        rows,
    )


def _would(worst: RowDifference, versions: Sequence[int]) -> str:
    at = f"version {versions[worst.number]}"
    if worst.missing or worst.extra:
        columns = f" ({', '.join(worst.columns[:3])})" if worst.columns else ""
        return f"{at} would lack {worst.missing:,} rows and have {worst.extra:,} others than Delta reads in it{columns}"
    what = f"{worst.estimates:,} sketches" if worst.estimates else f"{len(worst.sums):,} sums"
    return f"{at} would give {what} that are not of the rows which Delta reads in it"


def _tried(session: Any, lane: Lane, dry: Dry, chosen: Sequence[log.Commit]) -> tuple[RowDifference, ...]:
    """What differs between these commits' rows as the live path makes them and as they are computed again.

    raises  Unreadable; what the live path raises
    """
    joins = {state.table.name: log.latest_version(path) for state, path in lane.joined}
    spans = [Span(at, commit.version, commit.version) for at, commit in enumerate(chosen)]
    held = rows_of(session, lane.source.driving, spans).repartition(1).cache()
    try:
        again = computed(session, lane, held, [joins] * len(chosen)).coalesce(1)
        with ExitStack() as open:
            made = [open.enter_context(dry(session, commit.version, joins)) for commit in chosen]
            each = [stored_as(lane, rows, at) for at, rows in enumerate(made)]
            found = differences(reduce(lambda one, other: one.unionByName(other), each), again, shape_of(lane))
        return tuple(each for each in (settled(session, lane, held, each) for each in found) if each is not None)
    finally:
        held.unpersist()


def _last(path: str, latest: int) -> list[log.Commit] | None:
    """The newest commits that could have been live ones, newest first; None where the table never held a row."""
    found: list[log.Commit] = []
    held = False
    for version in range(latest, max(-1, latest - LOOKED_AT), -1):
        try:
            commit = log.commit(path, version)
        except RegionError:
            return found
        held = held or bool(commit.added or commit.removed)
        if commit.kind == "append":
            found.append(commit)
        if len(found) == 4 * QUIET_COMMITS:
            return found
    return found if held or latest >= LOOKED_AT else None


def _rows(commit: log.Commit) -> int:
    return sum(max(file.rows, 0) for file in commit.added)


def _bytes(commit: log.Commit) -> int:
    return sum(file.bytes for file in commit.added)
