"""Lines of the shape of a landing version with other stored columns. Real tables; DuckDB converts where Spark would."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from console.agent.feeds.follower import FeedFollower
from console.agent.ingest.landing import LandingWriter
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.errors import DataError
from console.model.live import Relay, Release, TableState, Version
from console.model.schema import Column, Table

pytestmark = pytest.mark.slow

OLD, NEW = {"id": "string", "code": "string"}, {"id": "string", "code": "int", "twice": "int"}
ARROW = {"string": pa.string(), "int": pa.int32()}
FORWARD = "SELECT id, CAST(code AS INT) AS code, 2 * CAST(code AS INT) AS twice FROM landing"
BACKWARD = "SELECT id, CAST(code AS VARCHAR) AS code FROM landing"


class Duck:
    """What stands in for a Spark session."""

    def __init__(self) -> None:
        self._db = duckdb.connect()

    def createDataFrame(self, rows: pa.Table) -> str:
        self._db.register("given", rows)
        return "given"

    def sql(self, text: str, **rows: str) -> Any:
        filled = text.format(**rows).replace("`", '"')
        return SimpleNamespace(toArrow=lambda: self._db.sql(filled).to_arrow_table())


def state(path: str, columns: dict[str, str], accepts_until: str = "") -> TableState:
    declared = tuple(Column(name=name, type=type) for name, type in columns.items())
    table = Table(name="landing", kind="landing", columns=declared, managed=True, accepts_until=accepts_until)
    version = Version(content="c", path=path, columns=declared)
    return TableState(table=table, version=version, read="SELECT * FROM stored", rows="", values={})


class World:
    """r1 has codes as text, r2 as numbers, in a version of its own; r2 is live. lost: what r1 cannot hold of r2's values"""

    def __init__(self, place: Path, accepts_until: str = "", lost: tuple[str, ...] = ("twice",)) -> None:
        self.place = place
        for path, columns in (("landing", OLD), ("landing.versions/b-2", NEW)):
            DeltaTable.create(str(place / path), pa.schema([(name, ARROW[type]) for name, type in columns.items()]))
        spark = cast(
            Any,
            SimpleNamespace(
                session=Duck, live_session=Duck, give_up=lambda _: None, lost=False, started=False, slots=2
            ),
        )
        follower = FeedFollower(spark, 1.0, lambda *_: None)
        self.line = PipelineController(place, "web", spark, follower, Settings(region="eu"))
        old, new = state("landing", OLD), state("landing.versions/b-2", NEW, accepts_until)
        relay = Relay(
            table="landing", older="landing", forward=FORWARD, backward=BACKWARD, columns=old.version.columns, keys=("code", "twice"), lost=lost
        )  # fmt: skip
        for id, table, relays in (("r1", old, ()), ("r2", new, (relay,))):
            release = Release(id=id, pipeline="web", digest="d", tables=(table,), feeds=(), relays=relays)
            self.line.releases.propose(release, f"web-{id[1:]}", "ada", "laptop")
        self.live = ""
        self.promote("r1")
        self.promote("r2")

    def promote(self, to: str) -> None:
        self.line.releases.swap(self.live, to, "ada", "laptop")
        self.live = to

    def send(self, *lines: dict[str, Any], batch: str = "b1") -> dict[str, Any]:
        return LandingWriter(self.line).append("landing", batch, [json.dumps(line) for line in lines])

    def rows(self, path: str = "landing.versions/b-2") -> list[tuple[Any, ...]]:
        result = DeltaTable(str(self.place / path)).to_pyarrow_table().to_pylist()
        return sorted(tuple(row.values()) for row in result)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_shapes_may_be_mixed_in_one_batch(world: World) -> None:
    done = world.send(
        {"id": "a", "code": "7"}, {"id": "b", "code": 8, "twice": 1}, {"id": "c"}, {"id": "d", "code": None}
    )
    assert done == {"rows": 4, "already": False}
    assert world.rows() == [("a", 7, 14), ("b", 8, 1), ("c", None, None), ("d", None, None)]


def test_after_a_rollback_lines_of_the_newer_shape_are_converted_back(world: World) -> None:
    world.send({"id": "a", "code": "7"})
    world.promote("r1")
    world.send({"id": "b", "code": 8, "twice": 16}, {"id": "c", "code": "x"}, batch="b2")
    assert world.rows("landing") == [("b", "8"), ("c", "x")]
    assert world.send({"id": "a", "code": "7"})["already"] is True


def test_a_value_that_no_version_would_have_is_refused_with_its_batch(world: World) -> None:
    """After a rollback: the older release cannot hold it, and the newer one gets what the older one has."""
    world.promote("r1")
    with pytest.raises(DataError, match="line 2: twice has a value that the live release cannot hold") as refused:
        world.send({"id": "a", "code": "7"}, {"id": "b", "code": 8, "twice": 1})
    assert (refused.value.code, world.rows("landing")) == ("C301", [])
    assert "keep the line, or send the shape of the live release" in refused.value.hint


def test_a_line_of_the_older_shape_that_does_not_convert_is_refused_with_its_batch(world: World) -> None:
    with pytest.raises(Exception, match="x"):
        world.send({"id": "a", "code": 1, "twice": 2}, {"id": "b", "code": "x"})
    assert world.rows() == []


def test_a_line_of_no_shape_is_refused_by_the_live_one(world: World) -> None:
    with pytest.raises(DataError, match="line 2 has the unknown key 'other'"):
        world.send({"id": "a", "code": "7"}, {"id": "b", "other": 1})


def test_a_file_is_checked_by_both_shapes(world: World) -> None:
    writer = LandingWriter(world.line)
    lines = [json.dumps({"id": "a", "code": "7"}), json.dumps({"id": "b", "code": 8, "twice": 1})]
    assert writer.check("landing", lines, [(1, 2)])["schema"]
    with pytest.raises(DataError, match="line 2"):
        writer.check("landing", [lines[0], json.dumps({"id": 1.5})], [(1, 2)])


def test_from_the_day_that_the_file_names_only_the_live_shape_is_taken(tmp_path: Path) -> None:
    world = World(tmp_path, accepts_until="2026-01-01")
    with pytest.raises(DataError, match="line 1: code"):
        world.send({"id": "a", "code": "7"})
    assert world.send({"id": "b", "code": 8})["rows"] == 1
