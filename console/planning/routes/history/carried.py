"""`history: carry`: the stored rows are copied, and the feeds continue after them with the new query."""

from collections.abc import Mapping
from dataclasses import dataclass

from console.errors import Problem
from console.model.schema import OLDER_VALUES, Carry, Column, OlderValues, Table
from console.planning.cache.planner_cache import Memo
from console.planning.cache.releases import shared_release
from console.planning.reuse.states import select_states, state_places
from console.planning.routes.change import Change
from console.planning.routes.reasons import last_day, listed
from console.planning.routes.verdict import Impossible, LiveCopy, Verdict
from console.planning.sql.convert import kept
from console.planning.sql.reads import Pick, select
from console.planning.sql.states import is_state_of
from console.planning.sql.tree import kind
from console.remedy import AnotherColumn, DropKey, Remedy, SetKey

_CONVERTED = ("same", "wider", "whole")
_UNDER_IT = "under that one older rows show NULL"
_COMPUTED = "all rows are computed from the source"


@dataclass(frozen=True, slots=True)
class Older:
    """Values that older rows will show. shown: in words; columns: those that do not follow the new query"""

    shown: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """The query that copies older rows, and the values that they show."""

    copied: LiveCopy
    older: Older


# the same in all regions of a release
_CARRIED: Mapping[OlderValues, Memo["CarriedRows | Impossible"]] = {older: Memo() for older in OLDER_VALUES}


def carry(change: Change, older: OlderValues = "") -> Verdict | Impossible:
    """A new version with a copy of all rows up to the position that the live version has reached."""
    made = carried_rows(change, older)
    if isinstance(made, Impossible):
        return made
    return Verdict(
        name=change.name, action="forward", why=f"history: {Carry(older)}, by the operator's choice: {made.older.shown}", wanted=change.wanted,
        live=change.live, diff=change.diff, columns=change.diff.columns, copied=made.copied,
        history=str(Carry(older)), older_rows=made.older.shown, older_until=last_day(change), carried=made.older.columns,
        problems=(shown(change, "rows so far", made.older),),
    )  # fmt: skip


def carried_rows(change: Change, older: OlderValues = "") -> CarriedRows | Impossible:
    """How the stored rows are copied without being recomputed, or why they cannot be.

    older  the operator's choice of values for new and changed columns
    """
    if change.rebuilt_sources:
        return _of_rebuilt(change)

    def made() -> CarriedRows | Impossible:
        if why := _impossible(change):
            return why
        if older and (why := _no_such_values(change)):
            return why
        return _states(change) if change.wanted.table.kind == "aggregate" else _rows(change, older)

    release = shared_release(change.release, change.cache)
    return change.cache.by_identity(_CARRIED[older], made, change.wanted, release)


def shown(change: Change, which: str, older: Older, how: str = "copied from the live version") -> Problem:
    """C118: the operator's choice, and its effect on older rows."""
    until = last_day(change)
    ends = f", the last of them until {until}" if until else ""
    later = "rows that arrive later follow the new query, those of older days too"
    message = f"{change.name}: {which} are {how}; {older.shown}{ends}; {later}"
    remedies = (SetKey(node=change.name, key="history", value="all", effect="computes them by the new query"),)
    where = change.wanted.table.where
    return Problem(code="C118", message=message, where=where, severity="warn", node=change.name, remedies=remedies)


def without(change: Change, effect: str = "") -> DropKey:
    return DropKey(node=change.name, key="history", effect=effect)


def _declared(change: Change, column: str, key: str, value: str = "") -> SetKey:
    return SetKey(node=change.name, key=key, columns=(column,), value=value)


def _of_rebuilt(change: Change) -> Impossible:
    sources = listed(change.rebuilt_sources)
    why = f"{sources} is rebuilt, and positions in the log of its live version do not apply to the new one"
    return _no(why, without(change, f"{change.name} is computed from all rows of {sources}, carried ones included"))


def _no(why: str, *remedies: Remedy) -> Impossible:
    return Impossible(why, remedies)


