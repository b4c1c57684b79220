"""The package's source, read and parsed once for all walls."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "console"
Node = TypeVar("Node", bound=ast.AST)


@cache
def sources() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _by_kind() -> dict[type[ast.AST], list[tuple[str, ast.AST]]]:
    results: dict[type[ast.AST], list[tuple[str, ast.AST]]] = {}
    for path in sources():
        inside = str(path.relative_to(PACKAGE))
        for node in ast.walk(tree(path)):
            results.setdefault(type(node), []).append((inside, node))
    return results


def nodes(*kinds: type[Node]) -> Iterator[tuple[str, Node]]:
    """Every node of these classes, with the path of its file in the package."""
    for kind in kinds:
        for inside, node in _by_kind().get(kind, ()):
            assert isinstance(node, kind)
            yield inside, node
