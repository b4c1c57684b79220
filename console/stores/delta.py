"""Delta tables in a folder, through deltalake."""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from console.errors import DataError, RegionError, Unreachable
from console.propagation.tables import ColumnStorage, StoreColumn, StoreTable
from console.propagation.translate.operations import AddField, Rewrite, StoreOperation
from console.stores.lakes.constants import filled
from console.stores.lakes.delta_rows import batches, counted, equals
from console.stores.lock import LOCK, StoreLockHolder, lock_conflict
from console.stores.protocol import LEFT_OUT, RECORDS, LeftOut, Record, Store, client_errors, recorded, retried, summed

T = TypeVar("T")
_OWN: Final = "_console"
_MARK: Final = "console-migration/"
_NUMBERS: Final = {"seq": "int64", "left": "int64", "at": "float64", "rows": "int64"}


def open_store(name: str, options: Mapping[str, Any], _: Mapping[str, tuple[ColumnStorage, ...]]) -> "Delta":
    """One folder, as replication.yaml configures it."""
    return Delta(name, options["root"])


class Delta:
    """A folder of tables that no pipeline manages.

    root  absolute path or URI; a table's name is its folder below the root
    """

    atomic = True

    def __init__(self, name: str, root: str) -> None:
        if not urlsplit(root).scheme and not Path(root).is_absolute():
            raise DataError(f"stores.{name}.root: expected an absolute path or a URI")
        self.name = name
        self.address = root.rstrip("/")

    def describe(self, places: Collection[str]) -> dict[str, StoreTable]:
        self._reach()
        known = {record.migration for record in self.records()}
        tables = {}
        for place in places:
            if (table := self.table(place)) is not None:
                tables[place] = described(place, table, known)
        return tables

    def run(self, table: StoreTable, operations: Sequence[StoreOperation], mark: str) -> None:
        def change() -> None:
            opened = self.table(table.name)
            if opened is None:
                raise RegionError(f"{self.name}: the table {table.name} is gone")
            match tuple(operations):
                case (AddField() as operation,):
                    _add(opened, operation, mark)
                case (Rewrite() as operation,):
                    _rewrite(opened, operation, mark)
                case _:
                    raise TypeError(f"{operations!r:.60} is not for Delta")

        self._retried(change)

    def marked(self, place: str, mark: str) -> bool:
        table = self.table(place)
        return table is not None and table.transaction_version(_MARK + mark) is not None

    def records(self) -> tuple[Record, ...]:
        return recorded(self._rows(RECORDS))

    def record(self, record: Record) -> None:
        self._append(RECORDS, [{name: getattr(record, name) for name in Record.__dataclass_fields__}])

    def left_out(self) -> tuple[LeftOut, ...]:
        return summed(self._rows(LEFT_OUT))

    def add_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        self._append(LEFT_OUT, [{"place": place, "column": c, "rows": n, "at": at} for c, n in rows.items()])

    @contextmanager
    def lock(self, by: str, host: str, *, take_over: bool) -> Iterator[None]:
        mine = StoreLockHolder.now(by, host).mark
        table = self._reached(LOCK)
        there = self._mark(table)
        if there and not (take_over or StoreLockHolder.read(there).gone):
            raise lock_conflict(self.name, there)
        if not self._claimed(table, mine):
            raise lock_conflict(self.name, self._mark(self._reached(LOCK)))
        try:
            yield
        finally:
            table = self._reached(LOCK)
            if self._mark(table) == mine:
                self._claimed(table, "")  # otherwise another console has just taken it over

    def _mark(self, table: Any) -> str:
        """The holder's mark in the version of the lock's table that was loaded; "" if nobody holds it."""
        if table is None:
            return ""
        with self._client_errors():
            [row] = batches(table).read_all().to_pylist()
        return str(row["mark"] if "mark" in row else row["by"])

    @contextmanager
    def rehearsal_copy(self, place: str) -> Iterator[tuple[Store, str]]:
        source = self.table(place)
        if source is None:
            raise RegionError(f"{self.name}: no table {place}")
        copy = f"{_OWN}/rehearsal/{place}-{os.urandom(4).hex()}"
        with self._client_errors():
            parts = source.metadata().partition_columns
            rows = _newest(source)
            write(self._path(copy), rows, mode="overwrite", schema_mode="overwrite", partition_by=parts or None)
        try:
            yield self, copy
        finally:
            with self._client_errors():
                self._erase(copy)

    def count(self, table: StoreTable, column: str = "") -> int:
        with self._client_errors():
            opened = self.table(table.name)
            return 0 if opened is None else counted(opened, column)

    def rewrite_bytes(self, place: str) -> int:
        table = self.table(place)
        if table is None:
            return 0
        with self._client_errors():
            import pyarrow

            return sum(pyarrow.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist())

    def close(self) -> None:
        """There is nothing to close."""

    def _path(self, place: str) -> str:
        return f"{self.address}/{place}"

    def _erase(self, place: str) -> None:
        """Drop every row of a table of ours; on a local disk also the folder."""
        if not urlsplit(self.address).scheme:
            shutil.rmtree(self._path(place), ignore_errors=True)
        elif (table := self.table(place)) is not None:
            table.delete()

    def _reach(self) -> None:
        if not urlsplit(self.address).scheme and not Path(self.address).is_dir():
            raise Unreachable(
                f"{self.name}: no folder {self.address}", hint="check that it is mounted, or correct its root"
            )

    def table(self, place: str) -> Any:
        """The table at its newest version; None if there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with self._client_errors():
            try:
                return DeltaTable(self._path(place))
            except TableNotFoundError:
                return None

    def _reached(self, name: str) -> Any:
        """A table of ours at its newest version; None if there is none."""
        self._reach()
        return self.table(f"{_OWN}/{name}")

    def _rows(self, name: str) -> list[dict[str, Any]]:
        table = self._reached(name)
        if table is None:
            return []
        with self._client_errors():
            rows: list[dict[str, Any]] = batches(table).read_all().to_pylist()
        return rows

    def _append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._reach()
        path = self._path(f"{_OWN}/{name}")
        self._retried(lambda: write(path, _arrow(rows), mode="append"))

    def _claimed(self, table: Any, mark: str) -> bool:
        """True if the loaded version was still the newest: of two concurrent calls one succeeds."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError, DeltaError

        rows = _arrow([{"mark": mark}])
        with self._client_errors():
            try:
                if table is None:
                    write(self._path(f"{_OWN}/{LOCK}"), rows, mode="error")
                else:
                    once = CommitProperties(max_commit_retries=0)
                    write(table, rows, mode="overwrite", schema_mode="overwrite", commit_properties=once)
            except (CommitFailedError, DeltaError, FileExistsError):
                return False
            return True

    def _retried(self, commit: Callable[[], T]) -> T:
        from deltalake.exceptions import CommitFailedError

        with self._client_errors():
            return retried(self.name, commit, CommitFailedError)

    def _client_errors(self) -> AbstractContextManager[None]:
        return client_errors(self.name, "Delta", self.address, lambda error: isinstance(error, OSError))


