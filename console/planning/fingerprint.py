"""Stage 3, fingerprint: the meaning of every query over the meaning of its sources; tables with the hashes of their
rows and values.

Sources come first, since a query's fingerprint is made from theirs. All problems of the pipeline are known after this stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from console.errors import Problem
from console.model.expectation import ExpectationCheck
from console.model.live import Feed
from console.model.merging import Merging
from console.model.pipeline import Copy, Endpoint, Materialization, Pipeline, Sink, digest
from console.model.schema import Column, Table, types
from console.planning.cache.queries import QueryMemory
from console.planning.expectations.compile import compiled
from console.planning.read import text_of
from console.planning.resolve import ResolvedEnd, ResolvedPipeline, ResolvedQuery, ResolvedTable
from console.planning.sql import feed
from console.planning.sql.compile import NameScope
from console.planning.sql.feed import FeedCode
from console.planning.sql.newest import merged_read, merged_rows, newest_of
from console.planning.sql.reads import landing_read
from console.planning.sql.relation import Relation, mix, physical
from console.planning.sql.tree import UnknownColumn, kind
from console.remedy import Edit, Stays


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredTable:
    """One table as declared.

    columns   stored;  read  over the view `stored`;  rows, values  fingerprints (a value's ends in `:type`)
    literals  columns that are the same constant in every feed, with its SQL
    certain   column → the certain type of its expression before the cast to the declared one
    reads     column → the source columns that it is computed from
    joined    columns that depend on a table other than the driving one;  volatile  on now(), rand() and the like
    keys      an aggregate's group columns
    checks    expectations on its rows; not part of their meaning
    merging   of an aggregate: how its stored rows of one key become one
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
    checks: tuple[ExpectationCheck, ...] = ()
    merging: Merging | None = None

    @property
    def content(self) -> str:
        """Hash of the stored contents and their layout, without the order of columns."""
        stored = sorted([column.name, kind(column.type)] for column in self.columns)
        order = [list(self.table.cluster_by)] if self.table.cluster_by else []
        return digest([stored, list(self.table.partition_by), self.rows, sorted(self.values.items()), *order])


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The whole pipeline, compiled. `tables` in topological order; outputs without their places in the files, as a release
    keeps them; `unknown`: the unknown column behind each problem that names one
    """

    tables: dict[str, DesiredTable]
    endpoints: tuple[Endpoint, ...]
    copies: tuple[Copy, ...]
    sinks: tuple[Sink, ...]
    problems: tuple[Problem, ...]
    unknown: Mapping[Problem, UnknownColumn]


def fingerprint(resolved: ResolvedPipeline, memory: QueryMemory) -> Desired:
    """Fingerprint all tables; the operator's mistakes are in `problems`, never raised. Compiled queries are cached."""
    problems, unknown = [*resolved.problems], dict[Problem, UnknownColumn]()
    relations: dict[str, Relation] = {}
    wanted: dict[str, DesiredTable] = {}
    scope = replace(resolved.known, relations=relations)
    for source in resolved.tables:
        name = source.table.name
        codes, refused = _codes(source, scope, resolved.pipeline, memory)
        problems += [*source.problems, *refused]
        made = None if refused else _desired(source, codes, problems)
        relations[name] = _relation(source.table, made)
        if made is not None:
            wanted[name] = made
        for query in source.feeds:
            unknown |= query.unknown
    ends: tuple[ResolvedEnd[Copy] | ResolvedEnd[Endpoint] | ResolvedEnd[Sink], ...] = (
        *resolved.copies,
        *resolved.endpoints,
        *resolved.sinks,
    )
    for end in ends:
        problems += end.problems
        unknown |= end.unknown
    return Desired(
        tables=wanted,
        endpoints=tuple(replace(end.node, where="") for end in resolved.endpoints if end.node is not None),
        copies=tuple(replace(end.node, where="") for end in resolved.copies if end.node is not None),
        sinks=tuple(replace(end.node, where="") for end in resolved.sinks if end.node is not None),
        problems=tuple(dict.fromkeys(problems)),
        unknown=unknown,
    )


def _codes(
    source: ResolvedTable, known: NameScope, pipeline: Pipeline, memory: QueryMemory
) -> tuple[list[FeedCode], list[Problem]]:
    """The compiled queries that feed a table, and their problems, query by query."""
    codes: list[FeedCode] = []
    problems: list[Problem] = []
    for query in source.feeds:
        code, refused = _code(query, source.table, known, memory)
        problems += refused
        if code is not None:
            problems += _driven_by_parts(query.node, code, pipeline)
            codes.append(code)
    return codes, problems


def _code(
    query: ResolvedQuery, table: Table, known: NameScope, memory: QueryMemory
) -> tuple[FeedCode | None, Sequence[Problem]]:
    if query.query is None or isinstance(query.query, FeedCode):
        return query.query, query.problems
    text = text_of(query.node)
    text.problems += query.problems
    code = feed.evaluate(query.query, text, table, known)
    if code is not None:
        memory.store(query.key, code)
    return code, text.problems


def _driven_by_parts(node: Materialization, code: FeedCode, pipeline: Pipeline) -> list[Problem]:
    source = pipeline.table(code.feed.source)
    if source is None or (source.kind != "aggregate" and not source.key):
        return []
    text = text_of(node)
    if source.key:
        text.report_query(
            "C008",
            f"{node.name} is driven by {source.name}, a table of kind {source.kind_word}: a row that a newer one replaces would stay below",
            0,
            Stays(instead=text.as_endpoint()),
        )
        return text.problems
    text.report_query(
        "C008",
        f"{node.name} is driven by {source.name}, an aggregate: its rows are parts, not results",
        0,
        Stays(instead=f"read the table above it, or {text.as_endpoint()}"),
    )
    return text.problems


def _desired(source: ResolvedTable, codes: Sequence[FeedCode], problems: list[Problem]) -> DesiredTable | None:
    table = source.table
    if table.kind == "landing":
        return adopted(table)
    if not codes:
        return None
    if any(code.stored != codes[0].stored for code in codes):
        problems.append(
            Problem(
                code="C009",
                message=f"the queries that feed {table.name} keep different states",
                where=source.feeds[1].node.where,
                node=table.name,
                remedies=(Edit(node=table.name, how="cast the aggregated columns to one type"),),
            )
        )
        return None
    return _assembled(table, codes, problems)


def adopted(table: Table) -> DesiredTable:
    """A landing table, whose rows and values are hashed by their names alone."""
    name = table.name
    values = {column.name: f"{mix('landing', name, column.name.lower())}:{column.type}" for column in table.columns}
    return DesiredTable(
        table=table, columns=table.columns, read=landing_read(table.columns), rows=mix("landing", name), values=values
    )


def _assembled(table: Table, codes: Sequence[FeedCode], problems: list[Problem]) -> DesiredTable | None:
    ranked = sorted(codes, key=lambda code: (code.rows, code.feed.materialization))
    first = codes[0]
    values, literals, certain, reads = {}, {}, {}, {}
    inexact, joined, volatile = set(first.split.inexact if first.split else ()), set(), set()
    constants, exact_types = [_fold(code.literals) for code in codes], [_fold(code.exact_types) for code in codes]
    for column in table.columns:
        name = column.name.lower()
        format = first.split.formats.get(column.name, "") if first.split else ""
        values[column.name] = f"{mix(*(code.values[name] for code in ranked), format)}:{kind(column.type)}"
        if only := _agreed(name, constants):
            literals[column.name] = only
        if only := _agreed(name, exact_types):
            certain[column.name] = only
        reads[column.name] = frozenset().union(*(code.reads[name] for code in codes))
        if any(name in code.volatile for code in codes):
            volatile.add(column.name)
        if any(name in code.joined for code in codes):
            joined.add(column.name)
    keys = first.split.keys if first.split else table.key
    if any(name not in keys for name in table.partition_by) and table.kind == "aggregate":
        problems.append(
            Problem(
                code="C007",
                message=f"{table.name} is partitioned by a column that is not a key of its query",
                where=table.where,
                node=table.name,
                remedies=(Edit(node=table.name, how="partition by columns of GROUP BY"),),
            )
        )
        return None
    rows, columns, read = _stored(table, first, mix(*(code.rows for code in ranked)), values)
    order = tuple(column.name for column in table.columns if column.name in inexact | volatile)
    checks, wrong = compiled(table, keys)
    problems += wrong
    return DesiredTable(
        table=table, columns=columns, read=read, rows=rows, values=values, inexact=order, feeds=tuple(code.feed for code in codes), literals=literals, certain=certain,
        reads=reads, joined=frozenset(joined), volatile=frozenset(volatile), keys=keys, checks=checks,
        merging=first.split.merging if first.split else None,
    )  # fmt: skip


def _stored(table: Table, code: FeedCode, rows: str, values: Mapping[str, str]) -> tuple[str, tuple[Column, ...], str]:
    """The fingerprint of a table's rows, its stored columns, and its read."""
    if (newest := newest_of(table)) is None:
        return rows, code.stored, code.read
    return merged_rows(rows, table, values), (*code.stored, *newest.added), merged_read(newest, table.columns)


def _agreed(name: str, each: Sequence[Mapping[str, str]]) -> str:
    """The value that all of them have under a name, "" if they differ."""
    first = each[0].get(name, "")
    return first if all(one.get(name, "") == first for one in each[1:]) else ""


def _fold(names: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in names.items()}


def _relation(table: Table, wanted: DesiredTable | None) -> Relation:
    if wanted is None:
        return physical(table.name, "?", types(table.columns))
    return physical(table.name, wanted.rows, wanted.values, wanted.volatile, types(table.columns))
