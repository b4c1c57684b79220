"""docs/security.md names a test for each attack, and names none that does not exist."""

import re
from pathlib import Path

import pytest

from tests.walls.source import ROOT

pytestmark = pytest.mark.slow

TEXT = (ROOT / "docs" / "security.md").read_text()
ROWS = {int(number): cell for number, cell in re.findall(r"^\| S(\d+) \|[^|]*\|(.*)\|$", TEXT, re.MULTILINE)}


def existing() -> dict[str, list[Path]]:
    results: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE):
            results.setdefault(name, []).append(path.relative_to(ROOT))
    return results


def test_every_attack_has_a_row_that_names_a_test_or_says_that_there_is_none() -> None:
    assert sorted(ROWS) == list(range(1, 21))
    for number, cell in ROWS.items():
        assert "::test_" in cell or "not built" in cell or "not held" in cell or "tests/propagation" in cell, number


def test_every_test_that_is_named_exists() -> None:
    known = {f"{path}::{name}" for name, paths in existing().items() for path in paths}
    named = set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", TEXT))
    assert len(named) > 40
    assert named - known == set()


def test_every_test_of_an_attack_is_named_in_its_row() -> None:
    for name, paths in existing().items():
        cases = re.match(r"test_((?:s\d\d_)+)", name)
        for number in re.findall(r"\d\d", cases[1]) if cases else ():
            assert f"{paths[0]}::{name}" in ROWS[int(number)], name
