"""Recomputation of a feed's live commits: the source's rows, by Delta's own reader, through the feed's query, compared
with the target's whole rows.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from console.agent.recount import sample as samples
from console.agent.recount.doubles import Addends, addends_by_group
from console.agent.recount.files import COMMIT, Span, Unreadable, rows_of
from console.agent.recount.joined import JoinedTable, all_versions, checkable, joined_of
from console.agent.recount.pinned_tables import Pinned, PinnedSource, first, reason
from console.agent.recount.rows import RowDifference, TargetShape, differences
from console.agent.recount.sample import LiveCommit
from console.agent.recount.sums import judge, of_groups
from console.agent.store import log
from console.errors import RegionError
from console.model.live import Feed, TableState
from console.model.newest import BUCKET, BUCKETS, ROW_HASH
from console.model.schema import quoted, types

Draw = Callable[[Sequence[LiveCommit]], Sequence[LiveCommit]]

# texts that a partition cannot hold: the empty one in Delta's protocol, the other is NULL in Hive's folder names
NULL_PARTITION_TEXTS = ("", "__HIVE_DEFAULT_PARTITION__")


class RecountedFeed(Protocol):
    """The part of a live feed that a recount uses: its definition and tables, not the code that moves it."""

    spec: Feed
    source: TableState
    target: TableState
    joins: tuple[tuple[TableState, str], ...]
    source_path: str
    target_path: str
    seen: int

    @property
    def app_id(self) -> str: ...

    @property
    def writer(self) -> object | None:
        """None until it is opened."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountResult:
    """The result of a recount. ok: None if it was not possible, for the reason in `detail`.

    commits, rows  of the sample;  moved_rows  of all live commits;  last  version of the newest of them
    """

    ok: bool | None
    detail: str
    commits: int = 0
    rows: int = 0
    moved_rows: int = 0
    last: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFeed:
    """A feed with its tables pinned for a recount.

    joined    its joined tables and their paths
    versions  all known versions of these, as earlier commits may have joined them
    """

    source: PinnedSource
    target: Pinned
    app_id: str
    joined: tuple[JoinedTable, ...] = ()
    versions: tuple[JoinedTable, ...] = ()

    @property
    def joined_names(self) -> tuple[str, ...]:
        return tuple(state.table.name for state, _ in self.joined)


def pinned_feed(feed: RecountedFeed, pins: Mapping[str, int], others: Iterable[JoinedTable] = ()) -> PinnedFeed:
    """A feed with its source and target pinned.

    pins    table path → version; tables not in it are pinned at their latest
    others  tables of other releases: versions that the feed joined earlier
    """

    def at(state: TableState, path: str) -> Pinned:
        return Pinned(state, path, pins[path] if path in pins else log.latest_version(path))

    source = PinnedSource(feed.spec, at(feed.source, feed.source_path))
    target = at(feed.target, feed.target_path)
    return PinnedFeed(
        source=source,
        target=target,
        app_id=feed.app_id,
        joined=feed.joins,
        versions=all_versions(feed.joins, others),
    )


def recount(session: Any, pinned: PinnedFeed, seed: str) -> RecountResult | None:
    """Recompute a sample of a feed's live commits; None if there are none.

    seed  of the sample
    """
    commits = samples.live_commits(pinned.target.path, pinned.app_id)
    if not commits:
        return None
    result = computed(session, pinned, commits, lambda readable: samples.sample(readable, seed))
    return replace(result, moved_rows=sum(commit.rows for commit in commits))


def computed(session: Any, pinned: PinnedFeed, commits: Sequence[LiveCommit], draw: Draw) -> RecountResult:
    """Recompute those of some commits that are drawn."""
    if overlap := samples.overlap(commits):
        return RecountResult(ok=False, detail=overlap)
    readable = checkable(commits, pinned.joined_names, pinned.versions)
    if not readable.commits:
        return RecountResult(ok=None, detail=readable.gone)
    drawn = draw(readable.commits)
    number = sum(commit.parts for commit in drawn)
    name, rows = pinned.source.driving.state.table.name, sum(commit.rows for commit in drawn)
    shape = target_shape(pinned)
    if not shape.exact and not shape.sums:
        return RecountResult(ok=True, detail="not computed again, for two computations of every column may differ")
    try:
        differing = _compared(session, pinned, drawn, shape)
    except Unreadable as error:
        return RecountResult(ok=None, detail=f"{name}: {error}; the live commits looked at are of {_day_range(drawn)}")
    except Exception as error:
        return RecountResult(
            ok=None,
            detail=f"{name} or {pinned.target.state.table.name} can no longer be read: {reason(error)} ({_day_range(drawn)})",
        )
    if isinstance(differing, str):
        return RecountResult(ok=None, detail=differing)
    if differing:
        return RecountResult(
            ok=False,
            detail=summary(differing, [commit.version for commit in drawn], name),
            commits=number,
            rows=rows,
        )
    compared = f"{number} of {len(commits)} live commits" if len(commits) > 1 else "the one live commit"
    older = f"; {readable.gone}" if readable.gone else ""
    exceptions = f", but for {first(shape.left_out)}" if shape.left_out else ""
    return RecountResult(
        ok=True,
        detail=f"{compared} ({rows:,} rows) computed again from {name}: equal{exceptions}{older}",
        commits=number,
        rows=rows,
    )


