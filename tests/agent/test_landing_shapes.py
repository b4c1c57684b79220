"""Lines for a landing table whose columns were renamed and widened, as read by Delta's own reader. No Java."""

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console import crash, open_release
from console.agent.feeds.follower import FeedFollower
from console.agent.ingest.acceptance_day import accept_until
from console.agent.ingest.landing import LandingWriter
from console.agent.ingest.shape import Reading, spread
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases
from console.errors import ConsoleError, DataError, SchemaMoved
from console.model.live import Intake, Release, TableState, Version
from console.model.load import START, EventRun, chain_of
from console.model.schema import Column, Table

pytestmark = pytest.mark.slow

STORED = pa.schema(
    [("id", pa.string()), ("ip", pa.string()), ("n", pa.int32()), ("n@bigint", pa.int64()), ("x", pa.float32()),
     ("x@double", pa.float64()), ("day", pa.date32()), ("day@timestamp", pa.timestamp("us", "UTC")), ("old", pa.string())]
)  # fmt: skip
BEFORE = {"id": "string", "ip": "string", "n": "int", "x": "float", "day": "date"}
AFTER = {"id": "string", "client": "string", "n": "bigint", "x": "double", "day": "timestamp"}
WIDER = (
    Intake("id", ("id",)), Intake("client", ("ip",)), Intake("n", ("n", "n@bigint")), Intake("x", ("x", "x@double")),
    Intake("day", ("day", "day@timestamp")),
)  # fmt: skip


READ = (
    "SELECT `id`, `ip` AS `client`, COALESCE(`n@bigint`, CAST(`n` AS BIGINT)) AS `n`, COALESCE(`x@double`, CAST(`x` AS DOUBLE)) AS `x`,"
    " COALESCE(`day@timestamp`, CAST(`day` AS TIMESTAMP)) AS `day` FROM stored"
)


def state(columns: dict[str, str], intake: tuple[Intake, ...] = (), read: str = "SELECT * FROM stored") -> TableState:
    declared = tuple(Column(name=name, type=type) for name, type in columns.items())
    table = Table(name="landing", kind="landing", columns=declared, managed=True)
    version = Version(content="c", path="landing", columns=declared)
    return TableState(table=table, version=version, read=read, rows="", values={}, intake=intake)


class World:
    """A region with two releases of one landing table, the newer one live."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = str(root / "landing")
        write_deltalake(self.path, pa.Table.from_pylist([], STORED))
        spark = SparkHandle(Settings(region="eu"), -1)
        follower = FeedFollower(spark, 1.0, lambda *_: None)
        self.controller = PipelineController(root, "web", spark, follower, Settings(region="eu"))
        self.writer = LandingWriter(self.controller)
        self.propose("r1", state(BEFORE))
        self.propose("r2", state(AFTER, WIDER, READ))
        self.promote("", "r1")
        self.promote("r1", "r2")

    def propose(self, id: str, table: TableState) -> None:
        release = Release(id=id, pipeline="web", digest="d", tables=(table,), feeds=())
        self.controller.releases.propose(release, f"web-{id[1:]}", "ada", "laptop")

    def promote(self, live: str, to: str) -> None:
        self.controller.releases.swap(live, to, "ada", "laptop")

    def send(self, *lines: dict[str, Any], batch: str = "b1") -> dict[str, Any]:
        return self.writer.append("landing", batch, [json.dumps(line) for line in lines])

    def rows(self) -> list[dict[str, Any]]:
        return sorted(DeltaTable(self.path).to_pyarrow_table().to_pylist(), key=lambda row: row["id"] or "")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_lines_of_both_shapes_in_one_batch_land_in_the_same_columns(world: World) -> None:
    world.send({"id": "a", "ip": "1.1.1.1", "n": 1}, {"id": "b", "client": "2.2.2.2", "n": 2})
    assert [(row["ip"], row["n"], row["n@bigint"]) for row in world.rows()] == [
        ("1.1.1.1", 1, None),
        ("2.2.2.2", 2, None),
    ]


def test_a_value_that_only_the_wider_type_holds_lies_there_alone(world: World) -> None:
    world.send({"id": "a", "n": 5_000_000_000, "x": 1e300, "day": "2026-11-20T10:00:00Z"})
    (row,) = world.rows()
    assert (row["n"], row["n@bigint"], row["x"], row["x@double"]) == (None, 5_000_000_000, None, 1e300)
    assert (row["day"], row["day@timestamp"]) == (None, datetime(2026, 11, 20, 10, tzinfo=UTC))


def test_a_value_that_the_older_type_rounds_lies_in_both(world: World) -> None:
    world.send({"id": "a", "x": 0.1, "day": "2026-11-20"}, {"id": "b", "x": 0.5})
    rounded, exact = world.rows()
    assert (rounded["x"], rounded["x@double"]) == (struct.unpack("f", struct.pack("f", 0.1))[0], 0.1)
    assert (rounded["day"], rounded["day@timestamp"]) == (date(2026, 11, 20), None)
    assert (exact["x"], exact["x@double"]) == (0.5, None)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_was_sent_in_either_shape_is_what_the_release_shows(world: World, data: st.DataObject) -> None:
    """Judged by DuckDB through the release's own read."""
    ints, wide = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
    floats = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False, width=32)
    days = st.dates(date(1900, 1, 1), date(2200, 1, 1))
    moments = st.datetimes(datetime.min.replace(year=1900), datetime.min.replace(year=2200))
    nothing = st.none()
    sent = []
    for number in range(data.draw(st.integers(1, 4))):
        older = data.draw(st.booleans())
        n, x = data.draw(nothing | (ints if older else ints | wide)), data.draw(nothing | floats)
        day = data.draw(nothing | (days if older else days | moments))
        name = "ip" if older else "client"
        line = {"id": f"{number}", name: f"c{number}", "n": n, "x": x, "day": None if day is None else day.isoformat()}
        at = day if day is None or isinstance(day, datetime) else datetime.combine(day, datetime.min.time())
        sent.append((line, {"id": f"{number}", "client": f"c{number}", "n": n, "x": x, "day": at}))
    DeltaTable(world.path).delete()
    world.send(*(line for line, _ in sent), batch=uuid4().hex)
    rows = open_release(warehouse=world.root, pipeline="web").arrow("landing").to_pylist()
    shown = [{**row, "day": row["day"] and row["day"].replace(tzinfo=None)} for row in rows]
    assert sorted(shown, key=lambda row: row["id"]) == [row for _, row in sent]


