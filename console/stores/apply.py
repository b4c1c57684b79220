"""Carries migrations into one store: says what is left of each and does it; killed at any statement, it ends the same."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from console import crash
from console.errors import CheckFailed, Conflict, DataError, RegionError
from console.propagation.migration import ANNOUNCED, KEPT, STAGED, Migration, Phase, ReplaceColumn
from console.propagation.replication import Replication, Target
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import AddField, Rewrite, StoreOperation, Translation, Unprepared, lossy
from console.stores.files import MigrationFile
from console.stores.protocol import Record, State, Store, looks

Translate = Callable[[MigrationFile, StoreTable], Translation]
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What one migration still needs in one store.

    place     the table's name there
    steps     as the migrations before it leave the table; () where nothing is left but to write that down
    rewrites  bytes that are read and written anew for it
    announce  a renaming of the other phase, to be told to consumers before its rows arrive
    waits     an earlier migration of the other phase that must come first
    """

    change: MigrationFile
    place: str
    steps: tuple[StoreOperation, ...]
    warnings: tuple[str, ...] = ()
    rewrites: int = 0
    announce: bool = False
    waits: MigrationFile | None = None

    @property
    def destructive(self) -> bool:
        """It may lose something; here also what loses nothing in PostgreSQL, where the store's own type is another."""
        if self.announce:
            return any(map(lossy, self.steps))
        return self.change.migration.destructive or any(map(lossy, self.steps))


@dataclass(frozen=True, slots=True)
class StepResult:
    """One thing that was done: an operation, or (None) a migration that needs nothing more, or is announced."""

    change: MigrationFile
    place: str
    operation: StoreOperation | None
    announced: bool = False


