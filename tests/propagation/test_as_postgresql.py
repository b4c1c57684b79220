"""A file is interpreted as by PostgreSQL; code that runs without being in the file is refused."""

import pytest

from console.propagation.migration import AddColumn, Facets
from tests.propagation.test_scripts import changes, refused, seen

LONG = "n" * 62
KNOWN = """CREATE SCHEMA app; CREATE TABLE t (id bigint PRIMARY KEY, a int, b int NOT NULL, g int GENERATED ALWAYS AS (a + 1) STORED);
CREATE TABLE app.u (a int); CREATE TYPE comp AS (x int);"""


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("ÄPFEL", "Äpfel"), ("Straße", "straße"), ("İx", "İx"), ('"ÄPFEL"', "ÄPFEL"), (LONG + "xyz", LONG + "x"), (LONG + "é", LONG),
        (f'"{LONG}éé"', LONG), ("é" * 40, "é" * 31), ("x\u00a0y", "x\u00a0y"), ("日本", "日本"), ("A$b", "a$b"), ("exclude", "exclude"),
    ],
)  # fmt: skip
def test_a_name_is_what_postgresql_keeps_of_it(written: str, kept: str) -> None:
    assert changes(f"ALTER TABLE t ADD {written} int", KNOWN) == [f"t: add {kept}"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t DROP a CASCADE", ["drop a", "drop g"]), ("ALTER TABLE t DROP b CASCADE", ["drop b"]),
        ("ALTER TABLE t RENAME a TO x; ALTER TABLE t DROP x CASCADE", ["drop a", "drop g"]),
        ("ALTER TABLE t ALTER g DROP EXPRESSION; ALTER TABLE t DROP a CASCADE", ["drop a"]),
        ("ALTER TABLE t ADD c int -- \r, DROP b", ["drop b", "add c"]), ("ALTER TABLE t ALTER b SET NOT NULL, ALTER b DROP NOT NULL", []),
        ("ALTER INDEX t RENAME COLUMN b TO c", ["swap b>c"]), ("ALTER VIEW t RENAME COLUMN b TO c", ["swap b>c"]),
        ("CREATE TEMP TABLE t (x int); ALTER TABLE t ADD y int; ALTER TABLE public.t ADD z int", ["add z"]),
        ("SET search_path TO app, public; ALTER TABLE t ADD c int", ["add c"]), ("SELECT 1 AS x INTO v FROM t; ALTER TABLE v ADD c int", []),
        ("BEGIN; SAVEPOINT s; ALTER TABLE t ADD c int; ROLLBACK TO s; ALTER TABLE t ADD d int; COMMIT", ["add d"]),
        ("BEGIN; SAVEPOINT s; SET search_path TO app; ROLLBACK TO SAVEPOINT s; ALTER TABLE t ADD d int; COMMIT", ["add d"]),
        ("BEGIN; BEGIN; ALTER TABLE t ADD c int; ROLLBACK; ALTER TABLE t ADD d int", ["add d"]),
        ("CREATE TABLE c () INHERITS (t); ALTER TABLE t ADD PRIMARY KEY (a); ALTER TABLE c ALTER a DROP NOT NULL", []),
        ("ALTER TABLE t ADD CHECK (a IS NOT NULL AND b > 0); ALTER TABLE t DROP b", ["drop b", "widening a"]),
        ("EXPLAIN ANALYZE CREATE TABLE n AS SELECT 1 AS x; ALTER TABLE n ADD y int", []),
        ("EXPLAIN (COSTS off, ANALYZE) SELECT 1 AS x INTO n; ALTER TABLE n ADD y int", []),
        ("EXPLAIN ANALYSE VERBOSE CREATE TEMP TABLE t AS SELECT 1 AS x; ALTER TABLE t ADD y int", []),
        ("EXPLAIN (ANALYZE off) CREATE TEMP TABLE t AS SELECT 1 AS x; ALTER TABLE t ADD y int", ["add y"]),
        ("EXPLAIN CREATE TEMP TABLE t AS SELECT 1 AS x; ALTER TABLE t ADD y int", ["add y"]),
    ],
)  # fmt: skip
def test_what_is_not_written_word_by_word_is_followed(sql: str, expected: list[str]) -> None:
    assert [change.removeprefix("t: ") for change in changes(sql, KNOWN)] == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ('"int4"', "int32"), ("_int4", "array<int32>"), ('"timestamptz"', "timestamp_tz"), ("pg_catalog.varchar(3)", "string"), ('"_text"', "array<string>"),
        ("information_schema.cardinal_number", "int32"), ('"numeric"(6,2)', "decimal(6,2)"), ("interval(2)", "interval"), ('pg_catalog."char"', "string"),
    ],
)  # fmt: skip
def test_a_type_by_the_name_that_the_catalog_has_for_it_is_that_type(kind: str, expected: str) -> None:
    [one] = seen(f"ALTER TABLE t ADD c {kind}", KNOWN).migrations
    assert isinstance(one.migration.operation, AddColumn)
    assert str(one.migration.operation.data_type) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE f ALTER c TYPE varchar", ["widening c"]), ("ALTER TABLE f ADD PRIMARY KEY (c), ALTER c TYPE varchar", []),
        ("ALTER TABLE f ALTER c TYPE varchar, ADD CHECK (c IS NOT NULL)", []), ("ALTER TABLE f ALTER n TYPE bigint, ADD PRIMARY KEY (n)", ["widening n"]),
        ("ALTER TABLE f ALTER c TYPE varchar, ADD CONSTRAINT k CHECK (c IS NOT NULL) NOT VALID", ["widening c"]),
        ("BEGIN; ALTER TABLE f ALTER c TYPE varchar; ALTER TABLE f ADD CONSTRAINT k CHECK (c IS NOT NULL) NOT VALID; ALTER TABLE f VALIDATE CONSTRAINT k; COMMIT", []),
        ("CREATE TABLE g () INHERITS (f); ALTER TABLE f ALTER c TYPE varchar, ADD PRIMARY KEY (c)", []), ("ALTER TABLE f ADD PRIMARY KEY (c)", []),
    ],
)  # fmt: skip
def test_a_constraint_keeps_from_being_null_what_leaves_its_domain(sql: str, expected: list[str]) -> None:
    known = "CREATE DOMAIN firm AS text NOT NULL; CREATE DOMAIN whole AS int CHECK (VALUE IS NOT NULL); CREATE TABLE f (c firm, n whole)"
    result = seen(sql, known).migrations
    assert changes(sql, known) == [f"f: {change}" for change in expected]
    assert all(getattr(one.migration.operation, "to", Facets()).nullable is not True for one in result) or expected == [
        "widening c"
    ]


