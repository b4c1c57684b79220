"""Parameters typed on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli.commands.query import answer_text, fits, guessed_type, typed
from console.drivers.protocol import QueryResult
from console.errors import UsageError
from console.model.pipeline import Parameter

DAY, MOST = Parameter("day", "date"), Parameter("most", "int", "10")


def test_defaults_fill_what_is_left_out() -> None:
    assert typed([DAY, MOST], {"day": "2026-11-07"}) == {"day": ("2026-11-07", "date"), "most": ("10", "int")}


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({}, "parameter day (date) is missing"),
        ({"day": "2026-02-30"}, "'2026-02-30' is not of type date"),
        ({"day": "2024-01-01' OR '1'='1"}, "is not of type date"),
        ({"day": "2026-11-07", "most": "1e3"}, "is not of type int"),
        ({"day": "2026-11-07", "most": "2147483648"}, "is not of type int"),
        ({"day": "2026-11-07", "dya": "1"}, "no parameter 'dya'"),
    ],
)
def test_what_is_not_of_its_type_is_a_usage_error(given_: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(").replace(")", r"\)")):
        typed([DAY, MOST], given_)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2026-11-07", "date"),
        ("2026-13-07", "string"),
        ("2026-11-07T10:00:00", "timestamp"),
        ("42", "bigint"),
        ("-7", "bigint"),
        ("007", "string"),
        ("99999999999999999999", "string"),
        ("0.5", "double"),
        ("nan", "string"),
        ("true", "boolean"),
        ("", "string"),
    ],
)
def test_a_bare_value_is_what_it_looks_like(value: str, kind: str) -> None:
    assert guessed_type(value) == kind


@pytest.mark.slow
@given(st.text())
def test_a_guessed_value_always_fits_its_type(value: str) -> None:
    assert fits(value, guessed_type(value)) or "\0" in value


def test_rows_are_aligned_and_made_safe() -> None:
    answer = QueryResult((("path", "string"), ("n", "bigint")), (("/a\x1b[2J", 3), (None, 12)), "r7")
    assert answer_text(answer).splitlines() == ["path        n", "/a\\x1b[2J   3", "NULL       12", "(2 rows)"]
