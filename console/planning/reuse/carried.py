"""Columns with carried older rows: columns computed from them do not follow the query either."""

from console.model.live import Feed, TableState
from console.model.schema import types
from console.planning.cache.planner_cache import PlannerCache
from console.planning.reuse.live_feeds import columns_read


def reads_carried(feed: Feed, state: TableState, cache: PlannerCache) -> bool:
    """Whether a feed reads a carried column of one of its sources; of a joined table any counts. state: of that source"""
    if not state.carried or state.table.name not in (feed.source, *feed.joins):
        return False
    if state.table.name != feed.source:
        return True
    read = columns_read(feed.sql, feed.source, types(state.table.columns), feed.joins, cache)
    every = {column.name for column in state.table.columns} <= {*state.carried}  # then its set of rows differs, too
    return every or not {*state.carried}.isdisjoint(read)
