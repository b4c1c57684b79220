"""From verdicts to a plan: the release to become live, the steps that build it, their price and the comparisons."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Literal

from console.model.live import Feed, Live, Release, TableState, Version
from console.model.pipeline import Copy, Endpoint, Pipeline, Sink
from console.model.plan import Action, NodeChange, Price
from console.model.region import Limits
from console.model.schema import Column, types
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
from console.planning.desired import Desired, DesiredTable
from console.planning.estimate import cutting, history, log, share, total
from console.planning.reuse.live_feeds import columns_read
from console.planning.routes.verdict import LiveCopy, Recomputation, Verdict

ReadSide = Literal["endpoint", "copy", "sink"]

Verdicts = Mapping[str, Verdict]


def release(pipeline: Pipeline, desired: Desired, verdicts: Verdicts, live: Live, tool: str) -> Release:
    """The manifest: rebuilt tables get a version without a path, all others stay where they are with their feeds."""
    states: list[TableState] = []
    feeds: list[Feed] = []
    for verdict in verdicts.values():
        if verdict.wanted is None:
            continue
        states.append(_state(verdict, verdict.wanted, live))
        if verdict.rebuilt:
            feeds += verdict.wanted.feeds
        elif live.release is not None:
            before = live.release.feeds_into(verdict.name)
            feeds += [replace(f, moved=True) if _from_log(f, verdicts) else f for f in before]
    return Release(
        id="",
        pipeline=pipeline.name,
        digest=pipeline.digest(),
        tables=tuple(states),
        feeds=tuple(feeds),
        endpoints=tuple(replace(node, where="") for node in desired.endpoints),
        copies=tuple(replace(node, where="") for node in desired.copies),
        sinks=tuple(replace(node, where="") for node in desired.sinks),
        tool=tool,
        sources=pipeline.sources,
    )


def _state(verdict: Verdict, wanted: DesiredTable, live: Live) -> TableState:
    if not verdict.changes and verdict.live is not None:
        return verdict.live if verdict.read == verdict.live.read else replace(verdict.live, read=verdict.read)
    if wanted.table.kind == "landing":
        version = _landing(verdict, wanted, live)
    elif verdict.rebuilt:
        version = Version(
            content=wanted.content, path="", columns=wanted.columns, partition_by=wanted.table.partition_by
        )
    else:
        assert verdict.live is not None
        version = verdict.live.version
    read = wanted.read if verdict.rebuilt else verdict.read
    return TableState(
        intake=verdict.storage.intake if verdict.storage else (),
        table=replace(wanted.table, where="", was=""),
        version=version,
        read=read,
        rows=wanted.rows,
        values=wanted.values,
        inexact=wanted.inexact,
    )


def _landing(verdict: Verdict, wanted: DesiredTable, live: Live) -> Version:
    """The version of a landing table: in the warehouse under its own name, so that it moves with the region."""
    stats = live.table(verdict.name)
    if stats is None:
        return Version(
            content=wanted.content,
            path=wanted.table.name,
            columns=wanted.table.columns,
            partition_by=wanted.table.partition_by,
        )
    columns = (*stats.columns, *added(verdict, live))
    path = verdict.live.version.path.rpartition("/")[2] if verdict.live else wanted.table.name
    return Version(content=wanted.content, path=path, columns=columns, partition_by=stats.partition_by)


def added(verdict: Verdict, live: Live) -> tuple[Column, ...]:
    """Columns that a managed landing table is to store and does not have yet."""
    if verdict.storage is not None:
        return verdict.storage.added
    state, stats = verdict.live, live.table(verdict.name)
    if state is None or stats is None or not _is_landing(verdict) or not state.table.managed:
        return ()
    real = {column.name.lower() for column in stats.columns}
    return tuple(column for column in state.version.columns if column.name.lower() not in real)


def steps(verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache) -> tuple[Step, ...]:
    """The steps in order; () where the region's tables stay as they are."""
    wanted = [verdict for verdict in verdicts.values() if verdict.wanted is not None]
    rebuilt = [verdict for verdict in wanted if verdict.rebuilt]
    made: list[Step] = [
        CreateTable(verdict.name)
        for verdict in wanted
        if verdict.rebuilt or (_is_landing(verdict) and live.table(verdict.name) is None)
    ]
    for verdict in wanted:
        if columns := added(verdict, live):
            made.append(AddColumns(verdict.name, columns))
    for verdict in rebuilt:
        made += _backfills(verdict, verdicts, live, limits, cache)
    for verdict in rebuilt:
        made += _catch_ups(verdict, verdicts)
    if rebuilt:
        made.append(Validate(tuple(_comparison(verdict) for verdict in rebuilt if verdict.live is not None)))
    return tuple(made)


