"""A file of SQL is more than its statements: down parts, tables that take others' names, code inside a block."""

import pytest

from console.errors import Problems
from console.propagation.migration import AddColumn, ChangeColumn, Facets, Migration, ReplaceColumn
from console.propagation.observe.events import Observation
from console.propagation.observe.read import observe
from console.propagation.replication import from_data
from console.propagation.types import parse
from tests.propagation.test_reading import described


def seen(sql: str, known: str = "", **tables: dict[str, object]) -> Observation:
    replication = from_data({"tables": tables}) if tables else None
    return observe([("m.sql", sql)], [("known.sql", known)], replication)


def changes(sql: str, known: str = "") -> list[str]:
    return [f"{one.migration.table}: {described(one.migration.operation)}" for one in seen(sql, known).migrations]


def refused(sql: str, known: str = "") -> list[tuple[str, str]]:
    with pytest.raises(Problems) as error:
        seen(sql, known)
    assert all(problem.hint for problem in error.value.problems)
    return [(problem.where, problem.message) for problem in error.value.problems]


HALVES = [
    ("-- +goose Up", "-- +goose Down"), ("-- migrate:up", "-- migrate:down"), ("-- +migrate Up", "-- +migrate Down"),
    ("-- migrate:up transaction:false", "-- migrate:down transaction:false"), ("--rambler up", "--rambler down"),
    ("-- Up Migration", "-- Down Migration"), ("-- first", "---- create above / drop below ----"), ("-- first", "-- //@UNDO"),
    ("-- UP", "-- DOWN"), ("-- !Ups", "-- !Downs"), ("---- up ----", "----- down -----"), ("-- first", "  -- rollback  "),
]  # fmt: skip


@pytest.mark.parametrize(("up", "down"), HALVES)
@pytest.mark.parametrize("end", [";", ""])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_part_of_a_file_that_leads_back_is_no_change_and_is_reported(
    up: str, down: str, end: str, newline: str
) -> None:
    sql = newline.join((up, f"ALTER TABLE t ADD a int{end}", "", down, "ALTER TABLE t DROP a;", "FROB 'open"))
    observed = seen(sql)
    assert [described(one.migration.operation) for one in observed.migrations] == ["add a"]
    [left] = observed.ignored
    assert (left.where, left.kind, left.statement) == ("m.sql:4", "way_back", down.strip())
    assert "undoes" in left.reason


def test_what_leads_on_again_counts_and_so_does_the_way_back_of_known_files_not() -> None:
    twice = "-- migrate:down\nALTER TABLE t DROP a;\n-- migrate:up\nALTER TABLE t ADD b int;"
    assert changes(twice) == ["t: add b"]
    assert changes("ALTER TABLE t DROP a", "CREATE TABLE t (a int);\n-- +goose Down\nDROP TABLE t;") == ["t: drop a"]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD a int; -- down\nALTER TABLE t ADD b int;", "-- rollback is easy\nALTER TABLE t ADD a int, ADD b int;",
        "ALTER TABLE t ADD a int, ADD b int DEFAULT (\n-- down\n1);", "-- download\nALTER TABLE t ADD a int, ADD b int",
        "/*\n-- migrate:down\n*/ ALTER TABLE t ADD a int, ADD b int", f"--{'-' * 100_000}\nALTER TABLE t ADD a int, ADD b int",
    ],
)  # fmt: skip
def test_another_comment_marks_nothing(sql: str) -> None:
    assert changes(sql) == ["t: add a", "t: add b"]


