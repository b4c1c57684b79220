"""Applies migrations to one store: plans the remaining steps of each and runs them. A run killed at any statement can be repeated."""

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
from console.stores.protocol import Record, State, Store, digest

Translate = Callable[[MigrationFile, StoreTable], Translation]
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """The remaining work of one migration in one store.

    place     the table's name there
    steps     planned for the table as the earlier migrations leave it; () if only the record is missing
    rewrites  bytes that are rewritten for it
    announce  a renaming of the other phase, to be announced to consumers before its rows arrive
    waits     an earlier migration of the other phase that must be applied first
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
        """Values may be lost: in PostgreSQL, or only in this store, whose own type may differ."""
        if self.announce:
            return any(map(lossy, self.steps))
        return self.change.migration.destructive or any(map(lossy, self.steps))


@dataclass(frozen=True, slots=True)
class StepResult:
    """One completed step: an operation; or None for a migration that is now applied, or announced."""

    change: MigrationFile
    place: str
    operation: StoreOperation | None
    announced: bool = False


class MigrationRunner:
    """One store and the migrations of one pipeline.

    changes  the migrations of tables that the store replicates, in order
    by       who applies them;  host  from where
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
        self._by, self._host = by, host
        self._clock = clock
        self._last = 0  # rank of the newest record when `todo` read them

    def place(self, change: MigrationFile) -> str:
        """The table's name in this store."""
        entry = self._replication.find(change.migration.schema, change.migration.table)
        assert entry is not None, "changes concern the replication"
        return self._target.place(entry)

    def existing(self, change: MigrationFile) -> str:
        """raises  DataError if the store has no such table"""
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
        """The remaining work of a phase; nothing is changed.

        recorded  the changes exist already, and only their records are missing
        raises  DataError for a change that needs a person; Conflict for a file that differs from the migration applied
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
                plans.append(StepPlan(change=change, place=place, steps=(), waits=earlier))
            elif recorded:
                plans.append(StepPlan(change=change, place=place, steps=()))
            else:
                plans.append(
                    self._planned(change, place, tables[place], announced=_is_announced(change, place, records))
                )
                tables[place] = self._after(change, place, tables[place])
        return (*self._announcements(records, recorded=recorded), *plans) if phase == "pre" else tuple(plans)

    def _planned(self, change: MigrationFile, place: str, table: StoreTable, *, announced: bool = False) -> StepPlan:
        """announced: consumers already know it, so `--phase pre` has nothing left to do"""
        try:
            self._refuse_own_columns(change)
            left = self._left(change, place, table)
        except DataError as error:
            hint = error.hint
            if announced and isinstance(error, Unprepared):
                hint = "where the table was made with the new column: console schema apply --phase post --recorded; else add that column"
            raise DataError(f"{self._store.name}: {change.id}: {error}", hint=hint, code=error.code) from None
        rewritten = any(
            isinstance(step, Rewrite) or (isinstance(step, AddField) and step.default) for step in left.steps
        )
        return StepPlan(
            change=change,
            place=place,
            steps=left.steps,
            warnings=left.warnings,
            rewrites=self._store.rewrite_bytes(place) if rewritten else 0,
        )

    def _refuse_own_columns(self, change: MigrationFile) -> None:
        """raises  DataError for a column with the name of one of the replication's own"""
        migration = change.migration
        entry = self._replication.find(migration.schema, migration.table)
        own = self._target.extra | (entry.extra if entry is not None else frozenset())
        if taken := sorted(migration.columns & own):
            raise DataError(
                f"{taken[0]} is one of the replication's own columns there (extra), so no column of PostgreSQL may have that name",
                hint=f"rename PostgreSQL's column, or put it under ignore: [{taken[0]}] of the table in replication.yaml",
            )

    def _after(self, change: MigrationFile, place: str, table: StoreTable) -> StoreTable:
        if self._store.marked(place, change.id):
            return table
        return self._target.dialect.after(change.migration, table, change.id)

    def apply(self, phase: Phase, *, allow_destructive: bool = False) -> Iterator[StepResult]:
        """Run the remaining steps one at a time; each is recorded before it is sent.

        raises  CheckFailed before the first step, for a migration that may lose values and is not allowed to; Conflict
                after the last step, for one that must wait for the other phase
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
                yield from self._apply_one(one.change, one.place)
        refuse_waiting(self._store.name, todo)

    def skip(self, phase: Phase) -> Iterator[StepResult]:
        """Record the remaining migrations as applied without running any of their steps."""
        todo = self.todo(phase, recorded=True)
        for one in todo:
            if not one.waits:
                self._write(one.change, one.place, "announced" if one.announce else "applied")
                yield StepResult(one.change, one.place, None, one.announce)
        refuse_waiting(self._store.name, todo, recorded=True)

    def _apply_one(self, change: MigrationFile, place: str) -> Iterator[StepResult]:
        yield from self._steps(change, change, place)
        self._write(change, place, "applied")
        crash.point(f"schema-applied-{change.id}")
        yield StepResult(change, place, None)

    def _steps(self, change: MigrationFile, doing: MigrationFile, place: str) -> Iterator[StepResult]:
        """doing: the migration itself, or the part of it that must exist before its first row arrives"""
        for _ in range(MOST_STEPS):
            table = self._store.describe([place])[place]
            steps = self._left(doing, place, table).steps
            if not steps:
                return
            now = steps if self._store.atomic else steps[:1]
            self._write(change, place, "step", len(steps))
            crash.point(f"schema-before-{change.id}-{len(steps)}")
            self._store.run(table, now, doing.id)
            crash.point(f"schema-after-{change.id}-{len(steps)}")
            for step in now:
                yield StepResult(change, place, step)
            if not self._store.atomic and digest([self._store.describe([place])[place]]) == digest([table]):
                raise RegionError(f"{self._store.name}: {change.id}: {steps[0]} changed nothing")
        raise RegionError(f"{self._store.name}: {change.id} still has steps left after {MOST_STEPS} of them")

    def _left(self, change: MigrationFile, place: str, table: StoreTable) -> Translation:
        """Computed from the store's current state, so a killed run needs no record of its progress."""
        if self._store.marked(place, change.id):
            return Translation()
        return self.translate(change, table)

    def _announcements(self, records: Sequence[Record], *, recorded: bool) -> tuple[StepPlan, ...]:
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
            seen = StepPlan(change=change, place=place, steps=())
            if staged is not None:
                if place not in tables:
                    raise self._missing(change, place)
                self._refuse_same_type(change, tables[place])
                seen = self._planned(staged, place, tables[place])
                # refuse now what `post` would refuse later
                self._planned(change, place, self._after(staged, place, tables[place]))
            plans.append(replace(seen, change=change, announce=True))
        return tuple(plans)

    def _refuse_same_type(self, change: MigrationFile, table: StoreTable) -> None:
        """raises  DataError for a column that is dropped and added again with its type: old and new rows look alike"""
        operation = change.migration.operation
        assert isinstance(operation, ReplaceColumn)
        there, kind = table.column(operation.name), operation.to.data_type
        if there is None or kind is KEPT:
            return
        types = self._target.dialect.types
        if types.generic_type(there.type) == types.generic_type(types.store_type(kind).word):
            raise DataError(
                f"{self._store.name}: {change.id}: {operation.name} is dropped and added again with the same type: its old"
                " values cannot be distinguished from its new ones as they arrive",
                hint="add the new column under another name, and give it this one in a second migration"
                " (DROP the old, RENAME the new)",
            )

    def _write(self, change: MigrationFile, place: str, state: State, left: int = 0) -> None:
        # the store is locked, so nobody else writes there
        self._last += 1
        record = Record(
            seq=self._last,
            migration=change.id,
            body=change.body,
            place=place,
            state=state,
            left=left,
            at=self._clock(),
            by=self._by,
            host=self._host,
        )
        self._store.record(record)

    def _applied(self, change: MigrationFile, records: Sequence[Record]) -> bool:
        """raises Conflict for a migration that was applied under this name with another content"""
        mine = [record for record in records if (record.migration, record.place) == (change.id, self.place(change))]
        done = [record for record in mine if record.state == "applied"]
        for record in done:
            if record.body != change.body:
                raise Conflict(
                    f"{self._store.name}: {change.id} was applied with different content: the file has changed since",
                    hint="restore the file, and write the new change as a new migration",
                    code="E_SCHEMA_CHANGED",
                )
        return bool(done)


