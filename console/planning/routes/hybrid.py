"""A hybrid, for history that has partly expired in the source: replay the remaining days, copy the others with declared
defaults."""

from collections.abc import Mapping

from console.model.live import Live, TableState
from console.model.slices import day_after
from console.planning.cache.planner_cache import PlannerCache
from console.planning.diff import Diff
from console.planning.fingerprint import DesiredTable
from console.planning.loss.expired_days import at_most_one, expired_days, first_day
from console.planning.routes import of_states
from console.planning.routes.change import Change
from console.planning.routes.reasons import computed
from console.planning.routes.verdict import LiveCopy, Recomputation, Verdict
from console.planning.sql.reads import Pick, select


def verdict(change: Change) -> Verdict | None:
    """A hybrid if the source lacks days and the copied half has a value for every column."""
    if change.wanted.table.kind == "aggregate":
        return of_states.verdict(change)
    wanted, diff = change.wanted, change.diff
    if change.rebuilt_sources or change.readable or not diff.rows or not diff.layout or len(wanted.feeds) != 1:
        return None
    source = change.desired.tables.get(wanted.feeds[0].source)
    start = boundary(wanted, change.live, source, change.region, change.cache)
    picks = older(wanted, diff, change.proof.given)
    if not start or picks is None:
        return None
    why = (
        f"{computed(change, change.proof.missing)}; days before {start} are gone there and carried from the live"
        f" {change.name} with the declared defaults"
    )
    return Verdict(
        name=change.name, action="hybrid", why=why, wanted=wanted, live=change.live, diff=diff, columns=diff.columns,
        copied=LiveCopy(select(change.name, picks), until=start), recomputed=Recomputation(since=start),
    )  # fmt: skip


def boundary(
    wanted: DesiredTable, live: TableState, source: DesiredTable | None, region: Live, cache: PlannerCache
) -> str:
    """The first day of the replayed half, "" if a hybrid is not needed or not exact.

    Both sides must be cut by the same value, so the table's time must be the source's own. The row counts of each day
    must be exact: a late row would make an expired day look complete. The oldest day that the source still holds may be
    incomplete, so the replay begins with the next one.
    """
    if source is None or cut_differs(wanted, live, source):
        return ""
    target_stats, source_stats = region.table(wanted.table.name), region.table(source.table.name)
    if target_stats is None or source_stats is None:
        return ""
    live_feeds = region.release.feeds_into(wanted.table.name) if region.release else ()
    exact = at_most_one(live_feeds, cache) and all(day.exact for day in (*target_stats.days, *source_stats.days))
    expired = expired_days(target_stats, source_stats, live_feeds, cache) if exact else ()
    if not expired:
        return ""
    start = max(expired[-1], first_day(source_stats.days))
    return day_after(start)


def cut_differs(wanted: DesiredTable, live: TableState, source: DesiredTable | None, *, joined: bool = False) -> str:
    """Why a day would not cut a table and its source at the same rows; "" if it would.

    joined  later days may have been joined with other versions of a table than older ones
    """
    if wanted.table.kind != "append":
        return "a row of it is made of several rows of its source, which no day cuts"
    if source is None or len(wanted.feeds) != 1:
        return "several feeds fill it, and each has reached another position"
    if wanted.joined and not joined:
        return "it is fed through a join, whose other side may have changed since"
    time, source_time = wanted.table.time, source.table.time
    bare = wanted.certain.get(time) == _type(source, source_time) != ""
    if not time or not bare or wanted.reads.get(time) != frozenset({(source.table.name, source_time)}):
        return f"its time is not the time of {source.table.name}, by which rows are divided there"
    if live.table.time != time or wanted.values.get(time) != live.values.get(time):
        return "its time has changed"
    return ""


def _type(source: DesiredTable, column: str) -> str:
    declared = source.table.column(column) if column else None
    return declared.type if declared else ""


def older(wanted: DesiredTable, diff: Diff, given: Mapping[str, str]) -> tuple[Pick, ...] | None:
    """The forwarded half's columns: kept, proven or declared defaults; None if one of them is none of these."""
    picks = {pick.name: pick for pick in diff.picks}
    for column in wanted.table.columns:
        if column.name in picks:
            continue
        if column.name in given:
            picks[column.name] = Pick(name=column.name, computed=given[column.name])
        elif column.default is not None and diff.computed[column.name].kind in ("new", "expression"):
            picks[column.name] = Pick(name=column.name, literal=column.default, type=column.type)
        else:
            return None
    return tuple(picks[column.name] for column in wanted.table.columns)
