"""A change reaches the tests that import what changed, through however many files, or start it as a program."""

from pathlib import Path

import pytest

from tools.affected import affected

FILES = {
    "console/__init__.py": "",
    "console/low.py": "X = 1\n",
    "console/high.py": "def f():\n    from console.low import X\n    return X\n",
    "console/agent/__main__.py": "import console.low\n",
    "console/agent/__init__.py": "",
    "console/alone.py": "",
    "console/data/reader.py": "",
    "tests/conftest.py": "",
    "tests/a/test_high.py": "from console import high\n",
    "tests/a/helper.py": "",
    "tests/b/conftest.py": "from tests.a import helper\n",
    "tests/b/test_started.py": "COMMAND = ['-m', 'console.agent']\n",
    "tests/b/test_alone.py": "import console.alone\n",
    "tests/b/test_data.py": "from console.data.reader import rows\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tools").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("console/low.py", ["tests/a/test_high.py", "tests/b/test_started.py"]),
        ("console/alone.py", ["tests/b/test_alone.py"]),
        ("tests/a/helper.py", ["tests/b/test_alone.py", "tests/b/test_data.py", "tests/b/test_started.py"]),
        ("console/data/table.json", ["tests/b/test_data.py"]),
        ("tests/b/test_alone.py", ["tests/b/test_alone.py"]),
        ("docs/demo.md", []),
        ("pyproject.toml", [name for name in sorted(FILES) if "/test_" in name]),
    ],
)
def test_what_a_change_reaches_is_run_and_nothing_else(changed: str, reached: list[str], root: Path) -> None:
    assert affected({changed}, root) == reached


@pytest.mark.slow  # reads every file of the repository
def test_of_this_house_a_region_of_the_planner_reaches_its_tests_and_not_the_agents() -> None:
    reached = affected({"console/planning/lineage.py"})
    assert any(name.startswith("tests/planning/") for name in reached)
    assert "tests/setup/test_jars.py" not in reached


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("console/planning/routes/hybrid.py", "tests/planning/test_routes.py"),
        ("console/propagation/dialects/iceberg.py", "tests/stores/test_page.py"),
    ],
)
def test_of_this_house_what_is_imported_by_its_name_reaches_its_tests(module: str, test: str) -> None:
    assert test in affected({module})
