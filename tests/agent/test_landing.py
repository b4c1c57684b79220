"""Batches for landing: matched by column name, typed strictly, each counted once. No Java."""

import json
from base64 import b64decode
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from console.agent.feeds.follower import FeedFollower
from console.agent.ingest import loads
from console.agent.ingest.landing import LandingWriter
from console.agent.ingest.parsing import parse_lines, typed
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.errors import ConsoleError, DataError
from console.model.live import Release, TableState, Version
from console.model.load import MARK_BYTES, START, EventRun, chain_of
from console.model.schema import Column, Table

pytestmark = pytest.mark.slow

COLUMNS = (
    Column(name="id", type="string"),
    Column(name="ts", type="timestamp"),
    Column(name="n", type="bigint"),
    Column(name="payload", type="string"),
)
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("payload", pa.string()),
     ("small", pa.int8()), ("x", pa.float64()), ("x4", pa.float32()), ("money", pa.decimal128(20, 4)), ("day", pa.date32()),
     ("yes", pa.bool_()), ("raw", pa.binary()), ("at", pa.struct([("lat", pa.float64()), ("n", pa.int64())])),
     ("many", pa.list_(pa.int64())), ("many_ts", pa.list_(pa.timestamp("us", "UTC"))), ("by", pa.map_(pa.string(), pa.decimal128(20, 4)))]
)  # fmt: skip


@pytest.fixture
def writer(tmp_path: Path) -> LandingWriter:
    """A region whose live release has one managed landing table and one that others write."""
    tables = []
    for name, managed in (("landing", True), ("foreign", False)):
        write_deltalake(str(tmp_path / name), pa.Table.from_pylist([], SCHEMA))
        table = Table(name=name, kind="landing", columns=COLUMNS, time="ts", managed=managed)
        tables.append(
            TableState(
                table=table,
                version=Version(content=name, path=name, columns=COLUMNS),
                read="SELECT * FROM stored",
                rows="",
                values={},
            )
        )
    spark = SparkHandle(Settings(region="eu"), -1)
    controller = PipelineController(
        tmp_path, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu")
    )
    controller.releases.propose(
        Release(id="r1", pipeline="web", digest="d", tables=tuple(tables), feeds=()), "web-1", "ada", "laptop"
    )
    controller.releases.swap("", "r1", "ada", "laptop")
    return LandingWriter(controller)


def landed(tmp_path: Path) -> list[dict[str, object]]:
    return DeltaTable(str(tmp_path / "landing")).to_pyarrow_table().to_pylist()


