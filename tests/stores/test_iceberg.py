"""An Iceberg table that two write to: no commit lands on columns that it has not seen, and no row is lost between."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.exceptions import CommitFailedException

from console.errors import RegionError
from console.propagation.dialects.iceberg import ICEBERG
from console.propagation.migration import AddColumn, Migration
from console.propagation.types import parse
from console.stores import protocol
from console.stores.iceberg import Iceberg

pytestmark = pytest.mark.stores
MIGRATION = Migration("pre", "public", "t", AddColumn("kind", parse("string"), default="'issue'"))


class Raced(Iceberg):
    """Another writer is quicker, between a table's loading and its commit."""

    quicker: Callable[[], None] | None = None

    def table(self, place: str) -> Any:
        table = super().table(place)
        quicker, self.quicker = self.quicker, None
        if quicker is not None:
            quicker()
        return table


def made(folder: Path) -> Raced:
    store = Raced("i", {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}"}, "own")
    catalog = store._open()
    catalog.create_namespace("app")
    catalog.create_table("app.t", pyarrow.schema([("id", pyarrow.int64())])).append(pyarrow.table({"id": [1]}))
    return store


def apply(store: Iceberg) -> None:
    table = store.describe(["app.t"])["app.t"]
    store.run(table, ICEBERG.translate(MIGRATION, table, "m1").steps, "m1")


def rows(store: Iceberg) -> list[tuple[int, str | None]]:
    return sorted((row["id"], row["kind"]) for row in store.table("app.t").scan().to_arrow().to_pylist())


def test_an_append_to_a_table_that_was_rewritten_meanwhile_is_refused(tmp_path: Path) -> None:
    store = made(tmp_path)
    loaded = store.table("app.t")
    apply(store)
    with pytest.raises(CommitFailedException):
        loaded.append(pyarrow.table({"id": [2]}))
    assert rows(store) == [(1, "issue")]
    assert "commit.retry.num-retries" not in store._open().load_table("app.t").properties
    store.close()


def test_rows_that_arrive_while_older_rows_get_a_default_get_it_too(tmp_path: Path) -> None:
    store = made(tmp_path)
    table = store.describe(["app.t"])["app.t"]
    steps = ICEBERG.translate(MIGRATION, table, "m1").steps
    store.quicker = lambda: Iceberg.table(store, "app.t").append(pyarrow.table({"id": [2]}))
    store.run(table, steps, "m1")
    assert rows(store) == [(1, "issue"), (2, "issue")]
    store.close()


class Overtaken(Iceberg):
    """Another writer commits between each loading of `app.t` and the commit, so many times."""

    left = 0

    def table(self, place: str) -> Any:
        table = super().table(place)
        if place == "app.t" and self.left:
            self.left -= 1
            super().table(place).append(pyarrow.table({"id": [100 + self.left]}))
        return table


def overtaken(folder: Path, times: int) -> Overtaken:
    made(folder).close()
    store = Overtaken("i", {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}"}, "own")
    store.left = times
    return store


def test_a_rewrite_that_loses_to_a_steady_writer_twenty_times_comes_through_and_keeps_each_row(tmp_path: Path) -> None:
    store = overtaken(tmp_path, 20)
    apply(store)
    assert rows(store) == [(1, "issue"), *((100 + at, "issue") for at in range(20))]
    store.close()


def test_a_rewrite_that_never_wins_ends_and_says_for_how_long_the_writers_must_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_PATIENCE_SECONDS", 0.5)
    store = overtaken(tmp_path, 10_000)
    with pytest.raises(RegionError, match=r"^i: other commits came first for \d+ s: ") as refused:
        apply(store)
    assert "stop the table's writers for some" in refused.value.hint
    store.left = 0
    apply(store)
    assert {kind for _, kind in rows(store)} == {"issue"}
    store.close()
