"""`console schema observe` and `edit`, as they are called."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console.cli.commands.schema import schema
from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring

REPLICATION = """tables:
  issues: {ignore: [html]}
stores:
  raw: {kind: delta, pipeline: web, table: landing}
"""
LANDING = "kind: landing\ntime: ts\ncolumns:\n  id: bigint\n  ts: timestamp\n"
PIECES = {
    "regions/eu.yaml": "warehouse: w\n",
    "plans/web/pipeline.yaml": "name: web\n",
    "plans/web/tables/landing.yaml": LANDING,
    "plans/web/replication.yaml": REPLICATION,
}


class CommandProject:
    """A project on disk and the command line in front of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in PIECES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def call(self, *words: str, project: bool = True, input: str | None = None) -> Result:
        line = ["schema", *words, *(["--project", str(self.root)] if project else [])]
        return CliRunner().invoke(cli, line, obj=CliContext(Wiring(lambda _: {})), input=input, catch_exceptions=False)

    def observed(self, sql: str, *words: str) -> dict[str, Any]:
        done = self.call("observe", self.write("m.sql", sql), *words, "--output", "json")
        assert done.exit_code == 0, done.output
        data: dict[str, Any] = json.loads(done.stdout)
        return data

    @property
    def migrations(self) -> list[Path]:
        return sorted((self.root / "plans/web/migrations").glob("*.json"))


@pytest.fixture
def project(tmp_path: Path) -> CommandProject:
    assert schema.name == "schema"
    return CommandProject(tmp_path)


def test_the_migration_of_the_issue_is_printed_as_published_and_nothing_is_written(project: CommandProject) -> None:
    observed = project.observed("ALTER TABLE issues ADD COLUMN title text;")
    assert observed["migrations"] == [
        {
            "version": 1,
            "phase": "pre",
            "schema": "public",
            "table": "issues",
            "operation": {
                "type": "add_column",
                "name": "title",
                "data_type": "string",
                "nullable": True,
                "default": None,
            },
        }
    ]
    assert project.migrations == []


def test_each_change_is_one_file_in_the_order_in_which_it_applies_and_twice_is_once(project: CommandProject) -> None:
    sql = project.write("m.sql", "ALTER TABLE issues DROP a, ADD a bigint; ALTER TABLE issues ADD b int;")
    for _ in range(2):
        assert project.call("observe", sql).exit_code == 0
        operations = [json.loads(path.read_text())["operation"] for path in project.migrations]
        assert [(operation["type"], operation["name"]) for operation in operations] == [
            ("replace_column", "a"),
            ("add_column", "b"),
        ]
    later = project.write("n.sql", "ALTER TABLE issues DROP b")
    assert project.call("observe", later).exit_code == 0
    assert project.call("observe", project.write("o.sql", "ALTER TABLE issues ADD b int")).exit_code == 0
    assert len(project.migrations) == 4


def test_a_disk_that_fills_up_leaves_no_half_migration_and_the_next_call_writes_it_whole(
    project: CommandProject,
) -> None:
    change = project.write("m.sql", "ALTER TABLE issues ADD COLUMN title text;")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))  # bytes of a file
    try:
        done = project.call("observe", change)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.exit_code != 0
    assert not list((project.root / "plans/web/migrations").iterdir())
    assert project.call("observe", change).exit_code == 0
    (path,) = project.migrations
    assert json.loads(path.read_text())["operation"]["name"] == "title"


def test_what_is_not_understood_is_refused_by_file_and_line_all_at_once_and_nothing_is_written(
    project: CommandProject,
) -> None:
    sql = project.write("m.sql", "ALTER TABLE issues ADD a int;\n\nALTER TABLE issues FROB;\nSHAKE x;\n")
    done = project.call("observe", sql)
    assert done.exit_code == 65
    assert f"{sql}:3:" in done.stderr
    assert f"{sql}:4:" in done.stderr
    assert project.migrations == []
    assert done.stdout == ""


