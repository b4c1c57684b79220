"""`history: carry`: the rows that a table holds are copied, and its feeds go on behind them with the new query."""

from dataclasses import dataclass

from console.errors import Problem
from console.model.schema import Column
from console.planning.reuse.states import kept_states, select_states
from console.planning.routes.change import Change
from console.planning.routes.reasons import listed
from console.planning.routes.verdict import LiveCopy, Verdict
from console.planning.sql.convert import kept
from console.planning.sql.reads import Pick, select
from console.planning.sql.tree import kind

_CONVERTED = ("same", "wider", "whole")
_OTHER_NAME = "give it another name: under that one older rows show NULL"


@dataclass(frozen=True, slots=True)
class Older:
    """Older rows as they will read. shown: in words; columns: those that do not follow the new query"""

    shown: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """The query that copies older rows, and what they show."""

    copied: LiveCopy
    older: Older


def carry(change: Change) -> Verdict | Problem:
    """A new version with a copy of all rows up to the position that the live version has reached."""
    made = carried_rows(change)
    if isinstance(made, Problem):
        return made
    return Verdict(
        name=change.name, action="forward", why=f"history: carry, by the operator's choice: {made.older.shown}", wanted=change.wanted,
        live=change.live, diff=change.diff, columns=change.diff.columns, copied=made.copied,
        history="carry", older_rows=made.older.shown, carried=made.older.columns,
        problems=(shown(change, "rows so far", made.older),),
    )  # fmt: skip


def carried_rows(change: Change) -> CarriedRows | Problem:
    """How the rows that a table holds are copied without being computed again; a refusal where that cannot be."""
    if problem := _impossible(change):
        return problem
    return _states(change) if change.wanted.table.kind == "aggregate" else _rows(change)


def shown(change: Change, which: str, older: Older) -> Problem:
    """C118: what the operator has chosen, and what it makes of older rows."""
    message = f"{change.name}: {which} are copied from the live version; {older.shown}"
    hint = "`history: all` computes them by the new query"
    return Problem(
        code="C118", message=message, where=change.wanted.table.where, hint=hint, severity="warn", node=change.name
    )


def refusal(change: Change, why: str, hint: str) -> Problem:
    """C140: the choice is not possible, and what is."""
    message = f"history of {change.name} ({change.choice}) is not possible: {why}"
    return Problem(code="C140", message=message, where=change.wanted.table.where, hint=hint, node=change.name)


def _impossible(change: Change) -> Problem | None:
    table, drop = change.wanted.table, "drop it: all rows are computed from the source"
    if change.rebuilt_sources:
        sources = listed(change.rebuilt_sources)
        why = f"{sources} is rebuilt, and positions in the log of its live version say nothing about the new one's"
        return refusal(
            change, why, f"drop it: {change.name} is computed from all rows of {sources}, carried ones included"
        )
    if table.kind != change.live.table.kind:
        return refusal(change, f"it is now of kind {table.kind}", drop)
    if not _continued(change):
        return refusal(
            change, "its feeds are not those of the live version, so none has a position to go on from", drop
        )
    placing = [name for name in (table.time, *table.partition_by) if name and name in change.diff.computed]
    if placing:
        why = f"{placing[0]} places its rows in days or partitions, and older rows have no value for it"
        return refusal(change, why, drop)
    return None


def _continued(change: Change) -> bool:
    """Whether each feed has a live one, of the same source, whose position it can take over."""
    live = change.release.feeds_into(change.name)
    sources = {feed.materialization: feed.source for feed in live}
    wanted = change.wanted.feeds
    if len(live) == len(wanted) == 1:
        return live[0].source == wanted[0].source
    return all(sources.get(feed.materialization) == feed.source for feed in wanted)


def _rows(change: Change) -> CarriedRows | Problem:
    """Stored columns as they are, changed ones too; a new one by proof, by its default or NULL."""
    picks = {pick.name: pick for pick in change.diff.picks}
    older: list[str] = []
    words: list[str] = []
    for column in change.wanted.table.columns:
        if column.name in picks:
            continue
        if change.diff.computed[column.name].kind == "new" and column.name in change.proof.given:
            picks[column.name] = Pick(name=column.name, computed=change.proof.given[column.name])
            continue
        made = _older_value(change, column)
        if isinstance(made, Problem):
            return made
        picks[column.name], word = made
        older.append(column.name)
        words.append(word)
    sql = select(change.name, tuple(picks[column.name] for column in change.wanted.table.columns))
    return CarriedRows(LiveCopy(sql), _older(change, words, older))


def _older_value(change: Change, column: Column) -> tuple[Pick, str] | Problem:
    """What an older row gives for a column that only the source can give, and the same in words."""
    before, name = change.live.table.column(column.name), column.name
    if before is not None:
        if before.nullable and not column.nullable:
            return refusal(change, f"{name} may no longer be NULL, and older rows may hold it", "leave it nullable")
        if kept(kind(before.type), kind(column.type)) not in _CONVERTED:
            why = f"values of {name} may not survive the change from {before.type} to {column.type}"
            return refusal(change, why, _OTHER_NAME)
        cast = "" if kind(before.type) == kind(column.type) else column.type
        return Pick(name=name, of=name, type=cast), f"{name} keeps its values"
    if column.default is not None:
        return Pick(name=name, literal=column.default, type=column.type), f"{name} is {column.default}"
    if not column.nullable:
        return refusal(change, f"{name} is new and may not be NULL, and older rows have no value", "give it a default")
    return Pick(name=name, literal="NULL", type=column.type), f"{name} is NULL"


def _states(change: Change) -> CarriedRows | Problem:
    """Partial states as they are; NULL for those of new columns, which the merge passes over."""
    wanted, live, diff = change.wanted, change.live, change.diff
    if why := _other_keys(change):
        return refusal(change, why, "drop it: all rows are computed from the source")
    held = [column.name for column in wanted.table.columns if live.table.column(column.name)]
    kept_columns = kept_states(wanted, live, held)
    older: list[str] = []
    words: list[str] = []
    for column in wanted.table.columns:
        if column.name in wanted.keys:
            continue
        states = [
            state for state in wanted.columns if state.name == column.name or state.name.startswith(f"{column.name}__")
        ]
        if live.table.column(column.name) is not None:
            if not all(state.name.lower() in kept_columns for state in states):
                return refusal(
                    change, f"the partial states of {column.name} do not merge with those that are stored", _OTHER_NAME
                )
            if column.name in diff.computed:
                older.append(column.name)
                words.append(f"{column.name} keeps its values, and later rows are merged with them")
            continue
        if not column.nullable:
            return refusal(
                change, f"{column.name} is new and may not be NULL, and older rows have no value", "leave it nullable"
            )
        older.append(column.name)
        words.append(f"{column.name} counts nothing")
    copied = LiveCopy(select_states(change.name, wanted.columns, kept_columns), states=True)
    return CarriedRows(copied, _older(change, words, older))


def _other_keys(change: Change) -> str:
    """Why stored states and new ones would not merge by one key; "" where they do."""
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
