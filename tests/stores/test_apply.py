"""`console schema apply` on real stores: twice, killed after every statement, out of order, without leave, by two at once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clickhouse_connect
import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from console.stores.clickhouse import ClickHouse as Store
from console.stores.delta import Delta
from console.stores.iceberg import Iceberg
from tests.propagation.servers.clickhouse import ClickHouse
from tests.stores.project import Project, add, drop, kills, retype, swap
from tests.stores.world import ARROW, COLUMNS, ENGINE

pytestmark = pytest.mark.stores
ROW = {"id": 1, "title": "t", "a": "of a", "b": "of b", "n": 7, "_version": 1, "_deleted": False}
# every operation, each with what it needs of the others, in the phases that are their default
PRE = {
    "20260101000000_add_issues_kind": add("kind", "string"),
    "20260101000001_change_issues_n": retype("n", "int32", "int64", "widening"),
}
POST = {
    "20260101000002_swap_issues_a_b": swap(a="b", b="a"),
    "20260101000003_rename_issues_kind": swap(kind="sort"),
    "20260101000004_drop_issues_title": drop("title"),
}
AFTER = {"id": 1, "a": "of b", "b": "of a", "n": 7, "sort": None, "_version": 1, "_deleted": False}


class Stores:
    """The three stores of one project with one row each, and a materialized view on top in ClickHouse."""

    def __init__(self, root: Path, name: str, server: ClickHouse) -> None:
        self.root, self.name = root, name
        self.client = clickhouse_connect.get_client(dsn=server.url(), autogenerate_session_id=False)
        self.client.command(f"CREATE DATABASE {name}")
        for table in ("siphon_issues", "issues_flat"):
            self.client.command(f"CREATE TABLE {name}.{table} ({COLUMNS}) {ENGINE}")
        self.client.command(
            f"CREATE MATERIALIZED VIEW {name}.issues_mv TO {name}.issues_flat AS"
            f" SELECT id, title, a, b, n, _version, _deleted FROM {name}.siphon_issues"
        )
        self.client.insert("siphon_issues", [list(ROW.values())], column_names=list(ROW), database=name)
        self.url = server.url(name)
        self.project = Project(root, self.url, "")
        rows = pyarrow.Table.from_pylist([ROW], schema=ARROW)
        self.catalog = load_catalog(
            "default", type="sql", uri=f"sqlite:///{root}/lake/catalog.db", warehouse=f"file://{root}/lake"
        )
        self.catalog.create_namespace("app")
        self.catalog.create_table("app.issues", ARROW).append(rows)
        write_deltalake(str(root / "raw" / "issues"), rows)

    def migrations(self) -> None:
        for phase, operations in (("pre", PRE), ("post", POST)):
            for name, operation in operations.items():
                self.project.migrate(name, phase, operation)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """What each store's tables hold."""
        results = {}
        for table in ("siphon_issues", "issues_flat"):
            results[table] = list(self.client.query(f"SELECT * FROM {self.name}.{table}").named_results())
        results["lake"] = self.catalog.load_table("app.issues").scan().to_arrow().to_pylist()
        results["raw"] = DeltaTable(str(self.root / "raw" / "issues")).to_pyarrow_table().to_pylist()
        return results

    def described(self, store: str) -> Any:
        """Columns, comments and views of one store's table."""
        match store:
            case "clickhouse":
                return Store("x", self.url).describe(["siphon_issues"])
            case "lake":
                properties = {"type": "sql", "uri": f"sqlite:///{self.root}/lake/catalog.db", "warehouse": "x"}
                opened = Iceberg("x", properties, "console")
                try:
                    return opened.describe(["app.issues"])
                finally:
                    opened.close()
            case _:
                return Delta("x", str(self.root / "raw")).describe(["issues"])

    def views(self) -> list[str]:
        rows = self.client.query(
            "SELECT name FROM system.tables WHERE database = {db:String} AND engine = 'MaterializedView'",
            parameters={"db": self.name},
        ).result_rows
        return [name for (name,) in rows]

    def close(self) -> None:
        self.client.close()
        self.catalog.engine.dispose()


@pytest.fixture
def stores(tmp_path: Path, request: pytest.FixtureRequest, clickhouse: ClickHouse) -> Iterator[Stores]:
    name = request.node.name.removeprefix("test_").replace("[", "_").replace("]", "")[:40]
    made = Stores(tmp_path, name, clickhouse)
    try:
        yield made
    finally:
        made.close()