@pytest.mark.slow
def test_what_could_not_be_read_again_is_refused_by_file_and_line_and_not_written(project: CommandProject) -> None:
    file = project.write("long.sql", f"SELECT 1;\nALTER TABLE issues ADD a text DEFAULT '{'y' * 1_000_000}';")
    done = project.call("observe", file)
    assert done.exit_code == 65
    assert f"{file}:2: add issues a: larger than a migration may be, 256 KiB [S402]" in done.stderr
    assert len(done.output) < 1000
    assert project.migrations == []


def test_only_replicated_tables_and_columns_count_unless_all_are_asked_for(project: CommandProject) -> None:
    sql = "ALTER TABLE issues ADD html text; ALTER TABLE others ADD a int; ALTER TABLE issues ADD b int;"
    observed = project.observed(sql)
    assert [m["operation"]["name"] for m in observed["migrations"]] == ["b"]
    assert [(left["table"], left["kind"]) for left in observed["ignored"]] == [
        ("public.issues", "add_column"),
        ("public.others", "add_column"),
    ]
    assert [m["operation"]["name"] for m in project.observed(sql, "--all")["migrations"]] == ["html", "a", "b"]


def test_the_phase_can_be_overridden_and_the_schema_before_tells_old_types(project: CommandProject) -> None:
    sql = "ALTER TABLE issues ALTER n TYPE bigint"
    assert project.observed(sql)["migrations"][0]["operation"]["classification"] == "destructive"
    known = project.write("known.sql", "CREATE TABLE issues (n integer)")
    report = project.observed(sql, "--schema", known)["migrations"][0]
    assert (report["phase"], report["operation"]["classification"]) == ("pre", "widening")
    assert project.observed(sql, "--schema", known, "--phase", "post")["migrations"][0]["phase"] == "post"


def test_two_dumps_are_compared(project: CommandProject) -> None:
    before = project.write("a.sql", "CREATE TABLE public.issues (id bigint NOT NULL, n integer, gone text);")
    after = project.write(
        "b.sql", "CREATE TABLE issues (id int8 not null, n int8 default 3, fresh date); CREATE TABLE t ()"
    )
    done = project.call("observe", "--before", before, "--after", after, "--output", "json")
    data = json.loads(done.stdout)
    assert [(m["phase"], m["operation"]["type"], m["operation"]["name"]) for m in data["migrations"]] == [
        ("post", "drop_column", "gone"),
        ("pre", "change_column", "n"),
        ("pre", "add_column", "fresh"),
    ]
    assert [left["kind"] for left in data["ignored"]] == ["create_table"]


def test_outside_of_a_project_it_prints_but_does_not_write(
    project: CommandProject, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    done = project.call("observe", "-", "--output", "jsonl", project=False, input="ALTER TABLE x ADD y uuid")
    assert done.exit_code == 0
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["migration"]
    assert project.call("observe", "-", project=False, input="ALTER TABLE x ADD y uuid").exit_code == 64


@pytest.mark.parametrize(
    "words",
    [[], ["--before", "a"], ["m.sql", "--before", "a", "--after", "b"], ["nowhere.sql"], ["m.sql", "--phase", "x"]],
)
def test_a_call_that_makes_no_sense_exits_64(project: CommandProject, words: list[str]) -> None:
    assert project.call("observe", *words).exit_code == 64


def test_a_change_becomes_an_edit_of_the_pipelines_landing_table_that_the_planner_reads(
    project: CommandProject,
) -> None:
    from console.project import load

    sql = project.write(
        "m.sql", "ALTER TABLE issues ADD title text; ALTER TABLE others ADD a int; ALTER TABLE issues ADD html text"
    )
    assert project.call("observe", sql, "--all").exit_code == 0
    files = [str(path) for path in project.migrations]
    assert project.call("edit", *files, "--dry-run").exit_code == 0
    landing = project.root / "plans/web/tables/landing.yaml"
    assert landing.read_text() == LANDING
    for _ in range(2):
        done = project.call("edit", *files)
        assert done.exit_code == 0, done.output
        assert landing.read_text().startswith(LANDING + "  title: string\n# migrated by ")
    loaded = load(project.root)
    [table] = loaded.pipeline("web", loaded.regions[0]).tables
    assert [(column.name, column.type) for column in table.columns][-1] == ("title", "string")
