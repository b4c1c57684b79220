"""Live commits of a feed computed again, whole rows: the source's rows as Delta's own reader shows them, through the feed's
query, against what the target holds.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from console.agent.recount import sample as samples
from console.agent.recount.doubles import Added, added_up
from console.agent.recount.files import COMMIT, Span, Unreadable, rows_of
from console.agent.recount.pinned_tables import Pinned, PinnedSource, first, reason
from console.agent.recount.rows import RowDifference, TargetShape, differences
from console.agent.recount.sample import Moved
from console.agent.recount.sums import judge, of_groups
from console.agent.store import log
from console.errors import RegionError
from console.model.live import TableState
from console.model.schema import quoted, types

if TYPE_CHECKING:
    from console.agent.feeds.live_feed import LiveFeed

# Delta's protocol has no empty text of a partition, and who names folders as Hive does has no text that is Hive's NULL
NO_PARTITION = ("", "__HIVE_DEFAULT_PARTITION__")


@dataclass(frozen=True, slots=True)
class Again:
    """What computing again came to. ok None: it could not be done, and `told` says why.

    commits, rows  of the sample;  moved  rows of all live commits
    """

    ok: bool | None
    told: str
    commits: int = 0
    rows: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """A feed to be judged: what it reads, where it writes, and under which id. joined: where its joined tables lie."""

    source: PinnedSource
    target: Pinned
    app_id: str
    joined: tuple[tuple[TableState, str], ...] = ()


def lane(edge: "LiveFeed", pins: Mapping[str, int]) -> Lane:
    """A feed of a release, its two tables at one position. pins: table path → version; the latest where it names none"""

    def at(state: TableState, path: str) -> Pinned:
        return Pinned(state, path, pins[path] if path in pins else log.latest_version(path))

    source = PinnedSource(edge.spec, at(edge.source, edge.source_path))
    return Lane(source, at(edge.target, edge.target_path), edge.app_id, edge.joins)


def recount(session: Any, lane: Lane, seed: str) -> Again | None:
    """Compute a sample of a feed's live commits again; None where it has none.

    seed  which commits are drawn
    """
    commits = samples.moved(lane.target.path, lane.app_id)
    if not commits:
        return None
    return replace(_sampled(session, lane, commits, seed), moved=sum(commit.rows for commit in commits))


def _sampled(session: Any, lane: Lane, commits: Sequence[Moved], seed: str) -> Again:
    if why := samples.twice(commits):
        return Again(False, why)
    drawn = samples.sample(commits, seed)
    name, rows = lane.source.driving.state.table.name, sum(commit.rows for commit in drawn)
    if lane.joined and any(commit.joins is None for commit in drawn):
        return Again(
            None, f"as of which version {_joins(lane)} was read is not noted: an older console moved these rows"
        )
    shape = shape_of(lane)
    if not shape.exact and not shape.sums:
        return Again(True, "not computed again, for two computations of every column may differ")
    try:
        found = _compared(session, lane, drawn, shape)
    except Unreadable as gone:
        return Again(None, f"{name}: {gone}; the live commits looked at are of {_days(drawn)}")
    except Exception as error:
        return Again(
            None, f"{name} or {lane.target.state.table.name} can no longer be read: {reason(error)} ({_days(drawn)})"
        )
    if isinstance(found, str):
        return Again(None, found)
    if found:
        return Again(False, summary(found, [commit.version for commit in drawn], name), len(drawn), rows)
    which = f"{len(drawn)} of {len(commits)} live commits" if len(commits) > 1 else "the one live commit"
    left = f", but for {first(shape.left_out)}" if shape.left_out else ""
    return Again(True, f"{which} ({rows:,} rows) computed again from {name}: equal{left}", len(drawn), rows)


def summary(found: Sequence[RowDifference], versions: Sequence[int], source: str) -> str:
    worst = found[0]
    at = f"version {versions[worst.number]}"
    more = f"; {len(found)} of {len(versions)} commits differ" if len(found) > 1 else ""
    if worst.missing or worst.extra:
        columns = f" ({first(worst.columns)})" if worst.columns else ""
        figures = f"lacks {worst.missing:,} rows and has {worst.extra:,} others"
        return f"{at} {figures} than {source} gives as Delta reads it{columns}{more}"
    what = f"{worst.estimates:,} sketches" if worst.estimates else f"{len(worst.sums):,} sums"
    return f"{at}: {what} differ from what {source} gives{more}"


def shape_of(lane: Lane) -> TargetShape:
    """How the target's columns are compared; where an older console does not tell, every double of an aggregate may be a sum."""
    state, terms = lane.target.state, lane.source.feed.terms
    columns = state.version.columns
    if state.table.kind != "aggregate":
        kept = tuple((c.name, c.type) for c in columns if c.name not in state.inexact)
        return TargetShape(kept, left_out=tuple(c.name for c in columns if c.name in state.inexact))
    sums, sketches, volatile = (terms.sums, terms.sketches, terms.volatile) if terms else _guessed(state)
    odd = {*sums, *sketches, *volatile}
    exact = tuple((column.name, column.type) for column in columns if column.name not in odd)
    return TargetShape(
        exact,
        tuple(name for name in sums if name not in volatile),
        tuple(name for name in sketches if name not in volatile),
        volatile,
        terms.keys if terms else (),
    )