KNOWN = """CREATE TYPE mood AS ENUM ('ok', 'ill'); CREATE TYPE mood2 AS ENUM ('ok', 'ill', 'well');
CREATE TABLE t (id bigint PRIMARY KEY, n integer, ts timestamp, b text, v varchar(200), m mood, d numeric(10,2));"""
CASTS = {
    "n TYPE bigint USING n": "widening", "n TYPE bigint USING (n)::bigint": "widening", "n TYPE bigint USING t.n": "widening",
    "n TYPE bigint USING public.t.n::int8": "widening", "n TYPE bigint USING CAST(t.n AS bigint)": "widening",
    "n TYPE bigint USING n::integer": "widening", "n TYPE bigint USING n::smallint::bigint": "destructive",
    "n TYPE bigint USING CAST(n::smallint AS bigint)": "destructive", "n TYPE bigint USING x.n": "destructive",
    "n TYPE bigint USING id": "destructive", "n TYPE bigint USING n::bigint + 1": "destructive", "n TYPE bigint USING n::text::bigint": "destructive",
    "n TYPE numeric(12,2) USING n::int::numeric(12,2)": "widening", "d TYPE numeric(12,2) USING d::int::numeric(12,2)": "destructive",
    "ts TYPE timestamp USING ts::date::timestamp": "destructive", "b TYPE varchar(200) USING b::varchar(3)::varchar(200)": "destructive",
    "v TYPE varchar(3) USING v::varchar(3)": "destructive", "v TYPE varchar(3) USING v": "safe", "v TYPE text USING v::text": "safe",
    "v TYPE text USING v::varchar(200)": "safe", "b TYPE char(3) USING b::char(3)": "destructive", "b TYPE text USING upper(b)": "destructive",
    "m TYPE mood2 USING m::text::mood2": "widening", "m TYPE mood2 USING m::varchar(1)::mood2": "destructive",
    "m TYPE text USING m::text": "widening",
}  # fmt: skip


@pytest.mark.parametrize(("change", "classification"), CASTS.items())
def test_only_a_cast_that_does_what_the_change_itself_does_is_harmless(change: str, classification: str) -> None:
    assert changes(f"ALTER TABLE t ALTER {change}", KNOWN) == [f"t: {classification} {change.split(maxsplit=1)[0]}"]


FAMILY = """CREATE TABLE p (id bigint, a int); CREATE TABLE c (a int, own int) INHERITS (p); CREATE TABLE g () INHERITS (c);
CREATE TABLE e (z int); CREATE TABLE q PARTITION OF p FOR VALUES IN (1);"""


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE p ADD b int", ["p: add b", "c: add b", "g: add b"]), ("ALTER TABLE ONLY p ADD b int", ["p: add b"]),
        ("ALTER TABLE p ADD own int", ["p: add own"]), ("ALTER TABLE p DROP a", ["p: drop a"]),
        ("ALTER TABLE p DROP id", ["p: drop id", "c: drop id", "g: drop id"]), ("ALTER TABLE c DROP own", ["c: drop own", "g: drop own"]),
        ("ALTER TABLE p RENAME a TO b", ["p: swap a>b", "c: swap a>b", "g: swap a>b"]),
        ("ALTER TABLE p ALTER a TYPE bigint", ["p: widening a", "c: widening a", "g: widening a"]),
        ("ALTER TABLE p ALTER a SET NOT NULL", ["p: safe a", "c: safe a", "g: safe a"]),
        ("ALTER TABLE p ADD PRIMARY KEY (id)", []), ("ALTER TABLE p OWNER TO me", []),
        ("ALTER TABLE c NO INHERIT p; ALTER TABLE p DROP id", ["p: drop id"]),
        ("ALTER TABLE e INHERIT p; ALTER TABLE p ADD b int", ["p: add b", "c: add b", "g: add b", "e: add b"]),
        ("ALTER TABLE p RENAME TO r; ALTER TABLE r ADD b int", ["r: add b", "c: add b", "g: add b"]),
    ],
)  # fmt: skip
def test_a_change_of_a_parent_reaches_the_tables_that_inherit_from_it(sql: str, expected: list[str]) -> None:
    assert sorted(changes(sql, FAMILY)) == sorted(expected)


