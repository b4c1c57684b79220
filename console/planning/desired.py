"""The desired state: every node of a pipeline compiled and fingerprinted, sources first; all that is wrong, at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from console.errors import Problem
from console.model.live import Feed
from console.model.pipeline import Copy, Endpoint, Materialization, Pipeline, Sink, digest
from console.model.schema import Column, Table, types
from console.planning.cache.compiler import Compiler
from console.planning.graph import ordered
from console.planning.sql.compile import FeedCode, NameScope
from console.planning.sql.reads import landing_read
from console.planning.sql.relation import Relation, Value, mix, physical
from console.planning.sql.resolve import schema
from console.planning.sql.tree import Text, UnknownColumn, kind, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredTable:
    """One table as declared.

    columns   stored;  read  over the view `stored`;  rows, values  fingerprints (a value's ends in `:type`)
    literals  columns that are the same constant in every feed, with its SQL
    certain   column → the type its expression surely has before the cast to the declared one
    reads     column → what it is computed from
    joined    columns that depend on a table other than the driving one;  volatile  on now(), rand() and the like
    keys      an aggregate's group columns
    """

    table: Table
    columns: tuple[Column, ...]
    read: str
    rows: str
    values: dict[str, str]
    inexact: tuple[str, ...] = ()
    feeds: tuple[Feed, ...] = ()
    literals: dict[str, str] = field(default_factory=dict)
    certain: dict[str, str] = field(default_factory=dict)
    reads: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    joined: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """Hash of the stored contents and their layout, without the order of columns."""
        stored = sorted([column.name, kind(column.type)] for column in self.columns)
        order = [list(self.table.cluster_by)] if self.table.cluster_by else []
        return digest([stored, list(self.table.partition_by), self.rows, sorted(self.values.items()), *order])


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The whole pipeline, compiled. `tables` in topological order; `unknown`: the problems that a dropped column causes"""

    tables: dict[str, DesiredTable]
    endpoints: tuple[Endpoint, ...]
    copies: tuple[Copy, ...]
    sinks: tuple[Sink, ...]
    problems: tuple[Problem, ...]
    unknown: Mapping[Problem, UnknownColumn]


def desired(pipeline: Pipeline, compiler: Compiler | None = None) -> Desired:
    """Compile the whole pipeline; mistakes of the operator are in `problems`, never raised.

    compiler  caches queries across runs
    """
    compiler = compiler or Compiler()
    feeding, problems = _feeding(pipeline)
    unknown: dict[Problem, UnknownColumn] = {}
    reads = {n.name: compiler.reads(Text(sql=n.sql, where=n.where, node=n.name)) for n in pipeline.materializations}
    order, circles = ordered(pipeline, reads)
    problems += circles
    tables = {table.name: types(table.columns) for table in pipeline.tables}
    mapping = schema(tables)
    relations: dict[str, Relation] = {}
    wanted: dict[str, DesiredTable] = {}
    for name in order:
        table = pipeline.table(name)
        assert table is not None
        problems += _declared(table, feeding[name])
        made, found = _table(table, feeding[name], NameScope(tables, relations, mapping), pipeline, compiler, unknown)
        problems += found
        relations[name] = _relation(table, made)
        if made is not None:
            wanted[name] = made
            compiler.register(name, tables[name], made.rows, sorted(made.values.items()), sorted(made.volatile))
    ends = _ends(pipeline, NameScope(tables, relations, mapping), problems, compiler, unknown)
    return Desired(
        tables=wanted, endpoints=ends[0], copies=ends[1], sinks=ends[2], problems=tuple(dict.fromkeys(problems)),
        unknown=unknown,
    )  # fmt: skip


def _feeding(pipeline: Pipeline) -> tuple[dict[str, list[Materialization]], list[Problem]]:
    """Materializations by table, and a problem for each that feeds no table."""
    problems: list[Problem] = []
    feeding: dict[str, list[Materialization]] = {table.name: [] for table in pipeline.tables}
    for node in pipeline.materializations:
        if node.into in feeding:
            feeding[node.into].append(node)
        else:
            hint = nearest(node.into, feeding)
            problems.append(
                Problem(
                    code="C003",
                    message=f"{node.name} feeds {node.into}, which is no table",
                    where=node.where,
                    hint=hint,
                    node=node.name,
                )
            )
    return feeding, problems


def _declared(table: Table, feeding: list[Materialization]) -> list[Problem]:
    problems: list[Problem] = []

    def report(code: str, message: str, hint: str = "") -> None:
        problems.append(Problem(code=code, message=message, where=table.where, hint=hint, node=table.name))

    names = [column.name.lower() for column in table.columns]
    for column in table.columns:
        try:
            kind(column.type)
        except ValueError:
            report("C005", f"{table.name}.{column.name}: {column.type} is no Spark type")
    for twice in sorted({name for name in names if names.count(name) > 1}):
        report("C005", f"{table.name} declares {twice} twice", "names are compared without case")
    for role, chosen in (("time", (table.time,) if table.time else ()), ("partition_by", table.partition_by)):
        for name in chosen:
            if name.lower() not in names:
                near = nearest(name, names)
                report("C006", f"{role} of {table.name} names {name}, which is no column of it", near)
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


def _table(
    table: Table,
    feeding: list[Materialization],
    known: NameScope,
    pipeline: Pipeline,
    compiler: Compiler,
    unknown: dict[Problem, UnknownColumn],
) -> tuple[DesiredTable | None, list[Problem]]:
    if table.kind == "landing":
        return adopted(table), []
    problems: list[Problem] = []
    codes: list[FeedCode] = []
    for node in feeding:
        code, text = compiler.feed(node, table, known, dict(pipeline.variables))
        problems += text.problems
        unknown |= text.unknown
        if code is not None:
            if (source := pipeline.table(code.feed.source)) is not None and source.kind == "aggregate":
                text.report_query(
                    "C008",
                    f"{node.name} is driven by {source.name}, an aggregate: its rows are parts, not results",
                    0,
                    "read the table below it, or read it in an endpoint",
                )
                problems.append(text.problems[-1])
            codes.append(code)
    if problems or not codes:
        return None, problems
    if any(code.stored != codes[0].stored for code in codes):
        problems.append(
            Problem(
                code="C009",
                message=f"the queries that feed {table.name} keep different states",
                where=feeding[1].where,
                hint="cast the aggregated columns to one type",
                node=table.name,
            )
        )
        return None, problems
    return _assembled(table, codes, problems), problems


def adopted(table: Table) -> DesiredTable:
    """A landing table: its rows and values stand for themselves."""
    name = table.name
    values = {column.name: f"{mix('landing', name, column.name.lower())}:{column.type}" for column in table.columns}
    return DesiredTable(
        table=table, columns=table.columns, read=landing_read(table.columns), rows=mix("landing", name), values=values
    )


def _assembled(table: Table, codes: list[FeedCode], problems: list[Problem]) -> DesiredTable | None:
    ranked = sorted(codes, key=lambda code: (code.relation.rows, code.feed.materialization))
    first = codes[0]
    values, literals, certain, reads = {}, {}, {}, {}
    inexact, joined, volatile = set(first.split.inexact if first.split else ()), set(), set()
    for column in table.columns:
        name = column.name.lower()
        each: list[Value] = [code.relation.columns[name] for code in ranked]
        format = first.split.formats.get(column.name, "") if first.split else ""
        values[column.name] = f"{mix(*(value.hash for value in each), format)}:{kind(column.type)}"
        constants = {_fold(code.literals).get(name, "") for code in codes}
        if len(constants) == 1 and (only := constants.pop()):
            literals[column.name] = only
        types_known = {_fold(code.exact_types).get(name, "") for code in codes}
        if len(types_known) == 1 and (only := types_known.pop()):
            certain[column.name] = only
        reads[column.name] = frozenset().union(*(value.reads for value in each))
        if any(value.volatile for value in each) or any(code.relation.volatile for code in codes):
            volatile.add(column.name)
        if any(value.joined for value in each) or any("inner join" in code.relation.marks for code in codes):
            joined.add(column.name)
    keys = first.split.keys if first.split else ()
    if any(name not in keys for name in table.partition_by) and table.kind == "aggregate":
        problems.append(
            Problem(
                code="C007",
                message=f"{table.name} is partitioned by a column that is no key of its query",
                where=table.where,
                hint="partition by columns of GROUP BY",
                node=table.name,
            )
        )
        return None
    rows = mix(*(code.relation.rows for code in ranked))
    order = tuple(column.name for column in table.columns if column.name in inexact | volatile)
    return DesiredTable(
        table=table, columns=first.stored, read=first.read, rows=rows, values=values, inexact=order, feeds=tuple(code.feed for code in codes), literals=literals, certain=certain,
        reads=reads, joined=frozenset(joined), volatile=frozenset(volatile), keys=keys,
    )  # fmt: skip


def _fold(names: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in names.items()}


def _relation(table: Table, wanted: DesiredTable | None) -> Relation:
    if wanted is None:
        return physical(table.name, "?", types(table.columns))
    return physical(table.name, wanted.rows, wanted.values, wanted.volatile, types(table.columns))


def _copies(
    pipeline: Pipeline,
    known: NameScope,
    problems: list[Problem],
    compiler: Compiler,
    unknown: dict[Problem, UnknownColumn],
) -> tuple[tuple[Copy, ...], NameScope]:
    """Copies compiled, and what can be read with their outputs added."""
    variables = dict(pipeline.variables)
    copies: list[Copy] = []
    outputs: dict[str, dict[str, str]] = {}
    for copy in pipeline.copies:
        text = Text(sql=copy.sql, where=copy.where, node=copy.name)
        if copy.into in known.tables:
            problems.append(
                Problem(
                    code="C004",
                    message=f"{copy.name} writes {copy.into}, which is a table of the pipeline",
                    where=copy.where,
                    hint="give the copy a name of its own",
                    node=copy.name,
                )
            )
        if (compiled := compiler.query(text, known, (), variables)) is not None:
            copies.append(replace(copy, sql=compiled.sql))
            outputs[copy.into] = dict.fromkeys(compiled.columns, "string")
            compiler.register(copy.into, outputs[copy.into])
        problems += text.problems
        unknown |= text.unknown
    tables = {**known.tables, **outputs}
    return tuple(copies), NameScope(tables, schema=schema(tables))


def _ends(
    pipeline: Pipeline,
    known: NameScope,
    problems: list[Problem],
    compiler: Compiler,
    unknown: dict[Problem, UnknownColumn],
) -> tuple[tuple[Endpoint, ...], tuple[Copy, ...], tuple[Sink, ...]]:
    variables = dict(pipeline.variables)
    copies, readable = _copies(pipeline, known, problems, compiler, unknown)
    endpoints: list[Endpoint] = []
    for endpoint in pipeline.endpoints:
        text = Text(sql=endpoint.sql, where=endpoint.where, node=endpoint.name)
        compiled = compiler.query(text, readable, endpoint.parameters, variables)
        for parameter in endpoint.parameters:
            if compiled is not None and parameter.name not in compiled.parameters:
                text.report_query(
                    "S111",
                    f"{endpoint.name} declares the parameter {parameter.name} and does not use it",
                    None,
                    f"write :{parameter.name} in the query, or drop it",
                )
        if compiled is not None:
            endpoints.append(replace(endpoint, sql=compiled.sql))
        problems += text.problems
        unknown |= text.unknown
    sinks: list[Sink] = []
    for sink in pipeline.sinks:
        text = Text(sql=sink.sql, where=sink.where, node=sink.name)
        if (compiled := compiler.query(text, readable, (), variables)) is not None:
            sinks.append(replace(sink, sql=compiled.sql))
        problems += text.problems
        unknown |= text.unknown
    return tuple(endpoints), copies, tuple(sinks)
