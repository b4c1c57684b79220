"""C147: a text that a query parses again and again is a note of `check`, with what one parse has saved where it was measured."""

import pytest

from console.errors import Problem
from console.planning import plan
from console.planning.review import parsing, parsing_gain
from tests.planning.world import REGION, live, pipeline, with_sql

CALLS = [
    "get_json_object(payload, '$.a') AS a",
    "GET_JSON_OBJECT(l.payload, '$.b') AS b",
    "get_json_object(`Payload`, '$.c') AS c",
]


def notes(sql: str) -> list[Problem]:
    return parsing.parsed_often(with_sql(pipeline(), "parse", sql))


def test_three_calls_on_one_column_are_noted_with_their_place_and_what_to_do() -> None:
    (note,) = notes(f"SELECT id, {', '.join(CALLS)} FROM landing AS l")
    assert note.message.startswith("parse parses `payload` 3 times for each row")
    assert (note.severity, note.node, note.where) == ("note", "parse", "plans/web/materializations/parse.sql:4:1")
    assert "`from_json` in a subquery" in str(note.remedies[0])


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id, {', '.join(CALLS[:2])} FROM landing AS l",
        "SELECT id, e.a, e.b, e.c FROM (SELECT id, from_json(payload, 'a STRING, b STRING, c STRING') AS e FROM landing)",
        # one text each
        "SELECT get_json_object(id, '$.a') AS a, get_json_object(payload, '$.b') AS b, get_json_object(region, '$.c') AS c FROM landing",
        f"SELECT {CALLS[0]} FROM landing UNION ALL SELECT {CALLS[0]} FROM landing UNION ALL SELECT {CALLS[0]} FROM landing",
        "SELECT 'get_json_object get_json_object get_json_object' AS a FROM landing",
    ],
)
def test_what_parses_a_text_once_or_twice_is_not(sql: str) -> None:
    assert notes(sql) == []


def test_plans_are_as_they_were() -> None:
    """It is a matter of the files, not of a change."""
    assert [problem for problem in plan(pipeline(), live(), REGION, "test").problems if problem.code == "C147"] == []


def test_the_gain_is_the_one_that_was_measured_with_as_many_calls_or_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "GAIN", {3: 0.1, 6: 0.25})
    assert [parsing.measured_gain(calls) for calls in (2, 3, 5, 6, 20)] == [0.0, 0.1, 0.1, 0.25, 0.25]
    (note,) = notes(f"SELECT id, {', '.join(CALLS)} FROM landing AS l")
    assert note.message.endswith("`from_json` once took 10% less of a batch where that was measured")


def test_a_measurement_is_part_of_the_package() -> None:
    assert parsing_gain.GAIN.keys() >= {parsing.FEWEST}