def test_a_domains_default_is_its_columns() -> None:
    [one] = seen("CREATE DOMAIN d AS int DEFAULT 7; ALTER TABLE t ADD c d", KNOWN).migrations
    assert isinstance(one.migration.operation, AddColumn)
    assert one.migration.operation.default == "7"
    [one] = seen("CREATE DOMAIN d AS int DEFAULT 7; ALTER TABLE t ADD c d CONSTRAINT x DEFAULT 3", KNOWN).migrations
    assert isinstance(one.migration.operation, AddColumn)
    assert one.migration.operation.default == "3"


ALTERS = "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE t ADD c int; RETURN 1; END $$;\n"
HARMLESS = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT max(id) FROM t $$;\n"
TRIGGER = "CREATE TRIGGER r AFTER INSERT ON t EXECUTE FUNCTION f();\n"
RUNS = (
    "SELECT f()", "SELECT app.f()", "VALUES (f())", "INSERT INTO t SELECT f()", "UPDATE t SET a = f()", "DELETE FROM t WHERE f() = 1", "WITH w AS (SELECT f()) SELECT 1 FROM w",
    "SELECT * FROM f() AS x", "SELECT 1 FROM t JOIN f() y ON true", "EXPLAIN ANALYZE SELECT f()", "COPY (SELECT f()) TO STDOUT", "CREATE TABLE n AS SELECT f()", "CREATE MATERIALIZED VIEW n AS SELECT f()",
    "DO $$ BEGIN PERFORM f(); END $$", "CREATE VIEW v AS SELECT f(); SELECT * FROM v", "ALTER TABLE t ADD n int DEFAULT f()", "DECLARE c CURSOR FOR SELECT f()", "SELECT a, b FROM t ORDER BY f()",
)  # fmt: skip


