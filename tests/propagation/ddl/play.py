"""A random script in a real server: drawn statement by statement, those that PostgreSQL refuses left out."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from console.errors import Problems
from console.propagation.observe.read import observe
from tests.propagation.ddl.catalog import Name, Relation, snapshot
from tests.propagation.ddl.drawing import Draw, statement
from tests.propagation.ddl.forms import FORMS
from tests.propagation.ddl.judge import differences, misread
from tests.propagation.servers.postgres import Postgres, binaries

SETUP = {"creates": 10, "types": 5, "table": 3, "column": 3, "views": 2, "routines": 1}
BODY = {
    "column": 18,
    "table": 6,
    "moves": 6,
    "creates": 7,
    "types": 8,
    "views": 4,
    "path": 4,
    "routines": 5,
    "transactions": 9,
    "lexing": 2,
}
FIRST = (
    "CREATE TABLE t1 (id bigint PRIMARY KEY, a int, b text DEFAULT 'b', c varchar(10) NOT NULL DEFAULT '')",
    "CREATE TABLE t2 (id int, a numeric(10,2), n timestamptz DEFAULT now())", "CREATE SCHEMA app", 'CREATE SCHEMA "Odd Schema"', "CREATE SCHEMA other",
    "CREATE TYPE mood AS ENUM ('ok', 'ill', 'a')", "CREATE DOMAIN dom AS int", "CREATE TYPE comp AS (a int, b text)", "CREATE TABLE app.t1 (id int, z text)",
)  # fmt: skip
TRIES = 6  # statements of one family until the server takes one
DUMPED = 6  # of as many scripts one has a dump of what was before, instead of the statements that made it
# families of objects of which a world has some
WORLDS = (
    ("CREATE TABLE par (id int, a int NOT NULL, b text, CONSTRAINT k CHECK (b IS NOT NULL))", "CREATE TABLE kid (own int, a int) INHERITS (par)", "CREATE TABLE grandkid (z text) INHERITS (kid)"),
    ("CREATE TABLE p (id int, x int, y text) PARTITION BY LIST (id)", "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)", "CREATE TABLE p2 (id int, x int, y text)"),
    ("CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c int GENERATED ALWAYS AS IDENTITY, d text GENERATED ALWAYS AS (lower('x' || a::text)) STORED, e int)",),
    ("CREATE TABLE typed OF comp", "CREATE TABLE typed2 OF comp (a NOT NULL)"),
    ("CREATE VIEW v1 AS SELECT id, a FROM t1", "CREATE MATERIALIZED VIEW m1 AS SELECT a FROM t2", "CREATE VIEW v2 AS SELECT * FROM v1"),
    ("CREATE DOMAIN firm AS text NOT NULL DEFAULT 'd'", "CREATE DOMAIN checked AS int CHECK (VALUE IS NOT NULL)", "CREATE TABLE dd (x dom, y mood, z comp, f firm, c checked, ms mood[])"),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE public.t1 ADD from_f int; RETURN 1; END $$", "CREATE FUNCTION safe() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
    ("CREATE TABLE cc (a int CHECK (a IS NOT NULL), b int, CONSTRAINT cc2 CHECK (b IS NOT NULL AND a > 0), c int NOT NULL CHECK (c > 0))",),
    ("CREATE SEQUENCE s1", "CREATE TABLE sq (a int DEFAULT nextval('s1'), b serial, c bigserial)", "CREATE UNIQUE INDEX uq ON sq (b)"),
    ("CREATE TABLE other.t2 (a int, b text)", "CREATE TABLE app.only_here (x int, y int)", "CREATE TYPE app.mood AS ENUM ('x')", "SET search_path TO app, public"),
    ('CREATE TABLE "Odd Schema"."Odd ""Table" ("Odd Column" int, "ÄPFEL" text, äpfel int, "A" int, a int)',),
)  # fmt: skip
_CLEAN = """
DO $$ DECLARE s text; BEGIN
  FOR s IN SELECT evtname FROM pg_event_trigger LOOP EXECUTE format('DROP EVENT TRIGGER %I', s); END LOOP;
  FOR s IN SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', s);
  END LOOP;
  CREATE SCHEMA public;
