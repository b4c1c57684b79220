"""`console schema observe --dsn`: the DDL of a running PostgreSQL is recorded, transaction by transaction."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.propagation.servers.postgres import Postgres
from tests.stores.project import Project

pytestmark = pytest.mark.stores
SECONDS = 60


@pytest.fixture
def dsn(postgres: Postgres, request: pytest.FixtureRequest) -> str:
    name = request.node.name.removeprefix("test_")[:50]
    with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE issues (id bigint PRIMARY KEY, title text, a integer, b bigint)")
        connection.execute("CREATE TABLE notes (id bigint PRIMARY KEY)")
    return postgres.dsn(name)


def run(dsn: str, *transactions: tuple[str, ...]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statements in transactions:
            with connection.transaction():
                for statement in statements:
                    connection.execute(statement)


def written(project: Project) -> list[dict[str, Any]]:
    paths = sorted((project.root / "plans" / "app" / "migrations").glob("*.json"))
    return [json.loads(path.read_text()) for path in paths]


def recorders(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT count(*) FROM pg_event_trigger").fetchone()
    assert row is not None
    return int(row[0])


CHANGES = (
    ("ALTER TABLE issues ADD COLUMN kind text", "CREATE INDEX ON issues (kind)"),
    ("ALTER TABLE issues RENAME a TO c", "ALTER TABLE issues RENAME b TO a", "ALTER TABLE issues RENAME c TO b"),
    ("ALTER TABLE issues RENAME title TO name", "ALTER TABLE issues ADD COLUMN title integer NOT NULL DEFAULT 3"),
    ("ALTER TABLE notes ADD COLUMN body text",),  # no store is to have it
    ("ALTER TABLE issues ALTER COLUMN b TYPE bigint",),
    ("ALTER TABLE issues DROP COLUMN kind",),
)
UNREADABLE = ((f"ALTER TABLE issues ADD COLUMN long text DEFAULT '{'x' * 300_000}'",),)
LATER = (("ALTER TABLE issues DROP COLUMN title",),)
EXPECTED = [
    {"type": "add_column", "name": "kind", "data_type": "string", "nullable": True, "default": None},
    {"type": "swap_columns", "columns": {"a": "b", "b": "a"}},
    {"type": "swap_columns", "columns": {"title": "name"}},
    {"type": "add_column", "name": "title", "data_type": "int32", "nullable": False, "default": "3"},
    {
        "type": "change_column", "name": "b", "data_type": "int64", "was": {"data_type": "int32"},
        "classification": "widening",
    },
    {"type": "drop_column", "name": "kind"},
]  # fmt: skip


def test_what_is_recorded_between_two_calls_is_written_once(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(dsn) as connection:
        connection.execute("ALTER TABLE issues ADD COLUMN undone text")
        connection.rollback()
    run(dsn, *CHANGES)
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    assert [data["operation"] for data in written(project)] == EXPECTED
    assert "replication.yaml does not name the table" in done.stderr
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    assert len(written(project)) == len(EXPECTED)
    done = project.console(*observe, "--remove")
    assert done.returncode == 0, done.stderr
    assert recorders(dsn) == 0


def test_watching_writes_as_it_happens_and_leaves_nothing_behind(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    words = ["schema", "observe", "--dsn", "env:APP_URL", "--watch", "--project", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "console.main", *words],
        env=project.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + SECONDS
    while recorders(dsn) == 0 and time.monotonic() < limit:
        time.sleep(0.05)
    run(dsn, *CHANGES, *UNREADABLE, *LATER)
    while len(written(project)) < len(EXPECTED) + len(LATER) and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=SECONDS)
    assert process.returncode == 65, output
    assert output.count("add issues long: larger than a migration may be") == 1
    assert 'ADD COLUMN "long" text DEFAULT \'xxxx' in output
    assert "not understood, and written nowhere: transaction " in output
    assert [data["operation"] for data in written(project)] == [*EXPECTED, {"type": "drop_column", "name": "title"}]
    assert recorders(dsn) == 0


def test_a_recorder_goes_even_where_its_last_words_cannot_be_taken(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    assert project.console(*observe).returncode == 0
    (tmp_path / "plans" / "app" / "migrations" / "0_broken.json").write_text("{")
    run(dsn, *CHANGES)
    done = project.console(*observe, "--watch")
    assert done.returncode == 65, done.stderr
    assert "0_broken.json" in done.stderr
    assert recorders(dsn) == 0


def test_a_check_that_forbids_null_is_told_like_not_null(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    assert project.console(*observe).returncode == 0
    for statement in ("ADD CONSTRAINT there CHECK (a IS NOT NULL)", "ALTER a SET NOT NULL"):
        run(dsn, (f"ALTER TABLE issues {statement}",))
        assert project.console(*observe).returncode == 0
        [data] = written(project)  # the second says nothing new
        assert (data["operation"]["name"], data["operation"]["nullable"]) == ("a", False)


def test_what_reaches_a_table_from_the_one_it_inherits_from_is_told_of_both(tmp_path: Path, dsn: str) -> None:
    """And not of a partition, which is its parent to whoever replicates it."""
    run(
        dsn,
        ("CREATE TABLE bugs (severity integer) INHERITS (issues)", "CREATE TABLE old_bugs () INHERITS (bugs)"),
        ("CREATE TABLE events (id bigint, day date) PARTITION BY RANGE (day)",),
        ("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",),
    )
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    (project.root / "plans" / "app" / "replication.yaml").unlink()  # every table counts
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    assert project.console(*observe).returncode == 0
    run(
        dsn,
        ("ALTER TABLE issues ADD COLUMN kind text",),
        ("ALTER TABLE bugs ALTER COLUMN severity TYPE bigint",),
        ("ALTER TABLE events ADD COLUMN note text",),
    )
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    results = [(data["table"], data["operation"]["type"], data["operation"]["name"]) for data in written(project)]
    assert sorted(results) == [
        ("bugs", "add_column", "kind"),
        ("bugs", "change_column", "severity"),
        ("events", "add_column", "note"),
        ("issues", "add_column", "kind"),
        ("old_bugs", "add_column", "kind"),
        ("old_bugs", "change_column", "severity"),
    ]


def test_who_is_no_superuser_is_told_so_and_nothing_is_left_half_made(tmp_path: Path, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE plain LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO plain")
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn.replace("user=postgres", "user=plain"))
    done = project.console("schema", "observe", "--dsn", "env:APP_URL")
    assert done.returncode == 1
    assert "only a superuser may create" in done.stderr
    assert "console schema observe FILE.sql" in done.stderr
    project.env["APP_URL"] = dsn
    done = project.console("schema", "observe", "--dsn", "env:APP_URL")
    assert "recording from now on" in done.stderr
    project.env["APP_URL"] = dsn.replace("user=postgres", "user=plain")
    assert project.console("schema", "observe", "--dsn", "env:APP_URL", "--remove").returncode == 1
    assert recorders(dsn) == 1


def test_a_command_that_cannot_be_recorded_goes_through_all_the_same(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    assert project.console("schema", "observe", "--dsn", "env:APP_URL").returncode == 0
    run(dsn, ("ALTER TABLE console_ddl.log RENAME TO gone",))
    run(dsn, ("ALTER TABLE issues ADD COLUMN kind text",))
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT kind FROM issues")


OLDER = (
    (
        "ALTER TABLE issues ADD COLUMN at timestamptz NOT NULL DEFAULT '2024-05-01 12:00:00.25+02'::timestamptz + interval '1 day'",
    ),
    ("ALTER TABLE issues ADD COLUMN n integer", "ALTER TABLE issues ALTER n SET DEFAULT 5"),
    ("ALTER TABLE issues ADD COLUMN m integer DEFAULT 4", "ALTER TABLE issues ALTER m SET DEFAULT 5"),
    ("ALTER TABLE issues ADD COLUMN t text DEFAULT upper('x') || 'y'",),
    ("ALTER TABLE issues ADD COLUMN u uuid DEFAULT gen_random_uuid()",),
    ("ALTER TABLE issues ADD COLUMN s text DEFAULT E'a\\'b\\\\c'",),
)


def test_rows_from_before_get_what_postgresql_has_recorded_for_them(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    assert project.console(*observe).returncode == 0
    run(dsn, ("INSERT INTO issues VALUES (1)",), *OLDER)
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    results = {data["operation"]["name"]: data["operation"]["default"] for data in written(project)}
    assert results == {
        "at": "'2024-05-02 10:00:00.25+00'", "n": None, "m": "4", "t": "'Xy'", "u": None, "s": "'a''b\\c'",
    }  # fmt: skip
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT at = '2024-05-02 10:00:00.25+00', n, m, t, s FROM issues").fetchone()
    assert row == (True, None, 4, "Xy", "a'b\\c")


def test_columns_that_go_with_their_type_are_reported(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    run(
        dsn,
        (
            "CREATE TYPE mood AS ENUM ('ok')",
            "CREATE DOMAIN d AS int NOT NULL",
            "ALTER TABLE issues ADD k mood, ADD l d",
        ),
    )
    assert project.console(*observe).returncode == 0
    run(dsn, ("DROP TYPE mood CASCADE",), ("ALTER DOMAIN d DROP NOT NULL",))
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    results = [data["operation"] for data in written(project)]
    assert results[0] == {"type": "drop_column", "name": "k"}
    assert (results[1]["name"], results[1]["nullable"]) == ("l", True)


def test_another_table_that_takes_a_name_is_told_by_what_differs(tmp_path: Path, dsn: str) -> None:
    project = Project(tmp_path, "http://127.0.0.1:1/default", dsn)
    observe = ("schema", "observe", "--dsn", "env:APP_URL")
    run(dsn, ("CREATE TABLE fresh (id bigint, title text, a bigint, c text)",))
    assert project.console(*observe).returncode == 0
    run(
        dsn,
        ("ALTER TABLE issues RENAME TO old", "ALTER TABLE fresh RENAME TO issues"),
        ("ALTER TABLE issues ADD d int",),
    )
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    results = [(data["table"], data["operation"]["type"], data["operation"]["name"]) for data in written(project)]
    assert sorted(results) == [
        ("issues", "add_column", "c"), ("issues", "add_column", "d"), ("issues", "change_column", "a"), ("issues", "change_column", "id"),
        ("issues", "drop_column", "b"),
    ]  # fmt: skip
    run(dsn, ("DROP TABLE issues", "CREATE TABLE issues (id bigint, e int)"))
    done = project.console(*observe)
    assert done.returncode == 0, done.stderr
    results = [(data["operation"]["type"], data["operation"]["name"]) for data in written(project)[5:]]
    assert sorted(results) == [
        ("add_column", "e"),
        *(("drop_column", name) for name in "acd"),
        ("drop_column", "title"),
    ]
