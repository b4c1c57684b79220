"""Observing: generic migrations from the SQL of a migration, or from two schema dumps."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from console.errors import Problem, Problems
from console.propagation.dialects import DIALECTS
from console.propagation.dialects.dialect import Dialect
from console.propagation.migration import (
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Phase,
    ReplaceColumn,
    SwapColumns,
    default_phase,
)
from console.propagation.migration_file import MAX_BYTES, written
from console.propagation.observe.catalog import Catalog
from console.propagation.observe.classify import differences, unlabelled
from console.propagation.observe.events import Ignored, Observation, Observed, Remark
from console.propagation.observe.fold import fold, lost, refused, rejoined, settled
from console.propagation.observe.scope import GONE, NEW
from console.propagation.observe.script import SqlScript
from console.propagation.replication import Replication
from console.propagation.tables import PgTable
from console.propagation.types import Type

File = tuple[str, str]  # its name as shown in errors, its text
_TITLE: Final = 80  # letters of a migration's title in a message


def observe(
    files: Sequence[File],
    schema: Sequence[File] = (),
    replication: Replication | None = None,
    phase: Phase | None = None,
) -> Observation:
    """The changes made by an application's migrations, file by file.

    schema       files that define the earlier schema: a dump, or the migrations so far
    replication  tables that it does not name are left out; None: every table counts
    phase        instead of each migration's default
    raises       Problems with every statement that was not understood, by file and line
    """
    catalog = Catalog(schema=replication.schema if replication else "public")
    if replication is not None:
        catalog.replicated = frozenset((entry.schema, entry.table) for entry in replication.tables)
    problems = _learn(catalog, schema)
    catalog.learned = bool(schema)
    catalog.new_session()
    migrations: list[Observed] = []
    ignored: list[Ignored] = []
    remarks: list[Remark] = []
    for name, text in files:
        script = SqlScript(text, name, catalog, problems)
        for transaction in script.transactions():
            problems += refused(transaction)
            migrations += fold(transaction)
            remarks += lost(transaction)
            ignored += [event for event in transaction if isinstance(event, Ignored)]
            remarks += [event for event in transaction if isinstance(event, Remark)]
    _stop(problems)
    passed = catalog.passed - catalog.tables.keys()  # changes of them in between concern no store
    migrations = [one for one in migrations if (one.migration.schema, one.migration.table) not in passed]
    remarks += rejoined(migrations)
    return _scoped(Observation(tuple(settled(migrations)), tuple(ignored), tuple(remarks)), replication, phase)


def read_schema(files: Sequence[File], schema: str = "public") -> tuple[PgTable, ...]:
    """The tables that files of SQL define, partitions and temporary ones left out.

    raises  Problems
    """
    catalog = Catalog(schema=schema)
    _stop(_learn(catalog, files))
    return catalog.all()


def compare_dumps(
    before: Sequence[File], after: Sequence[File], replication: Replication | None = None, phase: Phase | None = None
) -> Observation:
    """The changes between two schemas. A renaming looks like a drop and an addition.

    raises  Problems
    """
    schema = replication.schema if replication else "public"
    old = {(t.schema, t.name): t for t in read_schema(before, schema)}
    new = {(t.schema, t.name): t for t in read_schema(after, schema)}
    where = after[-1][0]
    migrations: list[Observed] = []
    ignored = [
        Ignored(where=where, kind="create_table", reason=NEW, statement=f"{new[n].full} is new", table=new[n].full)
        for n in new.keys() - old
    ]
    ignored += [
        Ignored(where=where, kind="drop_table", reason=GONE, statement=f"{old[n].full} is gone", table=old[n].full)
        for n in old.keys() - new
    ]
    remarks: list[Remark] = []
    for name in sorted(old.keys() & new.keys()):
        for operation in differences(old[name].columns, new[name].columns):
            migrations.append(Observed(Migration(default_phase(operation), *name, operation), where))
        ignored += _relabelled(old[name], new[name], where)
        remarks += _doubts(old[name], new[name], where)
    ignored.sort(key=lambda one: (one.table, one.kind))
    return _scoped(Observation(tuple(settled(migrations)), tuple(ignored), tuple(remarks)), replication, phase)


def _learn(catalog: Catalog, files: Iterable[File]) -> list[Problem]:
    problems: list[Problem] = []
    for name, text in files:
        for _ in SqlScript(text, name, catalog, problems).transactions():
            pass
    catalog.forget_moves()
    return problems


def _stop(problems: list[Problem]) -> None:
    if problems:
        raise Problems.of(problems)


def _scoped(observation: Observation, replication: Replication | None, phase: Phase | None) -> Observation:
    kept: list[Observed] = []
    left = list(observation.ignored)
    for observed in observation.migrations:
        migration = observed.migration
        reason = replication.concerns(migration) if replication else ""
        if reason:
            title = migration.title.replace("_", " ")
            left.append(
                Ignored(
                    where=observed.where,
                    kind=kind_of(migration),
                    reason=reason,
                    statement=title,
                    table=f"{migration.schema}.{migration.table}",
                )
            )
        else:
            kept.append(replace(observed, migration=migration.in_phase(phase)) if phase else observed)
    _stop(list(_oversized(kept)))
    remarks = observation.remarks
    if replication is not None:
        named = {f"{entry.schema}.{entry.table}" for entry in replication.tables}
        silent = {ignored.where for ignored in left[len(observation.ignored) :]} - {observed.where for observed in kept}
        remarks = tuple(one for one in remarks if not one.table or (one.table in named and one.where not in silent))
    kinds = sorted({store.kind for store in replication.stores}) if replication else DIALECTS
    return Observation(tuple(kept), tuple(left), (*remarks, *_losses(kept, [DIALECTS[kind] for kind in kinds])))


def _oversized(migrations: Iterable[Observed]) -> Iterator[Problem]:
    """A migration that could be written but not read again is refused."""
    for observed in migrations:
        if len(written(observed.migration).encode()) > MAX_BYTES:
            title = observed.migration.title.replace("_", " ")[:_TITLE]
            message = f"{title}: larger than a migration may be, {MAX_BYTES // 1024} KiB"
            hint = "leave out its long default: rows arrive with their values"
            yield Problem(code="S402", message=message, where=observed.where, hint=hint)


def _losses(migrations: Iterable[Observed], dialects: Collection[Dialect]) -> Iterator[Remark]:
    """Values of an added or changed column that the stores' types cannot hold."""
    for observed in migrations:
        match observed.migration.operation:
            case (
                AddColumn(name=name, data_type=kind)
                | ChangeColumn(name=name, to=Facets(data_type=Type() as kind))
                | ReplaceColumn(name=name, source=None, to=Facets(data_type=Type() as kind))
            ):
                lost: dict[str, list[str]] = {}
                for dialect in dialects:
                    for loss in dialect.types.store_type(kind).losses:
                        lost.setdefault(loss, []).append(dialect.kind)
                table = f"{observed.migration.schema}.{observed.migration.table}"
                for loss, stores in lost.items():
                    yield Remark(observed.where, f"{table}.{name}: {kind} in {', '.join(stores)}: {loss}", table)


