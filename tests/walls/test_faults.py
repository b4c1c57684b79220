"""docs/faults.md has every case of the list, and names no test that does not exist."""

import re
from functools import cache

import pytest

from tests.faults.mutants import MUTANTS
from tests.walls.source import ROOT

TEXT = (ROOT / "docs" / "faults.md").read_text()
ROWS = dict(re.findall(r"^\| ([FS]\d+) \|[^|]*\|(.*)\|$", TEXT, re.MULTILINE))
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


@cache
def written_in(file: str) -> frozenset[str]:
    """The tests that pytest would find in a file."""
    path = ROOT / file
    return frozenset(
        re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE) if path.is_file() else ()
    )


def test_every_case_has_a_row_that_names_a_test_or_says_why_there_is_none() -> None:
    assert list(ROWS) == [f"F{n}" for n in range(1, 39)] + [f"S{n}" for n in range(1, 21)]
    for case, item in ROWS.items():
        assert re.search(r"`tests/[\w/]+\.py::test_\w+`|\*not yet\*", item), case


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_that_is_named_exists(file: str) -> None:
    assert {name for named, name in NAMED if named == file} - written_in(file) == set()


def test_what_is_not_written_as_a_test_is_no_name_of_one() -> None:
    """A name in another form would not be looked for."""
    assert len(NAMED) > 100
    assert len(re.findall(r"::", TEXT)) == len(NAMED)


def test_what_a_planted_bug_replaces_stands_once_in_its_file() -> None:
    """Or the bug is no longer planted, and its test no longer known to fail on it."""
    planted = [each for each in MUTANTS if each.file]
    assert len(planted) > 250
    assert [each.name for each in planted if (ROOT / each.file).read_text().count(each.old) != 1] == []
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
