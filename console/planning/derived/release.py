"""The release that becomes live: rebuilt tables get a version without a path, all others stay where they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from console.model.landing import is_later_version
from console.model.live import Feed, Live, Relay, Release, TableState, Version
from console.model.merging import Merging
from console.model.newest import BUCKET, Newest
from console.model.pipeline import Pipeline
from console.model.schema import Column
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.landing import conversion, new_version
from console.planning.reuse.carried import reads_carried
from console.planning.routes.verdict import Verdict, Verdicts
from console.planning.sql.newest import newest_of, stored_as, stored_names

_KEPT = Memo[TableState](100_000)


def release(
    pipeline: Pipeline, desired: Desired, verdicts: Verdicts, live: Live, *, cache: PlannerCache, tool: str, rules: str
) -> Release:
    """The manifest. rules: the ones that fingerprinted `desired`"""
    states: list[TableState] = []
    feeds: list[Feed] = []
    for verdict in verdicts.tables.values():
        if verdict.wanted is None:
            continue
        if not verdict.changes and verdict.live is not None:
            # regions with one release share the verdicts of what is kept, and nothing of a region is in these states
            states.append(cache.by_identity(_KEPT, partial(_kept, verdict.live, verdict, verdict.wanted), verdict))
        else:
            made = _changed(verdict, verdict.wanted, live)
            states.append(replace(made, carried=_carried(verdict, verdict.wanted, states, cache)))
        if verdict.rebuilt:
            feeds += verdict.wanted.feeds
        elif live.release is not None:
            before = live.release.feeds_into(verdict.name)
            feeds += [replace(f, moved=True) if verdicts.follows_log(f) else f for f in before]
    return Release(
        id="",
        pipeline=pipeline.name,
        digest=pipeline.digest(),
        tables=tuple(states),
        feeds=tuple(feeds),
        endpoints=desired.endpoints,
        copies=desired.copies,
        sinks=desired.sinks,
        tool=tool,
        rules=rules,
        sources=pipeline.sources,
        relays=_relays(verdicts, live),
    )


def _relays(verdicts: Verdicts, live: Live) -> tuple[Relay, ...]:
    """The relays of landing tables that get a new version."""
    relays = []
    for verdict in verdicts.tables.values():
        if verdict.conversion is not None and verdict.live and verdict.wanted:
            relays.append(conversion.relay(verdict.wanted.table, verdict.live, verdict.conversion, verdict.read))
        elif verdict.layout is not None and verdict.live and verdict.storage and (stats := live.table(verdict.name)):
            columns = new_version.stored_columns(stats, verdict.storage)
            relays.append(new_version.relay(verdict.name, verdict.live, columns))
    return tuple(relays)


def _kept(state: TableState, verdict: Verdict, wanted: DesiredTable) -> TableState:
    """The live state, which another table's change may need to show more columns."""
    kept = state if verdict.read == state.read else replace(state, read=verdict.read)
    if not kept.renamed and not _under_own_names(kept):  # released before this was recorded
        kept = replace(kept, renamed=renamed(kept.read, kept.version))
    if kept.merging is None and (merging := states_merging(verdict, wanted, kept.version, kept.read)) is not None:
        kept = replace(kept, merging=merging)  # released before this was recorded
    day = wanted.table.accepts_until
    same = day == kept.table.accepts_until
    return kept if same else replace(kept, table=replace(kept.table, accepts_until=day))


def _changed(verdict: Verdict, wanted: DesiredTable, live: Live) -> TableState:
    newest = merging(verdict, wanted)
    if wanted.table.kind == "landing":
        version = _landing(verdict, wanted, live)
    elif verdict.rebuilt:
        by = (BUCKET,) if newest is not None and newest.bucket else wanted.table.partition_by
        version = Version(content=wanted.content, path="", columns=wanted.columns, partition_by=by)
    else:
        assert verdict.live is not None
        version = verdict.live.version
    read = (verdict.read or wanted.read) if verdict.rebuilt else verdict.read
    names = {} if wanted.table.kind == "landing" else renamed(read, version)
    return TableState(
        intake=verdict.storage.intake if verdict.storage else (),
        older=verdict.storage.older if verdict.storage else (),
        unmarked=verdict.storage.unmarked if verdict.storage else (),
        table=replace(wanted.table, where="", was=""),
        version=version,
        read=read,
        rows=wanted.rows,
        values=wanted.values,
        inexact=(*wanted.inexact, *_hidden_inexact(verdict, wanted, names)),
        newest=newest,
        checks=wanted.checks,
        renamed=names,
        merging=states_merging(verdict, wanted, version, read),
    )