def kind_of(migration: Migration) -> str:
    """The operation's name in JSON."""
    match migration.operation:
        case AddColumn():
            return "add_column"
        case DropColumn():
            return "drop_column"
        case ChangeColumn():
            return "change_column"
        case ReplaceColumn():
            return "replace_column"
        case SwapColumns():
            return "swap_columns"
        case _:
            assert_never(migration.operation)


def _relabelled(old: PgTable, new: PgTable, where: str) -> Iterator[Ignored]:
    for column in new.columns:
        was = old.column(column.name)
        if was is not None and was.type != column.type and unlabelled(was.type) == unlabelled(column.type):
            reason = "the stores keep its values as text"
            yield Ignored(
                where=where,
                kind="alter_type",
                reason=reason,
                statement=f"{new.full}.{column.name} {column.postgres}",
                table=new.full,
            )


def _doubts(old: PgTable, new: PgTable, where: str) -> Iterator[Remark]:
    gone = [column for column in old.columns if new.column(column.name) is None]
    for column in new.columns:
        alike = [was.name for was in gone if was.type == column.type]
        if old.column(column.name) is None and alike:
            either = " or ".join(alike)
            message = f"{new.full}: if {either} was renamed to {column.name}, observe the migration's SQL instead"
            yield Remark(where, message, new.full)
    common = [column.name for column in old.columns if new.column(column.name) is not None]
    if common != [column.name for column in new.columns if old.column(column.name) is not None]:
        message = f"{new.full}: columns changed places; if names were swapped, observe the migration's SQL instead"
        yield Remark(where, message, new.full)
