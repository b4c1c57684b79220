"""Stage 2, resolve: every name in every query is resolved to a declared table or column. That also compiles the read side.

Meaning is not evaluated yet, so that no query depends on upstream ones, except on the names in copies' outputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

from console.errors import Problem
from console.model.pipeline import Copy, Endpoint, Materialization, Parameter, Pipeline, Sink
from console.model.schema import Table, types
from console.planning.cache.queries import QueryMemory
from console.planning.read import End, ReadEnd, ReadFeed, ReadPipeline, ReadTable, text_of
from console.planning.sql import compile, feed
from console.planning.sql.compile import Compiled, NameScope
from console.planning.sql.feed import FeedCode, ResolvedFeed
from console.planning.sql.resolve import schema
from console.planning.sql.tree import Text, UnknownColumn
from console.remedy import Edit

Unknown = Mapping[Problem, UnknownColumn]  # the problems that an unknown column causes


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuery:
    """A materialization with its names resolved.

    query  to be fingerprinted, or the cached code; None if it does not resolve
    """

    node: Materialization
    key: str
    query: ResolvedFeed | FeedCode | None
    problems: tuple[Problem, ...] = ()
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table with the queries that feed it. problems: those of its declaration"""

    table: Table
    feeds: tuple[ResolvedQuery, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedEnd(Generic[End]):
    """A copy, an endpoint or a sink. node: with its compiled query, None if it does not compile; columns: those of its output"""

    node: End | None
    columns: tuple[str, ...]
    problems: tuple[Problem, ...]
    unknown: Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPipeline:
    """tables: sources first; known: their columns as names; problems: those of the pipeline's graph"""

    pipeline: Pipeline
    tables: tuple[ResolvedTable, ...]
    copies: tuple[ResolvedEnd[Copy], ...]
    endpoints: tuple[ResolvedEnd[Endpoint], ...]
    sinks: tuple[ResolvedEnd[Sink], ...]
    known: NameScope
    problems: tuple[Problem, ...]


def resolve(source: ReadPipeline, memory: QueryMemory) -> ResolvedPipeline:
    """Resolve all queries that are not cached; queries of the read side are cached under the keys that `read` gave them."""
    pipeline = source.pipeline
    columns = {table.name: types(table.columns) for table in pipeline.tables}
    known, variables = NameScope(columns, schema=schema(columns)), dict(pipeline.variables)
    copies = tuple(_copy(read, known, variables, memory) for read in source.copies)
    outputs = {copy.node.into: dict.fromkeys(copy.columns, "string") for copy in copies if copy.node is not None}
    tables = {**columns, **outputs}
    readable = NameScope(tables, schema=schema(tables)) if outputs else known
    return ResolvedPipeline(
        pipeline=pipeline,
        tables=tuple(_table(read, known, variables) for read in source.tables),
        copies=copies,
        endpoints=tuple(_endpoint(read, readable, variables, memory) for read in source.endpoints),
        sinks=tuple(_end(read, readable, variables, memory) for read in source.sinks),
        known=known,
        problems=source.problems,
    )


def _table(read: ReadTable, known: NameScope, variables: Mapping[str, str]) -> ResolvedTable:
    """A table with its resolved feeds; feeds declared for a landing table are ignored."""
    feeds = () if read.table.kind == "landing" else read.feeds
    return ResolvedTable(read.table, tuple(_feed(one, read.table, known, variables) for one in feeds), read.problems)


def _feed(read: ReadFeed, table: Table, known: NameScope, variables: Mapping[str, str]) -> ResolvedQuery:
    if read.code is not None:
        return ResolvedQuery(node=read.node, key=read.key, query=read.code)
    text = text_of(read.node)
    resolved = feed.resolve(text, table, known, variables)
    return ResolvedQuery(
        node=read.node, key=read.key, query=resolved, problems=tuple(text.problems), unknown=text.unknown
    )


def _copy(
    read: ReadEnd[Copy], known: NameScope, variables: Mapping[str, str], memory: QueryMemory
) -> ResolvedEnd[Copy]:
    resolved, copy = _end(read, known, variables, memory), read.node
    if copy.into not in known.tables:
        return resolved
    taken = Problem(
        code="C004",
        message=f"{copy.name} writes {copy.into}, which is a table of the pipeline",
        where=copy.where,
        node=copy.name,
        remedies=(Edit(node=copy.name, how="give the copy a name of its own"),),
    )
    return replace(resolved, problems=(taken, *resolved.problems))


def _endpoint(
    read: ReadEnd[Endpoint], known: NameScope, variables: Mapping[str, str], memory: QueryMemory
) -> ResolvedEnd[Endpoint]:
    """An endpoint; every parameter that it declares must be used."""
    text, endpoint = text_of(read.node), read.node
    compiled = _compiled(read, text, known, variables, memory, endpoint.parameters)
    for parameter in endpoint.parameters:
        if compiled is not None and parameter.name not in compiled.parameters:
            text.report_query(
                "S111",
                f"{endpoint.name} declares the parameter {parameter.name} and does not use it",
                None,
                f"write :{parameter.name} in the query, or drop it",
            )
    return _resolved(endpoint, compiled, text)


def _end(read: ReadEnd[End], known: NameScope, variables: Mapping[str, str], memory: QueryMemory) -> ResolvedEnd[End]:
    text = text_of(read.node)
    return _resolved(read.node, _compiled(read, text, known, variables, memory), text)


def _compiled(
    read: ReadEnd[End],
    text: Text,
    known: NameScope,
    variables: Mapping[str, str],
    memory: QueryMemory,
    parameters: tuple[Parameter, ...] = (),
) -> Compiled | None:
    if read.code is not None:
        return read.code
    compiled = compile.query(text, known, parameters, variables)
    if compiled is not None and not text.problems:
        memory.store(read.key, compiled)
    return compiled


def _resolved(node: End, compiled: Compiled | None, text: Text) -> ResolvedEnd[End]:
    return ResolvedEnd(
        node=replace(node, sql=compiled.sql) if compiled is not None else None,
        columns=compiled.columns if compiled is not None else (),
        problems=tuple(text.problems),
        unknown=text.unknown,
    )