def _hidden_inexact(verdict: Verdict, wanted: DesiredTable, names: Mapping[str, str]) -> list[str]:
    """Stored columns that are no longer shown and that its feeds continue to fill, each time with other values."""
    if verdict.rebuilt or verdict.live is None:
        return []
    shown = {names.get(column.name, column.name) for column in wanted.table.columns}
    places = (place for column in verdict.live.inexact for place in verdict.live.stored_in(column))
    return [place for place in places if place not in shown]


def renamed(read: str, version: Version) -> dict[str, str]:
    """Column → the stored one that it shows, where the two have different names."""
    stored = {column.name for column in version.columns}
    return {column: place for column, place in stored_names(read).items() if column != place and place in stored}


def _under_own_names(state: TableState) -> bool:
    stored = {column.name for column in state.version.columns}
    return state.table.kind == "landing" or all(column.name in stored for column in state.table.columns)


def merging(verdict: Verdict, wanted: DesiredTable) -> Newest | None:
    """How a table that keeps one row of each key is merged. The live version's tie-breaking columns are kept."""
    newest = newest_of(wanted.table)
    if newest is None or verdict.live is None or verdict.live.newest is None:
        return newest
    if not verdict.rebuilt:
        return verdict.live.newest
    made = newest if ties_anew(verdict) else replace(newest, tie=_tie(verdict))
    return stored_as(made, verdict.places, wanted.columns) if verdict.places else made


def states_merging(verdict: Verdict, wanted: DesiredTable, version: Version, read: str) -> Merging | None:
    """How the stored rows of one key of an aggregate become one.

    A version that stays is merged as before, whatever is shown of it. Otherwise its read tells: one that is not the read of
    the states that its query makes (copied states, defaults for older rows) may see rows apart, which are then left so.

    returns  None if this is not known of every stored column
    """
    if not verdict.rebuilt and verdict.live is not None and verdict.live.merging is not None:
        return verdict.live.merging
    made, stored = wanted.merging, {(column.name, column.type) for column in version.columns}
    if made is None or read != wanted.read or stored != {(column.name, column.type) for column in wanted.columns}:
        return None
    return made if set(made.columns) == {name for name, _ in stored} else None


def ties_anew(verdict: Verdict) -> bool:
    """Whether a rebuilt table may pick another row among ties than its live version did."""
    if verdict.live is None or verdict.live.newest is None:
        return False
    return len(_tie(verdict)) < len(verdict.live.newest.tie)


def _tie(verdict: Verdict) -> tuple[str, ...]:
    """The live version's tie-breaking columns under their new names, without those that changed."""
    assert verdict.live is not None
    assert verdict.live.newest is not None
    assert verdict.diff is not None
    names = {old: new for new, old in verdict.diff.pairs.items()}
    shown = {stored: name for name, stored in stored_names(verdict.live.read).items()}
    tie = [names.get(shown.get(column, "")) for column in verdict.live.newest.tie]
    return tuple(name for name in tie if name is not None)


def _carried(
    verdict: Verdict, wanted: DesiredTable, above: Sequence[TableState], cache: PlannerCache
) -> tuple[str, ...]:
    """Columns with rows that do not follow the query: carried now or before, or computed from such columns.

    above  tables of the new release that come before this one
    """
    live, diff = verdict.live, verdict.diff
    carried = set(verdict.carried)
    if live is not None and diff is not None and (verdict.copied is not None or not verdict.rebuilt):
        carried |= {pick.name for pick in diff.picks if pick.of in live.carried}
    fed = wanted.feeds if verdict.recomputed is not None else ()
    if any(reads_carried(feed, state, cache) for feed in fed for state in above):
        carried |= {column.name for column in wanted.table.columns}
    return tuple(column.name for column in wanted.table.columns if column.name in carried)


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
    columns = (*stats.columns, *added(verdict, live)) if verdict.conversion is None else wanted.table.columns
    if verdict.layout is not None:
        return Version(content=wanted.content, path="", columns=columns, partition_by=verdict.layout)
    path = _below_warehouse(verdict.live.version.path) if verdict.live else wanted.table.name
    return Version(content=wanted.content, path=path, columns=columns, partition_by=stats.partition_by)


def _below_warehouse(path: str) -> str:
    """The path relative to the warehouse; 0.1.0 wrote absolute paths for landing tables."""
    return path if is_later_version(path) else path.rpartition("/")[2]


def added(verdict: Verdict, live: Live) -> tuple[Column, ...]:
    """Columns that a managed landing table must store and lacks."""
    if verdict.storage is not None:
        return verdict.storage.added
    state, stats = verdict.live, live.table(verdict.name)
    if state is None or stats is None or not verdict.is_landing or not state.table.managed:
        return ()
    real = {column.name.lower() for column in stats.columns}
    return tuple(column for column in state.version.columns if column.name.lower() not in real)
