"""Rows of a Delta table, read so that the process can exit at any moment.

deltalake's own `to_pyarrow_table()` and `to_pyarrow_dataset()` read through a file system that is a Python object, and
pyarrow's threads may hold it for longer than the interpreter lives: one process in thirty aborts at its end (exit 134),
and nearly every one that ends in the middle of reading hangs or crashes. Here pyarrow holds no Python object.

source   https://github.com/apache/arrow/issues/34314, https://github.com/delta-io/delta-rs/issues/2184
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from console.errors import DataError, RegionError

NO_OPTIONS: Final[Mapping[str, str]] = {}
# file by file, each in its order: a rewritten table keeps the bounds by which readers skip files
_SESSION: Final = {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": "32768"}


def batches(table: Any, columns: Sequence[str] = (), where: str = "") -> Any:
    """A `pyarrow.RecordBatchReader` of one version, in the types of the table's schema; memory holds a few batches.

    columns  those to read, in this order; none named means all
    where    a condition from `equals`
    """
    import pyarrow

    schema = pyarrow.schema(table.schema().to_arrow())
    if columns:
        schema = pyarrow.schema([schema.field(name) for name in columns])
    read = _selected(table, ", ".join(map(_quoted, schema.names)), where)
    return pyarrow.RecordBatchReader.from_batches(schema, _cast(pyarrow.RecordBatchReader.from_stream(read), schema))


def counted(table: Any, column: str = "") -> int:
    """The number of rows, or of rows with a value in a column."""
    result = _selected(table, f"count({_quoted(column) if column else '*'}) AS n").read_all()
    return int(result.column("n").to_pylist()[0])


def dataset(table: Any, options: Mapping[str, str] = NO_OPTIONS) -> Any:
    """A `pyarrow.dataset.Dataset`, for callers that push conditions down to it; of a table on a local disk or in a bucket.

    options  with which deltalake opened it: credentials of a bucket, where they are not the environment's
    """
    from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

    refuse_unreadable(table)
    if table.table_uri.startswith("s3://"):
        files: FileSystem = SubTreeFileSystem(table.table_uri.removeprefix("s3://").rstrip("/"), _bucket(options))
    else:
        files = SubTreeFileSystem(_folder(table.table_uri), LocalFileSystem())
    return table.to_pyarrow_dataset(filesystem=files)


def _bucket(options: Mapping[str, str]) -> Any:
    """By the options and the environment that deltalake goes by."""
    from pyarrow.fs import S3FileSystem

    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))
    given = {
        "endpoint_override": endpoint.netloc,
        "scheme": endpoint.scheme,
        "region": os.environ.get("AWS_REGION", "") or options.get("aws_region", ""),
        "access_key": options.get("aws_access_key_id", ""),
        "secret_key": options.get("aws_secret_access_key", ""),
        "session_token": options.get("aws_session_token", ""),
    }
    return S3FileSystem(**{name: value for name, value in given.items() if value})


def equals(column: str, value: object) -> str:
    """A condition: a column equals a partition's value, also NULL. value: of any type but bytes"""
    name = _quoted(column)
    match value:
        case None:
            return f"{name} IS NULL"
        case bool():
            return name if value else f"NOT {name}"
    return f"{name} = " + _quoted(str(value), "'")


def _selected(table: Any, what: str, where: str = "") -> Any:
    from deltalake import QueryBuilder

    refuse_unreadable(table)
    condition = f" WHERE {where}" if where else ""
    return QueryBuilder(_SESSION).register("t", table).execute(f"SELECT {what} FROM t{condition}")


def refuse_unreadable(table: Any) -> None:
    """raises RegionError, which names the table and its feature"""
    from deltalake.table import SUPPORTED_READER_FEATURES

    protocol = table.protocol()
    features = {*(protocol.reader_features or ())} - SUPPORTED_READER_FEATURES
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if features:
        raise RegionError(
            f"{table.table_uri}: its rows cannot be read here: {', '.join(sorted(features))}",
            hint="change that table with the engine that writes it, then record it: console schema apply --recorded",
        )


def _cast(read: Any, schema: Any) -> Iterator[Any]:
    """DataFusion returns texts as views, which later steps do not accept."""
    for batch in read:
        yield batch.cast(schema)


def _quoted(text: str, mark: str = '"') -> str:
    return mark + text.replace(mark, 2 * mark) + mark


def _folder(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise DataError(f"{uri}: not on this machine's disks", hint="read it with Spark: release.spark(…)")
    return unquote(parts.path) if parts.scheme else uri
