"""`console compare`: its output and its input; it never fails for a query that it cannot parse."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring

OLD = "SELECT id, Status AS Code, host FROM events WHERE status > 3 AND id IS NOT NULL"
NEW = "SELECT e.id, upper(host) AS host, status AS http_code, ts FROM events e WHERE id IS NOT NULL AND 3 < status"
SCHEMA = {"events": {"id": "bigint", "Status": "int", "host": "string", "ts": "timestamp"}}


def call(folder: Path, old: str, new: str, *words: str, schema: object = None) -> tuple[int, str, str]:
    (folder / "old.sql").write_text(old)
    (folder / "new.sql").write_text(new)
    given = ["compare", str(folder / "old.sql"), str(folder / "new.sql"), *words]
    if schema is not None:
        (folder / "schema.json").write_text(schema if isinstance(schema, str) else json.dumps(schema))
        given += ["--schema", str(folder / "schema.json")]
    result = CliRunner().invoke(cli, given, obj=CliContext(Wiring(lambda _: {})), catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_json_is_the_documented_object(tmp_path: Path, schema: object) -> None:
    code, out, err = call(tmp_path, OLD, NEW, "--output", "json", schema=schema)
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data.pop("format_version") == 1
    assert data.pop("why")
    assert data == {
        "rows": "same",
        "columns": {
            "same": ["id"],
            "changed": ["host"],
            "added": ["ts"],
            "removed": [],
            "renamed": {"Code": "http_code"},
        },
    }


def test_text_says_each_list_on_a_line_and_why(tmp_path: Path) -> None:
    code, out, _ = call(tmp_path, OLD, NEW)
    assert code == 0
    assert out.splitlines() == [
        "rows: same",
        "= same     id",
        "~ changed  host",
        "+ added    ts",
        "> renamed  Code → http_code",
        "the same rows; host is computed differently; ts is added; Code is renamed",
    ]


@pytest.mark.parametrize(
    "sql", ["", "DROP TABLE x", "SELECT FROM WHERE", "SELECT 1; SELECT 2", "SELECT " + "(" * 5000, "\x00", "-- nothing"]
)
def test_what_cannot_be_read_is_unknown_with_the_reason_and_exits_0(tmp_path: Path, sql: str) -> None:
    for old, new in ((sql, NEW), (OLD, sql)):
        code, out, _ = call(tmp_path, old, new, "--output", "json")
        data = json.loads(out)
        assert (code, data["rows"]) == (0, "unknown")
        assert data["why"]


def test_a_name_that_no_table_has_is_unknown_with_a_schema_and_taken_on_trust_without(tmp_path: Path) -> None:
    old, new = "SELECT id FROM events", "SELECT id, nope FROM events"
    code, out, _ = call(tmp_path, old, new, "--output", "json", schema=SCHEMA)
    assert (code, json.loads(out)["rows"]) == (0, "unknown")
    assert "nope" in json.loads(out)["why"]
    assert json.loads(call(tmp_path, old, new, "--output", "json")[1])["columns"]["added"] == ["nope"]


def test_a_refused_function_can_be_compared_for_nothing_is_run(tmp_path: Path) -> None:
    code, out, _ = call(
        tmp_path, "SELECT a FROM t", "SELECT a, upper(reflect('x', 'y')) AS r FROM t", "--output", "json"
    )
    assert (code, json.loads(out)["rows"]) == (0, "same")


@pytest.mark.parametrize("schema", ["[]", "{", '{"t": ["a"]}', '{"t": {"a": 1}}', "null"])
def test_a_schema_file_of_another_shape_is_a_usage_error(tmp_path: Path, schema: str) -> None:
    code, out, err = call(tmp_path, OLD, NEW, schema=schema)
    assert (code, out) == (64, "")
    assert [line.split(":")[0] for line in err.splitlines()] == ["error", "hint"]


@pytest.mark.slow
def test_a_query_of_aliases_that_double_ends_with_a_reason(tmp_path: Path) -> None:
    names = ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(40))
    query = f"SELECT a AS x0, {names} FROM t GROUP BY x40 HAVING x40 > 1"
    assert json.loads(call(tmp_path, query, f"{query}0", "--output", "json")[1])["rows"] == "unknown"
