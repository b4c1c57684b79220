"""The rows on which a feed's query fails, determined from its casts: those applied to every row, and no others."""

import pytest

from console.model.schema import Column, Table
from console.planning.loss.failing_casts import fragile
from tests.planning.world import LANDING, live, pipeline, planned, with_column

LOST = "NOT (`payload`) IS NULL AND TRY_CAST(`payload` AS INT) IS NULL"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(payload AS INT) AS a FROM landing",
        "SELECT payload :: INT AS a FROM landing AS l",
        "SELECT 1 + CAST(payload AS INT) AS a, CAST(payload AS INT) AS b FROM landing",
        "SELECT COALESCE(CAST(payload AS INT), CAST(region AS INT), 0) AS a FROM landing",
        "SELECT CASE WHEN CAST(payload AS INT) > 3 THEN CAST(region AS INT) END AS a FROM landing",
        "SELECT CAST(payload AS INT) > 3 AND CAST(region AS INT) > 3 AS a FROM landing",
        "SELECT sum(CAST(payload AS INT)) AS a FROM landing GROUP BY id",
        "SELECT t.a AS a FROM (SELECT CAST(landing.payload AS INT) AS a FROM landing AS landing) AS t",
        "SELECT CAST(l.payload AS INT) AS a, CAST(x.size AS INT) AS b FROM landing AS l JOIN x ON x.id = l.id",
        "SELECT CAST(payload AS INT) AS a, CAST(payload AS STRING) AS b, to_date(ts) AS c FROM landing",
    ],
)
def test_a_cast_that_every_row_goes_through_is_asked_about_once(sql: str) -> None:
    fragility = fragile(sql, "landing", LANDING)
    assert fragility is not None
    assert fragility.predicate == f"(({LOST}))"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CASE WHEN id = 'a' THEN CAST(payload AS INT) END AS a FROM landing",
        "SELECT IF(id = 'a', CAST(payload AS INT), 0) AS a FROM landing",
        "SELECT COALESCE(region, CAST(payload AS INT)) AS a FROM landing",
        "SELECT id = 'a' OR CAST(payload AS INT) > 3 AS a FROM landing",
        "SELECT TRY_CAST(payload AS INT) AS a FROM landing",
        "SELECT CAST(sum(ts) AS INT) AS a FROM landing GROUP BY id",
        "SELECT CAST(x.size AS INT) AS a FROM landing AS l JOIN x ON x.id = l.id",
        "SELECT CAST(ts AS DATE) AS a, to_date(ts) AS b, CAST(to_date(ts) AS DATE) AS c FROM landing",
        "SELECT id, payload FROM landing",
        "SELECT CAST(payload AS INT) AS a FROM other",
        "",
    ],
)
def test_a_cast_that_may_not_be_made_or_cannot_fail_is_left_out(sql: str) -> None:
    assert fragile(sql, "landing", LANDING) is None


def test_rows_that_the_query_leaves_out_convert_nothing() -> None:
    fragility = fragile(
        "SELECT CAST(payload AS INT) AS a FROM landing WHERE id > 'x' AND CAST(region AS INT) > 3", "landing", LANDING
    )
    assert fragility is not None
    assert fragility.predicate == f"(`id` > 'x') AND (TRY_CAST(`region` AS INT) > 3) AND (({LOST}))"


def test_a_row_is_told_by_other_columns_than_those_in_question() -> None:
    fragility = fragile("SELECT CAST(id AS INT) AS a FROM landing", "landing", LANDING)
    assert fragility is not None
    assert fragility.keys == ("region", "ts")
    odd = Table(
        name="odd", kind="landing", columns=(Column(name="a b`c", type="string"), Column(name="x", type="string"))
    )
    named = fragile("SELECT CAST(x AS INT) AS a FROM odd", "odd", odd)
    assert named is not None
    assert named.keys == ("a b`c",)


@pytest.mark.slow
def test_every_backfill_of_a_plan_knows_its_own() -> None:
    done = planned(with_column(pipeline(), "size", "int", "CAST(get_json_object(payload, '$.size') AS INT)"), live())
    (step,) = [step for step in done.steps if step.id == "backfill/requests/parse"]
    asked = getattr(step, "fragile", None)
    assert asked is not None
    assert asked.keys == ("id", "ts")
    assert "TRY_CAST(GET_JSON_OBJECT(`payload`, '$.size') AS INT) IS NULL" in asked.predicate