END $$
"""
_TYPES = """
SELECT t.typtype AS kind, n.nspname AS schema, t.typname AS name FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
 LEFT JOIN pg_class c ON c.oid = t.typrelid
 WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND t.typtype IN ('e', 'd', 'c', 'r') AND coalesce(c.relkind, 'c') = 'c'
 ORDER BY t.oid
"""
Relations = dict[Name, Relation]
_ALONE = ("savepoint", "rollback", "release", "commit", "end", "abort", "begin", "start")


@dataclass
class Script:
    """What was drawn, and the catalog around it.

    older  (table, column) → what a row from before reads there, as text; only where the script writes no row
    """

    setup: str
    body: str
    families: list[str]
    before: dict[Name, Relation]
    after: dict[Name, Relation]
    older: dict[tuple[Name, str], str | None]


class DdlDatabase:
    """One database in which script after script is played."""

    def __init__(self, postgres: Postgres) -> None:
        self._dsn = postgres.dsn("ddl")
        with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
            admin.execute("CREATE DATABASE ddl")
        self.judge = self._connect()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._dsn, autocommit=True, row_factory=dict_row, prepare_threshold=None)
        connection.execute("SET client_min_messages = error")
        return connection

    def close(self) -> None:
        self.judge.close()

    def same(self, literal: str, expression: str, kind: str) -> bool:
        """A literal is the value of an expression, as a value of this type."""
        for cast in (f"::{kind}", ""):  # PostgreSQL keeps a default that its type will refuse
            try:
                row = self.judge.execute(
                    f"SELECT ({literal}){cast}::text IS NOT DISTINCT FROM ({expression}){cast}::text AS same"
                ).fetchone()
            except psycopg.Error:
                continue
            return bool(row and row["same"])
        return False

    def _dump(self) -> str:
        """What there is in pg_dump's words."""
        words = [str(binaries() / "pg_dump"), "--schema-only", "-d", self._dsn]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def play(self, seed: int) -> Script:
        r = Random(f"ddl-{seed}")
        self.judge.execute(_CLEAN)
        with self._connect() as connection:
            first = _Session(connection, Draw(r))
            for text in FIRST:
                first.take("creates", text)
            for family in WORLDS:
                for text in family if r.random() < 0.35 else ():
                    first.take("creates", text)
            first.draw(SETUP, r.randint(0, 7))
            setup = first.finish()
            if seed % 2:
                self._write_rows()
            before = snapshot(self.judge)
        if seed % DUMPED == 0:
            setup = self._dump()
        with self._connect() as connection:
            second = _Session(connection, Draw(r))
            second.draw(BODY, r.choice((1, 1, 2, 3, 4, 6)))
            body = second.finish()
            after = snapshot(self.judge)
            return Script(setup, body, second.families, before, after, self._older(body, before, after))

    def _write_rows(self) -> None:
        for row in ("t1 (id) VALUES (1)", "t2 DEFAULT VALUES", "app.t1 DEFAULT VALUES"):
            with suppress(psycopg.Error):
                self.judge.execute(f"INSERT INTO {row}".encode())

    def _older(self, body: str, before: Relations, after: Relations) -> dict[tuple[Name, str], str | None]:
        if any(word in body.lower() for word in ("insert", "update", "delete", "merge", "truncate", "copy")):
            return {}
        results: dict[tuple[Name, str], str | None] = {}
        for name, relation in after.items():
            there = before.get(name)
            if not (relation.replicates and there is not None and there.rel == relation.rel):
                continue
            if not relation.columns:
                continue
            words = SQL(", ").join(SQL("{}::text AS {}").format(*[Identifier(c.name)] * 2) for c in relation.columns)
            row = self.judge.execute(SQL("SELECT {} FROM ONLY {} LIMIT 1").format(words, Identifier(*name))).fetchone()
            results |= {(name, column): value for column, value in (row or {}).items()}
        return results