def write(table: Any, rows: Any, **options: Any) -> None:
    """One commit."""
    from deltalake import write_deltalake

    write_deltalake(table, rows, **options)


def _arrow(rows: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow

    fields = [(name, getattr(pyarrow, _NUMBERS.get(name, "string"))()) for name in rows[0]]
    return pyarrow.Table.from_pylist([dict(row) for row in rows], schema=pyarrow.schema(fields))


def described(place: str, table: Any, known: Collection[str] = ()) -> StoreTable:
    """A table at one version; a commit that conflicts with another change of its columns is refused.

    known  the migrations whose marks are looked up
    """
    marks = tuple(sorted(name for name in known if table.transaction_version(_MARK + name) is not None))
    return StoreTable(name=place, columns=_columns(table), key=tuple(table.metadata().partition_columns), marks=marks)


def _columns(table: Any) -> tuple[StoreColumn, ...]:
    return tuple(
        StoreColumn(name=field.name, type=type_text(field.type), nullable=field.nullable)
        for field in table.schema().fields
    )


def type_text(kind: Any) -> str:
    """A Delta type as Spark writes it: `decimal(10,2)`, `array<string>`."""
    if hasattr(kind, "element_type"):
        return f"array<{type_text(kind.element_type)}>"
    if hasattr(kind, "key_type"):
        return f"map<{type_text(kind.key_type)},{type_text(kind.value_type)}>"
    if hasattr(kind, "fields"):
        return "struct<" + ",".join(f"{field.name}:{type_text(field.type)}" for field in kind.fields) + ">"
    return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kind.type, str(kind.type))