def arrived(stores: Stores) -> None:
    """Every store has every operation, once."""
    for place, rows in stores.rows().items():
        assert [dict(sorted(row.items())) for row in rows] == [dict(sorted(AFTER.items()))], place
    assert stores.views() == ["issues_mv"]
    stores.client.insert("siphon_issues", [[2, "x"]], column_names=["id", "sort"], database=stores.name)
    handed_on = stores.client.query(f"SELECT sort FROM {stores.name}.issues_flat WHERE id = 2").result_rows
    assert handed_on == [("x",)]


def test_applied_twice_it_is_applied_once(stores: Stores) -> None:
    stores.migrations()
    for phase in ("pre", "post"):
        done = stores.project.apply(phase, "--allow-destructive", "--output", "json")
        assert done.returncode == 0, done.stderr
        assert {store["state"] for store in json.loads(done.stdout)["stores"]} == {"applied"}
    before = [stores.described(store) for store in ("clickhouse", "lake", "raw")]
    for phase in ("pre", "post"):
        done = stores.project.apply(phase, "--allow-destructive", "--output", "json")
        assert done.returncode == 0, done.stderr
        assert {store["state"] for store in json.loads(done.stdout)["stores"]} == {"unchanged"}
    assert [stores.described(store) for store in ("clickhouse", "lake", "raw")] == before
    arrived(stores)


def test_killed_before_and_after_each_statement_it_ends_like_an_unbroken_run(stores: Stores) -> None:
    stores.migrations()
    killed = 0
    for phase, operations in (("pre", PRE), ("post", POST)):
        for store in ("clickhouse", "lake", "raw"):
            killed += kills(stores.project, phase, list(operations), "--store", store, "--allow-destructive")
    assert killed >= 50
    arrived(stores)


def test_what_may_lose_something_is_refused_whole(stores: Stores) -> None:
    stores.project.migrate("20260101000000_drop_issues_title", "post", drop("title"))
    stores.project.migrate("20260101000001_change_issues_n", "post", retype("n", "int64", "int16", "destructive"))
    before = stores.rows()
    done = stores.project.apply("post")
    assert done.returncode == 1
    assert "--allow-destructive" in done.stderr
    assert stores.rows() == before


def test_a_migration_waits_for_the_other_phase_of_its_columns(stores: Stores) -> None:
    stores.project.migrate("20260101000000_drop_issues_title", "post", drop("title"))
    stores.project.migrate("20260101000001_add_issues_title", "pre", add("title", "string"))
    done = stores.project.apply("pre")
    assert done.returncode == 4
    assert "--phase post first" in done.stderr


def test_each_phase_does_what_it_can_and_no_two_wait_for_each_other(stores: Stores) -> None:
    stores.project.migrate("20260101000000_add_issues_kind", "pre", add("kind", "string"))
    stores.project.migrate("20260101000001_rename_issues_kind", "post", swap(kind="sort"))
    stores.project.migrate("20260101000002_add_issues_kind", "pre", add("kind", "int32"))
    stores.project.migrate("20260101000003_change_issues_kind", "pre", retype("kind", "int32", "int64", "widening"))
    names = ("--store", "lake", "--store", "raw")
    seen = stores.project.apply("pre", "--dry-run", *names)
    assert seen.returncode == 4, seen.stderr
    assert (
        "20260101000003_change_issues_kind → issues: waits for 20260101000001_rename_issues_kind (post)" in seen.stdout
    )
    done = stores.project.apply("pre", *names)
    assert done.returncode == 4, done.stderr
    assert "20260101000002_add_issues_kind must wait for 20260101000001_rename_issues_kind" in done.stderr
    assert stores.project.apply("post", *names).returncode == 0
    assert stores.project.apply("pre", *names).returncode == 0
    for name in ("lake", "raw"):
        [result] = stores.rows()[name]
        assert {"kind", "sort"} < set(result)


def test_migrations_that_build_on_one_another_are_shown_as_they_are_then_done(stores: Stores) -> None:
    stores.project.migrate("20260101000000_add_issues_kind", "pre", add("kind", "int32"))
    stores.project.migrate("20260101000001_change_issues_kind", "pre", retype("kind", "int32", "int64", "widening"))
    stores.project.migrate("20260101000002_swap_issues_a_b", "post", swap(a="b", b="a"))
    stores.project.migrate("20260101000003_rename_issues_a", "post", swap(a="c", kind="a"))
    stores.project.migrate("20260101000004_rename_issues_c", "post", swap(c="d"))
    stores.project.migrate("20260101000005_drop_issues_d", "post", drop("d"))
    for phase in ("pre", "post"):
        seen = stores.project.apply(phase, "--dry-run", "--output", "json")
        assert seen.returncode == 0, seen.stderr
        done = stores.project.apply(phase, "--allow-destructive", "--output", "json")
        assert done.returncode == 0, done.stderr
        shown = [
            [plain(sql) for one in store["migrations"] for sql in one["statements"]]
            for store in json.loads(seen.stdout)["stores"]
        ]
        assert [list(map(plain, store["statements"])) for store in json.loads(done.stdout)["stores"]] == shown
    for place, rows in stores.rows().items():
        assert rows == [{"id": 1, "title": "t", "b": "of a", "n": 7, "a": None, "_version": 1, "_deleted": False}], (
            place
        )


