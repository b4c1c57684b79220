"""Which test files a change reaches, by what they import: directly, through others, or as a program that they start."""

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_MODULE = re.compile(r"(console|tests|tools)(\.\w+)+")
_EVERYWHERE = ("pyproject.toml", "requirements.lock", "tests/conftest.py")
# imported by a name that is put together: commands, routes of the planner, stores and their dialects
_BY_NAME = {
    "console/cli/root.py": "console/cli/commands/",
    "console/planning/routes/__init__.py": "console/planning/routes/",
    "console/propagation/dialects/__init__.py": "console/propagation/dialects/",
    "console/stores/files.py": "console/stores/",
}


def changed_since(ref: str, root: Path = ROOT) -> set[str]:
    """Files that differ from a commit, or are not in git yet."""
    listed = []
    for command in (("diff", "--name-only", "-z", ref), ("ls-files", "-z", "--others", "--exclude-standard")):
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=True)
        listed += done.stdout.split("\0")
    return {name for name in listed if name}


def affected(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Test files that reach any of these files, as paths below the root; every one where all of them may."""
    changed = set(changed)
    files = {
        path.relative_to(root).as_posix()
        for top in ("console", "tests", "tools")
        for path in (root / top).rglob("*.py")
    }
    tests = sorted(name for name in files if Path(name).name.startswith("test_"))
    if changed & set(_EVERYWHERE):
        return tests
    used_by: dict[str, set[str]] = {}
    for name in files:
        for used in _uses(name, files, root):
            used_by.setdefault(used, set()).add(name)
    reached = {name for name in changed if name in files} | {
        owner for name in changed - files for owner in _owners(name, files)
    }
    waiting = list(reached)
    while waiting:
        for name in used_by.get(waiting.pop(), set()) - reached:
            reached.add(name)
            waiting.append(name)
    return [name for name in tests if name in reached]


def _uses(name: str, files: set[str], root: Path) -> Iterator[str]:
    """The files that one imports or names as a module, and what pytest loads beside a test."""
    for node in ast.walk(ast.parse((root / name).read_text())):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                modules = [module, *(f"{module}.{alias.name}" for alias in names)]
            case ast.Constant(value=str(text)):
                modules = [match[0] for match in _MODULE.finditer(text)]
            case _:
                continue
        for module in modules:
            yield from _files_of(module, files)
    if name in _BY_NAME:
        yield from (file for file in files if file.startswith(_BY_NAME[name]))
    if name.startswith("tests/"):
        beside = (f"{folder.as_posix()}/conftest.py" for folder in Path(name).parents)
        yield from (file for file in beside if file in files and file != name)


def _files_of(module: str, files: set[str]) -> Iterator[str]:
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        place = "/".join(parts[:length])
        yield from (file for file in (f"{place}.py", f"{place}/__init__.py", f"{place}/__main__.py") if file in files)


def _owners(name: str, files: set[str]) -> Iterator[str]:
    """The Python files of the nearest folder that has any: data is read by what lies around it."""
    for folder in Path(name).parents[:-1]:
        if around := [file for file in files if Path(file).parent == folder]:
            yield from around
            return