def test_another_table_that_takes_a_name_is_what_differs_between_the_two() -> None:
    known = "CREATE TABLE t (id bigint, a int, b text); CREATE TABLE fresh (id bigint, a bigint, c text);"
    expected = ["t: drop b", "t: widening a", "t: add c"]
    swapped = "ALTER TABLE t RENAME TO t_old; ALTER TABLE fresh RENAME TO t;"
    assert sorted(changes(swapped, known)) == sorted(expected)
    assert sorted(changes("BEGIN; " + swapped.replace(";", "; COMMIT; BEGIN;", 1) + "COMMIT", known)) == sorted(
        expected
    )
    assert sorted(changes("DROP TABLE t; ALTER TABLE fresh RENAME TO t", known)) == sorted(expected)
    made = "CREATE TABLE made (LIKE t); ALTER TABLE made ADD c date; ALTER TABLE t RENAME TO t_old; ALTER TABLE made RENAME TO t;"
    assert changes(made + "ALTER TABLE t ADD e date", known) == ["t: add c", "t: add e"]
    assert changes("ALTER TABLE t RENAME TO x; ALTER TABLE t_new RENAME TO y; ALTER TABLE x RENAME TO t", known) == []
    assert changes("BEGIN; ALTER TABLE t RENAME TO x; ROLLBACK; ALTER TABLE t ADD c int", known) == ["t: add c"]
    anew = "ALTER TABLE t RENAME TO t_old; CREATE TABLE t (id bigint, a bigint, c text) PARTITION BY RANGE (id); ALTER TABLE t ADD e date"
    assert sorted(changes(anew, known)) == sorted([*expected, "t: add e"])
    assert changes("CREATE TEMP TABLE t (z int); CREATE TABLE s (z int)", known) == []
    three = "ALTER TABLE t RENAME TO x; ALTER TABLE fresh RENAME TO t; ALTER TABLE x RENAME TO fresh"
    assert {one.split(":")[0] for one in changes(three, known)} == {"t", "fresh"}


@pytest.mark.parametrize("known", ["", "CREATE TABLE t (id bigint)", "CREATE TABLE t_new (id bigint)"])
def test_a_name_that_changes_hands_between_tables_that_are_not_known_is_refused(known: str) -> None:
    [(where, message)] = refused("ALTER TABLE t RENAME TO t_old;\nALTER TABLE t_new RENAME TO t;", known)
    assert where.startswith("m.sql:2:")
    assert "another table takes the name public.t" in message
    assert changes("ALTER TABLE t RENAME TO t_old; ALTER TABLE t_new RENAME TO t_newer", known) == []
    for last in ("ALTER TABLE t_new RENAME TO t", "CREATE TABLE t (a int)"):
        assert seen(f"ALTER TABLE t RENAME TO t_old; {last}", known, other={}).migrations == ()


def test_remarks_that_belong_to_no_change_are_told_to_those_whom_they_concern() -> None:
    sql = "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine';\nALTER TABLE t RENAME TO u;\nALTER TABLE other RENAME TO o;"
    sql += "\nALTER TABLE t2 ADD x serial;\nALTER TABLE t2 ADD gone serial;"
    observed = seen(sql, KNOWN, t={}, t2={"ignore": ["gone"]})
    assert [(one.where, one.table) for one in observed.remarks if "store" not in one.table] == [
        ("m.sql:1", ""), ("m.sql:2", "public.t"), ("m.sql:4", "public.t2"),
    ]  # fmt: skip


REMADE = "BEGIN; ALTER TABLE t ADD a2 bigint NOT NULL DEFAULT 0; {} ALTER TABLE t DROP a; ALTER TABLE t RENAME a2 TO a; COMMIT;"


def test_a_column_made_anew_with_a_value_for_every_row_is_one_change_that_drops_nothing() -> None:
    whole = seen(REMADE.format("UPDATE t SET a2 = a, b = (SELECT 1 FROM x WHERE true);"))
    [one] = whole.migrations
    to = Facets(parse("int64"), nullable=False, default="0")
    assert (one.migration.phase, one.migration.operation) == ("post", ChangeColumn("a", to, Facets(), "destructive"))
    assert whole.remarks == ()


@pytest.mark.parametrize(
    "update", ["", "UPDATE t SET a2 = a WHERE a > 0;", "UPDATE ONLY public.t AS x SET (b, c) = (1, 2);", "UPDATE u SET a2 = a;"]
)  # fmt: skip
def test_a_column_made_anew_under_a_name_that_is_dropped_is_told_as_one_change(update: str) -> None:
    observed = seen(REMADE.format(update))
    to = Facets(parse("int64"), nullable=False, default="0")
    assert [one.migration for one in observed.migrations] == [
        Migration("post", "public", "t", ReplaceColumn("a", None, to))
    ]
    assert not any("another column" in one.message for one in observed.remarks)


