"""A sink replaces its own last output and nothing else; whichever run died in its folder, the next one has the same result. No Java."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.store import exports
from console.errors import DataError

pytestmark = pytest.mark.slow


def rows(text: str, count: int = 1) -> Callable[[Path], int]:
    """What Spark does: a folder with one file and its own mark."""

    def write(fresh: Path) -> int:
        fresh.mkdir()
        (fresh / "part-0.json").write_text(text)
        (fresh / "_SUCCESS").touch()
        return count

    return write


def put(lake: Path, path: str, text: str, pipeline: str = "web") -> int:
    return exports.put(exports.output(lake, path, pipeline, "dump"), rows(text, 3))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_output_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    assert put(tmp_path, "exports/dump", "first") == 3
    put(tmp_path, "exports/dump", "second")
    assert (tmp_path / "exports/dump/part-0.json").read_text() == "second"
    assert sorted(path.name for path in (tmp_path / "exports").iterdir()) == ["dump"]
    assert sorted(path.name for path in (tmp_path / "exports/dump").iterdir()) == ["_CONSOLE_SINK", "_SUCCESS", "part-0.json"]  # fmt: skip


def table(place: Path) -> None:
    write_deltalake(str(place), pa.table({"id": ["a"]}))


def theirs(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "part-0.json").write_text("somebody's")


def marked_table(place: Path) -> None:
    put(place.parent, place.name, "ours")
    table(place)


def with_a_folder(place: Path) -> None:
    put(place.parent, place.name, "ours")
    theirs(place / "kept")


def a_file(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("somebody's")


@pytest.mark.parametrize(
    ("path", "before", "says"),
    [
        ("requests/abc-1", lambda lake: table(lake / "requests/abc-1"), "is a Delta table"),
        ("requests", lambda lake: table(lake / "requests/abc-1"), "was not written by a sink"),
        ("requests/abc-1/out", lambda lake: table(lake / "requests/abc-1"), "lies inside of"),
        ("out/dump", lambda lake: theirs(lake / "out/dump"), "was not written by a sink"),
        ("out/dump", lambda lake: a_file(lake / "out/dump"), "is a file"),
        ("out/dump", lambda lake: a_file(lake / "out"), "is a file"),
        ("out/dump", lambda lake: put(lake, "out/dump", "x", "shop"), "belongs to pipeline shop"),
        ("out/dump/deeper", lambda lake: put(lake, "out/dump", "x"), "another sink's output"),
        ("dump", lambda lake: marked_table(lake / "dump"), "is a Delta table"),
        ("dump", lambda lake: with_a_folder(lake / "dump"), "holds a folder that no sink wrote, 'kept'"),
        ("dump", lambda lake: theirs(lake / ".dump.console"), "is in the way"),
    ],
)  # fmt: skip
def test_what_no_sink_of_this_pipeline_wrote_is_refused_and_not_touched(
    tmp_path: Path, path: str, before: Callable[[Path], object], says: str
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    before(lake)
    was = contents(lake)

    def never(_: Path) -> int:
        raise AssertionError("the query was run for a place that is taken")

    with pytest.raises(DataError, match=says) as refused:
        exports.put(exports.output(lake, path, "web", "dump"), never)
    assert (refused.value.code, bool(refused.value.hint)) == ("E_SINK_TAKEN", True)
    assert contents(lake) == was


def test_what_came_to_lie_there_while_the_query_ran_is_not_touched(tmp_path: Path) -> None:
    def write(fresh: Path) -> int:
        table(tmp_path / "dump")
        return rows("late")(fresh)

    with pytest.raises(DataError, match="is a Delta table"):
        exports.put(exports.output(tmp_path, "dump", "web", "dump"), write)
    assert DeltaTable(str(tmp_path / "dump")).to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize("path", ["../x", "", ".", "_console/x", "/elsewhere/x", "link/x"])
def test_a_place_outside_of_the_warehouse_is_none(tmp_path: Path, path: str) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "link").symlink_to(tmp_path)
    with pytest.raises(DataError, match="is not below the warehouse"):
        exports.output(lake, path, "web", "dump")


KILLED = """
import sys
from collections.abc import Callable
from pathlib import Path
from console.agent.store import exports

def write(fresh):
    fresh.mkdir()
    (fresh / "part-0.json").write_text("second")
    return 1

exports.put(exports.output(Path(sys.argv[1]), "dump", "web", "dump"), write)
"""


@pytest.mark.parametrize(("point", "seen"), [("before-sink", ""), ("after-sink", "second")])
def test_killed_around_its_swap_it_runs_again_and_leaves_nothing_behind(tmp_path: Path, point: str, seen: str) -> None:
    lake, armed = tmp_path / "lake", tmp_path / "armed"
    armed.mkdir()
    (armed / point).touch()
    put(lake, "dump", "first")
    script = [sys.executable, "-c", KILLED, str(lake)]
    done = subprocess.run(script, env={"CONSOLE_CRASH_DIR": str(armed)}, check=False)
    assert done.returncode == -9
    part = lake / "dump" / "part-0.json"
    assert (part.read_text() if part.exists() else "") == seen

    def broken(_: Path) -> int:
        assert part.read_text() == (seen or "first"), "what was put aside by the dead one is back"
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        exports.put(exports.output(lake, "dump", "web", "dump"), broken)
    put(lake, "dump", "third")
    assert part.read_text() == "third"
    assert [path.name for path in lake.iterdir()] == ["dump"]
    assert json.loads((lake / "dump" / "_CONSOLE_SINK").read_text())["sink"] == "dump"
