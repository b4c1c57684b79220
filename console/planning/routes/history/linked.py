"""`history: from now`: the live version's files become older rows of the new one unchanged; no row is read or written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.model.schema import OLDER_VALUES, Carry, FromNow, OlderValues, quoted
from console.planning.cache.planner_cache import Memo
from console.planning.cache.releases import shared_release
from console.planning.fingerprint import DesiredTable
from console.planning.reuse.states import kept_states
from console.planning.routes.change import Change
from console.planning.routes.history.carried import carried_rows, shown
from console.planning.routes.history.linked_columns import LinkedColumns, linked_columns
from console.planning.routes.reasons import last_day, listed
from console.planning.routes.verdict import Impossible, Verdict
from console.planning.sql.reads import Pick, compose
from console.planning.sql.tree import DIALECT
from console.remedy import SetKey


@dataclass(frozen=True, slots=True)
class TakenOverFiles:
    """The new version as it is stored, and its read: older files lack new columns."""

    wanted: DesiredTable
    read: str


# the same in all regions of a release
_TAKEN_OVER: Mapping[OlderValues, Memo["TakenOverFiles | Impossible"]] = {older: Memo() for older in OLDER_VALUES}


def from_now(change: Change, older: OlderValues = "") -> Verdict | Impossible:
    """A new version that begins with the live one's files as of the position that its feeds have reached."""
    made = carried_rows(change, older)
    if isinstance(made, Impossible):
        declared = any(isinstance(remedy, SetKey) and remedy.columns for remedy in made.remedies)
        return (_other_files(change, older) if declared else None) or made  # a declared column would not help
    release = shared_release(change.release, change.cache)
    taken = change.cache.by_identity(_TAKEN_OVER[older], lambda: _taken_over(change, older), change.wanted, release)
    if isinstance(taken, Impossible):
        return taken
    why = f"history: {FromNow(older)}, by the operator's choice: {made.older.shown}; no row moves"
    return Verdict(
        name=change.name, action="forward", why=why, wanted=taken.wanted, live=change.live, diff=change.diff,
        columns=change.diff.columns, copied=replace(made.copied, linked=True), read=taken.read,
        history=str(FromNow(older)), older_rows=made.older.shown, older_until=last_day(change), carried=made.older.columns,
        problems=(shown(change, "rows so far", made.older, "taken over with their files, as of one version"),),
    )  # fmt: skip


def _taken_over(change: Change, older: OlderValues) -> TakenOverFiles | Impossible:
    table = change.wanted.table
    if why := _other_layout(change):
        return why
    if table.kind == "append" and not table.key:
        columns = linked_columns(change)
        if isinstance(columns, str):
            return _no(change, columns)
        read = _kept_values(change, columns.places, older) or _of_rows(change, columns, older)
        return read if isinstance(read, Impossible) else TakenOverFiles(columns.stored(change.wanted), read)
    if why := _other_states(change, older):
        return why
    if table.kind == "aggregate":
        return TakenOverFiles(change.wanted, change.wanted.read)
    own = {column.name: column.name for column in table.columns if column.name.lower() in _stored(change)}
    read = _of_rows(change, LinkedColumns(origins=own, places=own, gone=()), older, change.wanted.read)
    return read if isinstance(read, Impossible) else TakenOverFiles(change.wanted, read)


def _other_files(change: Change, older: OlderValues) -> Impossible | None:
    """Why the live version's files cannot be linked, regardless of the values of new columns."""
    table = change.wanted.table
    if why := _other_layout(change):
        return why
    if table.kind != "append" or table.key:
        return _other_states(change, older)
    columns = linked_columns(change)
    return _no(change, columns) if isinstance(columns, str) else _kept_values(change, columns.places, older)


def _other_layout(change: Change) -> Impossible | None:
    if change.relaid or not change.diff.layout:
        return _no(change, "its rows need another layout")
    return None


def _other_states(change: Change, older: OlderValues) -> Impossible | None:
    """The same of a table that is merged at read: its columns keep their names and types."""
    wanted, live, stored = change.wanted, change.live, _stored(change)
    columns = {column.name.lower() for column in wanted.columns}
    if gone := [column.name for column in live.version.columns if column.name.lower() not in columns]:
        return _no(change, f"{listed(gone)} would stay in its files, under a name that a later column may take")
    both = [column.name for column in wanted.table.columns if live.table.column(column.name)]
    kept = kept_states(wanted, live, both)
    if other := [column.name for column in wanted.columns if column.name.lower() in stored - kept - set(_keys(change))]:
        return _no(change, f"{listed(other)} is stored in another type, or will be read differently")
    if wanted.table.kind == "aggregate":
        return None
    return _kept_values(
        change, {column.name for column in wanted.table.columns if column.name.lower() in stored}, older
    )


def _kept_values(change: Change, placed: Collection[str], older: OlderValues) -> Impossible | None:
    """Why the files cannot show the values chosen for older rows: columns that change and are stored in them."""
    changed = [
        column.name
        for column in change.wanted.table.columns
        if column.name in change.diff.computed and column.name in placed
    ]
    return _no(change, f"they hold other values of {listed(changed)}", str(Carry(older))) if older and changed else None


def _stored(change: Change) -> frozenset[str]:
    return frozenset(column.name.lower() for column in change.live.version.columns)


def _keys(change: Change) -> list[str]:
    """Group columns; `carried_rows` has compared them."""
    return [key.lower() for key in change.wanted.keys]


def _of_rows(change: Change, columns: LinkedColumns, older: OlderValues, read: str = "") -> str | Impossible:
    """A read with substitutes for new columns, which are NULL in older files.

    read  that shows all columns as they are stored; by default the live version's, with the new columns
    """
    wanted, picks = change.wanted, dict[str, Pick]()
    for column in wanted.table.columns:
        own = quoted(column.name)
        picks[column.name] = Pick(name=column.name, of=columns.origins.get(column.name, column.name))
        if column.name in columns.places or older == "null":
            continue
        if older != "default" and (given := change.proof.given.get(column.name)) is not None:
            if changed := sorted(_columns(given) & {name.lower() for name in change.diff.computed}):
                return _no(change, f"{column.name} is computed from {listed(changed)}, which changes as well")
            picks[column.name] = Pick(name=column.name, computed=f"coalesce({own}, {given})")
        elif column.default is not None and column.nullable:
            why = f"{column.name} may be NULL and has a default, so its rows would not show which of them are older"
            return _with_null(change, _no(change, why, str(Carry(older))))
        elif column.default is not None:
            default = f"CAST({column.default} AS {column.type})"
            picks[column.name] = Pick(name=column.name, computed=f"coalesce({own}, {default})")
    read = read or columns.read(change)
    return change.cache.by_value(compose, read, tuple(picks.values()), read)


def _with_null(change: Change, made: Impossible) -> Impossible:
    """The same with the choice that moves no row either."""
    null = SetKey(
        node=change.name, key="history", value=str(FromNow("null")), effect="moves no row: new columns are NULL there"
    )
    return replace(made, remedies=(*made.remedies, null))


def _columns(sql: str) -> set[str]:
    return {column.name.lower() for column in sqlglot.parse_one(sql, read=DIALECT).find_all(exp.Column)}


def _no(change: Change, why: str, instead: str = "carry") -> Impossible:
    carry = SetKey(node=change.name, key="history", value=instead, effect="copies the existing rows")
    return Impossible(f"its files cannot be taken over unchanged: {why}", (carry,))
