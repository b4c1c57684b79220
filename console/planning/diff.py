"""Stage 4, diff: every declared table against its live one, column by column: unchanged, read differently, or to be computed."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal

from console.model.live import Release, TableState
from console.model.plan import ColumnChange
from console.model.schema import Column, Table
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.cache.releases import shared_release
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.sql.convert import kept, read_wider
from console.planning.sql.reads import Pick
from console.planning.sql.states import is_state_of

# the others describe a change, or a place in the files, and not the table
_declared = attrgetter(
    *(f.name for f in fields(Table) if f.name not in ("where", "forward_query", "backward_query", "was", "history"))
)


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a column must be computed; `text` becomes part of the plan's reason."""

    kind: Literal["new", "expression", "type", "nullability"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Differences between a declared table and the live one.

    rows      the same rows;  layout  the same partitioning;  stored  an aggregate's states are the same
    picks     wanted columns that the live table can still supply at read
    computed  columns that only the sources can supply, with the reason
    pairs     new column → live column of the same value and type
    hidden    live columns that are no longer declared
    settings  differing declarations that move no data: `description`, `retention`, …
    columns   changes as the plan shows them
    """

    rows: bool
    layout: bool
    picks: tuple[Pick, ...]
    computed: dict[str, Reason]
    pairs: dict[str, str]
    hidden: tuple[str, ...]
    settings: tuple[str, ...]
    columns: tuple[ColumnChange, ...]

    @property
    def readable(self) -> bool:
        """The live table can serve every wanted column."""
        return self.rows and not self.computed

    @property
    def plain(self) -> bool:
        """Every column is read as it is stored, and none is hidden."""
        return not self.hidden and all(pick.of == pick.name and not pick.type and not pick.fresh for pick in self.picks)


@dataclass(frozen=True, slots=True)
class Diffs:
    """Diffs of a pipeline and a release. tables: those that are both wanted and live"""

    tables: Mapping[str, Diff]


_DIFFS = Memo[Diffs](256)  # a fleet of 200 regions has 20 releases


def diff(desired: Desired, release: Release | None, cache: PlannerCache) -> Diffs:
    """Compare by fingerprints; once for all regions whose releases differ in nothing but names of versions.

    release  the live one, fingerprinted by the same rules as `desired`
    """
    if release is None:
        return Diffs({})
    shared = shared_release(release, cache)
    return cache.by_identity(_DIFFS, lambda: _diffs(desired, shared), desired, shared)


def _diffs(desired: Desired, release: Release) -> Diffs:
    live = {state.table.name: state for state in release.tables}
    return Diffs({name: compared(wanted, live[name]) for name, wanted in desired.tables.items() if name in live})


def split_value(value: str) -> tuple[str, str]:
    """A value fingerprint as (expression, type)."""
    expression, _, type = value.partition(":")
    return expression, type


def compared(wanted: DesiredTable, live: TableState) -> Diff:
    """The diff of one table. A renamed column is recognised by its value, and only if the old name is gone."""
    old = {column.name: column for column in live.table.columns}
    kept_names = {column.name for column in wanted.table.columns}
    gone = [name for name in old if name not in kept_names]
    picks: list[Pick] = []
    computed: dict[str, Reason] = {}
    pairs: dict[str, str] = {}
    changes: list[ColumnChange] = []
    taken: set[str] = set()
    for column in wanted.table.columns:
        if _untouched(column, old.get(column.name), wanted, live):
            picks.append(Pick(name=column.name, of=column.name))
            pairs[column.name] = column.name
            continue
        origin = _origin(column, wanted, live, [name for name in gone if name not in taken])
        if origin is not None and origin != column.name:
            taken.add(origin)
        pick = _pick(column, origin, wanted, live)
        if isinstance(pick, Pick):
            picks.append(pick)
        else:
            computed[column.name] = pick
        if isinstance(pick, Pick) and pick.of and not pick.type and not pick.fresh:
            pairs[column.name] = pick.of
        if change := _change(column, origin, wanted, live):
            changes.append(change)
    hidden = tuple(name for name in gone if name not in taken)
    changes += [ColumnChange(name, "removed", old[name].type) for name in hidden]
    stored = {pick.name: pick.of for pick in picks if pick.of}
    layout = tuple(stored.get(name, name) for name in wanted.table.partition_by) == live.table.partition_by
    return Diff(
        rows=wanted.rows == live.rows and wanted.table.kind == live.table.kind, layout=layout, picks=tuple(picks), computed=computed, pairs=pairs,
        hidden=hidden, settings=_settings(wanted.table, live.table), columns=tuple(changes),
    )  # fmt: skip


def _untouched(column: Column, before: Column | None, wanted: DesiredTable, live: TableState) -> bool:
    """The same value and type under the same name: nearly every column of a fleet, so this is checked first."""
    return (
        before is not None
        and live.values.get(column.name) == wanted.values[column.name]
        and (column.nullable or not before.nullable)
    )


def _origin(column: Column, wanted: DesiredTable, live: TableState, gone: list[str]) -> str | None:
    """The live column that this one continues: one of the same name, else a removed one of the same value."""
    if column.name in live.values:
        return column.name
    expression, type = split_value(wanted.values[column.name])
    same = [name for name in gone if split_value(live.values[name])[0] == expression]
    exact = [name for name in same if split_value(live.values[name])[1] == type]
    return next(iter(exact or same), None)


def _pick(column: Column, origin: str | None, wanted: DesiredTable, live: TableState) -> Pick | Reason:
    if origin is not None:
        new, old = split_value(wanted.values[column.name]), split_value(live.values[origin])
        before = live.table.column(origin)
        if new[0] == old[0] and before is not None:
            if before.nullable and not column.nullable:
                return Reason("nullability", f"{column.name} may no longer be NULL, which only a rebuild can prove")
            if new[1] == old[1]:
                return Pick(name=column.name, of=origin)
            if origin == column.name and _states_kept(wanted, live, column):
                return Pick(name=column.name, of=origin, fresh=True)
            if wanted.table.kind == "landing" and read_wider(old[1], new[1]) and _movable(column.name, wanted.table):
                return Pick(name=column.name, of=origin, type=column.type)
            if widens(old[1], new[1], wanted, column):
                return Pick(name=column.name, of=origin, type=column.type)
            return Reason("type", f"{column.name} changes from {old[1]} to {new[1]}")
        return Reason("expression", f"the expression of {column.name} changed")
    if column.name in wanted.literals:
        return Pick(name=column.name, literal=wanted.literals[column.name], type=column.type)
    return Reason("new", f"{column.name} is new")


def _movable(name: str, landing: Table) -> bool:
    """Whether a landing table's column may be stored in two columns; the time and partition columns may not."""
    return name not in (landing.time, *landing.partition_by)


def widens(old: str, new: str, wanted: DesiredTable, column: Column) -> bool:
    """Whether the stored values, cast, equal those of a rebuild, now and for later rows.

    The expression itself must certainly be no wider than the stored type: `CAST(x AS INT)` widened to bigint still
    yields ints, a bare string does not.
    """
    certain = wanted.certain.get(column.name, "")
    return kept(old, new) == "wider" and bool(certain) and kept(certain, old) in ("same", "wider")


def _states_kept(wanted: DesiredTable, live: TableState, column: Column) -> bool:
    """Whether a column keeps its states: an aggregate's declared type is applied at read."""
    if wanted.table.kind != "aggregate" or column.name in wanted.keys:
        return False
    stored = {(state.name, state.type) for state in live.version.columns}
    mine = [state for state in wanted.columns if is_state_of(state.name, column.name)]
    return all((state.name, state.type) in stored for state in mine)


def _change(column: Column, origin: str | None, wanted: DesiredTable, live: TableState) -> ColumnChange | None:
    if origin is None:
        return ColumnChange(column.name, "added")
    before = live.table.column(origin)
    assert before is not None
    if origin != column.name:
        return ColumnChange(column.name, "renamed", origin)
    new, old = split_value(wanted.values[column.name]), split_value(live.values[origin])
    if new[1] != old[1]:
        return ColumnChange(column.name, "type", before.type)
    return ColumnChange(column.name, "changed", "its expression") if new[0] != old[0] else None


def _settings(new: Table, old: Table) -> tuple[str, ...]:
    """Names of changed declarations that move no data; `forward_query` describes a change, not the table."""
    differing = [
        setting
        for setting, a, b in (
            ("description", new.description, old.description),
            ("owner", new.owner, old.owner),
            ("retention", new.retention_days, old.retention_days),
            ("time column", new.time, old.time),
            ("how lines are distinguished", new.accepts, old.accepts),
            ("management", new.managed, old.managed),
            ("on_rewrite", new.on_rewrite, old.on_rewrite),
            ("clustering of new rows", new.cluster_by, old.cluster_by),
            ("expectations", new.expectations, old.expectations),
        )
        if a != b
    ]
    if old.was:
        differing.append(f"{old.was} becomes {new.name}")
    if new.columns == old.columns:
        return tuple(differing)
    before = {column.name: column for column in old.columns}
    shared = [(column, before[column.name]) for column in new.columns if column.name in before]
    if any(a.comment != b.comment for a, b in shared):
        differing.append("column comments")
    if any(a.nullable != b.nullable for a, b in shared):
        differing.append("nullability")
    if any(a.default != b.default for a, b in shared):
        differing.append("defaults")
    if [a.name for a, _ in shared] != [column.name for column in old.columns if new.column(column.name)]:
        differing.append("column order")
    return tuple(differing)


def same_declaration(new: Table, old: Table) -> bool:
    return not old.was and _declared(new) == _declared(old)