def test_a_batch_is_sorted_by_the_clustering_columns_under_whatever_name_they_are_stored(world: World) -> None:
    newest = state(AFTER, WIDER, READ)
    world.propose("r3", replace(newest, table=replace(newest.table, cluster_by=("client", "n"))))
    world.promote("r2", "r3")
    given = (("b", 2), ("a", 1), ("b", 1), ("a", 2))
    world.send(*({"id": f"{at}", "client": client, "n": n} for at, (client, n) in enumerate(given)))
    stored = DeltaTable(world.path).to_pyarrow_table().to_pylist()
    assert [(row["ip"], row["n"], row["id"]) for row in stored] == [
        ("a", 1, "1"),
        ("a", 2, "3"),
        ("b", 1, "2"),
        ("b", 2, "0"),
    ]


def test_a_program_without_spark_reads_no_column_that_spark_computes(world: World) -> None:
    world.propose("r3", state(AFTER, WIDER, "SELECT `id`, COALESCE(`n`, TRY_CAST(`old` AS INT)) AS `n` FROM stored"))
    world.promote("r2", "r3")
    with pytest.raises(DataError, match="is computed as Spark computes it: TRY_CAST") as refused:
        open_release(warehouse=world.root, pipeline="web").arrow("landing")
    assert refused.value.code == "E_COMPUTED"


def test_a_column_that_no_release_declares_any_more_is_still_taken(world: World) -> None:
    world.send({"id": "a", "old": "kept"})
    assert world.rows()[0]["old"] == "kept"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"id": "b", "ip": "1", "client": "2"}, "line 2 gives ip and client, which are one column"),
        ({"id": "b", "n@bigint": 1}, "line 2 has the unknown key 'n@bigint'; the columns are id, client, n, x, day"),
        ({"id": "b", "n": 10**20}, "line 2: n: 100000000000000000000 is not a valid int64"),
        ({"id": "b", "client": 7}, "line 2: client: 7 is not a valid string"),
        ({"id": "b", "x": "much"}, "line 2: x: 'much' is not a valid double"),
    ],
)
def test_a_line_that_fits_neither_shape_refuses_its_batch_by_the_names_that_are_live(
    world: World, line: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError) as refused:
        world.send({"id": "a"}, line)
    assert str(refused.value) == says
    assert world.rows() == []


