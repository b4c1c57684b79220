"""The agent that is copied to a host: complete, so that no import fails there."""

import ast
import io
import zipfile

import pytest

from console.drivers.ssh.pack import packed

pytestmark = pytest.mark.slow


def imported(source: str) -> set[str]:
    """Modules of console that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=aliases):
                names |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
    return {name for name in names if name.partition(".")[0] == "console"}


def only_for_types(source: str) -> set[str]:
    """The same below `if TYPE_CHECKING:`, which is never run."""
    blocks = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    return {name for block in blocks for child in block.body for name in imported(ast.unparse(child))}


def test_every_module_that_the_brought_agent_imports_comes_with_it() -> None:
    with zipfile.ZipFile(io.BytesIO(packed()[0])) as file:
        sources = {name: file.read(name).decode() for name in file.namelist() if name.endswith(".py")}
    there = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in sources}
    assert "console.agent.service" in there
    missing = {
        (name, module)
        for name, source in sources.items()
        for module in imported(source) - only_for_types(source)
        if _is_module(module) and module not in there
    }
    assert not missing


def _is_module(name: str) -> bool:
    """Whether the name is a module of the package, not something in one."""
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, not a package
        return False
