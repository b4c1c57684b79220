"""The expectations in a table's file, and the messages for invalid rules."""

import pytest
from conftest import FILES, Write

from console.errors import Problems
from console.model.expectation import (
    AcceptedValues,
    Expectation,
    Fresh,
    Holds,
    InRange,
    NotNull,
    RowsOfDayBefore,
    Rule,
    UniqueInDay,
)
from console.project import load

FILE = "plans/web/tables/requests.yaml"
TABLE = FILES[FILE].replace(", nullable: false", "")
ALL = """expectations:
  - status > 0
  - {not_null: [event_id, day]}
  - {accepted_values: {event_id: [a, "it's", 7]}, severity: warn}
  - {range: {status: {min: 100, max: 599}, day: {min: 2026-01-01}}}
  - {unique: [event_id]}
  - {freshness: 2h, severity: warn}
  - {row_count: {min: 50%, max: 200%}}
  - {sql: "status < 600\\n  AND event_id <> ''", severity: warn}
"""
RULES: list[tuple[Rule, str]] = [
    (Holds("status > 0"), "stop"),
    (NotNull("event_id"), "stop"),
    (NotNull("day"), "stop"),
    (AcceptedValues("event_id", ("'a'", "'it\\'s'", "'7'")), "warn"),
    (InRange("status", "100", "599"), "stop"),
    (InRange("day", "DATE '2026-01-01'", None), "stop"),
    (UniqueInDay(("event_id",)), "stop"),
    (Fresh(7200.0), "warn"),
    (RowsOfDayBefore(0.5, 2.0), "stop"),
    (Holds("status < 600\n  AND event_id <> ''"), "warn"),
]


def expected(write: Write, text: str) -> tuple[Expectation, ...]:
    loaded = load(write({FILE: TABLE + text}))
    table = loaded.pipeline("web", loaded.region("eu")).table("requests")
    assert table is not None
    return table.expectations


def test_every_rule_is_read_with_its_literals_and_severity_in_the_order_of_the_file(project: Write) -> None:
    result = expected(project, ALL)
    assert [(one.rule, one.severity) for one in result] == RULES
    assert [one.name for one in result] == [
        "status > 0",
        "event_id is not null",
        "day is not null",
        "event_id is one of 3 values",
        "status from 100 to 599",
        "day from DATE '2026-01-01'",
        "event_id unique within a day",
        "newest row within 2 h",
        "rows at least 0.5 and at most 2 × the day before",
        "status < 600 AND event_id <> ''",
    ]


@pytest.mark.parametrize("text", ["expectations: status > 0\n", "expectations: [status > 0]\n"])
def test_the_older_form_is_a_condition_that_stops(project: Write, text: str) -> None:
    assert expected(project, text) == (Expectation(Holds("status > 0"), "stop"),)


@pytest.mark.parametrize(
    ("rule", "line", "code", "message"),
    [
        ("{not_null: nope}", 8, "P033", "requests has no column `nope`"),
        ("{accepted_values: {status: [x]}}", 8, "P012", "found `x`"),
        ("{accepted_values: {status: []}}", 8, "P012", "expected at least one"),
        ("{range: {status: {min: low}}}", 8, "P012", "found `low`"),
        ("{range: {status: {}}}", 8, "P012", "neither `min` nor `max`"),
        ("{unique: [event_id, nope]}", 8, "P033", "requests has no column `nope`"),
        ("{unique: [tags]}", 9, "P012", "cannot be compared"),
        ("{freshness: soon}", 8, "P012", "a duration such as"),
        ("{row_count: {min: 50}}", 8, "P012", "a share such as 50%"),
        ("{not_null: day, unique: day}", 8, "P012", "one entry has one rule"),
        ("{severity: warn}", 8, "P012", "one entry has one rule"),
        ("{not_null: day, severity: fatal}", 8, "P012", "expected one of stop, warn"),
        ("{notnull: day}", 8, "P010", "unknown key `notnull`"),
        ("status > 0\n  - status  > 0", 8, "P012", "two of them would be called `status > 0`"),
    ],
)
def test_a_rule_that_cannot_be_one_is_refused_at_its_place(
    project: Write, rule: str, line: int, code: str, message: str
) -> None:
    column = "  tags: map<string,int>\n" if "tags" in rule else ""
    with pytest.raises(Problems) as refused:
        expected(project, f"{column}expectations:\n  - {rule}\n")
    (problem,) = refused.value.problems
    assert (problem.code, problem.where.split(":")[:2]) == (code, [FILE, str(line)])
    assert message in problem.message


def test_days_need_a_time_column(project: Write) -> None:
    text = TABLE.replace("partition_by: day\n", "time: null\n")
    with pytest.raises(Problems, match="no time column"):
        load(project({FILE: text + "expectations: [{freshness: 2h}]\n"}))


def test_a_landing_table_takes_what_is_sent(project: Write) -> None:
    landing = "plans/web/tables/landing.yaml"
    loaded = load(project({landing: FILES[landing] + "expectations: [old > 0]\n"}))
    pipeline = loaded.pipeline(None, loaded.region("eu"))
    table = pipeline.table("landing")
    assert table is not None
    assert table.expectations == ()
    assert any("`expectations` has no effect" in problem.message for problem in pipeline.ineffective)