def test_after_a_rollback_the_same_batch_is_acknowledged_and_new_lines_of_both_shapes_land(world: World) -> None:
    line = {"id": "a", "client": "1.1.1.1", "n": 5_000_000_000}
    assert world.send(line)["already"] is False
    world.promote("r2", "r1")
    assert world.send(line)["already"] is True
    world.send({"id": "b", "client": "2.2.2.2", "n": 6_000_000_000}, {"id": "c", "ip": "3.3.3.3", "n": 3}, batch="b2")
    world.promote("r1", "r2")
    assert world.send(line)["already"] is True
    results = [(row["ip"], row["n"], row["n@bigint"]) for row in world.rows()]
    assert results == [("1.1.1.1", None, 5_000_000_000), ("2.2.2.2", None, 6_000_000_000), ("3.3.3.3", 3, None)]


def test_two_switches_in_a_day_end_no_shape(world: World) -> None:
    third = {name: type for name, type in AFTER.items() if name != "client"} | {"who": "string"}
    world.propose(
        "r3", state(third, tuple(replace(each, column="who") if each.column == "client" else each for each in WIDER))
    )
    world.promote("r2", "r3")
    world.send({"id": "a", "ip": "1"}, {"id": "b", "client": "2"}, {"id": "c", "who": "3"})
    assert [row["ip"] for row in world.rows()] == ["1", "2", "3"]
    with pytest.raises(DataError, match="gives ip and who, which are one column"):
        world.send({"id": "d", "ip": "1", "who": "3"}, batch="b2")


def test_once_the_release_that_had_them_is_cleaned_up_its_names_are_refused(world: World) -> None:
    world.controller.releases.drop("r1")
    with pytest.raises(DataError, match="unknown key 'ip'; the columns are id, client"):
        world.send({"id": "a", "ip": "1.1.1.1"})
    world.send({"id": "a", "client": "1.1.1.1"})


def test_under_another_name_the_table_is_found_by_both_until_the_cleanup(world: World) -> None:
    moved = state(AFTER, WIDER, READ)
    world.propose("r3", replace(moved, table=replace(moved.table, name="events")))
    world.promote("r2", "r3")
    line = {"id": "a", "client": "1.1.1.1"}
    assert world.send(line)["already"] is False
    assert world.writer.append("events", "b1", [json.dumps(line)])["already"] is True
    for id in ("r1", "r2"):
        world.controller.releases.drop(id)
    with pytest.raises(DataError, match="landing is not a landing table of release r3"):
        world.send(line)


def until(world: World, day: str, **types: str) -> None:
    """The live release, with a day for the older shapes; the release that had them is cleaned up."""
    newest = state({**AFTER, **types}, WIDER, READ)
    world.propose(
        "r3",
        replace(
            newest,
            table=replace(newest.table, accepts_until=day),
            older=(Intake("ip", ("ip",)), Intake("old", ("old",))),
        ),
    )
    world.promote("r2", "r3")


def test_older_names_are_taken_until_the_day_that_the_file_names_cleaned_up_or_not(world: World) -> None:
    until(world, "2999-01-01")
    for id in ("r1", "r2"):
        world.controller.releases.drop(id)
    world.send({"id": "a", "ip": "1", "old": "x"}, {"id": "b", "client": "2"})
    assert [(row["ip"], row["old"]) for row in world.rows()] == [("1", "x"), ("2", None)]


@pytest.mark.parametrize("name", ["ip", "old"])
def test_from_that_day_on_they_are_refused_by_name(world: World, name: str) -> None:
    until(world, "2020-01-01")
    with pytest.raises(DataError) as refused:
        world.send({"id": "a"}, {"id": "b", name: "1"})
    columns = "the columns are id, client, n, x, day"
    assert str(refused.value) == f"line 2 has the key '{name}', which was taken until 2020-01-01; {columns}"
    assert "accepts_until" in refused.value.hint
    assert world.rows() == []
    assert world.send({"id": "a", "client": "1"})["rows"] == 1


def test_the_day_is_moved_in_the_live_release_without_a_rollout_and_a_new_agent_knows_it(world: World) -> None:
    until(world, "2020-01-01")
    with pytest.raises(DataError, match="was taken until 2020-01-01"):
        world.send({"id": "a", "ip": "1"})
    row = world.controller.releases.all()[-1].row
    assert accept_until(world.controller, "r3", {"landing": "2999-01-01"}, "ada", "laptop") == {"landing": "2999-01-01"}
    assert accept_until(world.controller, "r3", {"landing": "2999-01-01"}, "ada", "laptop") == {}
    assert world.send({"id": "a", "ip": "1"})["rows"] == 1
    again = Releases(world.root, "web").all()[-1]
    assert (again.release.tables[0].table.accepts_until, again.row) == ("2999-01-01", row)
    accept_until(world.controller, "r3", {"landing": ""}, "ada", "laptop")
    for id in ("r1", "r2"):
        world.controller.releases.drop(id)
    with pytest.raises(DataError, match="unknown key 'ip'"):
        world.send({"id": "b", "ip": "1"}, batch="b2")


