"""Stage 1, read: tables in the order in which rows flow, and for every query its cache key with the cached result.

The result of compiling a query depends on its text, its table's declaration and the upstream queries, up to the columns
of landing tables. Its key is made of these texts alone, so that nothing has to be compiled to look it up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from console.errors import Problem
from console.model.pipeline import Copy, Endpoint, Materialization, Parameter, Pipeline, Sink
from console.model.schema import Column, Table, types
from console.planning.cache.queries import QueryMemory, key_of
from console.planning.graph import ordered
from console.planning.sql import compile
from console.planning.sql.compile import Compiled
from console.planning.sql.feed import FeedCode
from console.planning.sql.tree import Text, kind, nearest
from console.remedy import Edit

End = TypeVar("End", Endpoint, Copy, Sink)


@dataclass(frozen=True, slots=True)
class ReadFeed:
    """A materialization as written. key: "" if some inputs are unknown; code: the cached result"""

    node: Materialization
    key: str
    code: FeedCode | None


@dataclass(frozen=True, slots=True)
class ReadEnd(Generic[End]):
    """The same for an endpoint, a copy or a sink."""

    node: End
    key: str
    code: Compiled | None


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table with the queries that feed it. problems: those of its declaration"""

    table: Table
    feeds: tuple[ReadFeed, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPipeline:
    """A pipeline as written. tables: sources first; problems: those of its graph"""

    pipeline: Pipeline
    tables: tuple[ReadTable, ...]
    copies: tuple[ReadEnd[Copy], ...]
    endpoints: tuple[ReadEnd[Endpoint], ...]
    sinks: tuple[ReadEnd[Sink], ...]
    problems: tuple[Problem, ...]


def read(pipeline: Pipeline, memory: QueryMemory) -> ReadPipeline:
    """Read a pipeline's queries, with results that an earlier run has compiled."""
    reader = _Reader(memory, dict(pipeline.variables))
    feeding, problems = _feeding(pipeline)
    order, circles = ordered(pipeline, {node.name: reader.sources(text_of(node)) for node in pipeline.materializations})
    keys: dict[str, str] = {}
    tables: list[ReadTable] = []
    for name in order:
        table = pipeline.table(name)
        assert table is not None
        feeds = tuple(reader.feed(node, table, keys) for node in feeding[name])
        if all(feed.key for feed in feeds) or table.kind == "landing":
            keys[name] = _table_key(table, feeds)
        tables.append(ReadTable(table, feeds, tuple(_declaration_problems(table, feeding[name]))))
    columns = {table.name: key_of(table.name, list(types(table.columns).items())) for table in pipeline.tables}
    copies = tuple(reader.end(node, columns) for node in pipeline.copies)
    readable = _with_outputs(columns, copies)
    return ReadPipeline(
        pipeline=pipeline,
        tables=tuple(tables),
        copies=copies,
        endpoints=tuple(reader.end(node, readable) for node in pipeline.endpoints),
        sinks=tuple(reader.end(node, readable) for node in pipeline.sinks),
        problems=(*problems, *circles),
    )


def text_of(node: Materialization | Endpoint | Copy | Sink) -> Text:
    return Text(sql=node.sql, where=node.where, node=node.name)


class _Reader:
    """Determines the inputs of a query's compilation, and loads its cached result."""

    def __init__(self, memory: QueryMemory, variables: Mapping[str, str]) -> None:
        self._memory = memory
        self._variables = variables
        self._sources: dict[str, tuple[str, ...]] = {}

    def sources(self, text: Text) -> tuple[str, ...]:
        """Tables that a query names; () if it cannot be parsed."""
        if (tables := self._sources.get(text.sql)) is None:
            tables = self._sources[text.sql] = self._named_in(text)
        return tables

    def _named_in(self, text: Text) -> tuple[str, ...]:
        key = key_of("reads", text.sql)
        if (cached := self._memory.load(key, tuple[str, ...])) is not None:
            return cached
        if tables := compile.reads(text):
            self._memory.store(key, tables)
        return tables

    def feed(self, node: Materialization, table: Table, keys: Mapping[str, str]) -> ReadFeed:
        """keys: upstream table → key of all inputs of its rows and values"""
        key = self._key("feed", text_of(node), keys, _declared(table), self._used(node.sql))
        return ReadFeed(node, key, self._memory.load(key, FeedCode))

    def end(self, node: End, keys: Mapping[str, str]) -> ReadEnd[End]:
        """keys: readable relation → key of its columns"""
        parameters: tuple[Parameter, ...] = node.parameters if isinstance(node, Endpoint) else ()
        named = [(parameter.name, parameter.type) for parameter in parameters]
        key = self._key("query", text_of(node), keys, named, self._used(node.sql))
        return ReadEnd(node, key, self._memory.load(key, Compiled))

    def _key(self, operation: str, text: Text, keys: Mapping[str, str], *inputs: object) -> str:
        """The key of a compilation; "" if it reads a table without a key: the result is not cached then."""
        sources = self.sources(text)
        if not sources or not all(source in keys for source in sources):
            return ""
        return key_of(operation, text.node, text.sql, *inputs, *(keys[source] for source in sources))

    def _used(self, sql: str) -> list[tuple[str, str]]:
        """Variables that the text may use, with their values."""
        return [(name, value) for name, value in sorted(self._variables.items()) if name in sql]


def _with_outputs(tables: Mapping[str, str], copies: Sequence[ReadEnd[Copy]]) -> dict[str, str]:
    """Keys of all readable relations, outputs of copies included."""
    readable = dict(tables)
    for copy in copies:
        before = readable.pop(copy.node.into, "")
        if copy.key:
            readable[copy.node.into] = key_of("copy", copy.key, before)
    return readable


def _table_key(table: Table, feeds: Sequence[ReadFeed]) -> str:
    """A key of all inputs of a table's rows and values. The rest of its declaration is in its feeds' keys."""
    above = () if table.kind == "landing" else (feed.key for feed in feeds)
    return key_of(table.kind, table.name, list(types(table.columns).items()), *above)


def _declared(table: Table) -> str:
    """The part of a table's declaration that a compilation depends on."""
    declaration = (
        table.name,
        table.kind,
        table.key,
        table.order_by,
        table.time,
        table.partition_by,
        table.retention_days,
        table.managed,
    )
    return repr((declaration, [_column(column) for column in table.columns]))


def _column(column: Column) -> tuple[str, str, bool, str | None]:
    return column.name, column.type, column.nullable, column.default


def _feeding(pipeline: Pipeline) -> tuple[dict[str, list[Materialization]], list[Problem]]:
    """Materializations by table, and a problem for each that feeds no table."""
    problems: list[Problem] = []
    feeding: dict[str, list[Materialization]] = {table.name: [] for table in pipeline.tables}
    for node in pipeline.materializations:
        if node.into in feeding:
            feeding[node.into].append(node)
        else:
            near = nearest(node.into, feeding) or "name a table of the pipeline, or declare this one"
            problems.append(
                Problem(
                    code="C003",
                    message=f"{node.name} feeds {node.into}, which is not a table",
                    where=node.where,
                    node=node.name,
                    remedies=(Edit(node=node.name, how=near),),
                )
            )
    return feeding, problems


def _declaration_problems(table: Table, feeding: Sequence[Materialization]) -> list[Problem]:
    problems: list[Problem] = []

    def report(code: str, message: str, how: str) -> None:
        remedies = (Edit(node=table.name, how=how),)
        problems.append(Problem(code=code, message=message, where=table.where, node=table.name, remedies=remedies))

    names = [column.name.lower() for column in table.columns]
    for column in table.columns:
        try:
            kind(column.type)
        except ValueError:
            report("C005", f"{table.name}.{column.name}: {column.type} is not a Spark type", "choose a Spark type")
    for twice in sorted({name for name in names if names.count(name) > 1}):
        report("C005", f"{table.name} declares {twice} twice", "names are compared without case")
    for role, chosen in (("time", (table.time,) if table.time else ()), ("partition_by", table.partition_by)):
        for name in chosen:
            if name.lower() not in names:
                near = nearest(name, names) or f"name a column, or drop `{role}`"
                report("C006", f"{role} of {table.name} names {name}, which is not a column of it", near)
    if table.kind == "landing" and feeding:
        report(
            "C003",
            f"{feeding[0].name} feeds {table.name}, which is a landing table",
            "landing tables are fed from outside",
        )
    if table.kind != "landing" and not feeding:
        report(
            "C002", f"nothing feeds {table.name}", f"add a materialization with `into: {table.name}`, or drop the table"
        )
    if table.kind == "aggregate":
        partitions = {name.lower() for name in table.partition_by}
        if not any(column.type == "date" and column.name.lower() in partitions for column in table.columns):
            report(
                "C007",
                f"{table.name} is an aggregate and not partitioned by a day",
                "group by a date column and name it in partition_by: compaction works by partition",
            )
    return problems
