"""Batches for landing: matched by column name, typed strictly, each counted once. No Java."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from console.agent.feeds.follow import Follower
from console.agent.intake import Intake, parse_lines
from console.agent.line import Line
from console.agent.session import Settings, Spark
from console.errors import ConsoleError, DataError
from console.model.live import Release, TableState, Version
from console.model.schema import Column, Table

COLUMNS = (Column("id", "string"), Column("ts", "timestamp"), Column("n", "bigint"), Column("payload", "string"))
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("payload", pa.string())]
)


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    """A region whose live release has one managed landing table and one that others write."""
    tables = []
    for name, managed in (("landing", True), ("foreign", False)):
        write_deltalake(str(tmp_path / name), pa.Table.from_pylist([], SCHEMA))
        table = Table(name, "landing", COLUMNS, time="ts", managed=managed)
        tables.append(TableState(table, Version(name, name, COLUMNS), "SELECT * FROM stored", "", {}))
    spark = Spark(Settings("eu"), -1)
    line = Line(tmp_path, "web", spark, Follower(spark, 1.0, lambda *_: None), Settings("eu"))
    line.releases.propose(Release("r1", "web", "d", tuple(tables), ()), "web-1", "ada", "laptop")
    line.releases.swap("", "r1", "ada", "laptop")
    return Intake(line)


def landed(tmp_path: Path) -> list[dict[str, object]]:
    return DeltaTable(str(tmp_path / "landing")).to_pyarrow_table().to_pylist()


def test_a_batch_sent_three_times_counts_once(intake: Intake, tmp_path: Path) -> None:
    line = json.dumps({"id": "a", "n": 3, "ts": "2026-11-20T10:00:00Z", "payload": {"k": [1, None]}})
    answers = [intake.append("landing", "b1", [line]) for _ in range(3)]
    assert [answer["already"] for answer in answers] == [False, True, True]
    (row,) = landed(tmp_path)
    assert (row["id"], row["n"], row["payload"]) == ("a", 3, '{"k": [1, null]}')


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "a", "n": "three"}', "line 2: n: 'three' is no int64"),
        ('{"id": 7}', "line 2: id: 7 is no string"),
        ('{"n": true}', "line 2: n: True is no int64"),
        ('{"ts": "yesterday"}', "line 2: ts: 'yesterday' is no timestamp"),
        ('{"n": 99999999999999999999}', "is no int64"),
        ('{"nn": 1}', "line 2 has the key 'nn', the table has id, ts, n, payload"),
        ("[1]", "line 2 is no JSON object"),
        ("{", "line 2 is no JSON"),
    ],
)
def test_a_line_that_does_not_fit_refuses_the_whole_batch_by_its_number(
    intake: Intake, tmp_path: Path, line: str, says: str
) -> None:
    with pytest.raises(DataError, match=says.replace("(", r"\(")):
        intake.append("landing", "b1", ['{"id": "good"}', line])
    assert landed(tmp_path) == []
    assert intake.append("landing", "b1", ['{"id": "good"}'])["already"] is False


def test_a_landing_table_of_others_is_not_written(intake: Intake) -> None:
    with pytest.raises(DataError, match="foreign is not managed"):
        intake.append("foreign", "b1", ["{}"])


@given(st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_row_or_an_error_of_ours(text: str) -> None:
    try:
        rows = parse_lines([text], ["id"])
    except ConsoleError:
        return
    assert all(set(row) <= {"id"} for row in rows)
