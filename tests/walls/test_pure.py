"""The planner computes and does nothing else: no file, no clock, no randomness, no output. The import contract forbids the
modules; this test forbids builtins, which need no import."""

import ast
import tomllib
from collections.abc import Iterator

import pytest

from tests.walls.source import PACKAGE, ROOT, sources, tree

ROOMS = tuple(PACKAGE / room for room in ("planning", "model"))
CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
CLOCKS = {"now", "today", "utcnow", "fromtimestamp"}
MUST = {
    "os", "io", "pathlib", "time", "subprocess", "socket", "shutil", "tempfile", "random", "secrets", "threading", "asyncio",
    "urllib", "http", "sqlite3", "sys", "importlib", "multiprocessing", "pyspark", "deltalake", "duckdb", "pyarrow",
}  # fmt: skip


def impure(root: ast.AST) -> Iterator[str]:
    """Calls by bare name of what speaks or opens, and methods that read a clock."""
    for node in ast.walk(root):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield f"{node.lineno}: {node.func.id}()"
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            yield f"{node.lineno}: .{node.attr}"


def test_the_planner_opens_nothing_and_reads_no_clock() -> None:
    files = [path for path in sources() if any(path.is_relative_to(room) for room in ROOMS)]
    assert len(files) > 20
    results = [f"{p.relative_to(ROOT)}:{what}" for p in files for what in impure(tree(p))]
    assert results == []


@pytest.mark.parametrize(
    "code", ["open('x')", "print(1)", "datetime.now(UTC)", "from datetime import date; date.today()"]
)
def test_what_is_impure_is_seen(code: str) -> None:
    assert list(impure(ast.parse(code)))


def test_the_contract_names_every_way_out() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    pure = next(contract for contract in contracts if contract["name"] == "the planner is pure")
    assert set(pure["forbidden_modules"]) >= MUST
    assert pure["source_modules"] == ["console.planning"]
