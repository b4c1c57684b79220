"""`history: from now`: the live version's files become older rows of the new one unchanged; no row is read or written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from console.model.schema import OLDER_VALUES, FromNow, OlderValues
from console.planning.cache.planner_cache import Memo
from console.planning.cache.releases import shared_release
from console.planning.fingerprint import DesiredTable
from console.planning.routes.change import Change
from console.planning.routes.history.carried import carried_rows, shown
from console.planning.routes.history.linked_columns import linked_columns
from console.planning.routes.history.linked_states import linked_states
from console.planning.routes.reasons import last_day
from console.planning.routes.verdict import Impossible, Verdict
from console.remedy import SetKey


@dataclass(frozen=True, slots=True)
class TakenOverFiles:
    """The new version as it is stored, and its read: older files lack new columns. places: column → where it is stored"""

    wanted: DesiredTable
    read: str
    places: Mapping[str, str] = field(default_factory=dict)


# the same in all regions of a release
_TAKEN_OVER: Mapping[OlderValues, Memo["TakenOverFiles | Impossible"]] = {older: Memo() for older in OLDER_VALUES}


def from_now(change: Change, older: OlderValues = "") -> Verdict | Impossible:
    """A new version that begins with the live one's files as of the position that its feeds have reached."""
    made = carried_rows(change, older)
    if isinstance(made, Impossible):
        declared = any(isinstance(remedy, SetKey) and remedy.columns for remedy in made.remedies)
        without = _taken_over(change, "") if declared else None
        return without if isinstance(without, Impossible) else made  # a declared column would not help
    release = shared_release(change.release, change.cache)
    taken = change.cache.by_identity(_TAKEN_OVER[older], lambda: _taken_over(change, older), change.wanted, release)
    if isinstance(taken, Impossible):
        return taken
    why = f"history: {FromNow(older)}, by the operator's choice: {made.older.shown}; no row moves"
    return Verdict(
        name=change.name, action="forward", why=why, wanted=taken.wanted, live=change.live, diff=change.diff,
        columns=change.diff.columns, copied=replace(made.copied, linked=True), read=taken.read, places=taken.places,
        history=str(FromNow(older)), older_rows=made.older.shown, older_until=last_day(change), carried=made.older.columns,
        problems=(shown(change, "rows so far", made.older, "taken over with their files, as of one version"),),
    )  # fmt: skip


def _taken_over(change: Change, older: OlderValues) -> TakenOverFiles | Impossible:
    if change.relaid or not change.diff.layout:
        return _no(change, "its rows need another layout")
    if change.wanted.table.kind == "aggregate":
        states = linked_states(change)
        if isinstance(states, str):
            return _no(change, states)
        wanted = states.stored(change.wanted)
        return TakenOverFiles(wanted, wanted.read)
    columns = linked_columns(change, older)
    if isinstance(columns, str):
        return _no(change, columns)
    return TakenOverFiles(columns.stored(change.wanted), columns.read, columns.places)


def _no(change: Change, why: str) -> Impossible:
    carry = SetKey(node=change.name, key="history", value="carry", effect="copies the existing rows")
    return Impossible(f"its files cannot be taken over unchanged: {why}", (carry,))
