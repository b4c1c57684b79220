"""Phrases for reasons, shared by several routes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Literal

from console.model.schema import Table
from console.model.slices import EARLY, LATE
from console.planning.routes.change import Change


def computed(change: Change, missing: Mapping[str, str]) -> str:
    """Why history is re-read. missing: column → the source column that the table lacks"""
    wanted, live, diff = change.wanted, change.live, change.diff
    name, sources = wanted.table.name, listed(sorted({feed.source for feed in wanted.feeds}))
    if wanted.table.kind != live.table.kind:
        return f"{name} is now of kind {wanted.table.kind}: it is recomputed from {sources}"
    if not diff.rows and (kept := _rows_kept_otherwise(wanted.table, live.table)):
        return f"{kept}: it is recomputed from {sources}"
    others = _joined_otherwise(change)
    if not diff.rows and others.rows:
        verb = "hold" if len(others.rows) > 1 else "holds"
        return f"{listed(others.rows)}, which {name} joins, {verb} other rows: history is re-read from {sources}"
    if not diff.rows:
        return f"the rows of {name} change (FROM, WHERE, JOIN or GROUP BY): history is re-read from {sources}"
    fresh = [column for column, why in diff.computed.items() if why.kind == "new"]
    texts = [others.columns.get(column, why.text) for column, why in diff.computed.items() if column not in fresh]
    parts = []
    if fresh:
        origin = sorted({f"{t}.{c}" for column in fresh for t, c in wanted.reads.get(column, frozenset())})
        lacking = sorted({missing[column] for column in fresh if "." in missing.get(column, "")})
        kept = f", which {name} does not keep" if origin else ""
        if lacking and set(lacking) < set(origin):
            kept = f", of which {name} does not keep {listed(lacking)}"
        if origin and {column.name for column in live.table.columns} <= {*live.carried}:
            kept = f", and older rows of {name} were carried"
        verb = "is new and" if len(fresh) == 1 else "are new and"
        parts.append(f"{listed(fresh)} {verb} computed from {listed(origin) or sources}{kept}")
    parts += texts
    return f"{'; '.join(parts)}: history is re-read from {sources}"


def _rows_kept_otherwise(now: Table, was: Table) -> str:
    """The difference in how a table keeps one row of each key; "" if there is none."""
    if now.kind_word != was.kind_word:
        return f"{now.name} is now of kind {now.kind_word}, and was of kind {was.kind_word}"
    if {*now.key} != {*was.key}:
        return f"{now.name} keeps one row of each {listed(now.key)} instead of {listed(was.key)}"
    if now.order_by != was.order_by:
        return f"{now.name} is ordered by {listed(now.order_by)} instead of {listed(was.order_by)}"
    return ""


@dataclass(frozen=True, slots=True)
class _JoinedOtherwise:
    """Changes in the tables that unchanged queries join.

    rows  tables that hold other rows;  columns  column → why its values change
    """

    rows: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)


def _joined_otherwise(change: Change) -> _JoinedOtherwise:
    wanted, old = change.wanted, change.release.feeds_into(change.name)
    joins = sorted({name for feed in wanted.feeds for name in feed.joins})
    if {feed.sql for feed in wanted.feeds} != {feed.sql for feed in old}:
        return _JoinedOtherwise()
    pairs = [
        (change.desired.tables[name], change.release.table(name)) for name in joins if name in change.desired.tables
    ]
    rows = [now.table.name for now, was in pairs if was is not None and was.rows != now.rows]
    changed = {
        (now.table.name, column)
        for now, was in pairs
        if was is not None
        for column, value in now.values.items()
        if was.values.get(column) != value
    }
    columns = {}
    for column, read in wanted.reads.items():
        if origin := sorted(f"{table}.{of}" for table, of in read & changed):
            columns[column] = f"{column} is read from {listed(origin)}, which {are(origin)} now computed differently"
    return _JoinedOtherwise(tuple(rows), columns)


def computable(columns: Sequence[str], name: str) -> str:
    return f"{listed(columns)} {are(columns)} proven to be computable from columns that {name} keeps"


def laid(change: Change) -> str:
    """`clustered by ip instead of not at all`"""
    new, old = change.wanted.table, change.live.table
    how, now, was = "partitioned", new.partition_by, old.partition_by
    if change.diff.layout:
        how, now, was = "clustered", new.cluster_by, old.cluster_by
    to = f"{how} by {listed(now)}" if now else f"no longer {how}"
    return f"{to} instead of {f'by {listed(was)}' if was else 'not at all'}"


def last_day(change: Change) -> str:
    """The day on which retention deletes the last row stored today; "" without retention, or if no day is known."""
    stats, keeps = change.region.table(change.name), change.wanted.table.retention_days
    days = sorted(day.day for day in stats.days if day.day) if stats else []
    if keeps is None or not days or days[-1] in (EARLY, LATE):
        return ""
    try:
        return (date.fromisoformat(days[-1]) + timedelta(keeps)).isoformat()
    except OverflowError:
        return ""


def are(names: Sequence[str]) -> Literal["is", "are"]:
    return "is" if len(names) == 1 else "are"


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