def test_values_for_a_name_that_another_column_gives_up_are_reported_with_what_to_do() -> None:
    observed = seen("ALTER TABLE t RENAME a TO old; ALTER TABLE t ADD a int; UPDATE t SET a = old;")
    assert [described(one.migration.operation) for one in observed.migrations] == ["swap a>old", "add a"]
    [remark] = [one for one in observed.remarks if "a new column" in one.message]
    assert "UPDATE t SET a = a" in remark.message


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("BEGIN; ALTER TABLE t DROP a; ALTER TABLE t RENAME b TO a; COMMIT", ["t: replace a by b"]),
        ("ALTER TABLE t DROP a, ADD a int", ["t: replace a by a new one"]),
        ("ALTER TABLE t DROP a; ALTER TABLE t ADD b2 int; ALTER TABLE t RENAME b2 TO a", ["t: replace a by a new one"]),
        ("ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t DROP x", ["t: replace a by b"]),
        ("ALTER TABLE t DROP a; ALTER TABLE t RENAME b TO a; ALTER TABLE t ALTER a TYPE bigint", ["t: replace a by b", "t: widening a"]),
        ("ALTER TABLE t DROP a; ALTER TABLE t ADD c int; ALTER TABLE t DROP c", ["t: drop a"]),
        ("BEGIN; ALTER TABLE t DROP a; COMMIT; BEGIN; ALTER TABLE t ADD a int; COMMIT", ["t: drop a", "t: add a"]),
    ],
)  # fmt: skip
def test_a_name_that_is_given_up_and_taken_in_one_transaction_stands_for_another_column(
    sql: str, expected: list[str]
) -> None:
    observed = seen(sql, "CREATE TABLE t (id bigint, a int, b int);")
    assert [f"t: {described(one.migration.operation)}" for one in observed.migrations] == expected
    assert {one.migration.phase for one in observed.migrations} == {"post"}


def test_a_column_that_two_transactions_drop_and_add_is_reported_with_the_order_to_apply_them_in() -> None:
    observed = seen("BEGIN; ALTER TABLE t DROP a; COMMIT; BEGIN; ALTER TABLE t ADD a int; COMMIT")
    assert [one.message for one in observed.remarks] == [
        "public.t.a is dropped and added again: apply the drop before the application adds it again"
    ]


def test_names_that_no_consumer_could_tell_apart_are_refused() -> None:
    shuffle = "ALTER TABLE t DROP a;\nALTER TABLE t RENAME b TO a;\nALTER TABLE t ADD b int;"
    [(where, message)] = refused(shuffle)
    assert where.startswith("m.sql:2")
    assert "may be the same before and after" in message


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET SCHEMA 'app'; ALTER TABLE t ADD a int", ["app.t"]), ("SET search_path TO \"$user\", app; ALTER TABLE t ADD a int", ["app.t"]),
        ("SELECT set_config('search_path', 'app, public', false); ALTER TABLE t ADD a int", ["app.t"]),
        ("SELECT pg_catalog.set_config('search_path', '', false); ALTER TABLE public.t ADD a int", ["public.t"]),
        ("SET search_path = app; RESET search_path; ALTER TABLE t ADD a int", ["public.t"]),
        ("SET search_path = app; SET search_path TO DEFAULT; ALTER TABLE t ADD a int", ["public.t"]),
        ("BEGIN; SET LOCAL search_path TO app; ALTER TABLE t ADD a int; COMMIT; ALTER TABLE t ADD a int", ["app.t", "public.t"]),
        ("BEGIN; SET search_path TO app; ROLLBACK; ALTER TABLE t ADD a int", ["public.t"]),
    ],
)  # fmt: skip
def test_names_are_looked_for_where_the_session_says(sql: str, expected: list[str]) -> None:
    assert [f"{one.migration.schema}.{one.migration.table}" for one in seen(sql).migrations] == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT set_config('search_path', current_user, false)", "SELECT set_config('search_path', 'a', false) FROM x",
        "SELECT x, set_config('search_path', 'app', false)", "INSERT INTO x SELECT set_config('search_path', 'app', true)",
    ],
)  # fmt: skip
def test_a_search_path_that_is_not_written_there_is_refused(sql: str) -> None:
    [(where, _)] = refused(f"SELECT 1;\n{sql};")
    assert where.startswith("m.sql:2:")


def test_a_transaction_that_begins_with_the_end_of_another_is_one() -> None:
    swap = "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME x TO b;"
    assert changes(f"BEGIN; SELECT 1; COMMIT AND CHAIN; {swap} COMMIT") == ["t: swap a>b,b>a"]
    assert changes(f"BEGIN; ALTER TABLE t ADD c int; ROLLBACK AND CHAIN; {swap} COMMIT") == ["t: swap a>b,b>a"]
    split = f"BEGIN; SELECT 1; COMMIT AND NO CHAIN; {swap}"
    assert changes(split) == ["t: swap a>x", "t: swap b>a", "t: swap x>b"]


