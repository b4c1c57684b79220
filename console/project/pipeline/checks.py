"""Checks across all files of a pipeline; no SQL is read here."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from console.errors import Problem
from console.model.pipeline import Pipeline
from console.project.names import did_you_mean
from console.project.pipeline.folder import KINDS, Folder


def together(folder: Folder, pipeline: Pipeline) -> list[Problem]:
    """Duplicate names, materializations without a target, tables without a feed, conflicting outputs."""
    return [*_duplicates(folder), *_feeds(folder, pipeline), *_outputs(folder, pipeline)]


def _duplicates(folder: Folder) -> Iterator[Problem]:
    """Nodes share one namespace, but a materialization may be named like the table that it feeds."""
    taken: dict[str, tuple[str, str]] = {name: ("table", doc.file) for name, doc in folder.tables.items()}
    for kind in KINDS:
        for name, query in sorted(folder.queries[kind].items()):
            if kind == "materializations" and query.front.data.get("into") == name:
                continue
            if name in taken:
                what, file = taken[name]
                message = f"two nodes are named `{name}`: this one and the {what} in {file}"
                yield Problem(
                    code="P030",
                    message=message,
                    where=f"{query.front.file}:1:1",
                    hint="rename one of the files",
                    node=name,
                )
            else:
                taken[name] = (kind.removesuffix("s").replace("copie", "copy"), query.front.file)


def _feeds(folder: Folder, pipeline: Pipeline) -> Iterator[Problem]:
    fed = {node.into for node in pipeline.materializations}
    queries = folder.queries["materializations"]
    # an invalid feed is reported by itself, and its table does not count as one without a feed
    broken = {str(queries[name].front.data.get("into")) for name in queries}
    targets = {name for name, doc in folder.tables.items() if doc.data.get("kind") != "landing"}
    for node in (node for node in pipeline.materializations if node.name in queries):  # an adapter's has no file
        where = queries[node.name].front.place(("into",))
        if node.into not in folder.tables:
            hint = did_you_mean(node.into, targets, "tables")
            yield Problem(
                code="P031", message=f"into: no table is named `{node.into}`", where=where, hint=hint, node=node.name
            )
        elif node.into not in targets:
            hint = did_you_mean(node.into, targets - {node.into}, "tables with feeds")
            message = f"into: `{node.into}` is a landing table, which others write"
            yield Problem(code="P031", message=message, where=where, hint=hint, node=node.name)
    for table in pipeline.tables:
        if table.kind != "landing" and table.name not in fed | broken:
            lost = [node.into for node in pipeline.materializations if node.into not in folder.tables]
            near = did_you_mean(table.name, lost)
            written = [node.name for node in pipeline.materializations if near == f"did you mean `{node.into}`?"]
            write = f"write a query with /* into: {table.name} */, or kind: landing if others write it"
            hint = f"does {written[0]}.sql mean it?" if written else write
            message = f"table without a feed: no materialization writes into `{table.name}`"
            yield Problem(code="P032", message=message, where=table.where, hint=hint, node=table.name)


def _outputs(folder: Folder, pipeline: Pipeline) -> Iterator[Problem]:
    written: dict[str, str] = {}
    for copy in pipeline.copies:
        where = folder.queries["copies"][copy.name].front.place(("into",))
        if copy.into in folder.tables:
            message = f"into: `{copy.into}` is a table of the pipeline; a copy writes a table of its own"
            yield Problem(code="P030", message=message, where=where, hint="choose another name", node=copy.name)
        elif other := written.get(copy.into):
            yield Problem(
                code="P030", message=f"into: the copy {other} writes `{copy.into}` already", where=where, node=copy.name
            )
        written[copy.into] = copy.name
    paths: dict[tuple[str, ...], str] = {}
    for sink in pipeline.sinks:
        parts = PurePosixPath(sink.path).parts
        where = folder.queries["sinks"][sink.name].front.place(("path",))
        if parts and (parts[0] in folder.tables or parts[0] in written):
            message = f"path: `{parts[0]}/` below the warehouse belongs to the table of that name"
            yield Problem(code="P040", message=message, where=where, hint="choose another folder", node=sink.name)
        if other := next((paths[known] for known in paths if _overlap(known, parts)), ""):
            message = f"path: the sink {other} writes to the same place"
            yield Problem(code="P040", message=message, where=where, hint="choose another folder", node=sink.name)
        paths[parts] = sink.name


def _overlap(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    return a[: len(b)] == b or b[: len(a)] == a


def across(pipelines: Sequence[Pipeline]) -> list[Problem]:
    """Pipelines of one project share each warehouse: every table written by console has one owner, and so has every folder."""
    problems: list[Problem] = []
    taken: dict[str, str] = {}
    for pipeline in pipelines:
        ours = {(table.name, table.where) for table in pipeline.tables if table.kind != "landing"}
        for name, where in sorted(ours | {(copy.into, copy.where) for copy in pipeline.copies}):
            if other := taken.get(name):
                message = f"pipelines {other} and {pipeline.name} both write a table `{name}`"
                problems.append(
                    Problem(code="P030", message=message, where=where, hint="rename one of them", node=name)
                )
        taken |= {name: pipeline.name for name, _ in ours} | {copy.into: pipeline.name for copy in pipeline.copies}
    return [*problems, *_folders(pipelines)]


def _folders(pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Sinks that would write where another pipeline has a table, or a sink of its own."""
    owners: dict[str, list[str]] = {}
    for pipeline in pipelines:
        for name in {table.name for table in pipeline.tables} | {copy.into for copy in pipeline.copies}:
            owners.setdefault(name, []).append(pipeline.name)
    taken: list[tuple[tuple[str, ...], str, str]] = []
    for pipeline in pipelines:
        for sink in pipeline.sinks:
            parts = PurePosixPath(sink.path).parts
            theirs = owners.get(parts[0], []) if parts else []
            message = ""
            if theirs and pipeline.name not in theirs:  # conflicts within one pipeline are already reported
                message = f"path: `{parts[0]}/` below the warehouse belongs to a table of pipeline {theirs[0]}"
            for known, name, owner in taken:
                if owner != pipeline.name and _overlap(known, parts):
                    message = f"path: the sink {name} of pipeline {owner} writes to the same place"
            if message:
                yield Problem(
                    code="P040", message=message, where=sink.where, hint="choose another folder", node=sink.name
                )
            taken.append((parts, sink.name, pipeline.name))
