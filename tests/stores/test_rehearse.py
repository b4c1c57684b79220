"""`console schema rehearse`, `verify` and what `console status` tells of a store that lags behind."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import psycopg
import pytest

from console.stores.clickhouse import ClickHouse as Store
from console.stores.consumer import Left, fit
from console.stores.iceberg import Iceberg
from tests.propagation.servers.postgres import Postgres
from tests.stores.project import add, drop, retype, swap
from tests.stores.test_apply import Stores, stores
from tests.stores.world import ARROW

__all__ = ["stores"]
pytestmark = pytest.mark.stores


def test_a_rehearsal_does_everything_to_copies_and_leaves_none(stores: Stores) -> None:
    stores.project.migrate("1_add", "pre", add("kind", "string"))
    stores.project.migrate("2_change", "pre", retype("n", "int32", "int64", "widening"))
    stores.project.migrate("3_swap", "post", swap(a="b", b="a"))
    stores.project.migrate("4_drop", "post", drop("title"))
    stores.client.command(f"CREATE DATABASE {stores.name}__rehearsal")  # somebody's own, as are the next two
    stores.client.command(f"CREATE DATABASE {stores.name}__rehearsal_1")
    stores.catalog.create_table("app.issues__rehearsal", ARROW)
    before, described = stores.rows(), [stores.described(name) for name in ("clickhouse", "lake", "raw")]
    died(stores)
    done = stores.project.console("schema", "rehearse", "--output", "json")
    assert done.returncode == 0, done.stderr
    tried = json.loads(done.stdout)["rehearsals"]
    assert len(tried) == 12
    assert all(one["statements"] and one["rows_before"] == one["rows_after"] == 1 for one in tried)
    assert stores.rows() == before
    assert [stores.described(name) for name in ("clickhouse", "lake", "raw")] == described
    databases = [name for (name,) in stores.client.query("SHOW DATABASES").result_rows]
    mine = [f"{stores.name}__rehearsal", f"{stores.name}__rehearsal_1"]
    assert [name for name in databases if name.startswith(f"{stores.name}__")] == mine
    assert sorted(name for _, name in stores.catalog.list_tables("app")) == ["issues", "issues__rehearsal"]
    assert [path.name for path in (stores.root / "lake" / "app").glob("issues__rehearsal_*/*/*")] == []


def died(stores: Stores) -> None:
    """A rehearsal of each store that is killed in the middle leaves its copy."""
    script = (
        "import os, sys; from console.stores.clickhouse import ClickHouse; from console.stores.iceberg import Iceberg\n"
        "url, catalog, lake = sys.argv[1:]\n"
        "with ClickHouse('c', url).rehearsal_copy('siphon_issues'):\n"
        "    with Iceberg('i', {'type': 'sql', 'uri': catalog, 'warehouse': lake}, 'console').rehearsal_copy('app.issues'):\n"
        "        os.kill(os.getpid(), 9)\n"
    )
    words = [stores.url, f"sqlite:///{stores.root}/lake/catalog.db", f"file://{stores.root}/lake"]
    assert subprocess.run([sys.executable, "-c", script, *words], check=False).returncode == -9
    assert len(stores.client.query(f"SHOW DATABASES LIKE '{stores.name}\\_\\_rehearsal\\_________'").result_rows) == 1
    assert len(stores.catalog.list_tables("app")) == 3


def test_two_rehearsals_of_one_table_do_not_meet(stores: Stores) -> None:
    lake = {"type": "sql", "uri": f"sqlite:///{stores.root}/lake/catalog.db", "warehouse": f"file://{stores.root}/lake"}
    for store, place in ((Store("c", stores.url), "siphon_issues"), (Iceberg("i", lake, "console"), "app.issues")):
        with store.rehearsal_copy(place) as (one, there):
            with store.rehearsal_copy(place) as (other, here):
                assert other.count(other.describe([here])[here]) == 1
            assert one.count(one.describe([there])[there]) == 1
        store.close()


def test_a_rehearsal_shows_what_a_store_would_refuse(stores: Stores) -> None:
    stores.client.command(f"INSERT INTO {stores.name}.siphon_issues (id, title) VALUES (3, 'no number')")
    stores.project.migrate("1_change", "post", retype("title", "string", "int64", "destructive"))
    done = stores.project.console("schema", "rehearse", "--store", "clickhouse")
    assert done.returncode == 1, done.stdout
    assert "2 of 2 values of title do not survive" in done.stderr


def test_verify_tells_every_store_and_writes_what_mends_it(stores: Stores, postgres: Postgres) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {stores.name}")
    dsn = postgres.dsn(stores.name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE issues (id bigint PRIMARY KEY, title text, a text, b text, n bigint, kind text)"
        )
    report = stores.root / "verify.xml"
    verify = ("schema", "verify", "--dsn", dsn, "--output", "json", "--junit", str(report))
    done = stores.project.console(*verify, "--write")
    assert done.returncode == 1, done.stderr
    output = {
        (t["store"], d["column"], d["kind"])
        for t in json.loads(done.stdout)["tables"]
        for d in t["differences"]
        if d["severity"] == "difference"
    }
    assert {(store, column) for store, column, _ in output} == {
        (store, column) for store in ("eu/clickhouse", "eu/lake", "eu/raw") for column in ("n", "kind")
    }
    assert len(ElementTree.parse(report).findall(".//failure")) >= 3
    done = stores.project.apply("pre")
    assert done.returncode == 0, done.stderr
    done = stores.project.console(*verify)
    assert done.returncode == 0, done.stdout


def test_an_unreachable_store_or_database_exits_5(stores: Stores) -> None:
    stores.project.env["APP_URL"] = "host=/nowhere dbname=app"
    assert stores.project.console("schema", "verify").returncode == 5
    stores.project.env["CLICKHOUSE_URL"] = "http://127.0.0.1:1/default"
    dump = stores.root / "structure.sql"
    dump.write_text("CREATE TABLE issues (id bigint PRIMARY KEY, title text, a text, b text, n integer);")
    assert stores.project.console("schema", "verify", "--schema", str(dump), "--store", "lake").returncode == 0
    done = stores.project.console("schema", "verify", "--schema", str(dump))
    assert done.returncode == 5, done.stderr


def test_what_arrives_and_is_not_stored_shows_in_the_status_until_it_is(stores: Stores) -> None:
    store = Store("x", stores.url)
    target = store.describe(["siphon_issues"])["siphon_issues"]
    fitted = fit(["id", "title", "kind"], target)
    assert (fitted.insert, fitted.left_out) == ((("id", "id"), ("title", "title")), ("kind",))
    left = Left(store)
    for _ in range(2):
        left.add("siphon_issues", fitted, 21)
    left.flush()
    store.close()
    done = stores.project.console("status")
    assert "eu/clickhouse: siphon_issues.kind: 42 rows" in done.stdout, done.stderr
    stores.project.migrate("1_add", "pre", add("kind", "string"))
    assert stores.project.apply("pre").returncode == 0
    assert "arriving" not in stores.project.console("status").stdout
