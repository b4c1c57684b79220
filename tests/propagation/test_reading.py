"""PostgreSQL's SQL is read as PostgreSQL reads it: statements, names, types, defaults, statements out of scope, refusals."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.errors import Problem, Problems
from console.propagation.migration import KEPT, AddColumn, ChangeColumn, DropColumn, ReplaceColumn, SwapColumns
from console.propagation.observe.read import compare_dumps, observe, read_schema
from console.propagation.sql.lexer import NotUnderstood, statements
from console.propagation.types import parse

pytestmark = pytest.mark.slow

PIECES = [
    "'a;''b'", "E'a\\';b'", '"a;""b"', "$$ ; ' $$", "$x$ $$;$$ ' $x$", "/* ; /* ' */ ; */", "-- ; ' $$\n", "(a; b)", "[1;2]",
    "word", "1.5e-3", "::", "U", "$1", "n'x;y'", "b'01'", "é_x$1", ".5", "1..2",
]  # fmt: skip


@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=5), max_size=6),
    st.lists(st.sampled_from([" ", "\n", "\t\r\n"])),
)
def test_a_file_falls_apart_into_its_statements_whatever_quotes_and_comments_hold(
    parts: list[list[str]], blanks: list[str]
) -> None:
    filler = "".join(blanks) or " "
    texts = [filler.join(["select", *pieces]) for pieces in parts]
    source = (filler + ";" + filler).join(texts)
    results = list(statements(source))
    assert len(results) == len(texts)
    at = 0
    for statement, text in zip(results, texts, strict=True):
        start = source.index("select", at)
        assert statement.words[0].start == start
        assert statement.line == source.count("\n", 0, start) + 1
        assert statement.words[-1].end <= start + len(text)
        at = start + len(text)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("select 1;\nselect 'open;\n", 2), ("/* /* */ ;", 1), ("\n\n$a$ ; $b$", 3), ('"open', 1), ("select (1;\nselect 2;", 1),
        ("\\i other.sql\n", 1), ("select 1;\n\\if x\n", 2), ("select 'x' \\gexec\n", 1), ("select U&'\\0041'", 1),
        ("copy t from stdin;\n1\n", 1), ("create function f() begin atomic select 1; select 2;", 1),
    ],
)  # fmt: skip
def test_what_has_no_end_or_leads_elsewhere_is_refused_with_its_line(source: str, line: int) -> None:
    with pytest.raises(NotUnderstood) as refused:
        list(statements(source))
    assert refused.value.line == line


TYPES = {
    "int": "int32", "pg_catalog.int8": "int64", "bigserial": "int64", "double precision": "float64", "float(24)": "float32",
    "float(25)": "float64", "numeric(10)": "decimal(10,0)", "dec(10,2)": "decimal(10,2)", "numeric(3,5)": "decimal(5,5)",
    "numeric(3,-5)": "decimal(8,0)", "numeric": "decimal", "varchar(10)": "string", "national character varying(3)": "string",
    '"char"': "string", "char": "string", "public.citext": "string", "bit(3)": "text_of<bit>",
    "bit varying(3)": "text_of<'bit varying'>", "time(3)": "time(3)", "timetz": "time_tz", "time(9) with time zone": "time_tz",
    "timestamp": "timestamp", "timestamp(0) with time zone": "timestamp_tz(0)", "timestamptz(3)": "timestamp_tz(3)",
    "timestamp without time zone": "timestamp", "interval day to second(3)": "interval", "jsonb": "json",
    "text[]": "array<string>", "int[3][3]": "array<int32>", "integer array[4]": "array<int32>",
    "mood": "enum<'ok','it''s'>", "app.mood[]": "array<enum<'ok','it''s'>>", "posint": "int32", "inet": "text_of<inet>",
    "geometry(Point,4326)": "text_of<geometry>", '"My Type"': "text_of<'My Type'>", "x.y": "text_of<x.y>", "oid": "int64",
}  # fmt: skip
KNOWN = """CREATE TYPE app.mood AS ENUM ('ok', 'it''s'); CREATE DOMAIN posint AS integer NOT NULL CHECK (VALUE > 0);
CREATE TABLE known (id bigint PRIMARY KEY, n integer NOT NULL DEFAULT 7, t varchar(10), d date, m app.mood, "Q" text);"""


def migrations(sql: str, known: str = "") -> list[Any]:
    return [seen.migration.operation for seen in observe([("m.sql", sql)], [("known.sql", known)]).migrations]


@pytest.mark.parametrize(("postgres", "generic"), TYPES.items())
def test_every_spelling_of_a_type_is_known(postgres: str, generic: str) -> None:
    [result] = migrations(f"ALTER TABLE t ADD c {postgres}", KNOWN)
    assert str(result.data_type) == generic
    assert result.nullable is (postgres not in ("bigserial", "posint"))


DEFAULTS = {
    "int DEFAULT 0": "0",
    "int DEFAULT -3": "-3",
    "bigint DEFAULT '5'::bigint": "5",
    "int DEFAULT NULL": None,
    "int DEFAULT (((4)))": "4",
    "int DEFAULT (1 + 1)": None,
    "int DEFAULT nextval('s')": None,
    "int DEFAULT 1 NOT NULL": "1",
    "boolean DEFAULT 't'": "true",
    "boolean DEFAULT false": "false",
    "numeric DEFAULT 0.00": "0.00",
    "numeric DEFAULT 'NaN'": None,
    "text DEFAULT 'it''s; $$'": "'it''s; $$'",
    "text DEFAULT 5": "'5'",
    "text DEFAULT E'a\\nb'": "'a\nb'",
    "varchar(5) DEFAULT 'x'::character varying(5) COLLATE \"C\"": "'x'",
    "text[] DEFAULT '{}'::text[]": "[]",
    "text[] DEFAULT ARRAY[]::text[]": "[]",
    "text[] DEFAULT '{a}'": None,
    "jsonb DEFAULT '{\"a\": 1}'::jsonb": "'{\"a\": 1}'",
    "timestamptz DEFAULT now()": "now()",
    "timestamp DEFAULT CURRENT_TIMESTAMP(3)": "now()",
    "date DEFAULT CURRENT_DATE": "now()",
    "date DEFAULT '2020-01-31'::date": "'2020-01-31'",
    "date DEFAULT 'today'": None,
    "time DEFAULT '12:00:00'": "'12:00:00'",
    "timestamptz DEFAULT timezone('utc', now())": None,
    "uuid DEFAULT gen_random_uuid()": None,
    "bytea DEFAULT ''": "''",
    "bytea DEFAULT '\\x00'": None,
    "app.mood DEFAULT 'ok'::app.mood": "'ok'",
    "date DEFAULT date '2020-01-31'": "'2020-01-31'",
    "int DEFAULT CAST('3' AS int)": "3",
    "text DEFAULT 'a' || 'b'": None,
    "int DEFAULT true": None,
    "text DEFAULT 1.7::int": None,
    "varchar(2) DEFAULT 'abcd'::varchar(2)": None,
    "varchar(2) DEFAULT 'ab'::varchar(2)": "'ab'",
    "text DEFAULT 007": "'7'",
    "text DEFAULT 1.50": "'1.50'",
    "text DEFAULT true": "'true'",
    "numeric DEFAULT 1e3": "1000",
    "text DEFAULT '1.50'::float8": None,
    "text DEFAULT 5::smallint::text": "'5'",
    "text DEFAULT '2020-01-31'::date": "'2020-01-31'",
    "date DEFAULT '2026-01-31 10:00'": "'2026-01-31'",
    "timestamp DEFAULT '2026-01-31'": "'2026-01-31 00:00:00'",
    "timestamp DEFAULT '2026-01-31T10:00+02'": "'2026-01-31 10:00:00'",
    "timestamp(0) DEFAULT '2026-01-31 10:00:00.7'": None,
    "timestamp DEFAULT CURRENT_DATE": None,
    "date DEFAULT now()": "now()",
    "time DEFAULT '12:30'": "'12:30:00'",
    'jsonb DEFAULT \'{"bb":1,"c":[true,"ä"]}\'': '\'{"c": [true, "ä"], "bb": 1}\'',
    "jsonb DEFAULT '1.50'": None,
    "json DEFAULT '{\"bb\":1}'": "'{\"bb\":1}'",
    "money DEFAULT 5": None,
    "money DEFAULT '5'": None,
    "inet DEFAULT '::1'": "'::1'",
    "inet DEFAULT '10.0.0.1'": "'10.0.0.1'",
    "char(3) DEFAULT 'x'": "'x  '",
    "char DEFAULT 'x'": "'x'",
    "bit(3) DEFAULT B'101'": None,
    "numeric(30,10) DEFAULT 12345678901234567890.0123456789": "12345678901234567890.0123456789",
    "numeric(9,1) DEFAULT 1.55": None,
    "numeric(5,-2) DEFAULT 12300": "12300",
    "oid DEFAULT 4294967295": "4294967295",
    "int DEFAULT CASE WHEN true THEN 1 ELSE NULL END NOT NULL": None,
    "int DEFAULT (CASE 1 WHEN 1 THEN NULL ELSE 2 END) + 1": None,
    "real DEFAULT '007.5'": "7.5",
    "int DEFAULT '007'": "7",
    "boolean DEFAULT 'off'": "false",
}
# a session's time zone, a print of their own, or none that PostgreSQL takes
UNCERTAIN = [
    "timestamptz DEFAULT '2026-01-31 10:00'", "timestamptz DEFAULT '2026-01-31'", "timetz DEFAULT '10:00'", "date DEFAULT '2026-02-31'",
    "inet DEFAULT '10.0.0.1/32'", "app.mood DEFAULT 'none'", "varchar(2) DEFAULT 'abc'", "smallint DEFAULT 40000", "int DEFAULT 0x1F",
    "numeric(5,-2) DEFAULT 12345", "oid DEFAULT -1", "numeric DEFAULT 1_000", "timestamp DEFAULT '2026-01-31 10:00+02'::timestamptz", "jsonb DEFAULT '{'", "text DEFAULT 1e999999",
]  # fmt: skip


@pytest.mark.parametrize(("written", "default"), DEFAULTS.items())
def test_a_constant_default_is_carried_and_every_other_is_left_to_postgresql(written: str, default: str | None) -> None:
    observed = observe([("m.sql", f"ALTER TABLE t ADD COLUMN c {written}")], [("known.sql", KNOWN)])
    [seen] = observed.migrations
    assert isinstance(seen.migration.operation, AddColumn)
    assert seen.migration.operation.default == default
    assert seen.migration.operation.nullable is not written.endswith("NOT NULL")
    loss = f": {seen.migration.operation.data_type} in "  # a store's limits are reported too
    described = [remark for remark in observed.remarks if loss not in remark.message]
    assert bool(described) is (default in (None, "now()") and "DEFAULT NULL" not in written)


@pytest.mark.parametrize("written", UNCERTAIN)
def test_a_default_whose_value_is_not_certain_is_told_and_not_carried(written: str) -> None:
    observed = observe([("m.sql", f"ALTER TABLE t ADD COLUMN c {written}")], [("known.sql", KNOWN)])
    [operation] = [seen.migration.operation for seen in observed.migrations]
    assert isinstance(operation, AddColumn)
    assert operation.default is None
    assert any("only PostgreSQL can compute" in remark.message for remark in observed.remarks)


def test_what_a_store_cannot_hold_is_told_where_the_column_comes() -> None:
    observed = observe([("m.sql", "\nALTER TABLE t ADD n numeric")])
    assert [(remark.where, remark.message) for remark in observed.remarks] == [
        ("m.sql:2", "public.t.n: decimal in clickhouse, iceberg, delta: kept as the text that PostgreSQL prints")
    ]


CHANGES = {
    "ADD COLUMN IF NOT EXISTS n integer": [], "ADD c int GENERATED ALWAYS AS IDENTITY (START 5)": ["add c"],
    "ADD c int GENERATED ALWAYS AS (n + 1) STORED": ["add c"], "ADD c int REFERENCES o (id) ON DELETE SET NULL (c)": ["add c"],
    "ADD c int CONSTRAINT x CHECK (c > 0) NO INHERIT UNIQUE NULLS NOT DISTINCT": ["add c"],
    'DROP COLUMN IF EXISTS nobody, DROP "Q" CASCADE': ["drop Q"], "ALTER n TYPE bigint": ["widening n"],
    "ALTER COLUMN n SET DATA TYPE int8 USING (n::bigint)": ["widening n"], "ALTER n TYPE bigint USING n + 1": ["destructive n"],
    "ALTER n TYPE smallint": ["destructive n"], "ALTER t TYPE text": ["safe t"], "ALTER t TYPE varchar(5)": ["safe t"],
    "ALTER n TYPE integer": [], "ALTER d TYPE timestamp": ["widening d"], "ALTER m TYPE text": ["widening m"],
    "ALTER n SET NOT NULL": [], "ALTER t SET NOT NULL": ["safe t"], "ALTER n DROP NOT NULL": ["widening n"],
    "ALTER n SET DEFAULT 7": [], "ALTER n SET DEFAULT 8": ["safe n"], "ALTER n DROP DEFAULT": ["safe n"],
    "ALTER t SET DEFAULT upper('x')": [], "RENAME t TO u": ["swap t>u"], 'RENAME COLUMN "Q" TO q': ["swap Q>q"],
    "RENAME CONSTRAINT a TO b": [], "VALIDATE CONSTRAINT c, ADD CONSTRAINT z CHECK (n > 0) NOT VALID, ADD PRIMARY KEY (n)": [],
    "ADD UNIQUE (n), ADD EXCLUDE USING gist (d WITH =), ADD FOREIGN KEY (n) REFERENCES o": [], "OWNER TO me": [],
    "ALTER n SET STATISTICS 5, ALTER t SET STORAGE external, SET (fillfactor = 70), SET TABLESPACE x": [],
    "ENABLE ROW LEVEL SECURITY, DISABLE TRIGGER ALL, CLUSTER ON i, SET UNLOGGED, REPLICA IDENTITY FULL": [],
    "ATTACH PARTITION p FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')": [], "DETACH PARTITION p CONCURRENTLY": [],
    "INHERIT parent": [], "ALTER n ADD GENERATED BY DEFAULT AS IDENTITY": [], "RENAME TO other": [], "SET SCHEMA x": [],
}  # fmt: skip


def described(operation: Any) -> str:
    match operation:
        case AddColumn(name=name):
            return f"add {name}"
        case DropColumn(name=name):
            return f"drop {name}"
        case SwapColumns(columns=pairs):
            return "swap " + ",".join(f"{old}>{new}" for old, new in pairs)
        case ChangeColumn(name=name, classification=effect):
            return f"{effect} {name}"
        case ReplaceColumn(name=name, source=source):
            return f"replace {name} by {source or 'a new one'}"
    raise AssertionError(operation)


@pytest.mark.parametrize(("actions", "changes"), CHANGES.items())
@pytest.mark.parametrize(
    "head", ["ALTER TABLE known", 'alter table if exists only public."known"', "ALTER TABLE ONLY known *"]
)
def test_every_action_of_alter_table_is_a_change_or_ignored_with_a_reason(
    head: str, actions: str, changes: list[str]
) -> None:
    observed = observe([("m.sql", f"{head} {actions};")], [("known.sql", KNOWN)])
    assert [described(seen.migration.operation) for seen in observed.migrations] == changes
    assert all(seen.migration.table == "known" for seen in observed.migrations)
    if not changes:
        assert observed.ignored
    assert all(left.reason and left.kind and left.where == "m.sql:1" for left in observed.ignored)


IGNORED = [
    "CREATE INDEX CONCURRENTLY i ON t (a)", "DROP INDEX CONCURRENTLY IF EXISTS i", "CREATE UNIQUE INDEX i ON t ((lower(a)))",
    "CREATE TABLE x (id int)", "CREATE TABLE x PARTITION OF t FOR VALUES IN (1)", "CREATE TABLE x AS SELECT 1", "DROP TABLE x, y",
    "CREATE TABLE x (LIKE t INCLUDING ALL, z int)", "CREATE UNLOGGED TABLE IF NOT EXISTS x (id int) INHERITS (t)",
    "CREATE TEMP TABLE x (id int) ON COMMIT DROP", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$",
    "CREATE OR REPLACE PROCEDURE p() LANGUAGE plpgsql AS $x$ BEGIN ALTER TABLE t ADD a int; END $x$", "DROP FUNCTION f()",
    "CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f()", "CREATE VIEW v AS SELECT 1", "CREATE MATERIALIZED VIEW v AS SELECT 1",
    "REFRESH MATERIALIZED VIEW CONCURRENTLY v", "CREATE EXTENSION IF NOT EXISTS hstore", "CREATE SCHEMA s", "CREATE SEQUENCE s",
    "ALTER SEQUENCE s OWNED BY t.id", "ALTER INDEX i RENAME TO j", "CREATE TYPE e AS ENUM ('a')", "ALTER TYPE e ADD VALUE 'b'",
    "CREATE TYPE c AS (a int)", "DROP TYPE e", "CREATE DOMAIN d AS int", "COMMENT ON COLUMN t.a IS 'x'", "GRANT ALL ON t TO me",
    "REVOKE ALL ON t FROM me", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "DELETE FROM t", "SELECT count(*) FROM t",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "TRUNCATE t", "COPY t FROM '/x'", "DO $$ BEGIN UPDATE t SET a = 1; END $$",
    "CREATE POLICY p ON t", "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)", "CREATE PUBLICATION p FOR ALL TABLES",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO me", "CREATE STATISTICS s ON a, b FROM t", "REINDEX TABLE CONCURRENTLY t",
    "ALTER TABLE ALL IN TABLESPACE x SET TABLESPACE y", "CREATE FOREIGN TABLE f (id int) SERVER s", "ALTER FOREIGN TABLE f ADD a int",
    "ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE > 0)", "CREATE AGGREGATE a (int) (sfunc = f, stype = int)",
]  # fmt: skip


@pytest.mark.parametrize("sql", IGNORED)
def test_a_statement_out_of_scope_is_listed_with_its_reason(sql: str) -> None:
    observed = observe([("m.sql", f"-- first\n{sql}")])
    assert observed.migrations == ()
    assert {left.where for left in observed.ignored} == {"m.sql:2"}
    assert all(left.reason and left.kind for left in observed.ignored)


@pytest.mark.parametrize(
    "sql",
    [
        "SET lock_timeout = '2s'", "SET LOCAL statement_timeout TO 0", "RESET ALL", "BEGIN; COMMIT", "START TRANSACTION; END",
        "LOCK TABLE t IN ACCESS EXCLUSIVE MODE", "VACUUM ANALYZE t", "SAVEPOINT a; RELEASE a", "ANALYZE", "\\restrict abc\n",
    ],
)  # fmt: skip
def test_settings_locks_and_transactions_are_not_worth_a_line(sql: str) -> None:
    observed = observe([("m.sql", sql)])
    assert (observed.migrations, observed.ignored) == ((), ())


@pytest.mark.parametrize(
    "sql",
    [
        "DO $$ BEGIN ALTER TABLE t ADD a int; END $$", "DO $$ BEGIN EXECUTE 'x'; END $$", "CALL p()", "EXECUTE q", "SHAKE t",
        "ALTER TABLE t FROB", "ALTER TABLE t ADD COLUMN", "ALTER TABLE t ADD a", "ALTER TABLE t ADD a int FROB", "ALTER TABLE t",
        "ALTER TABLE t ALTER a FROB", "ALTER TABLE t ALTER a SET DEFAULT", "ALTER TABLE t ADD a int DEFAULT", "ALTER TABLE t ADD a int,", "ALTER TABLE t DROP a b", "ALTER TABLE t RENAME a",
        "DROP TYPE e CASCADE", "DROP EXTENSION hstore CASCADE", "DROP SCHEMA s CASCADE", "DROP OWNED BY me", "CREATE TABLE x (id)",
        "ALTER TYPE c ADD ATTRIBUTE b int", "ALTER DOMAIN d DROP NOT NULL", "ALTER TABLE known DROP nobody",
        "ALTER TABLE known ADD n int", "ALTER TABLE known RENAME n TO d", "ALTER TABLE :tab ADD a int", "123", "'text'",
        "BEGIN; ALTER TABLE t ADD a int; SAVEPOINT s; ROLLBACK TO r", "ALTER TABLE t ADD a int[", "ALTER TABLE t ADD a numeric(x)",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_with_file_line_and_a_hint(sql: str) -> None:
    with pytest.raises(Problems) as refused:
        observe([("m.sql", f"SELECT 1;\n  {sql};")], [("known.sql", KNOWN)])
    assert refused.value.exit_code == 65
    assert all(problem.where.startswith("m.sql:2:") and problem.hint for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME x TO b", ["swap a>b,b>a"]),
        ("ALTER TABLE t RENAME a TO old; ALTER TABLE t RENAME b TO a", ["swap a>old,b>a"]),
        ("ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME c TO d", ["swap a>x", "swap c>d"]),
        ("BEGIN; ALTER TABLE t RENAME a TO x; COMMIT; ALTER TABLE t RENAME x TO b", ["swap a>x", "swap x>b"]),
        (
            "ALTER TABLE t RENAME a TO x; DROP INDEX CONCURRENTLY i; ALTER TABLE t RENAME x TO b",
            ["swap a>x", "swap x>b"],
        ),
        ("BEGIN; ALTER TABLE t ADD a int; ROLLBACK; ALTER TABLE t ADD b int", ["add b"]),
        ("ALTER TABLE t ADD a int; ALTER TABLE t RENAME a TO b; ALTER TABLE t ALTER b TYPE bigint", ["add b"]),
        ("ALTER TABLE t ADD a int; ALTER TABLE t DROP a", []),
        ("CREATE TABLE n (id int); ALTER TABLE n ADD a int", []),
        ("CREATE TEMP TABLE n (id int); ALTER TABLE n ADD a int", []),
        ("SET search_path TO app, public; ALTER TABLE t ADD a int", ["add a"]),
    ],
)
def test_a_transaction_is_what_it_comes_to(sql: str, changes: list[str]) -> None:
    assert [described(operation) for operation in migrations(sql)] == changes


ALL_KINDS = [
    KNOWN,
    *(f"ALTER TABLE known {actions}" for actions in CHANGES),
    *IGNORED,
    "ALTER TABLE t ADD c int DEFAULT (1) NOT NULL",
]
SPLICES = [
    "(",
    ")",
    ",",
    ";",
    "'",
    '"',
    "$$",
    "--",
    "/*",
    "::",
    "null",
    "default",
    "cascade",
    "using",
    "type",
    "7",
    "x",
    "\\",
    "[",
    "\0",
]


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(ALL_KINDS),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from([None, *SPLICES])), min_size=1, max_size=4),
)
def test_a_damaged_statement_is_read_or_refused_with_its_place_and_never_breaks_the_reader(
    sql: str, damage: list[tuple[int, str | None]]
) -> None:
    words = sql.split(" ")
    for at, splice in damage:
        place = at % (len(words) + 1)
        words[place : place + 1] = [] if splice is None else [splice, *words[place : place + 1]]
    assert all(problem.where.startswith("m.sql:") for problem in problems(" ".join(words)))


def problems(sql: str) -> tuple[Problem, ...]:
    try:
        observe([("m.sql", sql)], [("known.sql", KNOWN)])
    except Problems as refused:
        return refused.problems
    return ()


def test_brackets_without_end_are_refused_and_deep_ones_too() -> None:
    for depth in (201, 5_000):
        for sql in ("ALTER TABLE t ADD c int DEFAULT " + "(" * depth + "1" + ")" * depth, "(" * depth):
            with pytest.raises(Problems):
                observe([("m.sql", sql)])
        checks = "CREATE TABLE t (c int CHECK " + "(" * depth + "c IS NOT NULL" + ")" * depth + ")"
        with pytest.raises(Problems):
            observe([("m.sql", checks)])


def test_older_rows_keep_the_default_that_the_column_came_with_though_it_is_dropped_at_once() -> None:
    django = "BEGIN; ALTER TABLE t ADD c int DEFAULT 0 NOT NULL; ALTER TABLE t ALTER c DROP DEFAULT; COMMIT;"
    assert migrations(django) == [AddColumn("c", parse("int32"), nullable=False, default="0")]


def test_a_file_after_the_one_that_made_the_table_changes_it() -> None:
    observed = observe([("1.sql", "CREATE TABLE t (n int)"), ("2.sql", "\nALTER TABLE t ALTER n TYPE bigint")])
    [seen] = observed.migrations
    assert (seen.where, described(seen.migration.operation), seen.migration.phase) == ("2.sql:2", "widening n", "pre")


def test_a_dump_with_rows_partitions_and_keys_is_a_schema() -> None:
    dump = r"""