class _Session:
    """Statements that the server took, in one session."""

    def __init__(self, connection: psycopg.Connection[Any], draw: Draw) -> None:
        self._connection, self.d = connection, draw
        self.taken: list[str] = []
        self.families: list[str] = []

    def draw(self, families: dict[str, int], count: int) -> None:
        for _ in range(count * 2):
            family = self.d.r.choices(list(families), list(families.values()))[0]
            for _ in range(TRIES):
                if len(self.taken) >= count:
                    return
                self._look()
                if self.take(family, statement(self.d, FORMS[family])):
                    break

    def take(self, family: str, text: str) -> bool:
        """returns  the server took it"""
        with self._guarded(text) as guarded:
            self._connection.execute(text.encode())
            guarded.append(True)
        if guarded:
            self.taken.append(text)
            self.families.append(family)
            self._follow(text)
        return bool(guarded)

    @contextmanager
    def _guarded(self, text: str) -> Iterator[list[bool]]:
        alone = not self.d.inside or text.split(maxsplit=1)[0].lower() in _ALONE
        done: list[bool] = []
        if not alone:
            self._connection.execute('SAVEPOINT "the judge"')
        try:
            yield done
        except psycopg.Error:
            if not alone:
                self._connection.execute('ROLLBACK TO "the judge"')
        if not alone:
            self._connection.execute('RELEASE "the judge"')

    def _follow(self, text: str) -> None:
        words = text.lower().split()
        chained = words[-2:] == ["and", "chain"]
        if words[0] in ("begin", "start"):
            self.d.inside = True
        elif words[0] == "savepoint":
            self.d.savepoints.append(text.split()[1])
        elif words[0] in ("commit", "end", "abort") or (words[0] == "rollback" and "to" not in words):
            self.d.inside, self.d.savepoints = self.d.inside and chained, []
        elif words[0] == "rollback":
            at = len(self.d.savepoints) - 1 - self.d.savepoints[::-1].index(text.rsplit(maxsplit=1)[-1])
            self.d.savepoints = self.d.savepoints[: at + 1]
        elif words[0] == "release":
            at = len(self.d.savepoints) - 1 - self.d.savepoints[::-1].index(text.rsplit(maxsplit=1)[-1])
            self.d.savepoints = self.d.savepoints[:at]

    def _look(self) -> None:
        self.d.relations = snapshot(self._connection)
        self.d.types = {}
        for row in self._connection.execute(_TYPES).fetchall():
            self.d.types.setdefault(row["kind"], []).append((row["schema"], row["name"]))
        schemas = "SELECT nspname AS name FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' ORDER BY oid"
        routines = "SELECT proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' ORDER BY p.oid"
        constraints = "SELECT conname AS name FROM pg_constraint WHERE conrelid > 0 OR contypid > 0 ORDER BY 1"
        self.d.schemas = self._names(schemas)
        self.d.routines, self.d.constraints = self._names(routines), self._names(constraints)[-40:]

    def _names(self, sql: str) -> list[str]:
        return [row["name"] for row in self._connection.execute(sql.encode()).fetchall()]

    def finish(self) -> str:
        if self.d.inside:
            text = self.d.r.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "END"))
            self._connection.execute(text.encode())
            self.taken.append(text)
        return ";\n".join(self.taken) + (";\n" if self.taken else "")


class Verdict(Enum):
    """What became of one script."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "wrong"
    EMPTY = "empty"


@dataclass(frozen=True)
class Judged:
    script: Script
    verdict: Verdict
    differences: tuple[str, ...] = ()


def judged(database: DdlDatabase, seed: int) -> Judged:
    """One script, and what observing makes of it beside the catalog."""
    script = database.play(seed)
    if not script.body:
        return Judged(script, Verdict.EMPTY)
    try:
        observed = observe([("script.sql", script.body)], [("before.sql", script.setup)])
    except Problems:
        return Judged(script, Verdict.REFUSED)
    wrong = tuple(differences(script.before, script.after, observed, database.same))
    wrong += tuple(misread(script.before, script.older, script.after, observed, database.same))
    return Judged(script, Verdict.WRONG if wrong else Verdict.RIGHT, wrong)