@pytest.mark.parametrize("at", ["before-accept-until", "after-accept-until"])
def test_killed_while_the_day_moves_it_is_the_one_or_the_other_and_moves_when_asked_again(
    world: World, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(world, "2020-01-01")

    def killed(point: str) -> None:
        if point == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(crash, "point", killed)
    with pytest.raises(KeyboardInterrupt):
        accept_until(world.controller, "r3", {"landing": "2999-01-01"}, "ada", "laptop")
    monkeypatch.undo()
    (results,) = {state.table.accepts_until for state in Releases(world.root, "web").all()[-1].release.tables}
    assert results == ("2020-01-01" if at.startswith("before") else "2999-01-01")
    accept_until(world.controller, "r3", {"landing": "2999-01-01"}, "ada", "laptop")
    assert world.send({"id": "a", "ip": "1"})["rows"] == 1


@pytest.mark.parametrize(
    ("release", "days", "says"),
    [
        ("r2", {"landing": "2999-01-01"}, "r3 is live, not r2"),
        ("r3", {"lending": "2999-01-01"}, "lending is not a managed landing table of r3"),
        ("r3", {"landing": "tomorrow"}, "'tomorrow' is not a day such as 2026-12-01"),
    ],
)
def test_a_day_that_cannot_be_moved_is_refused_and_stays(
    world: World, release: str, days: dict[str, str], says: str
) -> None:
    until(world, "2020-01-01")
    with pytest.raises(ConsoleError, match=says):
        accept_until(world.controller, release, days, "ada", "laptop")
    assert world.controller.live().tables[0].table.accepts_until == "2020-01-01"


def test_from_that_day_on_a_value_of_the_older_type_is_refused(world: World) -> None:
    chain = Intake("old", ("n", "old"))  # a number that became a text
    shown = state({"id": "string", "old": "string"}, (Intake("id", ("id",)), chain))
    for id, day in (("r3", "2999-01-01"), ("r4", "2020-01-01")):
        world.propose(id, replace(shown, table=replace(shown.table, accepts_until=day)))
    world.promote("r2", "r3")
    world.send({"id": "a", "old": 7}, {"id": "b", "old": "seven"})
    world.promote("r3", "r4")
    with pytest.raises(DataError, match="line 1: old: 7 is not a valid string"):
        world.send({"id": "c", "old": 7}, batch="b2")
    world.send({"id": "c", "old": "eight"}, batch="b3")
    assert [(row["n"], row["old"]) for row in world.rows()] == [(7, None), (None, "seven"), (None, "eight")]


def test_lines_that_were_checked_against_other_names_are_checked_again(world: World) -> None:
    line = '{"id": "a", "client": "1.1.1.1"}'
    world.promote("r2", "r1")
    schema = world.writer.check("landing", [line], [(1, 1)])["schema"]
    world.controller.releases.drop("r2")
    first = chain_of(START, [line])[0].hex()
    run = EventRun(load="a", first=first, after=0, before=START.hex(), at=((1, 1),), schema=schema, named=True)
    with pytest.raises(SchemaMoved):
        world.writer.append("landing", "b", [line], run)


def reading_where(kind: Callable[[Any], Any], test: Callable[[Any], bool]) -> Reading:
    return Reading(lambda value: kind(value) if test(value) else None)


CHAIN = (
    reading_where(int, lambda v: isinstance(v, int) and abs(v) < 2**31),
    reading_where(int, lambda v: isinstance(v, int) and abs(v) < 2**63),
    reading_where(float, lambda v: isinstance(v, float) or abs(v) < 2**53),
)


@settings(max_examples=300)
@given(st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)))
def test_the_widest_column_that_took_a_value_gives_it_back(value: float) -> None:
    takes = spread(value, CHAIN)
    given_back = [reading.read(value) for reading, taken in zip(CHAIN, takes, strict=True) if taken]
    fits = [result for reading in CHAIN if (result := reading.read(value)) is not None]
    assert bool(given_back) is bool(fits)
    assert given_back[-1:] == fits[-1:] == ([value] if fits else [])
    assert _apart(given_back)


def _apart(values: Sequence[Any]) -> bool:
    """No value is stored twice in forms that are equal."""
    return all(a != b for a, b in pairwise(values))
