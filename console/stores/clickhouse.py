"""ClickHouse over its HTTP protocol."""

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from socket import gethostname
from typing import Any, Final
from urllib.parse import urlsplit

from console.errors import DataError, RegionError, Unreachable
from console.propagation.clickhouse.quoting import literal, on_cluster
from console.propagation.clickhouse.quoting import quoted as identifier
from console.propagation.tables import ColumnStorage, StoreTable
from console.propagation.translate.operations import StoreOperation, StoreStatement
from console.stores.lock import REHEARSAL, StoreLockHolder, marked
from console.stores.protocol import LEFT_OUT, RECORDS, LeftOut, Record, Store, first_line, missing_package
from console.stores.tables.clickhouse import behind, described

# an ALTER waits for the rows that it rewrites; reads are short
_LONGEST_SECONDS: Final = 3600
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 60
_TABLES: Final = {
    RECORDS: (
        "seq UInt64, migration String, body String, place String, state String, left UInt32,"
        " at Float64, by String, host String",
        "seq",
    ),
    LEFT_OUT: ("place String, column String, rows UInt64, at Float64", "place, column"),
}


def open_store(name: str, options: Mapping[str, Any], columns: Mapping[str, tuple[ColumnStorage, ...]]) -> "ClickHouse":
    """One database, as replication.yaml configures it; columns: table → how its columns are to be stored"""
    return ClickHouse(
        name,
        options["url"],
        options.get("database", ""),
        cluster=str(options.get("cluster") or ""),
        settings={key: options[key] for key in ("alter_sync", "mutations_sync") if key in options},
        kept=columns,
    )


