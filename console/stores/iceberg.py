"""Iceberg through a pyiceberg catalog."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from socket import gethostname
from typing import Any, Final, TypeVar, assert_never

from console.errors import RegionError
from console.propagation.tables import ColumnStorage, StoreColumn, StoreTable
from console.propagation.translate.operations import (
    AddField,
    ChangeField,
    DropField,
    LoosenField,
    RenameFields,
    Rewrite,
    StoreOperation,
    StoreStatement,
)
from console.stores.lakes.constants import filled, scalar
from console.stores.lock import REHEARSAL, StoreLockHolder, marked
from console.stores.protocol import (
    LEFT_OUT,
    RECORDS,
    LeftOut,
    Record,
    Store,
    client_errors,
    first_line,
    missing_package,
    recorded,
    retried,
    summed,
)

T = TypeVar("T")
_OUT_OF_REACH: Final = ("OperationalError", "ConnectionError", "ServiceUnavailableError", "ServerError", "Timeout")
_RECORD_TYPES: Final = {"seq": "long", "left": "long", "at": "double"}
_LEFT_OUT_TYPES: Final = {"place": "string", "column": "string", "rows": "long", "at": "double"}
_MARK: Final = "console.migration."
_OWNER: Final = "console.held"
_RETRIES: Final = "commit.retry.num-retries"
_DEFAULTS_FROM: Final = 3  # the format's version that knows default values


def open_store(name: str, options: Mapping[str, Any], _: Mapping[str, tuple[ColumnStorage, ...]]) -> "Iceberg":
    """One catalog, as replication.yaml configures it."""
    properties = {key: str(value) for key, value in (options.get("catalog") or {}).items()}
    return Iceberg(name, properties, options["namespace"])


class Iceberg:
    """One catalog.

    properties  pyiceberg's own: name, type, uri, warehouse, credential …
    namespace   of the tables with the records and the lock
    """

    atomic = True

    def __init__(self, name: str, properties: Mapping[str, str], namespace: str) -> None:
        self.name = name
        self.address = first_line(Exception(f"{properties.get('uri', '')} {properties.get('warehouse', '')}")).strip()
        self._properties = dict(properties)
        self._namespace = namespace
        self._catalog: Any = None

    def describe(self, places: Collection[str]) -> dict[str, StoreTable]:
        tables = {}
        for place in places:
            if (table := self.table(place)) is not None:
                tables[place] = described(place, table)
        return tables

    def run(self, table: StoreTable, operations: Sequence[StoreOperation], mark: str) -> None:
        def change() -> None:
            opened = self.table(table.name)
            if opened is None:
                raise RegionError(f"{self.name}: the table {table.name} is gone")
            with opened.transaction() as transaction:
                with transaction.update_schema() as update:
                    for operation in operations:
                        _change(update, operation, int(opened.metadata.format_version))
                for operation in operations:
                    if isinstance(operation, AddField) and _filling(opened, operation):
                        _fill(transaction, opened, operation)
                transaction.set_properties({_MARK + mark: "applied"})

        self._retried(change)

    def marked(self, place: str, mark: str) -> bool:
        table = self.table(place)
        return table is not None and _MARK + mark in table.properties

    def records(self) -> tuple[Record, ...]:
        return recorded(self._rows(RECORDS))

    def record(self, record: Record) -> None:
        types = {name: _RECORD_TYPES.get(name, "string") for name in Record.__dataclass_fields__}
        self._append(RECORDS, types, [{name: getattr(record, name) for name in types}])

    def left_out(self) -> tuple[LeftOut, ...]:
        return summed(self._rows(LEFT_OUT))

    def add_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        lines = [{"place": place, "column": name, "rows": count, "at": at} for name, count in rows.items()]
        self._append(LEFT_OUT, _LEFT_OUT_TYPES, lines)

    def lock(self, by: str, host: str, *, take_over: bool) -> AbstractContextManager[None]:
        return marked(self.name, self, by, host, take_over=take_over)

    def set_mark(self, name: str, mark: str) -> bool:
        return self._create(name, {"held": "boolean"}, {_OWNER: mark})

    def mark(self, name: str) -> str | None:
        table = self.table(f"{self._namespace}.{name}")
        return None if table is None else str(table.properties.get(_OWNER, ""))

    def drop_mark(self, name: str) -> None:
        self._drop(f"{self._namespace}.{name}")

    @contextmanager
    def rehearsal_copy(self, place: str) -> Iterator[tuple[Store, str]]:
        source = self.table(place)
        if source is None:
            raise RegionError(f"{self.name}: no table {place}")
        self._drop_leftovers(place)
        copy = f"{place}{REHEARSAL}{os.urandom(4).hex()}"
        mark = StoreLockHolder.now("a rehearsal", gethostname()).mark
        try:
            with self._client_errors():
                # unpartitioned: a transform may need a package that is not installed here
                made = self._open().create_table(copy, source.schema(), properties={**_format(source), _OWNER: mark})
                made.append(_newest(source))
            yield self, copy
        finally:
            self._drop(copy, purge=True)

    def _drop_leftovers(self, place: str) -> None:
        """Drop copies left by rehearsals that died on this machine: by our mark only, since anyone may use the name."""
        with self._client_errors():
            namespace, _, name = place.rpartition(".")
            copies = [
                ".".join(table)
                for table in self._open().list_tables(namespace)
                if table[-1].startswith(name + REHEARSAL)
            ]
        for copy in copies:
            table = self.table(copy)
            if table is not None and StoreLockHolder.read(table.properties.get(_OWNER, "")).gone:
                self._drop(copy, purge=True)

    def count(self, table: StoreTable, column: str = "") -> int:
        with self._client_errors():
            opened = self.table(table.name)
            if opened is None:
                return 0
            from pyiceberg.expressions import NotNull

            rows = opened.scan(row_filter=NotNull(column)) if column else opened.scan()
            return int(rows.count())

    def rewrite_bytes(self, place: str) -> int:
        with self._client_errors():
            opened = self.table(place)
            if opened is None or opened.metadata.format_version >= _DEFAULTS_FROM:
                return 0
            return sum(task.file.file_size_in_bytes for task in opened.scan().plan_files())

    def close(self) -> None:
        if self._catalog is not None and hasattr(self._catalog, "engine"):
            self._catalog.engine.dispose()
        self._catalog = None

    def _open(self) -> Any:
        if self._catalog is None:
            try:
                from pyiceberg.catalog import load_catalog
            except ImportError:
                raise missing_package("pyiceberg", self.name) from None
            own = dict(self._properties)
            self._catalog = load_catalog(own.pop("name", "default"), **own)
        return self._catalog

    def table(self, place: str) -> Any:
        """The table, loaded now; None if there is none.

        A commit of it fails if another came first. pyiceberg would repeat it over the columns that the table then has.
        """
        with self._client_errors():
            catalog = self._open()
            from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

            try:
                table = catalog.load_table(place)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            table.metadata.properties[_RETRIES] = "0"  # of this object alone, not in the catalog
            return table

    def _rows(self, name: str) -> list[dict[str, Any]]:
        table = self.table(f"{self._namespace}.{name}")
        if table is None:
            return []
        with self._client_errors():
            rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
        return rows

    def _append(self, name: str, types: Mapping[str, str], rows: list[dict[str, Any]]) -> None:
        self._create(name, types, {})

        def append() -> None:
            import pyarrow

            table = self.table(f"{self._namespace}.{name}")
            table.append(pyarrow.Table.from_pylist(rows, schema=table.schema().as_arrow()))

        self._retried(append)

    def _create(self, name: str, types: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """False if it exists already."""
        with self._client_errors():
            catalog = self._open()
            from pyiceberg.exceptions import TableAlreadyExistsError
            from pyiceberg.schema import Schema
            from pyiceberg.types import NestedField

            place = f"{self._namespace}.{name}"
            if catalog.table_exists(place):
                return False
            fields = [NestedField(at, key, iceberg_type(kind)) for at, (key, kind) in enumerate(types.items(), 1)]
            catalog.create_namespace_if_not_exists(self._namespace)
            try:
                catalog.create_table(place, Schema(*fields), properties=dict(properties))
            except TableAlreadyExistsError:
                return False
            return True

    def _drop(self, place: str, *, purge: bool = False) -> None:
        """purge: its files as well."""
        with self._client_errors():
            catalog = self._open()
            from pyiceberg.exceptions import NoSuchTableError

            with suppress(NoSuchTableError):
                (catalog.purge_table if purge else catalog.drop_table)(place)

    def _retried(self, commit: Callable[[], T]) -> T:
        with self._client_errors():
            from pyiceberg.exceptions import CommitFailedException, ValidationException

            return retried(self.name, commit, (CommitFailedException, ValidationException))

    def _client_errors(self) -> AbstractContextManager[None]:
        return client_errors(self.name, "Iceberg", self.address, _away)


def _away(error: Exception) -> bool:
    """By the names of the errors: each kind of catalog has those of its own client."""
    return isinstance(error, OSError) or bool({kind.__name__ for kind in type(error).__mro__} & set(_OUT_OF_REACH))


def _change(update: Any, operation: StoreOperation, version: int) -> None:
    match operation:
        case AddField():
            kind = iceberg_type(operation.type)
            default = None
            if version >= _DEFAULTS_FROM and operation.default is not None:
                from pyiceberg.io.pyarrow import schema_to_pyarrow

                default = scalar(operation.default, schema_to_pyarrow(kind)).as_py()
            update.add_column(operation.name, kind, default_value=default)
        case DropField():
            update.delete_column(operation.name)
        case RenameFields():
            for old, new in operation.pairs:
                update.rename_column(old, new)
        case ChangeField():
            update.update_column(operation.name, iceberg_type(operation.type))
        case LoosenField():
            update.make_column_optional(operation.name)
        case StoreStatement() | Rewrite():
            raise TypeError(f"{type(operation).__name__} is not for Iceberg")
        case _:
            assert_never(operation)


def _filling(table: Any, operation: AddField) -> bool:
    """Older rows need a default that the format cannot store: they are rewritten."""
    empty = table.current_snapshot() is None
    return operation.default is not None and int(table.metadata.format_version) < _DEFAULTS_FROM and not empty


def _fill(transaction: Any, table: Any, operation: AddField) -> None:
    """Rewrite the rows of this version with the column; a commit in between makes it fail, and it is retried."""
    import pyarrow

    assert operation.default is not None
    schema = transaction.table_metadata.schema().as_arrow()
    if table.spec().fields:  # pyiceberg writes partitions only from a whole table
        rows = filled(table.scan().to_arrow(), operation.name, operation.default, schema)
        transaction.overwrite(rows)
        return
    batches = table.scan().to_arrow_batch_reader()
    made = (filled(batch, operation.name, operation.default, schema) for batch in batches)
    transaction.overwrite(pyarrow.RecordBatchReader.from_batches(schema, made))


def described(place: str, table: Any) -> StoreTable:
    """A loaded table: its names, types and marks are of one moment, and its appends use them."""
    schema = table.schema()
    columns = tuple(
        StoreColumn(
            name=field.name,
            type=str(field.field_type).replace(", ", ","),
            nullable=not field.required,
            default="" if field.initial_default is None else repr(field.initial_default),
        )
        for field in schema.fields
    )
    ids = [*schema.identifier_field_ids, *(field.source_id for field in table.spec().fields)]
    ids += [field.source_id for field in table.sort_order().fields]
    names = [schema.find_column_name(field_id) for field_id in ids]
    key = tuple(dict.fromkeys(name for name in names if name))
    marks = sorted(key.removeprefix(_MARK) for key in table.properties if key.startswith(_MARK))
    return StoreTable(name=place, columns=columns, key=key, marks=tuple(marks))


def _newest(table: Any) -> Any:
    """The rows of the partition with the newest file."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    tasks = list(table.scan().plan_files())
    if not tasks:
        return table.schema().as_arrow().empty_table()
    entries = table.inspect.entries().select(["sequence_number", "data_file"]).to_pylist()
    written = {entry["data_file"]["file_path"]: entry["sequence_number"] for entry in entries}
    last = max(tasks, key=lambda task: written.get(task.file.file_path, 0)).file.partition
    chosen = [task for task in tasks if task.file.partition == last]
    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(chosen)


def _format(table: Any) -> dict[str, str]:
    return {"format-version": str(table.metadata.format_version)}


def iceberg_type(text: str) -> Any:
    """A type from its text; the table assigns the ids inside."""
    from pyiceberg.types import IcebergType, ListType

    if inside := re.fullmatch(r"\s*list\s*<(.*)>\s*", text):
        return ListType(-1, iceberg_type(inside[1]), element_required=False)
    return IcebergType.model_validate(re.sub(r"decimal\((\d+),(\d+)\)", r"decimal(\1, \2)", text.strip()))