def summary(differing: Sequence[RowDifference], versions: Sequence[int], source: str) -> str:
    worst = differing[0]
    at = f"version {versions[worst.number]}"
    more = f"; {len(differing)} of {len(versions)} commits differ" if len(differing) > 1 else ""
    if worst.missing or worst.extra:
        columns = f" ({first(worst.columns)})" if worst.columns else ""
        figures = f"lacks {worst.missing:,} rows and has {worst.extra:,} others"
        return f"{at} {figures} than {source} gives as Delta reads it{columns}{more}"
    what = f"{worst.estimates:,} sketches or moments" if worst.estimates else f"{len(worst.sums):,} sums"
    return f"{at}: {what} differ from what {source} gives{more}"


def target_shape(pinned: PinnedFeed) -> TargetShape:
    """The comparison of each target column. Without the feed's terms (older consoles), every double of an aggregate may be a sum."""
    state, terms = pinned.target.state, pinned.source.feed.terms
    columns = state.version.columns
    if state.table.kind != "aggregate":
        places = {place for name in state.inexact for place in state.stored_in(name)}
        inexact = {column.name for column in columns if column.name in places}
        if state.newest is not None and inexact & {*state.newest.tie}:
            inexact.add(ROW_HASH)
        kept = tuple((c.name, c.type) for c in columns if c.name not in inexact)
        return TargetShape(exact=kept, left_out=tuple(c.name for c in columns if c.name in inexact))
    sums, sketches, volatile = (terms.sums, terms.sketches, terms.volatile) if terms else _shape_by_types(state)
    moments = [name for name in terms.moments if name not in volatile] if terms else []
    inexact = {*sums, *sketches, *volatile, *moments}
    exact = tuple((column.name, column.type) for column in columns if column.name not in inexact)
    return TargetShape(
        exact=exact,
        sums=tuple(name for name in sums if name not in volatile),
        sketches=tuple(name for name in sketches if name not in volatile),
        left_out=volatile,
        keys=terms.keys if terms else (),
        moments=tuple((column.name, column.type) for column in columns if column.name in moments),
    )


def _shape_by_types(state: TableState) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    columns = state.version.columns
    sums = tuple(column.name for column in columns if column.type == "double")
    sketches = tuple(
        column.name for column in columns if column.type == "binary" and column.name.endswith(("__hll", "__kll"))
    )
    return sums, sketches, ()


def _compared(
    session: Any, pinned: PinnedFeed, drawn: Sequence[LiveCommit], shape: TargetShape
) -> tuple[RowDifference, ...] | str:
    """Differences, except in sums that only differ by order; or the reason why there is no result."""
    source_spans = [
        Span(i, first, last) for i, commit in enumerate(drawn) for first, last in _source_runs(pinned, commit)
    ]
    target_spans = [Span(i, commit.since, commit.version) for i, commit in enumerate(drawn)]
    tasks = 1 + sum(commit.rows for commit in drawn) // samples.ROWS
    # few rows in one task, so that no shuffle follows; finding them uses all cores
    source_rows = rows_of(session, pinned.source.driving, source_spans).repartition(tasks).cache()
    try:
        stored = rows_of(session, pinned.target, target_spans).repartition(tasks)
        joins = [joined_of(commit, pinned.joined_names, pinned.versions) or () for commit in drawn]
        recomputed = recompute(session, pinned, source_rows, joins).coalesce(tasks)
        differing = differences(stored, recomputed, shape, tasks)
        if any(each.missing or each.extra for each in differing):
            shuffled = recompute(session, pinned, _in_random_order(source_rows), joins)
            if any(each.missing or each.extra for each in differences(shuffled, recomputed, shape, tasks)):
                return f"two computations of {pinned.source.feed.materialization} differ: the order of its rows counts"
        return without_reordered_sums(session, pinned, source_rows, differing)
    finally:
        source_rows.unpersist()