def test_a_batch_sent_three_times_counts_once(writer: LandingWriter, tmp_path: Path) -> None:
    line = json.dumps({"id": "a", "n": 3, "ts": "2026-11-20T10:00:00Z", "payload": {"k": [1, None]}})
    answers = [writer.append("landing", "b1", [line]) for _ in range(3)]
    assert [answer["already"] for answer in answers] == [False, True, True]
    (row,) = landed(tmp_path)
    assert (row["id"], row["n"], row["payload"]) == ("a", 3, '{"k": [1, null]}')


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "a", "n": "three"}', "line 2: n: 'three' is not a valid int64"),
        ('{"id": 7}', "line 2: id: 7 is not a valid string"),
        ('{"n": true}', "line 2: n: True is not a valid int64"),
        ('{"ts": "yesterday"}', "line 2: ts: 'yesterday' is not a valid timestamp"),
        ('{"n": 99999999999999999999}', "is not a valid int64"),
        ('{"nn": 1}', "line 2 has the unknown key 'nn'; the columns are id, ts, n, payload"),
        ('{"n": 1.9}', "line 2: n: 1.9 is not a valid int64"),
        ('{"n": 9007199254740993.5}', "line 2: n: 9007199254740993.5 is not a valid int64"),
        ('{"n": 1e999999999}', "line 2: n: 1E+999999999 is not a valid int64"),
        ('{"n": 1e99999999999999999999}', "line 2 is not valid JSON"),
        ('{"small": 128}', "line 2: small: 128 is not a valid int8"),
        ('{"ts": 1763632800}', "line 2: ts: 1763632800 is not a valid timestamp"),
        ('{"ts": 1763632800.5}', "line 2: ts: 1763632800.5 is not a valid timestamp"),
        ('{"ts": "2026-11-20T10:00:00.1234567Z"}', "is finer than a microsecond"),
        ('{"ts": "2026-11-20T10:00:00,1234560001+02:00"}', "is finer than a microsecond"),
        (
            '{"many_ts": ["2026-11-20T10:00:00.000000001Z"]}',
            "line 2: many_ts: '2026-11-20T10:00:00.000000001Z' is finer",
        ),
        ('{"day": 20412}', "line 2: day: 20412 is not a valid date32"),
        ('{"day": true}', "line 2: day: True is not a valid date32"),
        ('{"x": 1e400}', "line 2: x: 1E+400 is not a valid double"),
        ('{"x": 1e-400}', "line 2: x: 1E-400 is not a valid double"),
        ('{"x": true}', "line 2: x: True is not a valid double"),
        ('{"x": "1.5"}', "line 2: x: '1.5' is not a valid double"),
        ('{"x": 1152921504606846977}', "line 2: x: 1152921504606846977 is not a valid double"),
        ('{"x": NaN}', "line 2 is not valid JSON"),
        ('{"x": -Infinity}', "line 2 is not valid JSON"),
        ('{"x4": 1e300}', "line 2: x4: 1E+300 is not a valid float"),
        ('{"money": 0.00001}', "line 2: money: 0.00001 is not a valid decimal128"),
        ('{"money": "NaN"}', "line 2: money: 'NaN' is not a valid decimal128"),
        ('{"money": "1_000"}', "line 2: money: '1_000' is not a valid decimal128"),
        ('{"money": true}', "line 2: money: True is not a valid decimal128"),
        ('{"yes": 1}', "line 2: yes: 1 is not a valid bool"),
        ('{"raw": 1.5}', "line 2: raw: 1.5 is not a valid binary"),
        ('{"id": 1.5}', "line 2: id: 1.5 is not a valid string"),
        ('{"at": {"lat": 1.5, "n": 1.5}}', 'line 2: at: {"lat": 1.5, "n": 1.5} is not a valid struct'),
        ('{"at": {"lat": 1.5, "lon": 2}}', 'line 2: at: {"lat": 1.5, "lon": 2} is not a valid struct'),
        ('{"at": [1.5, 1]}', r"line 2: at: \[1.5, 1\] is not a valid struct"),
        ('{"many": [1, 2.5]}', r"line 2: many: \[1, 2.5\] is not a valid list"),
        ('{"many": {"1": 1}}', 'line 2: many: {"1": 1} is not a valid list'),
        ('{"by": {"a": 0.00001}}', 'line 2: by: {"a": 0.00001} is not a valid map'),
        ('{"n": 1, "n": 2}', "line 2: 'n' occurs twice in one object"),
        ('{"payload": {"a": 1, "b": 2, "a": 1}}', "line 2: 'a' occurs twice in one object"),
        ('{"id": "x", "n": 1, "day": null, "n": 2}', "line 2: 'n' occurs twice in one object"),
        ('{"id": "x", "n": 1, "day": null, "n": 2, "n": 3}', "line 2: 'n' occurs twice in one object"),
        (
            f'{{"payload": {"[" * 700}1.5{"]" * 700}}}',
            "line 2: payload: a value nested that deeply is not a valid string",
        ),
        ("[1]", "line 2 is not a JSON object"),
        ("{", "line 2 is not valid JSON"),
    ],
)
def test_a_line_that_does_not_fit_refuses_the_whole_batch_by_its_number(
    writer: LandingWriter, tmp_path: Path, line: str, says: str
) -> None:
    before = DeltaTable(str(tmp_path / "landing")).version()
    with pytest.raises(DataError, match=says.replace("(", r"\(").replace("+", r"\+")):
        writer.append("landing", "b1", ['{"id": "good"}', line])
    assert DeltaTable(str(tmp_path / "landing")).version() == before
    assert writer.append("landing", "b1", ['{"id": "good"}'])["already"] is False


