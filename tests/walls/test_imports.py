"""The import graph has no circle and no arrow upward, on any level: packages as well as modules. Imports inside functions and
those for the type checker alone count like any other: naming a type depends on its module."""

import tomllib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path

import grimp
import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("console", exclude_type_checking_imports=False, cache_dir=None)


def imports(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            yield module, imported


def child(package: str, module: str) -> str:
    """The child of a package in which a module lies, "" where it lies in none."""
    return ".".join(module.split(".")[: package.count(".") + 2]) if module.startswith(f"{package}.") else ""


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Children of one package that import one another in a circle, of every package."""
    arrows: dict[str, nx.DiGraph[str]] = {}
    for module, imported in imports(graph):
        packages = module.split(".")[:-1]
        for length in range(1, len(packages) + 1):
            package = ".".join(packages[:length])
            if (one := child(package, module)) and (other := child(package, imported)) and one != other:
                arrows.setdefault(package, nx.DiGraph()).add_edge(one, other)
    groups = (group for package in arrows.values() for group in nx.strongly_connected_components(package))
    return sorted(sorted(group) for group in groups if len(group) > 1)


def floors() -> list[set[str]]:
    """The packages of each floor, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "floors")
    return [set(layer.split(" | ")) for layer in layers]


def upward(arrows: Iterable[tuple[str, str]], levels: list[set[str]]) -> list[str]:
    """Imports of a higher floor, or of another package on the same floor."""
    heights = {package: height for height, floor in enumerate(reversed(levels)) for package in floor}
    results = []
    for module, imported in arrows:
        one, other = child("console", module), child("console", imported)
        if one != other and one in heights and other in heights and heights[other] >= heights[one]:
            results.append(f"{module} -> {imported}")
    return sorted(results)


def test_nothing_imports_in_a_circle(graph: grimp.ImportGraph) -> None:
    assert circles(graph) == []


def test_no_import_leads_to_a_higher_floor_or_to_a_neighbour(graph: grimp.ImportGraph) -> None:
    levels = floors()
    assert upward(imports(graph), levels) == []
    placed = set().union(*levels)
    assert {child("console", module) for module in graph.modules} - {""} == placed


@pytest.mark.parametrize(
    ("module", "imported", "circle"),
    [
        # neither is a circle of modules
        ("console.agent.feeds.ranges", "console.agent.rollout.notes", ["console.agent.feeds", "console.agent.rollout"]),
        (
            "console.planning.sql.dialect.quotes",
            "console.planning.sql.allow",
            ["console.planning.sql.allow", "console.planning.sql.dialect"],
        ),
        ("console.model.codec", "console.model.status", ["console.model.codec", "console.model.status"]),
    ],
)
def test_a_planted_circle_is_found(graph: grimp.ImportGraph, module: str, imported: str, circle: list[str]) -> None:
    planted = deepcopy(graph)
    planted.add_import(importer=module, imported=imported)
    if not circles(planted):
        planted.add_import(importer=imported, imported=module)
    assert set(circle) <= {name for group in circles(planted) for name in group}


def test_a_planted_arrow_upward_is_found() -> None:
    planted = [("console.model.plan", "console.planning.build"), ("console.planning.build", "console.agent.server")]
    assert upward(planted, floors()) == [f"{module} -> {imported}" for module, imported in sorted(planted)]
    assert upward([("console.planning.build", "console.model.plan")], floors()) == []
