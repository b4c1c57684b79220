"""For consumers of replicated rows: which columns of a package a store accepts at this moment, and which are left out.

A package is a run of rows of one table that share one list of columns, in PostgreSQL's own order (the relation message of
its replication protocol has both). A package never mixes schemas: it ends where the list changes.

    known = renamings(store.records(), place)                  # first the records, then the table
    target = store.describe([place])[place]
    seen |= crossed(before, package.columns, known, retyped)   # where columns or their types changed; () before the first
    fitted = fit(package.columns, target, renamed(known, seen, target), defaults(store.records(), place))
    if fitted.waits: retry soon, a renaming is in progress
    insert(place, {there: package[here] for here, there in fitted.insert})
    if store.describe([place])[place] != target: repeat, the table changed in between
    left.add(place, fitted, rows)                              # and `left.flush()` now and then

Rows may arrive twice, so tables must tolerate duplicates (ReplacingMergeTree; a key with a version). Iceberg and Delta
need no second look: an append uses the table as it was loaded (`store.table(place)`, `described`).
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from console.errors import DataError
from console.propagation.migration import AddColumn, DropColumn, ReplaceColumn, SwapColumns
from console.propagation.migration_file import read
from console.propagation.replication import Replication, Target
from console.propagation.sql.defaults import NOW
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import between
from console.stores.protocol import LeftOut, Record, Store

_COMPUTED: Final = ("ALIAS", "MATERIALIZED")
_NOWHERE: Final = ""  # for values of a dropped column
_NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Fit:
    """How one package is inserted into one table.

    insert    (the package's column, the store's column), in the package's order
    missing   (the store's column, literal): the default of a column for rows that arrive without it, for stores that do
              not fill it in themselves: Iceberg, Delta (`console.stores.lakes.constants.scalar`)
    left_out  columns that arrive and do not exist in the store
    waits     the store is renaming columns: insert nothing now
    """

    insert: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...] = ()
    waits: bool = False
    missing: tuple[tuple[str, str], ...] = ()


def fit(
    columns: Sequence[str],
    target: StoreTable,
    renamed: Mapping[str, str] | None = _NONE,
    defaults: Mapping[str, str] = _NONE,
) -> Fit:
    """Which columns of a package to insert.

    columns  the package's, each once
    renamed   the package's name → the store's, where only one of them has the new name yet; None during a renaming
    defaults  the store's column → literal, from `defaults`
    raises    ValueError if two columns of a package would go into one column of the store
    """
    if renamed is None or between(target.columns):
        return Fit((), (), waits=True)
    there = {column.name: column.kind for column in target.columns}
    pairs = [(name, renamed.get(name, name)) for name in columns]
    insert = tuple(pair for pair in pairs if pair[1] in there and there[pair[1]] not in _COMPUTED)
    if len({name for _, name in insert}) != len(insert):
        raise ValueError(f"two of the columns {', '.join(columns)} would be one")
    given = {name for _, name in insert}
    missing = tuple((name, literal) for name, literal in defaults.items() if name in there and name not in given)
    return Fit(insert, tuple(here for here, name in pairs if name not in there), missing=missing)


@dataclass(frozen=True, slots=True)
class Renaming:
    """A renaming that was announced to a store: its migration's name, and old name → new name.

    gone   the name whose column is dropped because another column takes it
    fresh  that other column is new: until it gets its name it exists in the store only, under the old name of `names`
    """

    migration: str
    names: tuple[tuple[str, str], ...]
    gone: str = ""
    fresh: bool = False

    def holds(self, target: StoreTable) -> bool:
        """The table has been renamed: by its own mark, or because only the new names exist."""
        if self.fresh:
            return self.migration in target.marks
        old, new = {name for name, _ in self.names}, {name for _, name in self.names}
        there = {column.name for column in target.columns}
        return self.migration in target.marks or (old != new and new <= there and not (old - new) & there)

    def over(self, columns: Sequence[str]) -> tuple[str, ...]:
        """A list of columns in PostgreSQL's own order, after the renaming."""
        names = dict(self.names)
        kept = [names.get(name, name) for name in columns if name != self.gone]
        return (*kept, self.gone) if self.fresh else tuple(kept)

    def moving(self, target: StoreTable) -> bool:
        """Part of a chain is renamed and part is not: its ends exist, a name between them does not."""
        old, new = {name for name, _ in self.names}, {name for _, name in self.names}
        there = {column.name for column in target.columns}
        return not self.gone and old != new and old ^ new <= there and not old & new <= there


def renamings(records: Iterable[Record], place: str) -> tuple[tuple[Renaming, bool], ...]:
    """A table's renamings in the order in which they were announced, and whether each is recorded as applied."""
    announced: dict[str, Renaming] = {}
    applied: set[str] = set()
    for record in records:
        if record.place != place:
            continue
        match read(record.body).operation:
            case SwapColumns(columns=names):
                renaming = Renaming(record.migration, names)
            case ReplaceColumn(name=name) as operation:
                renaming = Renaming(record.migration, ((operation.taker, name),), name, operation.source is None)
            case _:
                continue
        announced.setdefault(record.migration, renaming)
        if record.state == "applied":
            applied.add(record.migration)
    return tuple((renaming, name in applied) for name, renaming in announced.items())


def defaults(records: Iterable[Record], place: str) -> dict[str, str]:
    """The column → the value that PostgreSQL keeps for rows older than it, as far as a migration begun here defines it.

    A package without such a column is older than it, and its rows have that value in PostgreSQL.
    """
    mine = [record for record in records if record.place == place]
    applied = {record.migration for record in mine if record.state == "applied"}
    literals: dict[str, str] = {}
    for migration, body in {record.migration: record.body for record in mine}.items():
        match read(body).operation:
            case AddColumn(name=name, default=default):
                literals |= _constant(name, default)
            case ReplaceColumn(name=name) as replaced:
                if replaced.staged is not None:
                    literals |= _constant(replaced.taker, replaced.staged.default)
                if migration in applied:
                    literals.pop(name, None)
                    literals |= _constant(name, literals.pop(replaced.taker, None))
            case DropColumn(name=name) if migration in applied:
                literals.pop(name, None)
            case SwapColumns(columns=names) if migration in applied:
                moved = {new: literals.pop(old) for old, new in names if old in literals}
                literals |= moved
            case _:
                pass
    return literals


def _constant(name: str, default: str | None) -> dict[str, str]:
    return {} if default in (None, NOW) else {name: str(default)}


def crossed(
    before: Sequence[str], after: Sequence[str], known: Iterable[Renaming], retyped: Collection[str] = ()
) -> set[str]:
    """The migrations of all renamings between two lists of columns; one transaction may contain several.

    raises  as `renaming_between`
    """
    left, passed_over = list(known), set[str]()
    while (renaming := renaming_between(before, after, left, retyped)) is not None:
        left.remove(renaming)
        passed_over.add(renaming.migration)
        before = renaming.over(before) if before else before
        retyped = set(retyped) - {renaming.gone}
    return passed_over


def renaming_between(
    before: Sequence[str], after: Sequence[str], known: Iterable[Renaming], retyped: Collection[str] = ()
) -> Renaming | None:
    """The renaming between two lists of columns of one table, in PostgreSQL's own order.

    PostgreSQL keeps a renamed column in its place and appends a new one, so the lists identify a swap exactly, and the place
    of a name that another column has taken. A new column in the old one's place, if both are last, is recognized by its type.

    before   () for the first list
    retyped  the names with another type (`Relation`: type and modifier) in the second list
    raises   DataError if names changed places without a known renaming: nothing may be inserted until it is known
    """
    for renaming in known:
        names = dict(renaming.names)
        if renaming.gone:
            if _taken(renaming, before, after, retyped):
                return renaming
            continue
        if not set(names) <= set(before):
            continue
        kept = [name for name in (names.get(name, name) for name in before) if name in after]
        if set(names.values()) <= set(kept) and kept == list(after)[: len(kept)] and kept != list(before):
            return renaming
    if [name for name in before if name in after] != [name for name in after if name in before]:
        raise DataError(
            f"columns changed places from {', '.join(before)} to {', '.join(after)}, but no migration renames them",
            hint="console schema observe the change, then console schema apply --phase pre",
        )
    return None


def _taken(renaming: Renaming, before: Sequence[str], after: Sequence[str], retyped: Collection[str]) -> bool:
    """The name belongs to another column in the second list."""
    name, names = renaming.gone, dict(renaming.names)
    if name not in after or set(names) & set(after):
        return False
    if not before:
        return not renaming.fresh  # the column that took the name no longer exists under its own
    if name not in before or not (renaming.fresh or set(names) <= set(before)):
        return False
    kept = [names.get(column, column) for column in before if column != name]
    kept = [column for column in kept if column in after]
    there = [column for column in after if column != name] if renaming.fresh else list(after)
    moved = [column for column in before if column in after] != [column for column in after if column in before]
    return kept == there[: len(kept)] and (not renaming.fresh or moved or name in retyped)


def renamed(known: Iterable[tuple[Renaming, bool]], seen: Collection[str], target: StoreTable) -> dict[str, str] | None:
    """A package's name → the store's, for columns that only one of the two has under the new name.

    None while the store is in the middle of a renaming: nothing may be inserted.

    known   the table's renamings, read before `target`
    seen    the migrations whose renaming precedes the package
    """
    names: dict[str, str] = {}
    for renaming, applied in known:
        if not applied and renaming.moving(target):
            return None
        holds = applied or renaming.holds(target)
        if (renaming.migration in seen) == holds:
            continue
        step = {old: new for old, new in renaming.names} if holds else {new: old for old, new in renaming.names}
        if holds and renaming.gone:
            step[renaming.gone] = _NOWHERE
        names = {**step, **{here: step.get(there, there) for here, there in names.items()}}
    return names


class Left:
    """Counts of columns that arrived and were not stored, kept in the store for `console status`."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._rows: dict[str, dict[str, int]] = {}

    def add(self, place: str, fitted: Fit, rows: int) -> None:
        """Count a package's rows for every column that was left out of it."""
        counts = self._rows.setdefault(place, {})
        for name in fitted.left_out:
            counts[name] = counts.get(name, 0) + rows

    def flush(self) -> None:
        """Store the counts since the last flush; counts that could not be stored are kept."""
        for place, counts in list(self._rows.items()):
            if counts:
                self._store.add_left_out(place, counts, self._clock())
            del self._rows[place]


def lagging(store: Store, target: Target, replication: Replication) -> tuple[LeftOut, ...]:
    """The counts of replicated columns that arrive and that the store still lacks."""
    ignored = {target.place(table): table.ignore for table in replication.tables}
    tables = store.describe(ignored)
    counted = [one for one in store.left_out() if one.place in tables and one.column not in ignored[one.place]]
    return tuple(one for one in counted if tables[one.place].column(one.column) is None)
