"""Liveness check of a rebuilt feed: whether it moves, and whether its rows are right. A sample of its live commits is
recomputed; if there are none yet, the last commits of its source, or a sample of their rows, are read both by the live
path and by Delta's own reader.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import Any

from console.agent.failure import kind
from console.agent.recount import live
from console.agent.recount import sample as samples
from console.agent.recount.files import Span, Unreadable, rows_of
from console.agent.recount.live import (
    PinnedFeed,
    RecountedFeed,
    RecountResult,
    in_stored_columns,
    recompute,
    target_shape,
    without_reordered_sums,
)
from console.agent.recount.pinned_tables import Pinned, reason
from console.agent.recount.rows import RowDifference, differences
from console.agent.store import log
from console.errors import ConsoleError, RegionError
from console.model.event import Checked
from console.model.schema import quoted

MAX_COMMITS = 500  # commits of a source searched for appends
QUIET_COMMITS = 2  # appends that are computed
ROWS, BYTES = 5_000_000, 1 << 30  # limits of one append; both, since not every writer counts its rows
SAMPLED_ROWS = 50_000  # about so many of an append's rows are computed: one of history may be as large as a backfill

# context manager with the live path's rows for one source commit, of those source rows that meet a condition
DryRun = Callable[[Any, int, Mapping[str, int], str], AbstractContextManager[Any]]


def check_feed(
    session: Any, feed: RecountedFeed, pins: Mapping[str, int], seed: str, beat: int | None, dry_run: DryRun
) -> Checked:
    """Check a rebuilt feed.

    pins  table path → version, all at one landing position
    seed  of the sample of commits to recompute
    beat  version of our heartbeat in a managed landing table without traffic
    """
    name, pinned = f"feed {feed.spec.materialization}", live.pinned_feed(feed, pins)
    if why := samples.unpositioned_rows(feed.target_path):
        return Checked(table=feed.spec.target, check=name, ok=False, detail=why)
    result = live.recount(session, pinned, seed)
    if result is not None:
        detail = f"alive: {result.moved_rows:,} rows passed it live; {result.detail}"
        return Checked(
            table=feed.spec.target, check=name, ok=result.ok, detail=detail, commits=result.commits, rows=result.rows
        )
    if feed.source.table.kind != "landing":
        return Checked(
            table=feed.spec.target, check=name, ok=feed.writer is not None, detail="moves with the table above it"
        )
    result = quiet(session, pinned, dry_run)
    if beat is not None:
        passed = feed.seen >= beat
        detail = f"no traffic; passed our heartbeat, version {beat}; {result.detail}"
        ok = result.ok if passed else False
        return Checked(
            table=feed.spec.target, check=name, ok=ok, detail=detail, commits=result.commits, rows=result.rows
        )
    return Checked(
        table=feed.spec.target, check=name, ok=result.ok, detail=result.detail, commits=result.commits, rows=result.rows
    )


def quiet(session: Any, pinned: PinnedFeed, dry_run: DryRun) -> RecountResult:
    """Whether the live path would move the last rows of a quiet source correctly; nothing is written.

    The check does not wait for new rows: it must prove the path of rows, not the traffic.
    """
    driving = pinned.source.driving
    name, commits = driving.state.table.name, _last(driving.path, driving.version)
    if commits is None:
        return RecountResult(ok=True, detail=f"quiet: {name} has no row yet")
    if not commits:
        return RecountResult(
            ok=True,
            detail=f"quiet: none of the last {MAX_COMMITS} commits that {name}'s log still holds could have been a live one",
        )
    since = f"quiet since {time.strftime('%Y-%m-%d %H:%MZ', time.gmtime(commits[0].at_ms / 1000))}"
    small = sorted(commits, key=lambda commit: (_bytes(commit), -commit.version))[:QUIET_COMMITS]
    affordable = [commit for commit in small if _rows(commit) <= ROWS and _bytes(commit) <= BYTES]
    chosen = sorted(affordable, key=lambda commit: commit.version)
    if not chosen:
        return RecountResult(ok=True, detail=f"{since}; its last commits are too large to be computed again")
    try:
        compared = _compared(session, pinned, dry_run, chosen)
    except Unreadable as error:
        return RecountResult(ok=True, detail=f"{since}; nothing was computed again: {error}")
    except ConsoleError as error:
        return RecountResult(ok=False, detail=f"{since}; rows of {name} cannot be moved: {error}")
    except Exception as error:
        # a live feed would stop there with a code, and history may have quarantined the rows
        if kind(error) in ("value", "day"):
            return RecountResult(
                ok=True,
                detail=f"{since}; nothing was computed again, for a live feed would stop there: {reason(error)}",
            )
        return RecountResult(ok=None, detail=f"{since}; rows of {name} could not be moved: {reason(error)}")
    return _judged(since, name, chosen, compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What both paths computed of some commits. sampled: source rows, where not all were taken"""

    differing: tuple[RowDifference, ...]
    sampled: int | None = None