def _is_landing(verdict: Verdict) -> bool:
    return verdict.wanted is not None and verdict.wanted.table.kind == "landing"


def _from_log(feed: Feed, verdicts: Verdicts) -> bool:
    return feed.source in verdicts and verdicts[feed.source].rebuilt


def _backfills(verdict: Verdict, verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache) -> list[Step]:
    assert verdict.wanted is not None
    backfills: list[Step] = []
    if (copied := verdict.copied) is not None:
        assert verdict.live is not None
        time, (price, read) = verdict.live.table.time, _copied(copied, verdict.live, live, limits, cache)
        backfills.append(
            Backfill(materialization="", source=verdict.name, target=verdict.name, route="forward", sql=copied.sql, time=time, rows=price.rows, bytes=price.bytes, days=price.days, batches=price.batches, stored=copied.states, since="", until=copied.until, columns=read)
        )  # fmt: skip
    if (recomputed := verdict.recomputed) is None:
        return backfills
    for feed in verdict.wanted.feeds:
        if _from_log(feed, verdicts):
            continue
        source = verdicts[feed.source].wanted
        assert source is not None
        price, read = _replayed(recomputed, feed, source, live, limits, cache)
        backfills.append(
            Backfill(materialization=feed.materialization, source=feed.source, target=verdict.name, route="replay", sql=recomputed.query(feed), time=source.table.time, rows=price.rows, bytes=price.bytes, days=price.days, batches=price.batches, stored=False, since=recomputed.since, until="", columns=read, states=recomputed.completes_states)
        )  # fmt: skip
    return backfills


Reading = tuple[Price, tuple[str, ...]]


def _copied(copied: LiveCopy, before: TableState, live: Live, limits: Limits, cache: PlannerCache) -> Reading:
    """What copying from the live table costs, and which of its columns are read."""
    table = before.table
    whole = history(_until(live, copied.until), table.name, cutting(table), limits)
    columns = before.version.columns if copied.states else table.columns
    needed = columns_read(copied.sql, table.name, types(columns), (), cache)
    return _by_column(whole, columns, {*needed, table.time})


def _replayed(
    recomputed: Recomputation, feed: Feed, source: DesiredTable, live: Live, limits: Limits, cache: PlannerCache
) -> Reading:
    """The same of re-reading a source through a feed."""
    table = source.table
    whole = history(_since(live, recomputed.since), feed.source, cutting(table), limits)
    needed = columns_read(recomputed.query(feed), feed.source, types(table.columns), feed.joins, cache)
    return _by_column(whole, table.columns, {*needed, table.time})


def _by_column(whole: Price, columns: tuple[Column, ...], needed: Collection[str]) -> Reading:
    read = tuple(column.name for column in columns if column.name in needed)
    return replace(whole, bytes=round(whole.bytes * share(read, columns))), read


def _since(live: Live, day: str) -> Live:
    """The region as if its tables began with a day; "" leaves it whole."""
    return _some(live, lambda at: at >= day) if day else live


def _until(live: Live, day: str) -> Live:
    """The region as if its tables ended before a day; rows without a time stay."""
    return _some(live, lambda at: at < day) if day else live


def _some(live: Live, keeps: Callable[[str], bool]) -> Live:
    tables = []
    for stats in live.stats:
        days = tuple(day for day in stats.days if keeps(day.day))
        rows, size = sum(day.rows for day in days), sum(day.bytes for day in days)
        tables.append(replace(stats, days=days, rows=rows, bytes=size))
    return replace(live, stats=tuple(tables))


def _catch_ups(verdict: Verdict, verdicts: Verdicts) -> list[Step]:
    assert verdict.wanted is not None
    catch_ups: list[Step] = []
    for feed in verdict.wanted.feeds:
        if verdict.recomputed is None:
            catch_ups.append(CatchUp(feed.materialization, feed.source, verdict.name, "vector"))
        else:
            start = _from_log(feed, verdicts)
            catch_ups.append(CatchUp(feed.materialization, feed.source, verdict.name, "log" if start else "fence"))
    return catch_ups


def _comparison(verdict: Verdict) -> Comparison:
    wanted, live, diff = verdict.wanted, verdict.live, verdict.diff
    assert wanted is not None
    assert live is not None
    assert diff is not None
    pairs: list[Pair] = []
    excluded: list[tuple[str, str]] = []
    for column in wanted.table.columns:
        name = column.name
        live_column = diff.pairs.get(name)
        if not diff.rows:
            excluded.append((name, "other rows are wanted"))
        elif name in wanted.volatile:
            excluded.append((name, "two computations of it may differ"))
        elif name in wanted.joined and verdict.copied is None:
            excluded.append((name, "it comes through a join, whose other side may have changed since"))
        elif live_column is None:
            why = diff.computed.get(name)
            excluded.append((name, why.text if why else "its type or its reading changes"))
        else:
            pairs.append(Pair(live_column, name, name not in wanted.inexact and live_column not in live.inexact))
    return Comparison(
        table=wanted.table.name,
        pairs=tuple(pairs),
        left_out=tuple(excluded),
        keys=wanted.keys if diff.rows else (),
        time=wanted.table.time,
    )


