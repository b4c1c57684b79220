"""PostgreSQL judges: the dump of its schema after a series of migrations equals the schema read from the migrations."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.propagation.observe.catalog import Catalog
from console.propagation.observe.read import compare_dumps, observe, read_schema
from console.propagation.observe.script import SqlScript
from console.propagation.sql.lexer import statements
from console.propagation.tables import PgTable
from tests.propagation import pgroll
from tests.propagation.servers.postgres import Postgres, binaries
from tests.propagation.test_reading import DEFAULTS, KNOWN, TYPES

pytestmark = pytest.mark.stores
CASES = Path(__file__).parent / "cases"


class Server:
    """A PostgreSQL in which histories are played."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def dsn(self, name: str) -> str:
        return self._postgres.dsn(name)

    def play(self, name: str, files: list[str]) -> str:
        """Run files of SQL in a database of their own. returns  its dump"""
        import psycopg

        with psycopg.connect(self._postgres.dsn(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(self._postgres.dsn(name), autocommit=True) as connection:
            for text in files:
                for statement in statements(text):
                    last = statement.words[-1]
                    connection.execute(statement.source[statement.words[0].start : last.end].encode())
        words = [str(binaries() / "pg_dump"), "--schema-only", "-d", self._postgres.dsn(name)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    postgres = Postgres()
    try:
        yield Server(postgres.start())
    finally:
        postgres.stop()


def read(files: list[str]) -> tuple[PgTable, ...]:
    catalog = Catalog()
    for number, text in enumerate(files):
        script = SqlScript(text, f"{number}.sql", catalog)
        list(script.transactions())
        assert script.problems == []
    return catalog.all()


def facts(tables: tuple[PgTable, ...]) -> dict[str, Any]:
    """What both readings must agree on; identities and sequences look different in a dump, but are computed in both."""
    return {
        table.full: (
            table.key,
            [
                (c.name, re.sub("public[.]", "", str(c.type)), c.nullable, c.default, bool(c.computed))
                for c in table.columns
            ],
        )
        for table in tables
    }


def test_pgrolls_whole_history_is_read_as_postgresql_runs_it(server: Server) -> None:
    cases = json.loads((CASES / "pgroll_examples.json").read_text())["cases"]
    files = [pgroll.statements(case["migration"]["operations"]) for case in cases]
    # PostgreSQL takes no subquery in USING; pgroll fills a new column instead
    files = [re.sub(r"USING \(SELECT .*?END\);", ";", text) for text in files if '"version_schema"' not in text]
    files = files[:-1]  # the last one makes a table anew that is there, under another version schema
    assert facts(read(files)) == facts(read_schema([("dump.sql", server.play("pgroll", files))]))


def test_eugenes_histories_are_read_as_postgresql_runs_them(server: Server) -> None:
    for case in json.loads((CASES / "eugene_bad_good.json").read_text())["cases"]:
        files = [step["sql"] for step in case["steps"]]
        dump = server.play(case["id"], files)
        assert facts(read(files)) == facts(read_schema([("dump.sql", dump)])), case["id"]


def test_every_type_and_default_is_read_alike_from_its_definition_and_from_a_dump(server: Server) -> None:
    prelude = "CREATE EXTENSION citext; CREATE SCHEMA app; CREATE SEQUENCE s;" + KNOWN
    prelude += 'CREATE TYPE "My Type" AS (a int); CREATE SCHEMA x; CREATE TYPE x.y AS (a int);'
    types = [f"c{n} {text}" for n, text in enumerate(TYPES) if not text.startswith("geometry")]
    defaults = [
        f"d{n} {text}"
        for n, text in enumerate(DEFAULTS)
        if "timezone" not in text and text not in ("int DEFAULT true", "date DEFAULT 'today'")
    ]
    files = [prelude, f"SET search_path TO public, app; CREATE TABLE every ({', '.join([*types, *defaults])});"]
    dump = server.play("types", files)
    catalog, dumped = facts(read(files))["public.every"], facts(read_schema([("dump.sql", dump)]))["public.every"]
    for ours, theirs in zip(catalog[1], dumped[1], strict=True):
        if theirs[1] == "string" and ours[1].startswith("text_of"):
            continue
        assert ours == theirs


def test_a_dump_before_and_after_says_what_the_migration_says(server: Server) -> None:
    before = "CREATE TABLE t (id bigint PRIMARY KEY, n integer DEFAULT 5, gone text, m varchar(9) NOT NULL);"
    change = "ALTER TABLE t DROP gone, ADD fresh numeric(9,2) NOT NULL DEFAULT 1.5; ALTER TABLE t ALTER n TYPE bigint;"
    change += "ALTER TABLE t ALTER n DROP DEFAULT, ALTER m DROP NOT NULL; CREATE INDEX i ON t (n);"
    old, new = server.play("before", [before]), server.play("after", [before, change])
    dumped = [seen.migration for seen in compare_dumps([("old", old)], [("new", new)]).migrations]
    messages = [seen.migration for seen in observe([("m.sql", change)], [("old", old)]).migrations]
    assert sorted(dumped, key=repr) == sorted(messages, key=repr)


def test_a_dump_of_everything_that_postgresql_has_is_read_whole(server: Server) -> None:
    import psycopg

    source = (CASES / "everything.sql").read_text()
    dump = server.play("everything", [source])
    tables = {table.full: table for table in read_schema([("dump.sql", dump)])}
    with psycopg.connect(server.dsn("everything")) as connection:
        rows = connection.execute(
            "SELECT n.nspname || '.' || c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped"
            " AND n.nspname NOT IN ('pg_catalog', 'information_schema') GROUP BY 1"
        ).fetchall()
    assert {name: [column.name for column in table.columns] for name, table in tables.items()} == dict(rows)
    assert facts(read([source])) == facts(tuple(tables.values()))
