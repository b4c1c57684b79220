"""An application that never stops writing, its database, and the three stores that its rows go to."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clickhouse_connect
import psycopg
import pyarrow
from deltalake import DeltaTable, write_deltalake
from psycopg.rows import dict_row
from pyiceberg.catalog import load_catalog

from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.servers.postgres import Postgres
from tests.stores.project import Project

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = "CREATE TABLE issues (id bigint PRIMARY KEY, title text, a text, b text, n integer)"
COLUMNS = (
    "`id` Int64, `title` Nullable(String), `a` Nullable(String), `b` Nullable(String), `n` Nullable(Int32),"
    " `_version` UInt64, `_deleted` Bool"
)
ENGINE = "ENGINE = ReplacingMergeTree(_version, _deleted) ORDER BY id"
ARROW = pyarrow.schema(
    [("id", pyarrow.int64()), ("title", pyarrow.string()), ("a", pyarrow.string()), ("b", pyarrow.string()),
     ("n", pyarrow.int32()), ("_version", pyarrow.int64()), ("_deleted", pyarrow.bool_())]
)  # fmt: skip
# seconds: some rows between any two statements of a migration; more of both take the processors from what is tested
WRITES_EVERY, READS_EVERY = 0.02, 0.1
Write = Callable[[psycopg.Connection[Any], int], None]


class World:
    """One database in each server, a view and a materialized view on top in ClickHouse."""

    def __init__(self, root: Path, name: str, postgres: Postgres, clickhouse: ClickHouse) -> None:
        self.name, self.postgres, self.clickhouse = name, postgres, clickhouse
        with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
        self.dsn = postgres.dsn(name)
        with self.database() as connection:
            connection.execute(TABLE)
            connection.execute("CREATE PUBLICATION app FOR TABLE issues")
            connection.execute(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        self.ch = clickhouse_connect.get_client(dsn=clickhouse.url(), autogenerate_session_id=False)
        self.ch.command(f"CREATE DATABASE {name}")
        self.make_clickhouse()
        self.project = Project(root, clickhouse.url(name), self.dsn)
        self.make_lakes()
        self.stops: list[Callable[[], None]] = []
        self.troubles: list[str] = []

    def make_clickhouse(self) -> None:
        for table in ("siphon_issues", "issues_flat"):
            self.ch.command(f"CREATE TABLE {self.name}.{table} ({COLUMNS}) {ENGINE}")
        self.ch.command(
            f"CREATE MATERIALIZED VIEW {self.name}.issues_mv TO {self.name}.issues_flat AS"
            f" SELECT id, title, a, b, n, _version, _deleted FROM {self.name}.siphon_issues"
        )
        self.ch.command(f"CREATE VIEW {self.name}.issues_now AS SELECT id, a, b FROM {self.name}.siphon_issues FINAL")

    def make_lakes(self) -> None:
        self.catalog = load_catalog(
            "default", type="sql", uri=f"sqlite:///{self.project.root}/lake/catalog.db?timeout=60",
            warehouse=f"file://{self.project.root}/lake",
        )  # fmt: skip
        self.catalog.create_namespace("app")
        self.catalog.create_table("app.issues", ARROW)
        write_deltalake(str(self.project.root / "raw" / "issues"), ARROW.empty_table())

    def database(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row)

    def migrate(self, *statements: str) -> None:
        """The application's own migration, in one transaction."""
        with self.database() as connection, connection.transaction():
            for statement in statements:
                connection.execute(statement)

    def consume(self) -> None:
        command = [sys.executable, "-m", "tests.propagation.servers.consumer"]
        words = [str(self.project.root), self.dsn, self.name, "app"]
        process = subprocess.Popen(
            [*command, *words], cwd=ROOT, env=self.project.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        positions: list[int] = []
        threading.Thread(target=lambda: positions.extend(map(int, process.stdout or ())), daemon=True).start()

        def stop() -> None:
            process.terminate()
            try:
                code = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
            if code:
                self.troubles.append(f"the consumer ended with {code}")

        self.stops.append(stop)

    def write(self, one: Write, first: int) -> Callable[[], int]:
        """A writer that never stops: returns what ends it and says how many rows it wrote."""
        ended = threading.Event()
        count = 0

        def loop() -> None:
            nonlocal count
            try:
                with self.database() as connection:
                    while not ended.is_set():
                        one(connection, first + count)
                        count += 1
                        time.sleep(WRITES_EVERY)
            except psycopg.Error as error:
                self.troubles.append(f"a writer: {error}")

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        self.stops.append(ended.set)

        def end() -> int:
            ended.set()
            thread.join(30)
            return count

        return end

    def read(self) -> Callable[[], int]:
        """Queries on the views without end; a failing one is a trouble."""
        ended = threading.Event()
        queries = [
            f"SELECT id, a, b FROM {self.name}.issues_now ORDER BY id DESC LIMIT 3",
            f"SELECT id, a, b, n FROM {self.name}.issues_flat FINAL ORDER BY id DESC LIMIT 3",
            f"SELECT count(), max(a) FROM {self.name}.issues_flat",
        ]
        count = 0

        def loop() -> None:
            nonlocal count
            client = clickhouse_connect.get_client(dsn=self.clickhouse.url(), autogenerate_session_id=False)
            while not ended.is_set():
                for query in queries:
                    try:
                        client.query(query)
                        count += 1
                    except Exception as error:  # whatever a reader meets is what this is about
                        self.troubles.append(f"{query}: {error}")
                time.sleep(READS_EVERY)

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        self.stops.append(ended.set)

        def end() -> int:
            ended.set()
            thread.join(30)
            return count

        return end

    def until(self, true: Callable[[], bool], what: str, seconds: float = 60) -> None:
        limit = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < limit, f"{what}: not within {seconds:g} s; {self.troubles}"
            time.sleep(0.05)

    def settle(self) -> None:
        """Wait until all that is committed by now is in the stores, for as long as it comes nearer."""
        with self.database() as connection:
            # what is committed is not yet written where commits are asynchronous: the position of what was put in last
            row = connection.execute("SELECT pg_current_wal_insert_lsn()::text AS lsn").fetchone()
            assert row is not None
            end = row["lsn"]
            # a last change carries the slot past that position
            connection.execute("UPDATE issues SET n = n WHERE id = (SELECT max(id) FROM issues)")
        left = self.left_until(end)
        while left > 0:
            self.until(lambda was=left: self.left_until(end) < was, f"{left} bytes of the log reach the stores", 120)
            left = self.left_until(end)

    def left_until(self, end: str) -> int:
        """Bytes of PostgreSQL's log between what the consumer has confirmed and `end`."""
        with self.database() as connection:
            row = connection.execute(
                "SELECT pg_wal_lsn_diff(%s::pg_lsn, confirmed_flush_lsn)::bigint AS bytes FROM pg_replication_slots"
                " WHERE slot_name = %s",
                (end, self.name),
            ).fetchone()
        assert row is not None
        return int(row["bytes"])

    def truth(self) -> dict[int, dict[str, Any]]:
        with self.database() as connection:
            return {row["id"]: row for row in connection.execute("SELECT * FROM issues").fetchall()}

    def stored(self, columns: list[str]) -> dict[str, dict[int, dict[str, Any]]]:
        """Each store's rows by id, the last version of each."""
        names = ", ".join(f"`{name}`" for name in columns)
        results = {}
        for table in ("siphon_issues", "issues_flat"):
            rows = self.ch.query(f"SELECT {names} FROM {self.name}.{table} FINAL").named_results()
            results[table] = {row["id"]: row for row in rows}
        lakes = {
            "lake": self.catalog.load_table("app.issues").scan().to_arrow(),
            "raw": DeltaTable(str(self.project.root / "raw" / "issues")).to_pyarrow_table(),
        }
        for name, table in lakes.items():
            last: dict[int, dict[str, Any]] = {}
            for row in sorted(table.to_pylist(), key=lambda row: row["_version"]):
                last[row["id"]] = row
            results[name] = {key: {c: row[c] for c in columns} for key, row in last.items() if not row["_deleted"]}
        return results

    def close(self) -> None:
        for stop in reversed(self.stops):
            stop()
        self.ch.close()
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as admin:
            # PostgreSQL notices only after a while that a consumer is gone, and drops no slot that is in use
            self.until(lambda: not self.in_use(admin), "the replication slot is free")
            admin.execute("SELECT pg_drop_replication_slot(%s)", (self.name,))

    def in_use(self, admin: psycopg.Connection[Any]) -> bool:
        query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
        return admin.execute(query, (self.name,)).fetchone() == (True,)
