"""Lines of two shapes that would each fit both, told apart by a marker or by the name under which they are sent. No Java."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.errors import DataError
from console.model.live import Intake, TableState
from console.model.schema import Accepts
from tests.agent.test_landing_shapes import World, state

pytestmark = pytest.mark.slow

STORED = pa.schema([(name, pa.string()) for name in ("id", "name", "name@string", "v", "old")])
BEFORE = {"id": "string", "name": "string"}
AFTER = {"id": "string", "name": "string", "v": "string"}
NEWER = (Intake("id", ("id",)), Intake("name", ("name@string",)), Intake("v", ("v",)))
READ = "SELECT id, COALESCE(`name@string`, UPPER(`name`)) AS name, v FROM stored"
UNMARKED = (Intake("id", ("id",)), Intake("name", ("name",)))
MARKER, NAMED = Accepts(marker="v"), Accepts(shape="v2")


def accepting(accepts: Accepts, until: str = "", columns: dict[str, str] | None = None) -> TableState:
    newest = state(columns or AFTER, NEWER, READ)
    return replace(newest, table=replace(newest.table, accepts=accepts, accepts_until=until), unmarked=UNMARKED)


class ShapedWorld(World):
    def __init__(self, root: Path, newest: TableState) -> None:
        root.mkdir()
        super().__init__(root)
        write_deltalake(self.path, pa.Table.from_pylist([], STORED), mode="overwrite", schema_mode="overwrite")
        self.propose("r3", state(BEFORE))
        self.promote("r2", "r3")
        for id in ("r1", "r2"):
            self.controller.releases.drop(id)
        self.propose("r4", newest)
        self.promote("r3", "r4")

    def put(self, *lines: dict[str, Any], batch: str = "b1", shape: str = "") -> dict[str, Any]:
        return self.writer.append("landing", batch, [json.dumps(line) for line in lines], shape=shape)

    def stored(self) -> list[tuple[Any, ...]]:
        rows = DeltaTable(self.path).to_pyarrow_table().to_pylist()
        return sorted((row["id"], row["name"], row["name@string"]) for row in rows)


@pytest.fixture
def marked(tmp_path: Path) -> ShapedWorld:
    return ShapedWorld(tmp_path / "marked", accepting(MARKER))


@pytest.fixture
def named(tmp_path: Path) -> ShapedWorld:
    return ShapedWorld(tmp_path / "named", accepting(NAMED))


def test_a_batch_of_both_shapes_is_told_apart_line_by_line(marked: ShapedWorld) -> None:
    marked.put({"id": "a", "name": "x"}, {"id": "b", "name": "Y", "v": "2"}, {"id": "c", "name": "z", "v": None})
    assert marked.stored() == [("a", "x", None), ("b", None, "Y"), ("c", "z", None)]


def test_lines_are_of_the_shape_under_which_they_are_sent(named: ShapedWorld) -> None:
    named.put({"id": "a", "name": "x"})
    named.put({"id": "b", "name": "Y"}, batch="b2", shape="v2")
    assert named.stored() == [("a", "x", None), ("b", None, "Y")]
    with pytest.raises(DataError) as refused:
        named.put({"id": "c"}, batch="b3", shape="v9")
    assert str(refused.value) == "landing has no shape v9; it has v2"


def test_a_name_is_refused_where_nothing_is_told_apart_by_one(marked: ShapedWorld) -> None:
    with pytest.raises(DataError, match="landing has no shape v2; its lines are not distinguished by a name"):
        marked.put({"id": "a"}, shape="v2")


def test_a_line_has_the_names_of_its_shape_alone(marked: ShapedWorld) -> None:
    newest = accepting(MARKER, columns={**AFTER, "more": "string"})
    newest = replace(newest, intake=(*NEWER, Intake("more", ("old",))))
    marked.propose("r5", newest)
    marked.promote("r4", "r5")
    marked.put({"id": "a", "more": "1", "v": "2"})
    with pytest.raises(DataError) as refused:
        marked.put({"id": "b", "v": "2"}, {"id": "c", "more": "1"}, batch="b2")
    assert str(refused.value) == "line 2 has the key 'more', which lines of its shape do not have"
    assert refused.value.hint == "a line that gives v is of the newer shape, any other of the older"
    assert [row[0] for row in marked.stored()] == ["a"]


@pytest.mark.parametrize(("accepts", "lacks"), [(MARKER, "does not give 'v'"), (NAMED, "was not sent as shape v2")])
def test_from_the_day_on_lines_of_the_older_shape_are_refused_by_name(
    tmp_path: Path, accepts: Accepts, lacks: str
) -> None:
    world = ShapedWorld(tmp_path / "ended", accepting(accepts, "2020-01-01"))
    shape = accepts.shape
    world.put({"id": "a", "name": "Y", "v": "2"}, shape=shape)
    with pytest.raises(DataError) as refused:
        world.put({"id": "b", "name": "x"}, batch="b2")
    assert str(refused.value) == f"line 1 {lacks}, and lines of the older shape were taken until 2020-01-01"
    assert [row[0] for row in world.stored()] == ["a"]


def test_until_that_day_they_are_taken_after_the_cleanup_too(tmp_path: Path) -> None:
    world = ShapedWorld(tmp_path / "later", accepting(MARKER, "2999-01-01"))
    world.controller.releases.drop("r3")
    world.put({"id": "a", "name": "x"}, {"id": "b", "name": "Y", "v": "2"})
    assert world.stored() == [("a", "x", None), ("b", None, "Y")]


def test_without_a_day_the_cleanup_ends_them(marked: ShapedWorld) -> None:
    marked.controller.releases.drop("r3")
    with pytest.raises(DataError, match="lines of the older shape are no longer accepted: their release is cleaned up"):
        marked.put({"id": "a", "name": "x"})


def test_after_a_rollback_lines_of_both_shapes_land_as_before_and_the_same_batch_counts_once(
    marked: ShapedWorld,
) -> None:
    lines = ({"id": "a", "name": "x"}, {"id": "b", "name": "Y", "v": "2"})
    marked.put(*lines)
    marked.promote("r4", "r3")
    assert marked.put(*lines)["already"] is True
    marked.put({"id": "c", "name": "x"}, {"id": "d", "name": "Y", "v": "2"}, batch="b2")
    marked.promote("r3", "r4")
    assert marked.stored() == [("a", "x", None), ("b", None, "Y"), ("c", "x", None), ("d", None, "Y")]


def test_two_changes_in_a_day_are_told_apart_as_well(marked: ShapedWorld) -> None:
    newest = accepting(Accepts(shape="v3"))
    again = (Intake("id", ("id",)), Intake("name", ("old",)), Intake("v", ("v",)))
    marked.propose("r5", replace(newest, intake=again))
    marked.promote("r4", "r5")
    marked.put({"id": "a", "name": "x"}, {"id": "b", "name": "Y", "v": "2"})
    marked.put({"id": "c", "name": "Z"}, batch="b2", shape="v3")
    assert marked.stored() == [("a", "x", None), ("b", None, "Y"), ("c", None, None)]