class MigrationRunner:
    """One store and the migrations of one pipeline.

    changes  those that concern it, in their order
    by       who asks;  host  from where
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        replication: Replication,
        changes: Sequence[MigrationFile],
        translate: Translate,
        *,
        by: str,
        host: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._target = target
        self._replication = replication
        self._changes = tuple(changes)
        self.translate = translate
        self._who = (by, host)
        self._clock = clock
        self._last = 0  # rank of the newest record, as `todo` saw it

    def place(self, change: MigrationFile) -> str:
        """The table's name in this store."""
        entry = self._replication.find(change.migration.schema, change.migration.table)
        assert entry is not None, "changes concern the replication"
        return self._target.place(entry)

    def existing(self, change: MigrationFile) -> str:
        """raises DataError where the store has no such table"""
        place = self.place(change)
        if place not in self._store.describe([place]):
            raise self._missing(change, place)
        return place

    def _missing(self, change: MigrationFile, place: str) -> DataError:
        return DataError(
            f"{self._store.name}: no table {place}, which {change.id} is about",
            hint=f"create it, or name it as the store does: targets: {{{self._target.name}: …}} of the table in replication.yaml",
        )

    def todo(self, phase: Phase, *, recorded: bool = False) -> tuple[StepPlan, ...]:
        """What a phase has left to do here; nothing is done.

        recorded  all of it is there already: nothing is left but to write that down
        raises  DataError for what cannot be done here without a person; Conflict where a migration is not the one that
                was applied
        """
        records = self._store.records()
        self._last = max((record.seq for record in records), default=0)
        waits = waiting(self._changes, phase, lambda change: self._applied(change, records))
        open_ = [c for c in self._changes if c.migration.phase == phase and not self._applied(c, records)]
        tables = self._store.describe(sorted({self.place(change) for change in open_}))
        plans = []
        for change in open_:
            place = self.place(change)
            if place not in tables:
                raise self._missing(change, place)
            if (earlier := waits.get(change.id)) is not None:
                plans.append(StepPlan(change, place, (), waits=earlier))
            elif recorded:
                plans.append(StepPlan(change, place, ()))
            else:
                plans.append(self._seen(change, place, tables[place], announced=_told(change, place, records)))
                tables[place] = self._after(change, place, tables[place])
        return (*self._unannounced(records, recorded=recorded), *plans) if phase == "pre" else tuple(plans)

    def _seen(self, change: MigrationFile, place: str, table: StoreTable, *, announced: bool = False) -> StepPlan:
        """told: consumers know of it, so that `--phase pre` has nothing left to do"""
        try:
            self._foreign(change)
            left = self._left(change, place, table)
        except DataError as error:
            hint = error.hint
            if announced and isinstance(error, Unprepared):
                hint = "where the table was made with the new column: console schema apply --phase post --recorded; else add that column"
            raise DataError(f"{self._store.name}: {change.id}: {error}", hint=hint, code=error.code) from None
        rewritten = any(
            isinstance(step, Rewrite) or (isinstance(step, AddField) and step.default) for step in left.steps
        )
        return StepPlan(change, place, left.steps, left.warnings, self._store.weight(place) if rewritten else 0)

    def _foreign(self, change: MigrationFile) -> None:
        """raises  DataError for a column that is called like one of the replication's own"""
        migration = change.migration
        entry = self._replication.find(migration.schema, migration.table)
        own = self._target.extra | (entry.extra if entry is not None else frozenset())
        if taken := sorted(migration.columns & own):
            raise DataError(
                f"{taken[0]} is a column of the replication's own there (extra), which no column of PostgreSQL's may be",
                hint=f"name PostgreSQL's otherwise, or put it under ignore: [{taken[0]}] of the table in replication.yaml",
            )

    def _after(self, change: MigrationFile, place: str, table: StoreTable) -> StoreTable:
        if self._store.marked(place, change.id):
            return table
        return self._target.dialect.after(change.migration, table, change.id)

    def apply(self, phase: Phase, *, allow_destructive: bool = False) -> Iterator[StepResult]:
        """Do what is left, one operation at a time; each is recorded before it is asked for.

        raises  CheckFailed before anything is done, if a migration may lose something and nobody allowed it; Conflict
                after the rest is done, if one must wait for the other phase
        """
        todo = self.todo(phase)
        if not allow_destructive:
            refuse_lossy(self._store.name, todo)
        for one in todo:
            if one.waits:
                continue
            if one.announce:
                if (staged := staged_of(one.change)) is not None:
                    yield from self._steps(one.change, staged, one.place)
                self._write(one.change, one.place, "announced")
                yield StepResult(one.change, one.place, None, announced=True)
            else:
                yield from self._carry(one.change, one.place)
        refuse_waiting(self._store.name, todo)

    def skip(self, phase: Phase) -> Iterator[StepResult]:
        """Write down that what is left is there already, without doing any of it."""
        todo = self.todo(phase, recorded=True)
        for one in todo:
            if not one.waits:
                self._write(one.change, one.place, "announced" if one.announce else "applied")
                yield StepResult(one.change, one.place, None, one.announce)
        refuse_waiting(self._store.name, todo, recorded=True)

    def _carry(self, change: MigrationFile, place: str) -> Iterator[StepResult]:
        yield from self._steps(change, change, place)
        self._write(change, place, "applied")
        crash.point(f"schema-applied-{change.id}")
        yield StepResult(change, place, None)

    def _steps(self, change: MigrationFile, doing: MigrationFile, place: str) -> Iterator[StepResult]:
        """doing: the migration, or what must be there before its first row arrives"""
        for _ in range(MOST_STEPS):
            table = self._store.describe([place])[place]
            steps = self._left(doing, place, table).steps
            if not steps:
                return
            now = steps if self._store.at_once else steps[:1]
            self._write(change, place, "step", len(steps))
            crash.point(f"schema-before-{change.id}-{len(steps)}")
            self._store.run(table, now, doing.id)
            crash.point(f"schema-after-{change.id}-{len(steps)}")
            for step in now:
                yield StepResult(change, place, step)
            if not self._store.at_once and looks([self._store.describe([place])[place]]) == looks([table]):
                raise RegionError(f"{self._store.name}: {change.id}: {steps[0]} changed nothing")
        raise RegionError(f"{self._store.name}: {change.id} has no end")

    def _left(self, change: MigrationFile, place: str, table: StoreTable) -> Translation:
        """Read off the state that the store is in: nothing needs to be remembered to go on after a kill."""
        if self._store.marked(place, change.id):
            return Translation()
        return self.translate(change, table)

    def _unannounced(self, records: Sequence[Record], *, recorded: bool) -> tuple[StepPlan, ...]:
        known = {(record.migration, record.place) for record in records if record.state != "step"}
        announceable = (
            c for c in self._changes if isinstance(c.migration.operation, ANNOUNCED) and c.migration.phase == "post"
        )
        left = [c for c in announceable if (c.id, self.place(c)) not in known]
        tables = self._store.describe(sorted({self.place(c) for c in left if staged_of(c) is not None}))
        plans = []
        for change in left:
            place = self.place(change)
            staged = None if recorded else staged_of(change)
            seen = StepPlan(change, place, ())
            if staged is not None:
                if place not in tables:
                    raise self._missing(change, place)
                self._tellable(change, tables[place])
                seen = self._seen(staged, place, tables[place])
                # what would be refused afterwards is refused now
                self._seen(change, place, self._after(staged, place, tables[place]))
            plans.append(replace(seen, change=change, announce=True))
        return tuple(plans)

    def _tellable(self, change: MigrationFile, table: StoreTable) -> None:
        """raises  DataError where rows from before a column was made anew look like those from after it"""
        operation = change.migration.operation
        assert isinstance(operation, ReplaceColumn)
        there, kind = table.column(operation.name), operation.to.data_type
        if there is None or kind is KEPT:
            return
        types = self._target.dialect.types
        if types.generic_type(there.type) == types.generic_type(types.store_type(kind).word):
            raise DataError(
                f"{self._store.name}: {change.id}: {operation.name} is dropped and made anew with the same type: its old"
                " values cannot be told from its new ones as they arrive",
                hint="add the new column under another name, and give it this one in a second migration"
                " (DROP the old, RENAME the new)",
            )

    def _write(self, change: MigrationFile, place: str, state: State, left: int = 0) -> None:
        # nobody else writes there: the store is held
        self._last += 1
        record = Record(self._last, change.id, change.body, place, state, left, self._clock(), *self._who)
        self._store.record(record)

    def _applied(self, change: MigrationFile, records: Sequence[Record]) -> bool:
        """raises Conflict where what was applied under this name is another migration"""
        mine = [record for record in records if (record.migration, record.place) == (change.id, self.place(change))]
        done = [record for record in mine if record.state == "applied"]
        for record in done:
            if record.body != change.body:
                raise Conflict(
                    f"{self._store.name}: {change.id} was applied as another migration than the file now has",
                    hint="put the file back, and write what is wanted now as a new migration",
                    code="E_SCHEMA_CHANGED",
                )
        return bool(done)


