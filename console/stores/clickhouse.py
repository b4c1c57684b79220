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
from console.stores.lock import ASIDE, StoreLockHolder, marked
from console.stores.protocol import ARRIVING, RECORDS, LeftOut, Record, Store, first_line, lacks
from console.stores.tables.clickhouse import behind, described

# ALTER waits for the rows that it rewrites; what is only read is there at once
_LONGEST_SECONDS: Final = 3600
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 60
_TABLES: Final = {
    RECORDS: (
        "seq UInt64, migration String, body String, place String, state String, left UInt32,"
        " at Float64, by String, host String",
        "seq",
    ),
    ARRIVING: ("place String, column String, rows UInt64, at Float64", "place, column"),
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
    cluster   on whose hosts every statement runs; the lock and what was applied are there, too
    settings  of every statement that changes a schema: alter_sync, mutations_sync
    kept      table → how its columns are to be kept
    """

    at_once = False

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
                raise TypeError(f"{type(operation).__name__} is no statement of ClickHouse")
            self._command(operation.sql, self._settings)
        if self._cluster:
            self.agreed()

    def agreed(self) -> None:
        """raises  RegionError naming a host of the cluster whose columns are others than here"""
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
                hint=f"system.distributed_ddl_queue on {host} says why; see that the statement is done there, and apply again",
            )

    def marked(self, place: str, mark: str) -> bool:
        return False  # its statements leave their marks in the columns' comments

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
        if not self._exists(ARRIVING):
            return ()
        rows = self._query(
            f"SELECT place, column, sum(rows) AS total, min(at) AS since FROM {self._own(ARRIVING)} GROUP BY place, column"
        )
        return tuple(LeftOut(row["place"], row["column"], int(row["total"]), row["since"]) for row in rows)

    def note_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        self._make(ARRIVING)
        self._insert(ARRIVING, ["place", "column", "rows", "at"], [[place, name, n, at] for name, n in rows.items()])

    def hold(self, by: str, host: str, *, take_over: bool) -> AbstractContextManager[None]:
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
    def copied(self, place: str) -> Iterator[tuple[Store, str]]:
        """On this host alone, be there others."""
        self._clear_away()
        database = f"{self.database}{ASIDE}{os.urandom(4).hex()}"
        mark = StoreLockHolder.now("a rehearsal", gethostname()).mark
        self._command(f"CREATE DATABASE {identifier(database)} COMMENT {literal(mark)}")
        copy = ClickHouse(self.name, self._url, database)
        try:
            self._copy(place, database)
            yield copy, place
        finally:
            copy.close()
            self._command(f"DROP DATABASE IF EXISTS {identifier(database)} SYNC")

    def _clear_away(self) -> None:
        """What rehearsals that died here have left: by our mark alone, for a name may be anybody's."""
        rows = self._query(
            "SELECT name, comment FROM system.databases WHERE startsWith(name, {start:String})",
            {"start": f"{self.database}{ASIDE}"},
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

    def weight(self, place: str) -> int:
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
            # every host of a cluster, of whatever shard, is a replica of these
            path = f"/clickhouse/console/{self.database}/{table}"
            engine = f"ReplicatedMergeTree({literal(path)}, '{{shard}}-{{replica}}')" if self._cluster else "MergeTree"
            self._everywhere(
                f"CREATE TABLE IF NOT EXISTS {self._own(table)} ({columns}) ENGINE = {engine} ORDER BY ({order})"
            )
            self._made.add(table)

    def _insert(self, table: str, names: list[str], rows: list[list[Any]]) -> None:
        with self._telling():
            sure = {"insert_quorum": "auto"} if self._cluster else {}
            self._open().insert(table, rows, column_names=names, database=self.database, settings=sure)

    def _query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        with self._telling():
            return list(self._open().query(sql, parameters=dict(parameters or {})).named_results())

    def _everywhere(self, sql: str) -> None:
        self._command(on_cluster(sql, self._cluster))

    def _command(self, sql: str, settings: Mapping[str, int] | None = None) -> None:
        with self._telling():
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

            # it logs what it also raises
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
    def _telling(self) -> Iterator[None]:
        try:
            from clickhouse_connect.driver import exceptions
        except ImportError:
            raise lacks("clickhouse-connect", self.name) from None
        try:
            yield
        except exceptions.OperationalError as error:
            raise Unreachable(
                f"{self.name}: no answer from ClickHouse at {self.address}: {first_line(error)}",
                hint="see that it runs and that its url is right; the same command goes on where it stopped",
            ) from None
        except exceptions.Error as error:
            raise RegionError(f"{self.name}: ClickHouse refused: {first_line(error)}") from None
