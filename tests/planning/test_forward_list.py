"""A forward query gives one row for each row of the live table: it only ever sees one batch."""

from dataclasses import replace

import pytest

from tests.planning.world import node, pipeline, planned, with_column, with_table


def refused(expression: str) -> list[tuple[str, str]]:
    desired = with_column(pipeline(), "up", "bigint", "length(get_json_object(payload, '$.ip'))")
    table = desired.table("requests")
    assert table is not None
    done = planned(with_table(desired, replace(table, forward_query=f"*, {expression} AS up")))
    assert node(done, "requests").action == "forward"
    return [(p.code, p.message) for p in done.refusals]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("sum(bytes)", "aggregates"),
        ("1 + count(*)", "aggregates"),
        ("row_number() OVER (ORDER BY ts)", "window"),
        ("sum(bytes) OVER ()", "window"),
        ("lag(bytes) OVER w", "window"),
        ("explode(array(bytes, 1))", "any number of rows"),
        ("posexplode_outer(array(bytes))", "any number of rows"),
        ("stack(2, bytes, 1)", "any number of rows"),
        ("(SELECT max(r.bytes) FROM requests r)", "another query"),
        ("bytes IN (SELECT r.bytes FROM requests r)", "another query"),
    ],
)
def test_what_needs_several_rows_or_makes_them_is_refused(expression: str, why: str) -> None:
    ((code, message),) = refused(expression)
    assert code == "C107"
    assert message.startswith("forward_query of requests: ")
    assert why in message


@pytest.mark.parametrize("clause", ["LATERAL VIEW explode(array(1, 2)) v AS w", "WINDOW w AS (ORDER BY ts)"])
def test_clauses_after_the_list_are_refused(clause: str) -> None:
    desired = with_column(pipeline(), "up", "bigint", "length(get_json_object(payload, '$.ip'))")
    table = desired.table("requests")
    assert table is not None
    done = planned(with_table(desired, replace(table, forward_query=f"*, bytes AS up {clause}")))
    assert [p.code for p in done.refusals] == ["C107"]


@pytest.mark.parametrize(
    "expression", ["length(ip)", "aggregate(array(bytes, 1), 0L, (a, b) -> a + b)", "greatest(bytes, 1)"]
)
def test_what_is_computed_from_one_row_is_taken(expression: str) -> None:
    assert refused(expression) == []