@pytest.mark.parametrize("value", ["NaN", "sNaN", "-Infinity"])
def test_what_is_no_number_is_refused_by_its_line_in_a_partition_as_well(tmp_path: Path, value: str) -> None:
    empty = pa.table({"n": pa.array([], pa.int64()), "money": pa.array([], pa.decimal128(20, 4))})
    write_deltalake(str(tmp_path / "t"), empty, partition_by=["money"])
    with pytest.raises(DataError, match=f"line 2: money: '{value}' is not a valid decimal128"):
        typed(DeltaTable(str(tmp_path / "t")), [{"n": 1, "money": None}, {"n": 2, "money": value}])


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        ('{"n": 3.0}', "n", 3),
        ('{"n": -9223372036854775808}', "n", -(2**63)),
        ('{"n": 9.223372036854775807e18}', "n", 2**63 - 1),
        ('{"money": 9007199254740993.1234}', "money", Decimal("9007199254740993.1234")),
        ('{"money": "0.1"}', "money", Decimal("0.1000")),
        ('{"money": 7}', "money", Decimal("7.0000")),
        ('{"x": 0.1}', "x", 0.1),
        ('{"x": -0.0}', "x", 0.0),
        ('{"x": 3}', "x", 3.0),
        ('{"x4": 0.5}', "x4", 0.5),
        ('{"yes": false}', "yes", False),
        ('{"raw": "ab"}', "raw", b"ab"),
        ('{"day": "2026-11-20"}', "day", date(2026, 11, 20)),
        ('{"ts": "2026-11-20T10:00:00+02:00"}', "ts", datetime(2026, 11, 20, 8, tzinfo=UTC)),
        ('{"ts": "2026-11-20T10:00:00.123456000Z"}', "ts", datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)),
        ('{"ts": "2026-11-20T10:00:00.5Z"}', "ts", datetime(2026, 11, 20, 10, 0, 0, 500000, tzinfo=UTC)),
        ('{"at": {"lat": 1.25, "n": null}}', "at", {"lat": 1.25, "n": None}),
        ('{"many": [1, null, 2e0]}', "many", [1, None, 2]),
        ('{"by": {"a": 0.5, "b": null}}', "by", [("a", Decimal("0.5000")), ("b", None)]),
        ('{"payload": {"p": 12345678901234567890.10, "é": [1.5, "x", true, null]}}', "payload",
         '{"p": 12345678901234567890.10, "\\u00e9": [1.5, "x", true, null]}'),
        ('{"n": null}', "n", None),
    ],
)  # fmt: skip
def test_a_value_lands_as_it_was_written(
    writer: LandingWriter, tmp_path: Path, line: str, column: str, value: object
) -> None:
    writer.append("landing", "b1", [line])
    (row,) = landed(tmp_path)
    assert row[column] == value


