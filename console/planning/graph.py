"""The pipeline's graph: the order of tables by their feeds, and cycles."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from console.errors import Problem
from console.model.pipeline import Pipeline
from console.remedy import Edit


def ordered(pipeline: Pipeline, reads: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Tables, sources first.

    reads    materialization → tables that its query names
    returns  names of all tables, those in cycles at the end in no useful order; one problem for every cycle
    """
    names = {table.name for table in pipeline.tables}
    by_edge: dict[tuple[str, str], str] = {}
    for node in pipeline.materializations:
        for source in reads.get(node.name, ()):
            if source in names and node.into in names:
                by_edge.setdefault((source, node.into), node.name)
    try:
        return tuple(_sorted(names, by_edge)), ()
    except CycleError:
        return _circular(pipeline, names, by_edge)


def _sorted(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> Iterable[str]:
    """Sources first, then by name. raises CycleError"""
    sorter = TopologicalSorter[str]({name: () for name in names})
    for source, target in edges:
        sorter.add(target, source)
    sorter.prepare()
    ready: list[str] = []
    order: list[str] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, name)
        order.append(heappop(ready))
        sorter.done(order[-1])
    return order


def _circular(
    pipeline: Pipeline, names: Iterable[str], by_edge: Mapping[tuple[str, str], str]
) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The same with cycles, found by networkx, which takes longer to load than a plan takes to compute."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(by_edge)
    problems: list[Problem] = []
    circular: set[str] = set()
    for group in nx.strongly_connected_components(graph):
        start = min(group)
        if len(group) > 1 or graph.has_edge(start, start):
            circular |= group
            edges = nx.find_cycle(graph.subgraph(group), start)
            path = " → ".join([*(edge[0] for edge in edges), edges[-1][1]])
            name = by_edge[edges[-1][0], edges[-1][1]]
            where = next(node.where for node in pipeline.materializations if node.name == name)
            problems.append(
                Problem(
                    code="C001",
                    message=f"the tables run in a circle: {path}",
                    where=where,
                    node=name,
                    remedies=(Edit(node=name, how="a table cannot be fed from itself"),),
                )
            )
    straight = graph.subgraph(set(graph) - circular)
    order = tuple(nx.lexicographical_topological_sort(straight))
    return (*order, *sorted(circular)), tuple(sorted(problems, key=str))