def _source_runs(pinned: PinnedFeed, commit: LiveCommit) -> list[tuple[int, int]]:
    """The source commits whose rows a live commit contains, as (first, last).

    raises  Unreadable if a skipped commit is gone, since it may have only inserted rows
    """
    source, runs = pinned.source.driving, list(commit.runs())
    if source.state.table.on_rewrite != "take_inserts":
        return runs
    for version in commit.passed:
        try:
            skipped = log.commit(source.path, version)
        except RegionError:
            raise Unreadable(f"commit {version} can no longer be read") from None
        if skipped.added and not skipped.removed:
            runs.append((version, version))
    return runs


def recompute(session: Any, pinned: PinnedFeed, source_rows: Any, joins: Sequence[tuple[Pinned, ...]]) -> Any:
    """The feed's query over each commit's rows, in the target's stored columns and types. joins: of each commit"""
    from pyspark.sql.functions import col

    result = None
    for number, joined in enumerate(joins):
        source = PinnedSource(pinned.source.feed, pinned.source.driving, joined)
        part = source.run_query(session, source_rows.where(col(COMMIT) == number).drop(COMMIT), pinned.source.feed.sql)
        rows = in_stored_columns(pinned, part, number)
        result = rows if result is None else result.unionByName(rows)
    return result


def in_stored_columns(pinned: PinnedFeed, rows: Any, number: int) -> Any:
    """Rows in the target's stored columns and types, with their commit's number; texts that no partition can hold are NULL."""
    from pyspark.sql.functions import col, lit, pmod, when, xxhash64

    version = pinned.target.state.version
    columns = {c.name: col(quoted(c.name)).cast(c.type) for c in version.columns if c.name in rows.columns}
    if (newest := pinned.target.state.newest) is not None and ROW_HASH not in columns:
        columns[ROW_HASH] = xxhash64(*(part for name in newest.tie for part in (columns[name].isNull(), columns[name])))
        if newest.bucket:
            columns[BUCKET] = pmod(xxhash64(*(columns[name] for name in newest.key)), lit(BUCKETS)).cast("int")
    for c in version.columns:
        if c.name in version.partition_by and c.type == "string":
            columns[c.name] = when(~columns[c.name].isin(*NULL_PARTITION_TEXTS), columns[c.name])
    return rows.select(*(made.alias(name) for name, made in columns.items()), lit(number).alias(COMMIT))


def _in_random_order(source_rows: Any) -> Any:
    from pyspark.sql.functions import rand

    return source_rows.orderBy(rand(7))


def without_reordered_sums(
    session: Any, pinned: PinnedFeed, source_rows: Any, rows_apart: Sequence[RowDifference]
) -> tuple[RowDifference, ...]:
    """The differences, except in sums that only differ by the order of addition."""
    left = (_without_reordered_sums(session, pinned, source_rows, difference) for difference in rows_apart)
    return tuple(difference for difference in left if difference is not None)


def _without_reordered_sums(
    session: Any, pinned: PinnedFeed, source_rows: Any, difference: RowDifference
) -> RowDifference | None:
    """The difference without sums that only differ by the order of addition; None if nothing else differs."""
    from pyspark.sql.functions import col

    terms = pinned.source.feed.terms
    if not difference.sums or difference.missing or difference.extra or difference.estimates:
        return difference
    if terms is None:
        raise Unreadable("the expressions of its sums are unknown: the release was made by an older console")
    kinds = types(pinned.target.state.version.columns)
    rows = source_rows.where(col(COMMIT) == difference.number).drop(COMMIT)
    addend_rows = pinned.source.run_query(session, rows, terms.sql)
    addend_rows = addend_rows.withColumns({key: col(quoted(key)).cast(kinds[key]) for key in terms.keys})
    names = sorted({name for _, name, *_ in difference.sums})
    values = addends_by_group(
        of_groups(session, addend_rows, terms.keys, [group for group, *_ in difference.sums]), "g", names
    )
    different = tuple(
        (group, name, stored, again)
        for at, (group, name, stored, again) in enumerate(difference.sums)
        if judge(values.get((at, name), Addends()), stored, again) != "same"
    )
    return RowDifference(number=difference.number, sums=different) if different else None


def _day_range(drawn: Sequence[LiveCommit]) -> str:
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(commit.at_ms / 1000)) for commit in drawn})
    return days[0] if len(days) == 1 else f"{days[0]} … {days[-1]}"