def price(verdict: Verdict, verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache) -> Price:
    """The price of rebuilding one table; zero for a table that is not rebuilt."""
    if not verdict.rebuilt or verdict.wanted is None:
        return Price()
    total = Price()
    if verdict.copied is not None:
        assert verdict.live is not None
        total += _copied(verdict.copied, verdict.live, live, limits, cache)[0]
    if (recomputed := verdict.recomputed) is None:
        return total
    replayed = Price()
    for feed in verdict.wanted.feeds:
        source = verdicts[feed.source].wanted
        assert source is not None
        if _from_log(feed, verdicts):
            whole = log(live, feed.source)
            needed = columns_read(feed.sql, feed.source, types(source.table.columns), feed.joins, cache)
            replayed += _by_column(whole, source.table.columns, needed)[0]
        else:
            replayed += _replayed(recomputed, feed, source, live, limits, cache)[0]
    days = replayed.days if recomputed.completes_states else total.days + replayed.days
    return replace(total + replayed, days=days)


def everything(verdicts: Verdicts, live: Live, limits: Limits) -> Price:
    """What rewriting every table would move, landing tables included, as tools do that cannot tell what changed."""
    read: dict[str, Price] = {}
    followed: dict[str, Price] = {}
    parts: list[Price] = []

    def whole(name: str) -> Price:
        if name not in read:
            wanted = verdicts[name].wanted
            read[name] = history(live, name, cutting(wanted.table) if wanted else "", limits)
        return read[name]

    for name, verdict in verdicts.items():
        if verdict.wanted is None:
            continue
        if _is_landing(verdict):
            parts.append(whole(name))
        for feed in verdict.wanted.feeds:
            if _is_landing(verdicts[feed.source]):
                parts.append(whole(feed.source))
            else:
                if feed.source not in followed:
                    followed[feed.source] = log(live, feed.source)
                parts.append(followed[feed.source])
    return total(parts)


def nodes(
    desired: Desired, verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache
) -> tuple[NodeChange, ...]:
    """Every node with its action, tables first in the order in which rows flow."""
    tables = [
        NodeChange(
            kind="table", name=verdict.name, action=verdict.action, why=verdict.why, columns=verdict.columns, price=price(verdict, verdicts, live, limits, cache),
            source=_read_from(verdict),
        )
        for verdict in verdicts.values()
    ]  # fmt: skip
    before = live.release
    return (
        *tables,
        *_ends("endpoint", desired.endpoints, before.endpoints if before else ()),
        *_ends("copy", desired.copies, before.copies if before else ()),
        *_ends("sink", desired.sinks, before.sinks if before else ()),
    )


def _read_from(verdict: Verdict) -> str:
    if not verdict.rebuilt or verdict.wanted is None:
        return ""
    return verdict.name if verdict.recomputed is None else verdict.wanted.feeds[0].source


def _ends(
    kind: ReadSide, wanted: tuple[Endpoint | Copy | Sink, ...], live: tuple[Endpoint | Copy | Sink, ...]
) -> list[NodeChange]:
    changes: list[NodeChange] = []
    before = {node.name: node for node in live}
    for node in wanted:
        old = before.get(node.name)
        if old is None:
            changes.append(_end(kind, node.name, "create", "new"))
        elif replace(node, where="") == replace(old, where=""):
            changes.append(_end(kind, node.name, "keep", "unchanged"))
        else:
            what = "its query changed" if node.sql != old.sql else "its declaration changed"
            changes.append(_end(kind, node.name, "metadata", f"{what}: no row moves"))
    removed = [name for name in before if name not in {node.name for node in wanted}]
    return changes + [_end(kind, name, "drop", "no longer declared") for name in removed]


def _end(kind: ReadSide, name: str, action: Action, why: str) -> NodeChange:
    return NodeChange(kind=kind, name=name, action=action, why=why)


def with_promote(made: tuple[Step, ...], changes: tuple[NodeChange, ...]) -> tuple[Step, ...]:
    """A plan that changes something ends at the gate; one that changes nothing has no steps."""
    return (*made, Promote()) if made or any(node.changes for node in changes) else ()
