"""The steps that build a release, in the order in which they run."""

from collections.abc import Collection, Sequence

from console.model.landing import RELAY
from console.model.live import Live, TableState
from console.model.plan import NodeChange
from console.model.region import Limits
from console.model.step import (
    AddColumns,
    Backfill,
    CatchUp,
    Comparison,
    CreateTable,
    Pair,
    Promote,
    Step,
    Validate,
)
from console.planning.cache.planner_cache import PlannerCache
from console.planning.derived.prices import copied_read, replayed_read
from console.planning.derived.release import added, ties_anew
from console.planning.routes.verdict import LiveCopy, Verdict, Verdicts


def steps(verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache) -> tuple[Step, ...]:
    """The steps in order; () if no table of the region changes."""
    wanted = [verdict for verdict in verdicts.tables.values() if verdict.wanted is not None]
    rebuilt = [verdict for verdict in wanted if verdict.rebuilt]
    made: list[Step] = [
        CreateTable(verdict.name)
        for verdict in wanted
        if verdict.rebuilt or (verdict.is_landing and live.table(verdict.name) is None)
    ]
    for verdict in wanted:
        if columns := added(verdict, live):
            made.append(AddColumns(verdict.name, columns))
    made += _filled(rebuilt, verdicts, live, limits, cache)
    if rebuilt:
        made.append(Validate(tuple(_comparison(verdict) for verdict in rebuilt if verdict.live is not None)))
    return tuple(made)


def _filled(
    rebuilt: Sequence[Verdict], verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache
) -> list[Step]:
    """Backfills, then catch-ups. Tables that a backfill joins are caught up before it: a table fed from a rebuilt one's
    log is empty until then, and the join would find nothing.

    rebuilt  sources first
    """
    made: list[Step] = []
    caught_up: set[str] = set()
    for verdict in rebuilt:
        backfills = _backfills(verdict, verdicts, live, limits, cache)
        before = _above(_joined_by(verdict), verdicts) if backfills else frozenset[str]()
        for joined in rebuilt:
            if joined.name in before and joined.name not in caught_up:
                made += _catch_ups(joined, verdicts)
                caught_up.add(joined.name)
        made += backfills
    for verdict in rebuilt:
        if verdict.name not in caught_up:
            made += _catch_ups(verdict, verdicts)
    return made


def _joined_by(verdict: Verdict) -> frozenset[str]:
    """Tables that its queries join when they run over history."""
    feeds = verdict.wanted.feeds if verdict.wanted is not None and verdict.recomputed is not None else ()
    return frozenset(name for feed in feeds for name in feed.joins)


def _above(names: Collection[str], verdicts: Verdicts) -> frozenset[str]:
    """These tables and everything upstream of them."""
    above: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        wanted = verdicts.tables[name].wanted
        if name not in above and wanted is not None:
            above.add(name)
            waiting += [source for feed in wanted.feeds for source in (feed.source, *feed.joins)]
    return frozenset(above)


def _backfills(verdict: Verdict, verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache) -> list[Step]:
    assert verdict.wanted is not None
    backfills: list[Step] = []
    if (copied := verdict.copied) is not None:
        assert verdict.live is not None
        if copied.linked:
            return [_linked(verdict.name, copied)]
        time = verdict.live.stored_time if verdict.is_landing and copied.states else verdict.live.table.time
        price, read = copied_read(copied, verdict.live, live, limits, cache)
        backfills.append(
            Backfill(materialization="", source=verdict.name, target=verdict.name, route="forward", sql=copied.sql, time=time, rows=price.rows, bytes=price.bytes, days=price.days, batches=price.batches, stored=copied.states, since="", until=copied.until, columns=read)
        )  # fmt: skip
    if (recomputed := verdict.recomputed) is None:
        return backfills
    for feed in verdict.wanted.feeds:
        if verdicts.follows_log(feed):
            continue
        source = verdicts.tables[feed.source].wanted
        assert source is not None
        price, read = replayed_read(recomputed, feed, source, live, limits, cache)
        backfills.append(
            Backfill(materialization=feed.materialization, source=feed.source, target=verdict.name, route="replay", sql=recomputed.query(feed), time=source.table.time, rows=price.rows, bytes=price.bytes, days=price.days, batches=price.batches, stored=False, since=recomputed.since, until="", columns=read, states=recomputed.completes_states)
        )  # fmt: skip
    return backfills


def _linked(name: str, copied: LiveCopy) -> Backfill:
    """History whose files are linked: one batch, which reads nothing."""
    return Backfill(
        materialization="", source=name, target=name, route="forward", sql=copied.sql, time="", rows=0, bytes=0, days=0,
        batches=1, stored=True, linked=True,
    )  # fmt: skip


def _catch_ups(verdict: Verdict, verdicts: Verdicts) -> list[Step]:
    assert verdict.wanted is not None
    catch_ups: list[Step] = [CatchUp(RELAY, verdict.name, verdict.name, "fence")] if verdict.is_landing else []
    for feed in verdict.wanted.feeds:
        if verdict.recomputed is None:
            catch_ups.append(CatchUp(feed.materialization, feed.source, verdict.name, "vector"))
        else:
            start = verdicts.follows_log(feed)
            catch_ups.append(CatchUp(feed.materialization, feed.source, verdict.name, "log" if start else "fence"))
    return catch_ups


def _comparison(verdict: Verdict) -> Comparison:
    wanted, live, diff = verdict.wanted, verdict.live, verdict.diff
    assert wanted is not None
    assert live is not None
    assert diff is not None
    joins = _joined_again(verdict)
    pairs: list[Pair] = []
    excluded: list[tuple[str, str]] = []
    changed: list[Pair] = []
    for column in wanted.table.columns:
        name = column.name
        live_column = diff.pairs.get(name)
        if not diff.rows:
            excluded.append((name, "other rows are wanted"))
        elif name in wanted.volatile:
            excluded.append((name, "two computations of it may differ"))
        elif joins and name in wanted.joined:
            excluded.append((name, "it comes through a join, whose other side may have changed since"))
        elif live_column in live.carried and verdict.recomputed is not None:
            excluded.append((name, "older rows of it were carried, and are computed now"))
        elif live_column is None:
            why = diff.computed.get(name)
            excluded.append((name, why.text if why else "its type or its reading changes"))
            changed.append(Pair(name if live.table.column(name) else "", name, exact=False))
        else:
            pairs.append(Pair(live_column, name, name not in wanted.inexact and live_column not in live.inexact))
    return Comparison(
        table=wanted.table.name,
        pairs=tuple(pairs),
        left_out=tuple(excluded),
        keys=wanted.keys
        if diff.rows and not _all_carried(live) and not (joins and {*wanted.keys} & wanted.joined)
        else (),
        time=wanted.table.time,
        other_rows=not diff.rows,
        joins=joins,
        ties=ties_anew(verdict),
        changed=tuple(changed),
    )


def _joined_again(verdict: Verdict) -> tuple[str, ...]:
    """Tables whose contents at the time of the rollout its history is joined with."""
    completed = verdict.recomputed is not None and verdict.recomputed.completes_states
    return () if completed else tuple(sorted(_joined_by(verdict)))


def _all_carried(live: TableState) -> bool:
    """All columns are carried, so that it may hold rows which its query does not produce."""
    return {*live.carried} >= {column.name for column in live.table.columns}


def with_promote(made: tuple[Step, ...], changes: tuple[NodeChange, ...]) -> tuple[Step, ...]:
    """A plan that changes something ends at the gate; one that changes nothing has no steps."""
    return (*made, Promote()) if made or any(node.changes for node in changes) else ()
