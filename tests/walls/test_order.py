"""What takes longest starts first: a name that has moved would be passed over without a word."""

from pathlib import Path

from tests.conftest import LONGEST, UNDER_FIRE, scope_of, turn

ROOT = Path(__file__).parents[2]


def test_each_scope_that_starts_first_is_a_file_or_a_group_of_files() -> None:
    files = (*UNDER_FIRE, *(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")))
    assert {*LONGEST} - {scope_of(f"{file}::test") for file in files} == set()


def test_it_starts_before_all_others() -> None:
    first, other = (turn(f"{file}::test") for file in ("tests/faults/test_points.py", "tests/agent/test_hold.py"))
    assert (first, other) == (0, len(LONGEST))