@pytest.mark.parametrize("runs", RUNS)
def test_a_function_that_may_alter_a_table_is_refused_where_it_runs(runs: str) -> None:
    assert refused(ALTERS + runs, KNOWN)[0][0].startswith("m.sql:2")
    assert refused(runs, KNOWN + ALTERS)
    assert changes(HARMLESS + runs, KNOWN) == (["t: add n"] if "ADD n" in runs else [])


@pytest.mark.parametrize("unknown", RUNS[:6])
def test_a_function_that_no_file_defines_is_refused_where_it_runs(unknown: str) -> None:
    [(_, message)] = refused(unknown, KNOWN)
    assert "f(…)" in message


@pytest.mark.parametrize(
    "sql",
    [
        ALTERS + TRIGGER + "INSERT INTO t VALUES (1)", ALTERS + "CREATE RULE r AS ON INSERT TO t DO ALSO SELECT f(); INSERT INTO t VALUES (1)", TRIGGER + "COPY t FROM STDIN;\n\\.",
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f()", "UPDATE pg_attribute SET attname = 'x'", "DELETE FROM pg_catalog.pg_enum", 'CREATE RULE "_RETURN" AS ON SELECT TO t DO INSTEAD SELECT 1',
        "ALTER TYPE comp RENAME ATTRIBUTE x TO y CASCADE", "ALTER DOMAIN d ADD CHECK (VALUE IS NOT NULL)", "DROP AGGREGATE g(int) CASCADE", "DROP TEXT SEARCH CONFIGURATION c CASCADE", "CREATE SCHEMA s CREATE TABLE x (a int)",
        "SET standard_conforming_strings = off", "SET LOCAL search_path TO app", "ALTER TABLE t ADD c int; ROLLBACK", "ALTER TABLE IF EXISTS nowhere ADD c int", "SELECT set_config('search' || '_path', 'app', false)",
        "CREATE TABLE x (r t); DROP TABLE t CASCADE", "DO LANGUAGE plpython3u $$ plpy.execute('x') $$",
    ],
)  # fmt: skip
def test_what_reaches_a_table_unseen_is_refused(sql: str) -> None:
    assert refused(sql, KNOWN)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT now(), count(*), lower(x.a::varchar(3)) FROM t x (p, a) WHERE b IN (1, 2) AND EXISTS (SELECT 1)", "INSERT INTO t (a, b) VALUES (abs(-1), coalesce(2, 3))",
        "WITH w (p) AS (SELECT 1), v AS (SELECT 2) SELECT p FROM w", "UPDATE t SET b = round(random() * 10) WHERE a BETWEEN least(1, 2) AND 3", "SELECT setval('s', (SELECT max(id) FROM t))",
        "SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t", "DO $$ BEGIN UPDATE t SET a = 1; RAISE NOTICE 'x'; END $$", "INSERT INTO t VALUES (1) ON CONFLICT (id) DO NOTHING",
        "CREATE INDEX ON t USING gin (to_tsvector('simple', a::text))", "CREATE VIEW v AS SELECT unknown(a) FROM t", "COMMENT ON FUNCTION f(int) IS 'x'", "SELECT mood('ok')", "SELECT * FROM generate_series(1, 3) AS g(n)",
    ],
)  # fmt: skip
def test_what_only_reads_and_computes_is_no_reason_to_refuse(sql: str) -> None:
    assert changes(sql, KNOWN + "CREATE TYPE mood AS ENUM ('ok');") == []