def _guessed(state: TableState) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    columns = state.version.columns
    sums = tuple(column.name for column in columns if column.type == "double")
    sketches = tuple(
        column.name for column in columns if column.type == "binary" and column.name.endswith(("__hll", "__kll"))
    )
    return sums, sketches, ()


def _compared(session: Any, lane: Lane, drawn: Sequence[Moved], shape: TargetShape) -> tuple[RowDifference, ...] | str:
    """What differs, sums settled; or why that cannot be told."""
    came = [Span(i, first, last) for i, commit in enumerate(drawn) for first, last in _runs(lane, commit)]
    went = [Span(i, commit.version, commit.version) for i, commit in enumerate(drawn)]
    tasks = 1 + sum(commit.rows for commit in drawn) // samples.ROWS
    # a handful of rows in one task, and no shuffle behind it; what finds them reads on every core
    held = rows_of(session, lane.source.driving, came).repartition(tasks).cache()
    try:
        stored = rows_of(session, lane.target, went).repartition(tasks)
        again = computed(session, lane, held, [commit.joins or {} for commit in drawn]).coalesce(tasks)
        found = differences(stored, again, shape, tasks)
        if any(each.missing or each.extra for each in found):
            shuffled = computed(session, lane, _shuffled(held), [commit.joins or {} for commit in drawn])
            if any(each.missing or each.extra for each in differences(shuffled, again, shape, tasks)):
                return f"two computations of {lane.source.feed.materialization} differ: the order of its rows counts"
        return tuple(each for each in (settled(session, lane, held, each) for each in found) if each is not None)
    finally:
        held.unpersist()


def _runs(lane: Lane, commit: Moved) -> list[tuple[int, int]]:
    """The source's commits whose rows a live commit holds.

    raises  Unreadable where it passed over some of which nobody can tell any more whether they only inserted
    """
    source, taken = lane.source.driving, list(commit.runs())
    if source.state.table.on_rewrite != "take_inserts":
        return taken
    for version in commit.passed:
        try:
            passed = log.commit(source.path, version)
        except RegionError:
            raise Unreadable(f"commit {version} can no longer be read") from None
        if passed.added and not passed.removed:
            taken.append((version, version))
    return taken


def computed(session: Any, lane: Lane, held: Any, joins: Sequence[dict[str, int]]) -> Any:
    """What the feed's query makes of each commit's rows, in the target's stored columns and types."""
    from pyspark.sql.functions import col

    made = None
    for number, versions in enumerate(joins):
        source = _as_of(lane, versions)
        part = source.through(session, held.where(col(COMMIT) == number).drop(COMMIT), lane.source.feed.sql)
        rows = stored_as(lane, part, number)
        made = rows if made is None else made.unionByName(rows)
    return made


def stored_as(lane: Lane, rows: Any, number: int) -> Any:
    """In the target's stored columns and types, with the number of their commit; texts that no partition holds are NULL."""
    from pyspark.sql.functions import col, lit, when

    version = lane.target.state.version
    columns = {c.name: col(quoted(c.name)).cast(c.type) for c in version.columns}
    for c in version.columns:
        if c.name in version.partition_by and c.type == "string":
            columns[c.name] = when(~columns[c.name].isin(*NO_PARTITION), columns[c.name])
    return rows.select(*(made.alias(name) for name, made in columns.items()), lit(number).alias(COMMIT))


def _as_of(lane: Lane, versions: dict[str, int]) -> PinnedSource:
    joins = tuple(Pinned(state, path, versions[state.table.name]) for state, path in lane.joined)
    return PinnedSource(lane.source.feed, lane.source.driving, joins)


def _shuffled(held: Any) -> Any:
    from pyspark.sql.functions import rand

    return held.orderBy(rand(7))


def settled(session: Any, lane: Lane, held: Any, found: RowDifference) -> RowDifference | None:
    """Without the sums that are one in another order; None where nothing else differs."""
    from pyspark.sql.functions import col

    terms = lane.source.feed.terms
    if not found.sums or found.missing or found.extra or found.estimates:
        return found
    if terms is None:
        raise Unreadable("what its sums add up is not told, for an older console made the release")
    kinds = types(lane.target.state.version.columns)
    rows = held.where(col(COMMIT) == found.number).drop(COMMIT)
    made = lane.source.through(session, rows, terms.sql)
    made = made.withColumns({key: col(quoted(key)).cast(kinds[key]) for key in terms.keys})
    names = sorted({name for _, name, *_ in found.sums})
    values = added_up(of_groups(session, made, terms.keys, [group for group, *_ in found.sums]), "g", names)
    off = tuple(
        (group, name, stored, again)
        for at, (group, name, stored, again) in enumerate(found.sums)
        if judge(values.get((at, name), Added()), stored, again) != "same"
    )
    return RowDifference(found.number, sums=off) if off else None


def _joins(lane: Lane) -> str:
    return first([state.table.name for state, _ in lane.joined])


def _days(drawn: Sequence[Moved]) -> str:
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(commit.at_ms / 1000)) for commit in drawn})
    return days[0] if len(days) == 1 else f"{days[0]} … {days[-1]}"
