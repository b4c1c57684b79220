"""The docs name only existing things: modules, files, links and their headings."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from console import __version__
from tests.walls.source import PACKAGE, ROOT

# `planning/routes/feeds.py`, `agent/rollout/rebind.level`, `tests/faults/rules/`: below the repository, console/, tests/ or the page
PATH = re.compile(r"`([a-z]\w*(?:/\w+)+)(/|(?:\.\w+)*)`")
# `console/witness`, `console.stores.consumer.defaults`, in backticks or not; `_console.ops` and `.console/jars` are no modules
SLASHED = re.compile(r"(?<![\w./-])console((?:/\w+)+)(\.py)?")
DOTTED = re.compile(r"(?<![\w./-])console((?:\.[a-z_]\w*)+)")
LINK = re.compile(r"\]\(([^()\s]+)\)")
# papers of those who began the project, which its readers have not got
ELSEWHERE = re.compile(r"\bDESIGN\b|\bFACTS\.md\b|\bFAULTS §|\bnext\.md\b")

# what the worked changes of CONTRIBUTING.md would add, and must not have been added under that name since
IMAGINED = {
    "console/planning/routes/relayout.py",
    "console/agent/recount/emptied_columns.py",
    "console/propagation/dialects/duckdb.py",
    "console/stores/duckdb.py",
}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in filter(None, listed.stdout.split("\0")) if (ROOT / name).is_file()]


PAGES = tracked("*.md")


def names_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def defined(module: Path) -> frozenset[str]:
    """Whatever a module assigns, defines or imports at its top level, and the fields and methods of its classes."""
    results: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                results.add(node.name)
            case ast.Name(id=name, ctx=ast.Store()):
                results.add(name)
            case ast.alias():
                results.add(node.asname or node.name)
            case _:
                pass
    return frozenset(results)


def module_at(path: Path) -> Path | None:
    """The file of a module or package."""
    for file in (path.parent / f"{path.name}.py", path / "__init__.py"):
        if file.is_file():
            return file
    return None


def is_there(path: Path, rest: str) -> bool:
    """Whether a path stands for a file, a folder, a module, or with `.name` for something that the module defines."""
    if rest in ("", "/"):
        return path.exists() or module_at(path) is not None
    if path.with_name(path.name + rest).is_file():
        return True
    module = module_at(path)
    return module is not None and set(rest[1:].split(".")) <= defined(module)


def dotted_is_there(names: list[str]) -> bool:
    """`console` and then packages, a module, and names that it defines."""
    place = PACKAGE
    for at, name in enumerate(names):
        if not (place / name).is_dir() and not (place / f"{name}.py").is_file():
            module = module_at(place)
            return module is not None and set(names[at:]) <= defined(module)
        place /= name
    return True


def missing(text: str, page: Path) -> Iterator[str]:
    """Each module or path that a text names and that does not exist."""
    for match in PATH.finditer(text):
        if not any(is_there(base / match[1], match[2]) for base in (ROOT, PACKAGE, ROOT / "tests", page.parent)):
            yield match[0]
    for match in SLASHED.finditer(text):
        if not is_there(PACKAGE / match[1][1:], match[2] or ""):
            yield match[0]
    for match in DOTTED.finditer(text):
        names = match[1][1:].split(".")
        if names[-1] not in ("md", "svg") and not dotted_is_there(names):
            yield match[0]


def anchors(page: Path) -> frozenset[str]:
    """The names by which GitHub links to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def broken(page: Path) -> Iterator[str]:
    """Each relative link of a page that leads nowhere."""
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", page.read_text())):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=names_of)
def test_every_module_and_path_that_a_page_names_exists(page: Path) -> None:
    imagined = IMAGINED if page == ROOT / "CONTRIBUTING.md" else set()
    assert {name.strip("`") for name in missing(page.read_text(), page)} == imagined


@pytest.mark.parametrize("page", PAGES, ids=names_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


@pytest.mark.parametrize(
    "text",
    [
        "`agent/patience/health`",
        "`planning/routes/feds.py`",
        "`agent/rollout/rebind.ownd`",
        "console/planning/meaning",
        "console.stores.consumer.defualts",
        "`console.agent.line`",
    ],
)
def test_a_name_of_nothing_is_found(text: str) -> None:
    assert list(missing(text, ROOT / "README.md"))


def test_nothing_cites_a_paper_that_is_not_in_the_repository() -> None:
    files = [file for file in tracked("*.py", "*.md", "*.yaml", "*.json", "Makefile") if file != Path(__file__)]
    assert [f"{names_of(file)}: {match[0]}" for file in files for match in ELSEWHERE.finditer(file.read_text())] == []


def test_the_changes_begin_with_this_version_and_its_day() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(20\d\d-\d\d-\d\d\)", heading) for heading in headings), headings
    assert headings[0].partition(" ")[0] == __version__
