"""A hybrid of an aggregate: days that the source has lost keep their states; new keys and columns begin with the first
day it holds."""

from collections.abc import Mapping

from console.model.live import TableStats
from console.model.schema import Column
from console.model.slices import day_after
from console.planning.reuse import groups, live_feeds, regroup
from console.planning.reuse.groups import Kept
from console.planning.routes.change import Change
from console.planning.routes.forward import filtering
from console.planning.routes.reasons import are, listed
from console.planning.routes.verdict import LiveCopy, Recomputation, Verdict
from console.planning.sql.states import is_state_of
from console.remedy import SetKey


def verdict(change: Change) -> Verdict | None:
    """A hybrid if the source lacks days. There a new key or changed column shows its default, a new column its default
    or NULL."""
    stored, start = change.groups, boundary(change)
    if stored is None or not start or undeclared(change, stored):
        return None
    instead = _instead(change, stored)
    fresh = _columns(change, stored.lost_states)
    parts = [f"{listed(fresh)} {are(fresh)} counted from {start} on"] if fresh else []
    if stored.lost_keys:
        parts.append(f"{listed(stored.lost_keys)} {are(stored.lost_keys)} distinguished from {start} on")
    older = ", ".join(f"{name} is {instead.get(name, 'NULL')}" for name in (*stored.lost_keys, *fresh))
    source = change.wanted.feeds[0].source
    why = (
        f"{'; '.join(parts)}: {source} has lost the days before, which keep the states of the live {change.name}; there"
        f" {older}"
    )
    return Verdict(
        name=change.name, action="hybrid", why=why, wanted=change.wanted, live=change.live, diff=change.diff,
        columns=change.diff.columns, older=older, recomputed=Recomputation(since=start),
        copied=LiveCopy(regroup.copied(change.wanted, stored, instead), until=start, states=True),
        problems=change.unused_forward_query("older days keep their states"), filters=filtering(change, stored),
    )  # fmt: skip


def boundary(change: Change) -> str:
    """The first day of the replayed half, "" if a hybrid is not needed or not exact.

    Both halves must be cut by one value: the table's time is the source's, cut to a day at most. A week that begins
    before the boundary would be copied whole and counted again from there on.
    """
    wanted, stored, release = change.wanted, change.groups, change.release
    if stored is None or stored.whole or not stored.sliceable or change.rebuilt_sources or wanted.joined:
        return ""
    if len(wanted.feeds) != 1 or any(why.kind == "nullability" for why in change.diff.computed.values()):
        return ""
    feed, old = wanted.feeds[0], release.feeds_into(change.name)[0]
    source, before = change.desired.tables.get(feed.source), release.table(feed.source)
    if source is None or before is None or source.table.time != before.table.time:
        return ""
    now, was = live_feeds.as_wanted(change.desired, (feed.source,)), live_feeds.as_live(release, (old.source,))
    if not groups.cuts_by_day(wanted.table.time, feed, now, source.table.time):
        return ""
    if not groups.cuts_by_day(change.live.table.time, old, was, before.table.time):
        return ""
    target_stats, source_stats = change.region.table(change.name), change.region.table(feed.source)
    if target_stats is None or source_stats is None:
        return ""
    return _first_whole(target_stats, source_stats, foreign=source.table.kind == "landing" and not source.table.managed)


def _first_whole(target: TableStats, source: TableStats, *, foreign: bool) -> str:
    """The first day that the source certainly holds in full, "" if it has lost none or that cannot be determined.

    Retention deletes the oldest days first, and may have deleted a part of the oldest remaining one. If files span
    days, only that day is known; and not even that of a foreign table, whose statistics may count deleted rows.
    """
    stored = sorted(day.day for day in source.days if day.day and day.rows)
    kept = {day.day for day in target.days if day.day and day.rows}
    exact = all(day.exact for day in source.days)
    if not stored or (foreign and not exact):
        return ""
    lost = {day for day in kept if day < stored[0]}
    if exact and all(day.exact for day in target.days):  # a late row of an old day would hide that others are gone
        lost |= {day for day in kept if day <= stored[-1]} - {*stored}
    whole = [day for day in stored if lost and max(lost) < day]
    return day_after(whole[0]) if whole else ""


def remedy(change: Change) -> SetKey | None:
    """The declaration that would avoid the loss of days; None if there is none."""
    stored = None if change.rebuilt_sources else change.groups  # None for other kinds of table as well
    if stored is None or not boundary(change):
        return None
    table, missing = change.wanted.table, undeclared(change, stored)
    columns = [column for column in table.columns if column.name in missing]
    if not columns or any(column.default is not None or not _placeable(change, stored, column) for column in columns):
        return None  # a default could not stand for the states
    return SetKey(node=table.name, key="default", columns=missing, effect="which older days then show")


def undeclared(change: Change, stored: Kept) -> tuple[str, ...]:
    """Columns without a default that need one: new keys, changed columns (whose older values are dropped), NOT NULL columns."""
    table = change.wanted.table
    changed = [name for name in _columns(change, stored.lost_states) if change.live.table.column(name) is not None]
    without_nulls = [column.name for column in table.columns if not column.nullable]
    needed = {
        *stored.lost_keys,
        *changed,
        *(name for name in _columns(change, stored.lost_states) if name in without_nulls),
    }
    return tuple(
        column.name
        for column in table.columns
        if column.name in needed and (column.default is None or not _placeable(change, stored, column))
    )


def _columns(change: Change, states: tuple[str, ...]) -> list[str]:
    """The declared columns that states belong to."""
    return [
        column.name
        for column in change.wanted.table.columns
        if any(is_state_of(state, column.name) for state in states)
    ]


def _instead(change: Change, stored: Kept) -> Mapping[str, str]:
    """SQL for the keys and states that older days lack: a declared default if it can stand for the state, else NULL."""
    table, instead = change.wanted.table, dict.fromkeys(stored.lost_states, "NULL")
    for column in table.columns:
        lacks = column.name in stored.lost_keys or column.name in instead
        if lacks and column.default is not None and _placeable(change, stored, column):
            instead[column.name] = column.default
    return instead


def _placeable(change: Change, stored: Kept, column: Column) -> bool:
    """Whether a default can be written: as a key, or as the only state of a column that shows it as it is.

    A group stored in several rows would add the default up, so the copy must write one row a group: batches are cut by
    the table's time, and each group must be within one batch.
    """
    if column.name in stored.lost_keys:
        return True
    states = [state for state in stored.lost_states if is_state_of(state, column.name)]
    time = change.live.table.time
    one_batch = not time or any(sql == f"`{time}`" for sql in stored.keys.values())
    return one_batch and states == [column.name] and regroup.shows_state(change.wanted.read, column.name)
