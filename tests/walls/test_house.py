"""Rules of the code base: which package may import which, what is loaded when, how large a package may grow."""

import ast
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.walls.source import PACKAGE, ROOT, nodes, sources, tree

MOST_LINES, MOST_FUNCTION_LINES, MOST_FILES = 400, 40, 12
# where SQL is put together: the compiler itself, the agent, which runs what the compiler made, the translator
# to ClickHouse, and the stores, which ask about their own tables
SQL_DOORS = ("planning/sql/", "agent/", "propagation/clickhouse/", "stores/")
SQL = re.compile(r"\s*(SELECT|INSERT|DELETE|UPDATE|MERGE|CREATE|ALTER|DROP|TRUNCATE|WITH)\s")
# spelled so that these lines are no address themselves
ADDRESS = r"(pypi\.org|pythonhosted|maven\.org|/maven[2]/|--(extra-)?index-url|--find-links|/wor[k]/(main|shared))"


def more(*case: object) -> Any:
    """A case that the quick loop leaves out, which has others of its kind."""
    return pytest.param(*case, marks=pytest.mark.slow)


def loaded_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after running this."""
    script = f"{code}\nimport sys; print(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.slow  # `make lint` has run it
def test_no_room_knows_one_that_it_must_not_know() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(linter), "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("code", "never"),
    [
        ("import console.main", {"pyspark", "textual", "sqlglot", "pydantic", "deltalake", "networkx", "duckdb"}),
        more("import console.tui, console.demo", {"pyspark", "textual", "duckdb", "deltalake"}),
        more(
            "import console.planning, console.project, console.runner.fleet, console.drivers.local",
            {"pyspark", "textual", "delta", "duckdb"},
        ),
        more(
            "import console.cli.commands.schema, console.runner.migrations, console.stores.clickhouse, console.stores.delta,"
            " console.stores.iceberg, console.stores.source.postgres, console.stores.consumer",
            {"clickhouse_connect", "pyiceberg", "psycopg", "deltalake", "pyarrow", "sqlglot", "pyspark", "textual"},
        ),
        more("import console.demo.run, console.demo.traffic.producer", {"pyspark", "textual"}),
        (
            "import console.agent.server, console.agent.service",
            {
                "textual",
                "sqlglot",
                "networkx",
                "asyncssh",
                "yaml",
                "pydantic",
                "click",
                "pyspark",
                "pyarrow",
                "numpy",
                "pandas",
            },
        ),
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, never: set[str]) -> None:
    assert loaded_after(code) & never == set()


@pytest.mark.parametrize("judge", ["check.py", more("reader.py")])
def test_the_demos_judges_know_nothing_of_what_they_judge(judge: str) -> None:
    path = PACKAGE / "demo" / judge
    code = f"import runpy; runpy.run_path({str(path)!r}, run_name='judge')"
    assert "console" not in loaded_after(code)


def test_sql_is_never_put_together_outside_its_doors() -> None:
    results = []
    for inside, node in nodes(ast.JoinedStr):
        first = node.values[0] if node.values and not inside.startswith(SQL_DOORS) else None
        if isinstance(first, ast.Constant) and SQL.match(str(first.value)):
            results.append(f"{inside}:{first.lineno}")
    assert results == []


def test_rows_of_delta_are_read_through_no_python_object() -> None:
    """pyarrow's threads still hold deltalake's own file system when the interpreter ends, and abort the process."""
    attributes = [f"{inside}: {node.attr}" for inside, node in nodes(ast.Attribute)]
    results = [text for text in attributes if text.endswith((": to_pyarrow_dataset", ": to_pyarrow_table"))]
    assert results == ["stores/lakes/delta_rows.py: to_pyarrow_dataset"]


# a warning and no failure: whoever is over the limit looks for a seam, and splits nothing by number alone
@pytest.mark.filterwarnings("default:.*outgrow:UserWarning")
def test_rooms_stay_small() -> None:
    large = [
        f"{p.relative_to(ROOT)}: {n} lines" for p in sources() if (n := len(p.read_text().splitlines())) > MOST_LINES
    ]
    for folder in [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())]:
        files = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
        # model has a file for every kind of value, and their number is no disorder
        if len(files) > MOST_FILES and folder != PACKAGE / "model":
            large.append(f"{folder.relative_to(ROOT)}: {len(files)} files")
    if large:
        warnings.warn(f"rooms outgrow their walls: {', '.join(large)}", UserWarning, stacklevel=1)


def test_one_name_means_one_thing() -> None:
    """A public class at the top of a module: whoever reads its name elsewhere need not ask which one is meant."""
    homes: dict[str, list[str]] = {}
    for path in sources():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


# words that explain themselves to nobody, and are no name: a field of a stored record keeps the one that was stored
OBSCURE = re.compile(r"_*(told|said|aside|mind|helm|vigil|deeds?|errands?|scene|patience)_*|TOLD_\w+|SAID_\w+")
STORED_NAMES = {("model/event.py", "told"), ("model/plan.py", "said")}


def test_no_name_is_one_that_nobody_outside_would_understand() -> None:
    assert obscure(nodes) == STORED_NAMES
    planted = ast.parse("def f(said: int) -> None:\n    told = x.helm = said\n")
    assert obscure(lambda *kinds: (("f.py", node) for node in ast.walk(planted) if isinstance(node, kinds))) == {
        ("f.py", "said"), ("f.py", "told"), ("f.py", "helm"),
    }  # fmt: skip


def obscure(named: Callable[..., Iterable[tuple[str, Any]]]) -> set[tuple[str, str]]:
    names = [(inside, node.name) for inside, node in named(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)]
    names += [(inside, node.arg) for inside, node in named(ast.arg)]
    names += [(inside, node.id) for inside, node in named(ast.Name) if isinstance(node.ctx, ast.Store)]
    names += [(inside, node.attr) for inside, node in named(ast.Attribute) if isinstance(node.ctx, ast.Store)]
    return {(inside, name) for inside, name in names if OBSCURE.fullmatch(name)}


def test_functions_stay_short() -> None:
    results = []
    for inside, function in (*nodes(ast.FunctionDef), *nodes(ast.AsyncFunctionDef)):
        docstring = (ast.get_docstring(function) or "").splitlines()
        lines = (function.end_lineno or 0) - function.lineno + 1 - len(docstring)
        if lines > MOST_FUNCTION_LINES:
            results.append(f"{inside}:{function.lineno} {function.name}: {lines}")
    assert results == []


def compares_a_code(comparison: ast.AST) -> bool:
    """Whether a text in it is an error's code."""
    return any(isinstance(part, ast.Constant) and str(part.value).startswith("E_") for part in ast.walk(comparison))


