"""Answers of two engines are compared with their types, and one value that fails hides no other."""

import pyarrow as pa
import pytest

from tests.bench.native.engines import FAILS, by_duckdb, differing, named
from tests.bench.native.functions import PAIRS, Pair


def pair(duckdb: str, *values: object) -> Pair:
    return Pair(name="p", spark="v", duckdb=duckdb, type=pa.string(), values=values)


def test_one_value_that_fails_hides_no_other() -> None:
    assert by_duckdb(pair("CAST(v AS INTEGER)", "1", "x", None, "3")) == ["int 1", FAILS, "NoneType None", "int 3"]


def test_types_zeros_and_nan_are_told_apart() -> None:
    values = [1, 1.0, "1", True, 0.0, -0.0, None]
    assert len({named(value) for value in values}) == len(values)
    assert named(float("nan")) == named(-float("nan"))


def test_what_differs_is_named_with_both_answers() -> None:
    asked = pair("v", "a", "b")
    assert differing(asked, ["str 'a'", FAILS], ["str 'a'", "str 'b'"]) == [("str 'b'", FAILS, "str 'b'")]


def test_functions_are_named_once() -> None:
    assert len({each.name for each in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize("each", PAIRS, ids=lambda each: str(each.name))
def test_duckdb_answers_for_some_value(each: Pair) -> None:
    answers = by_duckdb(each)
    assert len(answers) == len(each.values)
    assert set(answers) - {FAILS, named(None)}, f"{each.duckdb}: no text that DuckDB understands"