class ClickHouse:
    """One database of one server.

    url       `http://user:password@host:8123/database`
    database  instead of the url's
    cluster   the cluster on whose hosts every statement runs; the lock and the records are there too
    settings  of every statement that changes a schema: alter_sync, mutations_sync
    kept      table → how its columns are stored
    """

    atomic = False

    def __init__(
        self,
        name: str,
        url: str,
        database: str = "",
        *,
        cluster: str = "",
        settings: Mapping[str, int] | None = None,
        kept: Mapping[str, tuple[ColumnStorage, ...]] | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DataError(f"stores.{name}.url: expected http://host:8123/database or https://…")
        self.name = name
        self.database = database or parts.path.strip("/") or "default"
        self.address = f"{parts.scheme}://{parts.hostname}:{parts.port or 8123}/{self.database}"
        self._cluster = cluster
        self._settings = dict(settings or {})
        self._kept = dict(kept or {})
        self._url = url
        self._client: Any = None
        self._made: set[str] = set()

    def describe(self, places: Collection[str]) -> dict[str, StoreTable]:
        tables = described(self._query, self.database, places) if places else {}
        return {
            place: replace(table, cluster=self._cluster, kept=self._kept.get(place, ()))
            for place, table in tables.items()
        }

    def run(self, table: StoreTable, operations: Sequence[StoreOperation], mark: str) -> None:
        for operation in operations:
            if not isinstance(operation, StoreStatement):
                raise TypeError(f"{type(operation).__name__} is not a statement of ClickHouse")
            self._command(operation.sql, self._settings)
        if self._cluster:
            self.agreed()

    def agreed(self) -> None:
        """raises  RegionError naming a host of the cluster whose columns differ from those here"""
        rows = self._query(
            "SELECT hostName() AS host, table, arraySort(groupArray((name, type, default_kind))) AS columns"
            " FROM clusterAllReplicas({cluster:String}, system.columns) WHERE database = {db:String} GROUP BY host, table",
            {"cluster": self._cluster, "db": self.database},
        )
        [(here,)] = [tuple(row.values()) for row in self._query("SELECT hostName() AS host")]
        if missed := behind(rows, here):
            host, table = missed
            raise RegionError(
                f"{self.name}: the host {host} of {self._cluster} has other columns in {table} than {here}",
                hint=f"system.distributed_ddl_queue on {host} says why; make sure that the statement ran there, and apply again",
            )

    def marked(self, place: str, mark: str) -> bool:
        return False  # its statements put their marks into the columns' comments

    def records(self) -> tuple[Record, ...]:
        if not self._exists(RECORDS):
            return ()
        rows = self._query(f"SELECT * FROM {self._own(RECORDS)} ORDER BY seq, at")
        return tuple(Record(**row) for row in rows)

    def record(self, record: Record) -> None:
        self._make(RECORDS)
        names = list(Record.__dataclass_fields__)
        self._insert(RECORDS, names, [[getattr(record, name) for name in names]])

    def left_out(self) -> tuple[LeftOut, ...]:
        if not self._exists(LEFT_OUT):
            return ()
        rows = self._query(
            f"SELECT place, column, sum(rows) AS total, min(at) AS since FROM {self._own(LEFT_OUT)} GROUP BY place, column"
        )
        return tuple(LeftOut(row["place"], row["column"], int(row["total"]), row["since"]) for row in rows)

    def add_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        self._make(LEFT_OUT)
        self._insert(LEFT_OUT, ["place", "column", "rows", "at"], [[place, name, n, at] for name, n in rows.items()])

    def lock(self, by: str, host: str, *, take_over: bool) -> AbstractContextManager[None]:
        return marked(self.name, self, by, host, take_over=take_over)

    def set_mark(self, name: str, mark: str) -> bool:
        try:
            self._everywhere(f"CREATE TABLE {self._own(name)} (held UInt8) ENGINE = Memory COMMENT {literal(mark)}")
        except RegionError:
            if not self._exists(name):
                raise
            return False
        return True

    def mark(self, name: str) -> str | None:
        rows = self._query(
            "SELECT comment FROM system.tables WHERE database = {db:String} AND name = {name:String}",
            {"db": self.database, "name": name},
        )
        return str(rows[0]["comment"]) if rows else None

    def drop_mark(self, name: str) -> None:
        self._everywhere(f"DROP TABLE IF EXISTS {self._own(name)} SYNC")

    @contextmanager
    def rehearsal_copy(self, place: str) -> Iterator[tuple[Store, str]]:
        """On this host alone, even in a cluster."""
        self._drop_leftovers()
        database = f"{self.database}{REHEARSAL}{os.urandom(4).hex()}"
        mark = StoreLockHolder.now("a rehearsal", gethostname()).mark
        self._command(f"CREATE DATABASE {identifier(database)} COMMENT {literal(mark)}")
        copy = ClickHouse(self.name, self._url, database)
        try:
            self._copy(place, database)
            yield copy, place
        finally:
            copy.close()
            self._command(f"DROP DATABASE IF EXISTS {identifier(database)} SYNC")

    def _drop_leftovers(self) -> None:
        """Drop copies left by rehearsals that died on this machine: by our mark only, since anyone may use the name."""
        rows = self._query(
            "SELECT name, comment FROM system.databases WHERE startsWith(name, {start:String})",
            {"start": f"{self.database}{REHEARSAL}"},
        )
        for row in rows:
            if StoreLockHolder.read(row["comment"]).gone:
                self._command(f"DROP DATABASE IF EXISTS {identifier(row['name'])} SYNC")

    def _copy(self, place: str, database: str) -> None:
        """The table, its views and their targets into another database; rows of the newest partition come along."""
        views = self.describe([place])[place].dependents
        tables = {place, *(view.target.rpartition(".")[2] for view in views if view.target)}
        for table in sorted(tables):
            self._command(f"CREATE TABLE {identifier(database)}.{identifier(table)} AS {self._own(table)}")
        names = re.compile(rf"(?<![\w.`])(?:{re.escape(self.database)}|{re.escape(identifier(self.database))})(?=\.)")
        for view in views:
            name = f"{identifier(database)}.{identifier(view.name.rpartition('.')[2])}"
            target = f"{identifier(database)}.{identifier(view.target.rpartition('.')[2])}"
            query = names.sub(lambda _: identifier(database), view.select)
            self._command(f"CREATE MATERIALIZED VIEW {name} TO {target} AS {query}")
        for partition in self._newest(place):
            copied = f"{identifier(database)}.{identifier(place)}"
            self._command(f"ALTER TABLE {copied} ATTACH PARTITION ID {literal(partition)} FROM {self._own(place)}")

    def count(self, table: StoreTable, column: str = "") -> int:
        place = table.name.rpartition(".")[2]
        what = identifier(column) if column else ""
        return int(self._query(f"SELECT count({what}) AS n FROM {self._own(place)}")[0]["n"])

    def rewrite_bytes(self, place: str) -> int:
        return 0

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _newest(self, place: str) -> list[str]:
        rows = self._query(
            "SELECT partition_id FROM system.parts WHERE database = {db:String} AND table = {place:String} AND active"
            " GROUP BY partition_id ORDER BY max(modification_time) DESC, partition_id DESC LIMIT 1",
            {"db": self.database, "place": place},
        )
        return [row["partition_id"] for row in rows]

    def _exists(self, table: str) -> bool:
        return self.mark(table) is not None

    def _own(self, table: str) -> str:
        return f"{identifier(self.database)}.{identifier(table)}"

    def _make(self, table: str) -> None:
        if table not in self._made:
            columns, order = _TABLES[table]
            # every host of a cluster, in every shard, is a replica of these
            path = f"/clickhouse/console/{self.database}/{table}"
            engine = f"ReplicatedMergeTree({literal(path)}, '{{shard}}-{{replica}}')" if self._cluster else "MergeTree"
            self._everywhere(
                f"CREATE TABLE IF NOT EXISTS {self._own(table)} ({columns}) ENGINE = {engine} ORDER BY ({order})"
            )
            self._made.add(table)

    def _insert(self, table: str, names: list[str], rows: list[list[Any]]) -> None:
        with self._client_errors():
            durable = {"insert_quorum": "auto"} if self._cluster else {}
            self._open().insert(table, rows, column_names=names, database=self.database, settings=durable)

    def _query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        with self._client_errors():
            return list(self._open().query(sql, parameters=dict(parameters or {})).named_results())

    def _everywhere(self, sql: str) -> None:
        self._command(on_cluster(sql, self._cluster))

    def _command(self, sql: str, settings: Mapping[str, int] | None = None) -> None:
        with self._client_errors():
            from urllib3 import Timeout

            client = self._open()
            short, client.timeout = client.timeout, Timeout(connect=_CONNECT_SECONDS, read=_LONGEST_SECONDS)
            try:
                client.command(sql, settings=dict(settings or {}))
            finally:
                client.timeout = short

    def _open(self) -> Any:
        if self._client is None:
            import clickhouse_connect

            # it also logs the errors that it raises
            logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
            self._client = clickhouse_connect.get_client(
                dsn=self._url,
                database=self.database,
                autogenerate_session_id=False,
                connect_timeout=_CONNECT_SECONDS,
                send_receive_timeout=_READ_SECONDS,
                query_retries=0,
            )
        return self._client

    @contextmanager
    def _client_errors(self) -> Iterator[None]:
        try:
            from clickhouse_connect.driver import exceptions
        except ImportError:
            raise missing_package("clickhouse-connect", self.name) from None
        try:
            yield
        except exceptions.OperationalError as error:
            raise Unreachable(
                f"{self.name}: no answer from ClickHouse at {self.address}: {first_line(error)}",
                hint="check that it runs and that its url is right; the same command continues where it stopped",
            ) from None
        except exceptions.Error as error:
            raise RegionError(f"{self.name}: ClickHouse refused: {first_line(error)}") from None
