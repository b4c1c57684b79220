"""Prices: of each rebuilt table, of a plan's steps, and of rewriting everything."""

from collections.abc import Collection
from dataclasses import replace

from console.model.live import Feed, Live, TableState
from console.model.plan import Price
from console.model.region import Limits
from console.model.schema import Column, types
from console.planning.cache.planner_cache import PlannerCache
from console.planning.estimate import cutting, days_since, days_until, history, log, share, total
from console.planning.fingerprint import DesiredTable
from console.planning.reuse.live_feeds import columns_read
from console.planning.routes.verdict import LiveCopy, Recomputation, Verdict, Verdicts

Reading = tuple[Price, tuple[str, ...]]
NOTHING = Price()  # of most tables


def price(verdict: Verdict, verdicts: Verdicts, live: Live, limits: Limits, cache: PlannerCache) -> Price:
    """The price of rebuilding one table; zero for a table that is not rebuilt."""
    if not verdict.rebuilt or verdict.wanted is None:
        return NOTHING
    total = NOTHING
    if verdict.copied is not None and not verdict.copied.linked:
        assert verdict.live is not None
        total += copied_read(verdict.copied, verdict.live, live, limits, cache)[0]
    if (recomputed := verdict.recomputed) is None:
        return total
    replayed = NOTHING
    for feed in verdict.wanted.feeds:
        source = verdicts.tables[feed.source].wanted
        assert source is not None
        if verdicts.follows_log(feed):
            whole = log(live, feed.source)
            needed = columns_read(feed.sql, feed.source, types(source.table.columns), feed.joins, cache)
            replayed += _by_column(whole, source.table.columns, needed)[0]
        else:
            replayed += replayed_read(recomputed, feed, source, live, limits, cache)[0]
    days = replayed.days if recomputed.completes_states else total.days + replayed.days
    return replace(total + replayed, days=days)


def everything(verdicts: Verdicts, live: Live, limits: Limits) -> Price:
    """The price of rewriting every table, landing tables included, as tools do that cannot identify the changed ones."""
    read: dict[str, Price] = {}
    followed: dict[str, Price] = {}
    parts: list[Price] = []

    def whole(name: str) -> Price:
        if name not in read:
            wanted = verdicts.tables[name].wanted
            read[name] = history(live, name, cutting(wanted.table) if wanted else "", limits)
        return read[name]

    for name, verdict in verdicts.tables.items():
        if verdict.wanted is None:
            continue
        if verdict.is_landing:
            parts.append(whole(name))
        for feed in verdict.wanted.feeds:
            if verdicts.tables[feed.source].is_landing:
                parts.append(whole(feed.source))
            else:
                if feed.source not in followed:
                    followed[feed.source] = log(live, feed.source)
                parts.append(followed[feed.source])
    return total(parts)


def copied_read(copied: LiveCopy, before: TableState, live: Live, limits: Limits, cache: PlannerCache) -> Reading:
    """The price of copying from the live table, and the columns that the copy reads."""
    table = before.table
    whole = history(days_until(live, copied.until), table.name, cutting(table), limits)
    columns = before.version.columns if copied.states else table.columns
    needed = columns_read(copied.sql, table.name, types(columns), (), cache)
    return _by_column(whole, columns, {*needed, table.time})


def replayed_read(
    recomputed: Recomputation, feed: Feed, source: DesiredTable, live: Live, limits: Limits, cache: PlannerCache
) -> Reading:
    """The same for re-reading a source through a feed."""
    table = source.table
    whole = history(days_since(live, recomputed.since), feed.source, cutting(table), limits)
    needed = columns_read(recomputed.query(feed), feed.source, types(table.columns), feed.joins, cache)
    return _by_column(whole, table.columns, {*needed, table.time})


def _by_column(whole: Price, columns: tuple[Column, ...], needed: Collection[str]) -> Reading:
    read = tuple(column.name for column in columns if column.name in needed)
    return replace(whole, bytes=round(whole.bytes * share(read, columns))), read