def delta_type(text: str) -> Any:
    """A Delta type from its text, in Spark's words."""
    from deltalake.schema import ArrayType, PrimitiveType

    if inside := re.fullmatch(r"\s*array\s*<(.*)>\s*", text):
        return ArrayType(delta_type(inside[1]), contains_null=True)
    word = text.strip().replace(" ", "")
    return PrimitiveType({"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}.get(word, word))


def _add(table: Any, operation: AddField, mark: str) -> None:
    from deltalake import Field, Schema

    fields = table.schema().fields
    if operation.name in [field.name for field in fields]:
        return
    new = Field(operation.name, delta_type(operation.type), nullable=True)
    if operation.default is None or not table.file_uris():
        table.alter.add_columns(new)
        return
    import pyarrow

    schema = pyarrow.schema(Schema([*fields, new]).to_arrow())
    name, default = operation.name, operation.default
    made = (filled(batch, name, default, schema) for batch in batches(table))
    _replace(table, schema, made, f"rows from before {name} get {default:.60}", mark)


def _rewrite(table: Any, operation: Rewrite, mark: str) -> None:
    """Read this version batch by batch and replace it whole; a commit in between makes it fail, and it is retried."""
    import pyarrow

    wanted = _rewritten(table, operation)
    sources = [source for _, source, _ in operation.columns]
    read = batches(table, sorted(set(sources)))
    cast = (
        pyarrow.RecordBatch.from_arrays(
            [batch.column(source).cast(field.type) for source, field in zip(sources, wanted, strict=True)],
            schema=wanted,
        )
        for batch in read
    )
    _replace(table, wanted, cast, operation.why, mark)


def _replace(table: Any, schema: Any, batches: Iterator[Any], why: str, mark: str) -> None:
    """Replace a table's rows and columns in one commit, which fails if a concurrent one came first."""
    import pyarrow
    from deltalake import CommitProperties, Transaction

    once = CommitProperties(
        max_commit_retries=0,
        custom_metadata={"userMetadata": why},
        app_transactions=[Transaction(_MARK + mark, 0)],
    )
    rows = pyarrow.RecordBatchReader.from_batches(schema, batches)
    write(table, rows, mode="overwrite", schema_mode="overwrite", commit_properties=once)


def _rewritten(table: Any, operation: Rewrite) -> Any:
    """The schema afterwards: a column keeps everything but its name and type."""
    import pyarrow
    from deltalake import Field, Schema

    old = {field.name: field for field in table.schema().fields}
    fields = []
    for name, source, kind in operation.columns:
        was = old[source]
        same = was.type if type_text(was.type) == kind else delta_type(kind)
        fields.append(Field(name, same, nullable=was.nullable or name in operation.loosens, metadata=was.metadata))
    return pyarrow.schema(Schema(fields).to_arrow())


def _newest(table: Any) -> Any:
    """The rows of the partition with the newest file."""
    import pyarrow

    binary = {
        column.name for column in _columns(table) if column.type == "binary"
    }  # its values cannot be expressed in a condition
    by = [name for name in table.metadata().partition_columns if name not in binary]
    files = pyarrow.table(table.get_add_actions(flatten=True))
    actions = files.select(["modification_time", *(f"partition.{name}" for name in by)]).to_pylist()
    if not actions:
        return batches(table)
    last = max(actions, key=lambda action: action["modification_time"])
    return batches(table, where=" AND ".join(equals(name, last[f"partition.{name}"]) for name in by))