def _is_announced(change: MigrationFile, place: str, records: Sequence[Record]) -> bool:
    return any((each.migration, each.place, each.state) == (change.id, place, "announced") for each in records)


def staged_of(change: MigrationFile) -> MigrationFile | None:
    """The part of a replacement that must exist before its first row arrives, as a migration of its own."""
    operation = change.migration.operation
    staged = operation.staged if isinstance(operation, ReplaceColumn) else None
    if staged is None:
        return None
    return MigrationFile(f"{change.id}{STAGED}", replace(change.migration, phase="pre", operation=staged), change.body)


def refuse_lossy(name: str, todo: Sequence[StepPlan]) -> None:
    """raises CheckFailed naming the migrations that may lose something in a store (docs/design.md, P6)"""
    if destructive := [one.change.id for one in todo if one.destructive and not one.waits]:
        raise CheckFailed(
            f"{name}: may lose stored values: {', '.join(destructive)}; nothing was done here",
            hint="if that is intended: the same command with --allow-destructive",
            code="E_DESTRUCTIVE",
        )


def refuse_waiting(name: str, todo: Sequence[StepPlan], *, recorded: bool = False) -> None:
    """raises Conflict naming the first migration that must wait for the other phase"""
    for one in todo:
        if one.waits:
            raise too_early(name, one.change, one.waits, recorded=recorded)


def too_early(name: str, change: MigrationFile, first: MigrationFile, *, recorded: bool = False) -> Conflict:
    """A migration that must wait for `first`, of the other phase. recorded: both only need their records"""
    return Conflict(
        f"{name}: {change.id} must wait for {first.id}, which is not applied here",
        hint=f"console schema apply --phase {first.migration.phase}{' --recorded' if recorded else ''} first",
        code="E_SCHEMA_ORDER",
    )


def waiting(
    changes: Sequence[MigrationFile], phase: Phase, applied: Callable[[MigrationFile], bool]
) -> dict[str, MigrationFile]:
    """A migration's name → the earlier, not yet applied one of the other phase that touches the same columns.

    A migration after a waiting one waits too, so each phase does all it can and no two wait for each other.
    """
    waits: dict[str, MigrationFile] = {}
    blocked: list[tuple[MigrationFile, MigrationFile]] = []  # (a migration that cannot run now, the one it waits for)
    for change in changes:
        if applied(change):
            continue
        first = next((first for other, first in blocked if _overlap(other.migration, change.migration)), None)
        if change.migration.phase != phase:
            blocked.append((change, change))
        elif first is not None:
            waits[change.id] = first
            blocked.append((change, first))
    return waits


def _overlap(one: Migration, other: Migration) -> bool:
    same = (one.schema, one.table) == (other.schema, other.table)
    return same and bool(one.columns & other.columns)