def _impossible(change: Change) -> Impossible | None:
    table, drop = change.wanted.table, without(change, _COMPUTED)
    if table.kind != change.live.table.kind:
        return _no(f"it is now of kind {table.kind}", drop)
    if _is_other_newest(table, change.live.table) and not change.diff.rows:
        return _of_other_newest(change)
    if not _continued(change):
        return _no("its feeds are not those of the live version, so none has a position to continue from", drop)
    placing = [name for name in (table.time, *table.partition_by) if name and name in change.diff.computed]
    if placing:
        why = f"{placing[0]} places its rows in days or partitions, and older rows have no value for it"
        return _no(why, drop)
    return None


def _is_other_newest(table: Table, live: Table) -> bool:
    """Whether the row that is now a key's newest may be missing in the live version. A distinct table drops only equal rows."""
    return bool(table.key or live.key) and not (table.is_distinct and live.is_distinct)


def _of_other_newest(change: Change) -> Impossible:
    if not change.leaves_out_keys():
        why = "another row of a key may be the newest now, and the live version does not keep the others"
        return _no(why, without(change, _COMPUTED))
    why = "its filter leaves out whole keys: the rows stored for them would stay, and not be the newest ones for long"
    exact = change.narrower is not None
    return _no(why, without(change, "the newest rows of all other keys are copied" if exact else _COMPUTED))


def _continued(change: Change) -> bool:
    """Whether each feed has a live counterpart with the same source, whose position it can take over."""
    live = change.release.feeds_into(change.name)
    sources = {feed.materialization: feed.source for feed in live}
    wanted = change.wanted.feeds
    if len(live) == len(wanted) == 1:
        return live[0].source == wanted[0].source
    return all(sources.get(feed.materialization) == feed.source for feed in wanted)


def _no_such_values(change: Change) -> Impossible | None:
    """Why the values of older rows cannot be chosen; None if they can."""
    if change.wanted.table.kind == "aggregate":
        why = "stored groups are merged with later rows as they are, and have counted nothing for a new column"
    elif not change.diff.computed:
        why = "none of its columns is new or computed differently"
    else:
        return None
    return _no(f"what older rows show cannot be chosen: {why}")


def _rows(change: Change, older_values: OlderValues) -> CarriedRows | Impossible:
    """Copies stored columns unchanged, changed ones too; a new one by proof, default or NULL; all by the operator's
    choice if given."""
    picks = {pick.name: pick for pick in change.diff.picks}
    older: list[str] = []
    words: list[str] = []
    for column in change.wanted.table.columns:
        if column.name in picks:
            continue
        fresh = change.diff.computed[column.name].kind == "new"
        if column.name in change.proof.given and (older_values == "computed" or (fresh and not older_values)):
            picks[column.name] = Pick(name=column.name, computed=change.proof.given[column.name])
            continue
        made = _chosen_value(change, column, older_values) if older_values else _older_value(change, column)
        if isinstance(made, Impossible):
            return made
        picks[column.name], word = made
        older.append(column.name)
        words.append(word)
    sql = select(change.name, tuple(picks[column.name] for column in change.wanted.table.columns))
    return CarriedRows(LiveCopy(sql), _older(change, words, older))


def _chosen_value(change: Change, column: Column, older: OlderValues) -> tuple[Pick, str] | Impossible:
    """A column's value in older rows by the operator's choice, as SQL and in words. The caller handles columns proven
    computable."""
    name = column.name
    if older == "computed":
        why = f"{name} is not proven to be computable from columns that {change.name} keeps"
        return _no(why)
    if older == "default":
        if column.default is None:
            return _no(f"{name} has no default", _declared(change, name, "default"))
        return Pick(name=name, literal=column.default, type=column.type), f"{name} is {column.default}"
    if not column.nullable:
        return _no(f"{name} may not be NULL", _declared(change, name, "nullable", "true"))
    return Pick(name=name, literal="NULL", type=column.type), f"{name} is NULL"