@pytest.mark.parametrize("view", ["VIEW v AS SELECT 1 AS a", "MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", "FOREIGN TABLE v (a int) SERVER s"])  # fmt: skip
def test_a_column_of_a_view_is_no_change(view: str) -> None:
    for sql, known in (
        (f"CREATE {view}; ALTER TABLE v RENAME a TO b", ""),
        ("ALTER TABLE v RENAME a TO b", f"CREATE {view}"),
    ):
        observed = seen(sql, known)
        assert observed.migrations == ()
        assert observed.ignored[-1].kind == "alter_view"


_LATER = """DO $$ BEGIN ALTER TABLE ONLY "t" ADD CONSTRAINT "f" FOREIGN KEY ("n") REFERENCES "public"."o"("id") ON DELETE CASCADE;
EXCEPTION WHEN duplicate_object THEN null; END $$"""


@pytest.mark.parametrize(
    ("sql", "kind", "reason"),
    [
        ("TRUNCATE t", "data", "deletes no row"), ("ALTER TABLE t ADD PRIMARY KEY (n)", "add_constraint", "order"),
        ("ALTER TABLE t ADD CONSTRAINT x PRIMARY KEY USING INDEX i", "add_constraint", "order"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey", "drop_constraint", "order"), ("ALTER TABLE t ADD UNIQUE (n)", "add_constraint", "alone"),
        (_LATER, "add_constraint", "PostgreSQL alone"),
        ("ALTER TABLE t REPLICA IDENTITY NOTHING", "replica_identity", "no UPDATE and no DELETE"),
        ("ALTER TABLE t REPLICA IDENTITY FULL", "replica_identity", "old values"),
        ("ALTER PUBLICATION p DROP TABLE t", "alter_publication", "arrive no more"),
        ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "policy", "PostgreSQL alone"), ("ALTER TABLE t ENABLE TRIGGER x", "trigger", "alone"),
        ("UPDATE t SET n = 1", "data", "replicate as rows"), ("DELETE FROM t", "data", "replicate as rows"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_left_out_for_a_true_reason(sql: str, kind: str, reason: str) -> None:
    [left] = seen(sql, KNOWN).ignored
    assert left.kind == kind
    assert reason in left.reason


def test_statements_about_no_one_table_name_none() -> None:
    [left] = seen("ALTER TABLE ALL IN TABLESPACE x SET TABLESPACE y").ignored
    assert left.table == ""


def test_a_column_keeps_its_enum_under_the_types_new_name() -> None:
    renewed = "ALTER TYPE mood RENAME TO mood_old; CREATE TYPE mood AS ENUM ('ok'); ALTER TABLE t ALTER m TYPE mood USING m::text::mood"
    assert changes(renewed, KNOWN) == ["t: destructive m"]
    assert changes("ALTER TYPE mood RENAME TO feeling; ALTER TABLE t ALTER m TYPE feeling", KNOWN) == []


@pytest.mark.parametrize(
    "block",
    [
        "BEGIN CREATE TYPE \"kind\" AS ENUM('a', 'b'); EXCEPTION WHEN duplicate_object THEN null; END",
        "BEGIN\n -- down\n IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'kind') THEN CREATE TYPE kind AS ENUM ('a', 'b'); END IF; END",
    ],
)
def test_a_block_that_only_makes_types_is_read(block: str) -> None:
    [result] = seen(f"DO $$ {block} $$; ALTER TABLE t ADD k kind").migrations
    assert result.migration.operation == AddColumn("k", parse("enum<'a','b'>"))
    kept = seen(f"DO $$ {block} $$; ALTER TABLE t ADD k kind", "CREATE TYPE kind AS ENUM ('z')")
    assert kept.migrations[0].migration.operation == AddColumn("k", parse("enum<'z'>"))
    for hidden in (
        "ALTER TABLE t ADD a int;", "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES o, ADD b int;", "DROP TYPE x;", "PERFORM f();\n-- down\nALTER TABLE t DROP a;",
    ):  # fmt: skip
        assert refused(f"DO $$ {block.replace('CREATE TYPE', f'{hidden} CREATE TYPE', 1)} $$")