\restrict x
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.events (id bigint NOT NULL, at date NOT NULL, tag text, CONSTRAINT c CHECK ((tag IS NOT NULL)))
PARTITION BY RANGE (at);
CREATE TABLE public.events_1 (id bigint NOT NULL, at date NOT NULL, tag text);
CREATE SEQUENCE public.s; ALTER TABLE ONLY public.events ALTER COLUMN id SET DEFAULT nextval('public.s'::regclass);
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_1 FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
COPY public.events_1 (id, at, tag) FROM stdin;
1	2020-01-01	it's; $$ /* "
\.
ALTER TABLE ONLY public.events ADD CONSTRAINT k PRIMARY KEY (id, at);
"""
    [table] = read_schema([("d.sql", dump)])
    assert (table.full, table.key) == ("public.events", ("id", "at"))
    assert [(c.name, c.nullable, bool(c.computed)) for c in table.columns] == [
        ("id", False, True), ("at", False, False), ("tag", False, False),
    ]  # fmt: skip


def test_dumps_tell_a_drop_and_an_addition_and_warn_that_it_may_be_a_renaming() -> None:
    comparison = compare_dumps([("a", "CREATE TABLE t (a int, b int)")], [("b", "CREATE TABLE t (c int, b int)")])
    assert [described(seen.migration.operation) for seen in comparison.migrations] == ["drop a", "add c"]
    assert "if a was renamed to c" in comparison.remarks[0].message
    swapped = compare_dumps([("a", "CREATE TABLE t (a int, b int)")], [("b", "CREATE TABLE t (b int, a int)")])
    assert swapped.migrations == ()
    assert "changed places" in swapped.remarks[0].message


def test_a_change_says_only_what_changes_and_what_was() -> None:
    [result] = migrations("ALTER TABLE known ALTER n TYPE bigint, ALTER n DROP DEFAULT", KNOWN)
    assert (str(result.to.data_type), result.to.nullable, result.to.default) == ("int64", KEPT, None)
    assert (str(result.was.data_type), result.was.nullable, result.was.default) == ("int32", KEPT, "7")