@pytest.mark.parametrize("far", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_no_partition_can_have_is_refused_by_its_line(
    writer: LandingWriter, tmp_path: Path, far: str
) -> None:
    near = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", None)
    write_deltalake(str(tmp_path / "landing"), pa.Table.from_pylist([], SCHEMA), mode="overwrite",
                    partition_by=["ts"], schema_mode="overwrite")  # fmt: skip
    lines = [json.dumps({"id": "a", "ts": at}) for at in (*near, far)]
    with pytest.raises(DataError, match=r"line 4: ts: .* would be outside the years 0001 to 9999 in UTC"):
        writer.append("landing", "b1", lines)
    assert landed(tmp_path) == []
    writer.append("landing", "b1", lines[:-1])
    assert len(landed(tmp_path)) == len(near)


def test_a_landing_table_of_others_is_not_written(writer: LandingWriter) -> None:
    with pytest.raises(DataError, match="foreign is not managed"):
        writer.append("foreign", "b1", ["{}"])


@given(st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_row_or_an_error_of_ours(text: str) -> None:
    try:
        rows = parse_lines([text], ["id"])
    except ConsoleError:
        return
    assert all(set(row) <= {"id"} for row in rows)


@settings(max_examples=60)
@given(
    st.sampled_from(["decimal", "double", "binary", "int"]),
    st.one_of(
        st.decimals(-(10**6), 10**6, places=4).map(str),
        st.sampled_from(["-1.25", "-0.01", "1e300", "1e-300", "1e16", "-100", "0", '"ab"', '"\\u00e9"']),
    ),
)
def test_a_value_that_lands_in_a_partition_is_read_as_it_was_sent(kind: str, text: str) -> None:
    """By the log's own words, and not by a reader that mends its writer's spelling."""
    types = {"decimal": pa.decimal128(20, 4), "double": pa.float64(), "binary": pa.binary(), "int": pa.int64()}[kind]
    with TemporaryDirectory() as place:
        write_deltalake(place, pa.table({"n": pa.array([], pa.int64()), "p": pa.array([], types)}), partition_by=["p"])
        table = DeltaTable(place)
        try:
            rows = typed(table, parse_lines([f'{{"n": 1, "p": {text}}}'], ["n", "p"]))
        except DataError:
            return
        write_deltalake(place, rows, mode="append")
        (add,) = [
            action["add"]
            for path in (Path(place) / "_delta_log").glob("*1.json")
            for action in map(json.loads, path.read_text().splitlines())
            if "add" in action
        ]
        stored, sent = add["partitionValues"]["p"], rows["p"].to_pylist()[0]
        assert (stored.encode() if kind == "binary" else type(sent)(stored)) == sent


@pytest.mark.parametrize(
    ("number", "fits"),
    [("0", True), ("1e199", True), ("-1e199", True), ("1e-199", True), ("-1e-199", True),
     ("1e200", False), ("-1e200", False), ("1e-200", False), ("-1e201", False), ("1e-201", False)],
)  # fmt: skip
def test_a_number_with_more_digits_than_a_folders_name_has_letters_is_refused(number: str, fits: bool) -> None:
    with TemporaryDirectory() as place:
        write_deltalake(place, pa.table({"p": pa.array([], pa.float64())}), partition_by=["p"])
        lines = parse_lines([f'{{"p": {number}}}'], ["p"])
        if fits:
            assert typed(DeltaTable(place), lines)["p"].to_pylist() == [float(number)]
            return
        with pytest.raises(DataError, match="too long for a folder's name") as refused:
            typed(DeltaTable(place), lines)
        assert refused.value.code == "E_PARTITION_VALUE"


@pytest.mark.parametrize(
    ("number", "fits"), [("0", True), ("0.0", True), ("1.25", True), ("-2", True), ("-1.25", False), ("-0.01", False)]
)
def test_of_decimals_only_a_negative_fraction_has_no_spelling_in_a_partition(number: str, fits: bool) -> None:
    with TemporaryDirectory() as place:
        write_deltalake(place, pa.table({"p": pa.array([], pa.decimal128(20, 4))}), partition_by=["p"])
        lines = parse_lines([f'{{"p": {number}}}'], ["p"])
        if fits:
            assert typed(DeltaTable(place), lines)["p"].to_pylist() == [Decimal(number)]
            return
        with pytest.raises(DataError, match="no number"):
            typed(DeltaTable(place), lines)


def part(load: str, after: int, events: list[str], line: int = 1) -> tuple[EventRun, str]:
    """Events of a load behind so many others, and the chain up to their end."""
    before = chain_of(START, (f'{{"n": {number}}}' for number in range(after)))[0]
    first = chain_of(START, ['{"n": 0}'])[0]
    run = EventRun(
        load=load, first=first.hex(), after=after, before=before.hex(), at=((line, len(events)),), named=True
    )
    return run, chain_of(before, events)[0].hex()


def events(first: int, count: int) -> list[str]:
    return [f'{{"n": {number}}}' for number in range(first, first + count)]


def test_each_commit_of_a_load_keeps_the_marks_of_its_own_events(writer: LandingWriter, tmp_path: Path) -> None:
    for after, count in ((0, 2), (2, 3)):
        run, chain = part("a", after, events(after, count), line=10 + after)
        assert writer.append("landing", f"b{after}", events(after, count), run) == {"rows": count, "already": False}
        note = log.commit(str(tmp_path / "landing"), 1 + after // 2).note
        end = 10 + after + count - 1
        assert (note["load"], note["lines"], note["hash"], note["rows"]) == (
            "a",
            [10 + after, end],
            chain,
            after + count,
        )
        assert note["rows_in"] == count
    marks = chain_of(START, events(0, 5))[1]
    assert b64decode(writer.marks("landing", "a", 2)["marks"]) == marks[: 2 * MARK_BYTES]
    assert b64decode(writer.marks("landing", "a", 5)["marks"]) == marks[2 * MARK_BYTES :]
    for load, rows in (("a", 3), ("b", 2), ("a", 0)):
        assert writer.marks("landing", load, rows) == {"marks": ""}


def test_what_landed_in_a_table_before_it_was_dropped_and_made_anew_has_not_landed(
    writer: LandingWriter, tmp_path: Path
) -> None:
    run = part("a", 0, events(0, 2))[0]
    for again in (False, True) * 5:
        assert writer.append("landing", "b", events(0, 2), run)["already"] is again
        state = writer.load_state("landing", "a", run.first, named=True, batch="", after=0)
        assert [head.rows for head in state.heads] == [2]
        if again:
            rmtree(tmp_path / "landing")
            for _ in range(3):  # as many commits as the one before it had, and more
                write_deltalake(str(tmp_path / "landing"), pa.Table.from_pylist([], SCHEMA), mode="append")
            state = writer.load_state("landing", "a", run.first, named=True, batch="", after=0)
            assert (state.heads, state.ends) == ((), ())


def test_a_load_is_known_from_the_checkpoint_alone_by_a_process_that_has_read_nothing(
    writer: LandingWriter, tmp_path: Path
) -> None:
    path, run = tmp_path / "landing", part("a", 0, events(0, 2))[0]
    writer.append("landing", "b", events(0, 2), run)
    for n in (2, 3):
        write_deltalake(str(path), pa.Table.from_pylist([], SCHEMA), mode="append")
        if n == 2:
            DeltaTable(str(path)).create_checkpoint()
    for version in range(2):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    loads.forget()
    state = writer.load_state("landing", "a", run.first, named=True, batch="", after=0)
    assert [(head.load, head.rows, head.line) for head in state.heads] == [("a", 2, 2)]
    assert writer.append("landing", "c", events(0, 2), run) == {"rows": 0, "already": True}
    assert len(landed(tmp_path)) == 2


def test_marks_that_the_logs_retention_let_go_are_gone(writer: LandingWriter, tmp_path: Path) -> None:
    path = tmp_path / "landing"
    writer.append("landing", "b", events(0, 2), part("a", 0, events(0, 2))[0])
    DeltaTable(str(path)).create_checkpoint()
    for version in range(2):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    assert writer.marks("landing", "a", 2) == {"marks": ""}


@pytest.mark.parametrize("at", [[(0, 2)], [(-1, 2)], [(1, 1)], [(1, 3)], [(1, 2), (3, 0)], [(1, 3), (4, -1)], []])
def test_numbers_of_lines_that_do_not_fit_the_lines_are_refused(
    writer: LandingWriter, at: list[tuple[int, int]]
) -> None:
    with pytest.raises(DataError) as refused:
        writer.check("landing", events(0, 2), at)
    assert refused.value.code == "E_PROTOCOL"


@pytest.mark.parametrize("at", [[(1, 2)], [(7, 1), (9, 1)]])
def test_a_line_that_does_not_fit_is_named_by_its_number_in_the_file(
    writer: LandingWriter, at: list[tuple[int, int]]
) -> None:
    assert set(writer.check("landing", events(0, 2), at)) == {"schema"}
    with pytest.raises(DataError, match=f"line {2 if at[0][0] == 1 else 9}: n: 'x' is not a valid int64"):
        writer.check("landing", [*events(0, 1), '{"n": "x"}'], at)