def _judged(since: str, name: str, chosen: Sequence[log.Commit], compared: _Compared) -> RecountResult:
    """The result for a quiet source whose chosen commits were computed on both paths."""
    rows, sampled = sum(map(_rows, chosen)), compared.sampled
    of = f"{rows:,} rows" if sampled is None else f"{sampled:,} of {rows:,} rows"
    detail = f"{since}; {len(chosen)} of its last commits ({of}), read as live rows are, are what Delta reads"
    if compared.differing:
        detail = f"{since}; of {name}, {_difference(compared.differing[0], [commit.version for commit in chosen])}"
    taken = rows if sampled is None else sampled
    return RecountResult(ok=not compared.differing, detail=detail, commits=len(chosen), rows=taken)


def _difference(worst: RowDifference, versions: Sequence[int]) -> str:
    at = f"version {versions[worst.number]}"
    if worst.missing or worst.extra:
        columns = f" ({', '.join(worst.columns[:3])})" if worst.columns else ""
        return f"{at} would lack {worst.missing:,} rows and have {worst.extra:,} others than Delta reads in it{columns}"
    what = f"{worst.estimates:,} sketches or moments" if worst.estimates else f"{len(worst.sums):,} sums"
    return f"{at} would give {what} that are not of the rows which Delta reads in it"


def _compared(session: Any, pinned: PinnedFeed, dry_run: DryRun, chosen: Sequence[log.Commit]) -> _Compared:
    """Compare the live path's rows of these commits, or of a sample of their source's rows, with recomputed ones.

    raises  Unreadable; errors of the live path
    """
    joined = tuple(Pinned(state, path, log.latest_version(path)) for state, path in pinned.joined)
    versions = {pin.state.table.name: pin.version for pin in joined}
    spans = [Span(at, commit.version, commit.version) for at, commit in enumerate(chosen)]
    all_rows = rows_of(session, pinned.source.driving, spans)
    sample = _sample(all_rows, pinned.source.driving.state.stored_time, sum(map(_rows, chosen)))
    source_rows = (all_rows.where(sample) if sample else all_rows).repartition(1).cache()
    try:
        sampled = source_rows.count() if sample else None
        recomputed = recompute(session, pinned, source_rows, [joined] * len(chosen)).coalesce(1)
        with ExitStack() as stack:
            made = [stack.enter_context(dry_run(session, commit.version, versions, sample)) for commit in chosen]
            each = [in_stored_columns(pinned, rows, at) for at, rows in enumerate(made)]
            rows_apart = differences(
                reduce(lambda one, other: one.unionByName(other), each), recomputed, target_shape(pinned)
            )
        differing = without_reordered_sums(session, pinned, source_rows, rows_apart)
        return _Compared(differing=differing, sampled=sampled)
    finally:
        source_rows.unpersist()


def _sample(rows: Any, time: str, number: int) -> str:
    """A condition that about `SAMPLED_ROWS` of so many source rows meet, by their time; "" for all of them.

    It depends on a row's value alone, and so chooses the same rows of both readers. If no row meets it, since all share one time,
    all are taken.
    """
    from pyspark.sql.functions import expr

    one_of = number // SAMPLED_ROWS
    kinds = {field.name: field.dataType.typeName() for field in rows.schema.fields}
    if one_of <= 1 or not kinds.get(time, "").startswith("timestamp"):
        return ""
    condition = f"pmod(xxhash64({quoted(time)}), {one_of}) = 0"
    return condition if rows.where(expr(condition)).limit(1).count() else ""


def _last(path: str, latest: int) -> list[log.Commit] | None:
    """The newest append commits, newest first; None if the table never had a row."""
    appends: list[log.Commit] = []
    had_rows = False
    for version in range(latest, max(-1, latest - MAX_COMMITS), -1):
        try:
            commit = log.commit(path, version)
        except RegionError:
            return appends
        had_rows = had_rows or bool(commit.added or commit.removed)
        if commit.kind == "append":
            appends.append(commit)
        if len(appends) == 4 * QUIET_COMMITS:
            return appends
    return appends if had_rows or latest >= MAX_COMMITS else None


def _rows(commit: log.Commit) -> int:
    return sum(max(file.rows, 0) for file in commit.added)


def _bytes(commit: log.Commit) -> int:
    return sum(file.bytes for file in commit.added)
