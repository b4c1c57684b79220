"""A schema changes under an application that never stops writing, and every row's every column arrives everywhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.servers.postgres import Postgres
from tests.stores.project import add, drop, kills, replace, retype, swap
from tests.stores.world import World

pytestmark = pytest.mark.stores
WIDE = 3_000_000_000  # no int32 holds it


@pytest.fixture
def world(
    tmp_path: Path, request: pytest.FixtureRequest, postgres: Postgres, clickhouse: ClickHouse
) -> Iterator[World]:
    made = World(tmp_path, request.node.name.removeprefix("test_")[:30], postgres, clickhouse)
    try:
        yield made
    finally:
        made.close()


def old_writer(connection: psycopg.Connection[Any], id: int) -> None:
    connection.execute(
        "INSERT INTO issues (id, title, a, b, n) VALUES (%s, %s, %s, %s, %s)", (id, f"t{id}", f"a{id}", f"b{id}", id)
    )
    if id % 3 == 0:
        connection.execute("UPDATE issues SET a = a || '!' WHERE id = %s", (id - 1,))
    if id % 7 == 0:
        connection.execute("DELETE FROM issues WHERE id = %s", (id - 2,))


def new_writer(connection: psycopg.Connection[Any], id: int) -> None:
    connection.execute(
        "INSERT INTO issues (id, a, b, n, kind) VALUES (%s, %s, %s, %s, %s)", (id, f"a{id}", f"b{id}", id, f"k{id}")
    )


def output_of(done: Any) -> str:
    return f"{done.args[1:6]} exit {done.returncode}\n{done.stdout}\n{done.stderr}"


def same_everywhere(world: World, columns: list[str]) -> None:
    truth = {id: {name: row[name] for name in columns} for id, row in world.truth().items()}
    for store, rows in world.stored(columns).items():
        assert (sorted(truth.keys() - rows.keys()), sorted(rows.keys() - truth.keys())) == ([], []), store
        assert rows == truth, store


def test_a_column_comes_and_another_goes_though_each_statement_is_the_last(world: World) -> None:
    """console is killed before and after each of its statements, in every store, while rows are written and read."""
    world.project.migrate("20260101000000_add_issues_kind", "pre", add("kind", "string", default="'issue'"))
    world.project.migrate("20260101000001_drop_issues_title", "post", drop("title"))
    world.consume()
    end_reading, end_old = world.read(), world.write(old_writer, 1)
    world.until(lambda: len(world.truth()) > 50, "rows arrive")

    assert kills(world.project, "pre", ["20260101000000_add_issues_kind"]) >= 6
    world.migrate("ALTER TABLE issues ADD COLUMN kind text DEFAULT 'issue'")
    end_new = world.write(new_writer, 1_000_000)
    world.until(lambda: sum(id >= 1_000_000 for id in world.truth()) > 50, "both write")
    assert end_old() > 50  # the last old writer is gone, so the column may go
    world.migrate("ALTER TABLE issues DROP COLUMN title")
    refused = world.project.apply("post")
    assert refused.returncode == 1, output_of(refused)
    assert kills(world.project, "post", ["20260101000001_drop_issues_title"], "--allow-destructive") >= 6
    assert end_new() > 50

    world.settle()
    assert end_reading() > 20
    assert world.troubles == []
    same_everywhere(world, ["id", "a", "b", "n", "kind"])
    verified = world.project.console("schema", "verify")
    assert verified.returncode == 0, output_of(verified)


def test_two_names_change_hands_in_one_transaction_though_each_statement_is_the_last(world: World) -> None:
    world.project.migrate("20260101000000_swap_issues_a_b", "post", swap(a="b", b="a"))
    world.consume()
    end_reading, end_writing = world.read(), world.write(old_writer, 1)
    world.until(lambda: len(world.truth()) > 50, "rows arrive")

    done = world.project.apply("pre")
    assert done.returncode == 0, output_of(done)
    world.migrate(
        "ALTER TABLE issues RENAME COLUMN a TO c",
        "ALTER TABLE issues RENAME COLUMN b TO a",
        "ALTER TABLE issues RENAME COLUMN c TO b",
    )
    before = len(world.truth())
    world.until(lambda: len(world.truth()) > before + 50, "rows arrive under the new names")
    assert kills(world.project, "post", ["20260101000000_swap_issues_a_b"]) >= 6
    before = len(world.truth())
    world.until(lambda: len(world.truth()) > before + 50, "rows arrive afterwards")
    assert end_writing() > 150

    world.settle()
    assert end_reading() > 20
    assert world.troubles == []
    same_everywhere(world, ["id", "title", "a", "b", "n"])
    again = world.project.apply("post")
    assert again.returncode == 0, output_of(again)
    same_everywhere(world, ["id", "title", "a", "b", "n"])


def either(first: str, second: str) -> Any:
    """A writer that writes one statement until the schema forbids it, and from then on the other."""
    now = [first, second]

    def write(connection: psycopg.Connection[Any], id: int) -> None:
        try:
            connection.execute(now[0].replace("{id}", str(id)))
        except (
            psycopg.errors.UndefinedColumn,
            psycopg.errors.DatatypeMismatch,
            psycopg.errors.InvalidTextRepresentation,
        ):
            del now[0]
            connection.execute(now[0].replace("{id}", str(id)))

    return write


def test_a_name_stands_for_another_column_from_one_instant_on(world: World) -> None:
    """The usual end of a safe rename, and a column made anew; the writer never stops, every console is killed."""
    world.project.migrate("20260101000000_replace_issues_a", "post", replace("a", "b"))
    new = {"data_type": "string", "nullable": True, "default": None}
    world.project.migrate("20260101000001_replace_issues_n", "post", replace("n", None, **new))
    world.ch.command(f"DROP VIEW {world.name}.issues_now")  # it reads b, which goes
    world.consume()
    first = "INSERT INTO issues (id, title, a, b, n) VALUES ({id}, 't', 'a{id}', 'b{id}', {id})"
    second = "INSERT INTO issues (id, title, a, n) VALUES ({id}, 't', 'b{id}', 'n{id}')"
    end_writing = world.write(either(first, second), 1)
    world.until(lambda: len(world.truth()) > 50, "rows arrive")
    assert kills(world.project, "pre", ["20260101000001_replace_issues_n"]) >= 3
    before = len(world.truth())
    world.until(lambda: len(world.truth()) > before + 50, "rows arrive beside what is staged")
    world.migrate(
        "ALTER TABLE issues DROP COLUMN a",
        "ALTER TABLE issues RENAME COLUMN b TO a",
        "ALTER TABLE issues DROP COLUMN n",
        "ALTER TABLE issues ADD COLUMN n text",
    )
    before = len(world.truth())
    world.until(lambda: len(world.truth()) > before + 50, "rows arrive under the new names")
    world.settle()  # in between every row has its place
    names = ["20260101000000_replace_issues_a", "20260101000001_replace_issues_n"]
    refused = world.project.apply("post")
    assert refused.returncode == 1, output_of(refused)
    assert kills(world.project, "post", names, "--allow-destructive") >= 6
    before = len(world.truth())
    world.until(lambda: len(world.truth()) > before + 50, "rows arrive afterwards")
    assert end_writing() > 200
    world.settle()
    assert world.troubles == []
    same_everywhere(world, ["id", "title", "a", "n"])
    verified = world.project.console("schema", "verify")
    assert verified.returncode == 0, output_of(verified)


def test_a_type_widens_and_never_narrows(world: World) -> None:
    world.project.migrate("20260101000000_change_issues_n", "pre", retype("n", "int32", "int64", "widening"))
    world.consume()
    end_reading, end_old = world.read(), world.write(old_writer, 1)
    world.until(lambda: len(world.truth()) > 50, "rows arrive")

    done = world.project.apply("pre")
    assert done.returncode == 0, output_of(done)
    world.migrate("ALTER TABLE issues ALTER COLUMN n TYPE bigint")

    def wide(connection: psycopg.Connection[Any], id: int) -> None:
        connection.execute("INSERT INTO issues (id, n) VALUES (%s, %s)", (id, WIDE + id))

    end_new = world.write(wide, 1_000_000)
    world.until(lambda: sum(id >= 1_000_000 for id in world.truth()) > 30, "both write")
    assert end_old() > 50
    assert end_new() > 20

    world.settle()
    assert end_reading() > 20
    assert world.troubles == []
    same_everywhere(world, ["id", "title", "a", "b", "n"])

    world.project.migrate("20260102000000_change_issues_n", "post", retype("n", "int64", "int32", "destructive"))
    refused = world.project.apply("post")
    assert refused.returncode == 1, output_of(refused)
    assert "may lose stored values" in refused.stderr
    same_everywhere(world, ["id", "title", "a", "b", "n"])