def test_code_decides_by_classes_of_errors_never_by_their_codes() -> None:
    results = [f"{inside}:{node.lineno}" for inside, node in nodes(ast.Compare) if compares_a_code(node)]
    assert results == []
    assert compares_a_code(ast.parse('error.code in ("E_FRAME", "")', mode="eval").body)


def test_nothing_is_left_undone_or_looked_away_from() -> None:
    marks = re.compile(
        r"#\s*(TODO|FIXME|XXX)|#\s*noqa|#\s*type:\s*ignore|raise NotImplementedError|pytest\.(skip|xfail)|mark\.(skip|xfail)"
    )
    files = [*sources(), *(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))]
    assert [str(path.relative_to(ROOT)) for path in files if marks.search(path.read_text())] == []


def test_no_committed_file_names_a_registry_or_a_place_of_one_machine() -> None:
    assert named("tests/walls/test_house.py", but=()) != [], "the pattern finds nothing"
    assert named(".", but=("tests/walls/test_house.py",)) == []


def named(place: str, but: Sequence[str]) -> list[str]:
    """Lines of committed files of text with an address in them."""
    command = ["git", "grep", "-nIiE", "-e", ADDRESS, "--", place, *(f":(exclude){path}" for path in but)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_the_lock_holds_a_hash_for_everything_it_names() -> None:
    requirements = re.findall(r"^(\S+)==\S+ \\$((?:\n    --hash=sha256:\w{64}(?: \\)?)+)", _lock(), re.MULTILINE)
    named = re.findall(r"^(\S+)==", _lock(), re.MULTILINE)
    assert [name for name, _ in requirements] == named
    assert "setuptools" in named


def _lock() -> str:
    return (ROOT / "requirements.lock").read_text()