def _older_value(change: Change, column: Column) -> tuple[Pick, str] | Impossible:
    """An older row's value for a column that only the source could compute, as SQL and in words."""
    before, name = change.live.table.column(column.name), column.name
    if before is not None:
        if before.nullable and not column.nullable:
            return _no(
                f"{name} may no longer be NULL, and older rows may hold it",
                _declared(change, name, "nullable", "true"),
            )
        if kept(kind(before.type), kind(column.type)) not in _CONVERTED:
            why = f"values of {name} may not survive the change from {before.type} to {column.type}"
            return _no(why, AnotherColumn(node=change.name, column=name, effect=_UNDER_IT))
        cast = "" if kind(before.type) == kind(column.type) else column.type
        return Pick(name=name, of=name, type=cast), f"{name} keeps its values"
    if column.default is not None:
        return Pick(name=name, literal=column.default, type=column.type), f"{name} is {column.default}"
    if not column.nullable:
        why = f"{name} is new and may not be NULL, and older rows have no value"
        return _no(why, _declared(change, name, "default"))
    return Pick(name=name, literal="NULL", type=column.type), f"{name} is NULL"


def _states(change: Change) -> CarriedRows | Impossible:
    """Copies partial states unchanged; those of new columns are NULL, which the merge ignores."""
    wanted, diff = change.wanted, change.diff
    if why := _other_keys(change):
        return _no(why, without(change, _COMPUTED))
    origins, places = state_origins(change), kept_places(change)
    older: list[str] = []
    words: list[str] = []
    for column in wanted.table.columns:
        if column.name in wanted.keys:
            continue
        states = [state for state in wanted.columns if is_state_of(state.name, column.name)]
        kept_all = all(state.name.lower() in places for state in states)
        if column.name in origins:
            if not kept_all:
                why = f"the partial states of {column.name} do not merge with those that are stored"
                return _no(why, AnotherColumn(node=change.name, column=column.name, effect=_UNDER_IT))
            if column.name in diff.computed:
                older.append(column.name)
                words.append(f"{column.name} keeps its values, and later rows are merged with them")
            continue
        if kept_all:
            continue
        if not column.nullable:
            why = f"{column.name} is new and may not be NULL, and older rows have no value"
            return _no(why, _declared(change, column.name, "nullable", "true"))
        older.append(column.name)
        words.append(f"{column.name} counts nothing")
    copied = LiveCopy(select_states(change.name, wanted.columns, places), states=True)
    return CarriedRows(copied, _older(change, words, older))


def kept_places(change: Change) -> dict[str, str]:
    """An aggregate's stored column, in lower case → the live version's that has its meaning."""
    places = state_places(change.wanted, change.live, state_origins(change))
    if change.groups is None:
        return places
    return places | {name.lower(): state.name for name, state in change.groups.states.items() if not state.wider}


def state_origins(change: Change) -> dict[str, str]:
    """An aggregate's column → the live one whose states it continues: the renamed one, else that of its name."""
    names = [column.name for column in change.wanted.table.columns]
    own = {name: name for name in names if change.live.table.column(name) is not None}
    return own | {new: old for new, old in change.diff.pairs.items() if new in names}


def _other_keys(change: Change) -> str:
    """Why stored states and new ones would not merge by the same keys; "" if they would."""
    wanted, live = change.wanted, change.live
    terms = [feed.terms for feed in change.release.feeds_into(change.name)]
    same = all(one is not None and set(one.keys) == set(wanted.keys) for one in terms)
    if not same or any(change.diff.pairs.get(key) != key for key in wanted.keys):
        return "rows that are stored and rows to come would be grouped by other keys"
    if not change.diff.layout or wanted.table.time != live.table.time or wanted.table.time not in ("", *wanted.keys):
        return "it is laid out otherwise"
    return ""


def _older(change: Change, words: list[str], columns: list[str]) -> Older:
    rest = [] if change.diff.rows else ["rows that the new query would leave out stay, and none that it would add come"]
    every = tuple(column.name for column in change.wanted.table.columns)
    text = "; ".join([*words, *rest]) or "every column keeps its values"
    return Older(f"older rows: {text}", every if rest else tuple(columns))
