"""Spark judges parsing, compiled SQL and equal queries: none of console's code takes part in the truth.

`make soak` draws for an hour (`soak.py`).
"""

from collections.abc import Iterator

import pytest

from tests.planning.oracle import check, listed
from tests.planning.oracle.judge import SparkOracle, started

pytestmark = pytest.mark.spark
SEED = 20261122
EXPRESSIONS, STATEMENTS, TEXTS = 1000, 40, 60


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkOracle]:
    with started() as session:
        yield session


def test_sparks_own_parser_makes_our_tree_of_every_expression(spark: SparkOracle) -> None:
    result = check.expressions(spark, range(SEED, SEED + EXPRESSIONS))
    assert result.wrong == []
    assert result.agree > EXPRESSIONS * 0.3
    assert result.refused < EXPRESSIONS * 0.05


def test_what_we_send_gives_the_rows_of_what_was_written(spark: SparkOracle) -> None:
    result = check.statements(spark, range(SEED, SEED + STATEMENTS))
    assert result.wrong == []
    assert result.agree > STATEMENTS * 0.75
    assert result.refused < STATEMENTS * 0.1


def test_of_two_texts_called_the_same_spark_gives_the_same_rows(spark: SparkOracle) -> None:
    result = check.pairs(spark, range(SEED, SEED + TEXTS))
    assert result.wrong == []
    assert result.agree > 20


def test_listed_rewrites_change_no_row_and_near_misses_do(spark: SparkOracle) -> None:
    """Every twenty-fourth of the lists; `make soak` asks about all of them."""
    assert listed.listed(spark, 24, seeds=range(2)) == []


def test_a_text_that_fails_on_the_rows_differs_from_one_that_does_not(spark: SparkOracle) -> None:
    """NaN is no whole number, and the optimizer meets it before a row is asked for."""
    fails, runs = "select id from t where cast(c as int) > 0", "select id from t where c > 0"
    assert listed.distinguished(spark, fails, runs) is True
    assert listed.distinguished(spark, fails, fails + " and id > 0") is None


def test_a_reader_with_the_levels_of_other_engines_is_caught(
    spark: SparkOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: sqlglot's own parser."""
    monkeypatch.setattr("console.planning.sql.dialect.written.AsRead.Parser", check.OTHERS)
    monkeypatch.setattr("console.planning.sql.dialect.written.AsRead.parser_class", check.OTHERS)
    assert len(check.expressions(spark, range(SEED, SEED + 300)).wrong) > 10