def plain(sql: str) -> str:
    """ClickHouse leaves out the quotes of names that need none."""
    return sql.replace('"', "")


def test_without_yes_it_stops_at_the_gate_and_a_dry_run_prints(stores: Stores) -> None:
    stores.migrations()
    before = stores.rows()
    done = stores.project.console("schema", "apply", "--phase", "pre", "--store", "clickhouse")
    assert done.returncode == 3, done.stderr
    done = stores.project.console("schema", "apply", "--phase", "pre", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "EXCHANGE TABLES" in done.stdout
    assert "add kind string" in done.stdout
    assert re.search(r"change_issues_n → issues: [\d.]+ (K|M)iB are rewritten", done.stdout)
    assert stores.rows() == before


def test_an_edited_migration_is_no_longer_the_one_that_was_applied(stores: Stores) -> None:
    stores.project.migrate("20260101000000_add_issues_kind", "pre", add("kind", "string"))
    assert stores.project.apply("pre", "--store", "lake").returncode == 0
    stores.project.migrate("20260101000000_add_issues_kind", "pre", add("kind", "int64"))
    done = stores.project.apply("pre", "--store", "lake")
    assert done.returncode == 4
    assert "was applied with different content" in done.stderr


def test_a_store_held_by_another_machine_is_left_alone(stores: Stores) -> None:
    stores.project.migrate("20260101000000_add_issues_kind", "pre", add("kind", "string"))
    before = stores.rows()
    lake = {"type": "sql", "uri": f"sqlite:///{stores.root}/lake/catalog.db", "warehouse": f"file://{stores.root}/lake"}
    values = [Store("x", stores.url), Iceberg("x", lake, "console"), Delta("x", str(stores.root / "raw"))]
    for name, store in zip(("clickhouse", "lake", "raw"), values, strict=True):
        with store.lock("ada@far", "far", take_over=False):
            done = stores.project.apply("pre", "--store", name)
            assert done.returncode == 4, done.stderr
            assert "ada@far" in done.stderr
            assert stores.rows() == before
        store.close()
    assert stores.project.apply("pre").returncode == 0


def test_what_clickhouse_would_refuse_in_the_middle_is_said_while_its_tables_are_as_they_were(stores: Stores) -> None:
    """The index is on the source; the view's target would have lost its column by then."""
    stores.client.command(f"ALTER TABLE {stores.name}.siphon_issues ADD INDEX ix title TYPE minmax")
    stores.project.migrate("20260101000000_drop_issues_b", "post", drop("b"))
    stores.project.migrate("20260101000001_drop_issues_title", "post", drop("title"))
    before = stores.described("clickhouse")
    done = stores.project.apply("post", "--allow-destructive", "--store", "clickhouse")
    assert done.returncode == 65, done.stderr
    assert "the skip index ix of" in done.stderr
    assert f"ALTER TABLE `{stores.name}`.`siphon_issues` DROP INDEX `ix` first" in done.stderr
    assert stores.described("clickhouse") == before
    stores.client.command(f"ALTER TABLE `{stores.name}`.`siphon_issues` DROP INDEX `ix`")
    done = stores.project.apply("post", "--allow-destructive", "--store", "clickhouse")
    assert done.returncode == 0, done.stderr  # the hint led there
    for table in ("siphon_issues", "issues_flat"):
        rows = stores.client.query(f"SELECT * FROM {stores.name}.{table}").column_names
        assert set(rows) & {"b", "title"} == set()


def test_a_column_called_like_one_of_the_replications_own_is_refused_everywhere(stores: Stores) -> None:
    stores.project.migrate("20260101000000_add_issues_version", "pre", add("_version", "int64"))
    before = stores.rows()
    done = stores.project.apply("pre")
    assert done.returncode == 65, done.stderr
    assert done.stderr.count("_version is one of the replication's own columns there (extra)") == 3
    assert stores.rows() == before