def _told(change: MigrationFile, place: str, records: Sequence[Record]) -> bool:
    return any((each.migration, each.place, each.state) == (change.id, place, "announced") for each in records)


def staged_of(change: MigrationFile) -> MigrationFile | None:
    """What a store needs before the first row of a replacement arrives, as a migration of its own."""
    operation = change.migration.operation
    staged = operation.staged if isinstance(operation, ReplaceColumn) else None
    if staged is None:
        return None
    return MigrationFile(f"{change.id}{STAGED}", replace(change.migration, phase="pre", operation=staged), change.body)


def refuse_lossy(name: str, todo: Sequence[StepPlan]) -> None:
    """raises CheckFailed naming the migrations that may lose something in a store (docs/design.md, P6)"""
    if destructive := [one.change.id for one in todo if one.destructive and not one.waits]:
        raise CheckFailed(
            f"{name}: may lose what is stored: {', '.join(destructive)}; nothing was done here",
            hint="when that is meant: the same command with --allow-destructive",
            code="E_DESTRUCTIVE",
        )


def refuse_waiting(name: str, todo: Sequence[StepPlan], *, recorded: bool = False) -> None:
    """raises Conflict naming the first migration that another phase must come before"""
    for one in todo:
        if one.waits:
            raise too_early(name, one.change, one.waits, recorded=recorded)


def too_early(name: str, change: MigrationFile, first: MigrationFile, *, recorded: bool = False) -> Conflict:
    """A migration that must wait for `first`, of the other phase. recorded: both are only to be written down"""
    return Conflict(
        f"{name}: {change.id} must wait for {first.id}, which is not applied here",
        hint=f"console schema apply --phase {first.migration.phase}{' --recorded' if recorded else ''} first",
        code="E_SCHEMA_ORDER",
    )


def waiting(
    changes: Sequence[MigrationFile], phase: Phase, applied: Callable[[MigrationFile], bool]
) -> dict[str, MigrationFile]:
    """A migration's name → the earlier one of the other phase, not applied, that touches the same columns.

    What comes after one that waits waits as well, so each phase does what it can and no two wait for each other.
    """
    waits: dict[str, MigrationFile] = {}
    blocked: list[tuple[MigrationFile, MigrationFile]] = []  # (a migration that is not done now, what must come first)
    for change in changes:
        if applied(change):
            continue
        first = next((first for other, first in blocked if _meet(other.migration, change.migration)), None)
        if change.migration.phase != phase:
            blocked.append((change, change))
        elif first is not None:
            waits[change.id] = first
            blocked.append((change, first))
    return waits


def _meet(one: Migration, other: Migration) -> bool:
    same = (one.schema, one.table) == (other.schema, other.table)
    return same and bool(one.columns & other.columns)
