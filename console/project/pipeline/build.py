"""Builds a pipeline from its files: checks each node by itself, then all of them together."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from console.errors import Problem
from console.model.expectation import Expectation
from console.model.pipeline import Copy, Endpoint, Materialization, Override, Parameter, Pipeline, Sink
from console.model.recorded_call import RecordedCall
from console.model.schema import Accepts, Column, Table
from console.project import documents as docs
from console.project import values
from console.project.explain import D, validated
from console.project.ineffective import unread, unused_variables
from console.project.names import did_you_mean, kept_column, wrong_column, wrong_name, wrong_parameter
from console.project.pipeline import adapter, calls, expectations, newest
from console.project.pipeline.checks import together
from console.project.pipeline.folder import Folder, Query
from console.project.yaml import Document, Keys

N = TypeVar("N")
S = TypeVar("S")
TIMES = ("timestamp", "timestamp_ntz", "date")
_NESTED = ("array<", "map<", "struct<")


def build(folder: Folder, overrides: tuple[Override, ...] = ()) -> tuple[Pipeline, list[Problem]]:
    """The pipeline and all its problems; a node that is invalid by itself is left out."""
    nodes = _Nodes(folder)
    head = nodes.head()
    endpoints = _each(folder.queries["endpoints"], nodes.endpoint)
    pipeline = Pipeline(
        name=folder.name,
        description=head.description,
        variables=tuple(sorted(nodes.variables.items())),
        tables=_each(folder.tables, nodes.table),
        materializations=tuple(
            sorted(
                (*_each(folder.queries["materializations"], nodes.materialization), *nodes.adapters),
                key=lambda node: node.name,
            )
        ),
        endpoints=endpoints,
        calls=nodes.calls(endpoints),
        copies=_each(folder.queries["copies"], nodes.copy),
        sinks=_each(folder.queries["sinks"], nodes.sink),
        sources=folder.sources,
        overrides=overrides,
        ineffective=(*nodes.ineffective, *_unread(folder)),
    )
    return pipeline, [*nodes.problems, *together(folder, pipeline)]


def _unread(folder: Folder) -> tuple[Problem, ...]:
    queries = [query.sql for kind in folder.queries.values() for query in kind.values()]
    lists = [str(table.data.get(key, "")) for table in folder.tables.values() for key in ("forward_query", "select")]
    return unused_variables(folder.head, [*queries, *lists])


def _each(sources: dict[str, S], make: Callable[[str, S], N | None]) -> tuple[N, ...]:
    made = (make(name, source) for name, source in sorted(sources.items()))
    return tuple(node for node in made if node is not None)


class _Nodes:
    """Builds the nodes of one pipeline and collects their problems."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self.ineffective: list[Problem] = []
        self.adapters: list[Materialization] = []
        self.variables: dict[str, str] = {}

    def wrong(self, code: str, message: str, where: str, hint: str = "", node: str = "") -> None:
        self.problems.append(Problem(code=code, message=message, where=where, hint=hint, node=node))

    def valid(self, kind: type[D], document: Document, node: str) -> D | None:
        doc, problems = validated(kind, document, node)
        self.problems += problems
        self.ineffective += unread(doc, document, node) if doc else ()
        return doc

    def head(self) -> docs.PipelineDoc:
        name, source = self.folder.name, self.folder.head
        head = self.valid(docs.PipelineDoc, source, "") or docs.PipelineDoc()
        if head.name not in ("", name):
            message = f"name: the folder is named {name}, found `{head.name}`"
            self.wrong("P021", message, source.place(("name",)), "make them the same")
        for variable in head.variables:
            at: Keys = ("variables", variable)
            if why := wrong_parameter(variable):
                self.wrong("P013", f"variables: {why}", source.place(at, key=True))
            written = source.raw.get(at, "")
            self.variables[variable] = values.as_text(written) if at in source.quoted else written
        return head

    def table(self, name: str, source: Document) -> Table | None:
        doc = self.valid(docs.TableDoc, source, name)
        if doc is None:
            return None
        columns = self.columns(name, doc, source)
        self.of_landing(name, doc, source)
        self.partitions(name, doc, source)
        self.problems += adapter.problems(name, doc, source, self.folder.tables)
        self.problems += newest.problems(name, doc, source)
        if doc.source:
            self.adapters.append(adapter.feed(name, doc, source))
        self.older_name(name, doc, source)
        time = self.time(name, doc, source)
        return Table(
            name=name,
            kind=newest.stored_kind(doc),
            columns=columns,
            time=time,
            partition_by=tuple(doc.partition_by),
            retention_days=doc.retention,
            description=doc.description,
            forward_query=doc.forward_query.strip(),
            backward_query=doc.backward_query.strip(),
            managed=doc.managed,
            owner=doc.owner,
            on_rewrite=doc.on_rewrite,
            backfill=doc.backfill,
            read_time_days=doc.read_time_days,
            where=source.place(()),
            cluster_by=self.clustering(name, doc, source),
            was=doc.was,
            accepts_until=self.last_day(name, doc, source),
            accepts=self.acceptance(name, doc, source),
            history=doc.history,
            source=doc.source,
            key=newest.key_of(doc),
            order_by=tuple(doc.order_by) if doc.kind == "latest" else (),
            expectations=self.expected(name, doc, source, time),
        )

    def expected(self, table: str, doc: docs.TableDoc, source: Document, time: str) -> tuple[Expectation, ...]:
        declared, problems = expectations.declared(table, doc, source, time)
        self.problems += problems
        return () if newest.stored_kind(doc) == "landing" else declared

    def of_landing(self, table: str, doc: docs.TableDoc, source: Document) -> None:
        """Keys that only a landing table may have."""
        if doc.managed and doc.kind != "landing":
            hint = "remove the line: every other table is written by console"
            place = source.place(("managed",))
            self.wrong("P012", "managed: only a landing table is managed or not", place, hint, table)
        if doc.backward_query and doc.kind != "landing":
            hint = "remove the line: the previous release continues to be fed from its own sources"
            place = source.place(("backward_query",))
            self.wrong("P012", "backward_query: only a landing table converts rows back", place, hint, table)

    def older_name(self, table: str, doc: docs.TableDoc, source: Document) -> None:
        place = source.place(("was",))
        if doc.was and doc.kind != "landing":
            hint = "remove the line: another table is computed from its sources under its new name"
            self.wrong("P012", "was: only a landing table can be renamed", place, hint, table)
        if doc.was in self.folder.tables:
            self.wrong("P030", f"was: {doc.was} is a table of this pipeline", place, "remove one", table)

    def last_day(self, table: str, doc: docs.TableDoc, source: Document) -> str:
        place = source.place(("accepts_until",))
        if doc.accepts_until and not (doc.kind == "landing" and doc.managed):
            message = "accepts_until: only a managed landing table takes lines"
            self.wrong("P012", message, place, "remove the line", table)
        if doc.accepts_until and not values.is_day(doc.accepts_until):
            message = f"accepts_until: expected a day such as 2026-12-01, found `{doc.accepts_until[:60]}`"
            self.wrong("P012", message, place, "", table)
        return doc.accepts_until

    def acceptance(self, table: str, doc: docs.TableDoc, source: Document) -> Accepts | None:
        if doc.accepts is None:
            return None
        marker, shape, place = doc.accepts.marker, doc.accepts.shape, source.place(("accepts",))
        if not (doc.kind == "landing" and doc.managed):
            self.wrong("P012", "accepts: only a managed landing table takes lines", place, "remove the line", table)
        elif bool(marker) == bool(shape):
            message = "accepts: expected a marker or the name of a shape"
            self.wrong("P012", message, place, "accepts: {marker: COLUMN}, or accepts: {shape: v2}", table)
        elif marker and self.known(table, "accepts.marker", marker, doc.columns, place):
            if not doc.columns[marker].nullable or marker in doc.partition_by:
                message = f"accepts.marker: lines of older shapes have no `{marker}`"
                self.wrong("P012", message, place, "use a column that may be NULL and is not in partition_by", table)
        elif shape and (why := wrong_name(shape)):
            self.wrong("P013", f"accepts.shape: {why}", place, "accepts: {shape: v2}", table)
        return Accepts(marker=marker, shape=shape)

    def columns(self, table: str, doc: docs.TableDoc, source: Document) -> tuple[Column, ...]:
        ours = doc.kind != "landing" or doc.managed or bool(doc.source)
        columns: list[Column] = []
        taken: dict[str, str] = {}
        for name, spec in doc.columns.items():
            at: Keys = ("columns", name)
            if why := wrong_column(name, ours) or (kept_column(name) if doc.kind == "landing" and doc.managed else ""):
                self.wrong("P013", f"columns: {why}", source.place(at, key=True), "rename the column", table)
            if other := taken.get(name.lower()):
                message = f"columns: `{other}` and `{name}` are one name to Spark"
                self.wrong("P013", message, source.place(at, key=True), "rename one of them", table)
            taken[name.lower()] = name
            columns.append(
                Column(
                    name=name,
                    type=spec.type,
                    nullable=spec.nullable,
                    default=self.default(table, name, spec, source),
                    comment=spec.comment,
                )
            )
        return tuple(columns)

    def default(self, table: str, name: str, spec: docs.ColumnDoc, source: Document) -> str | None:
        if spec.default is None:
            return None
        at: Keys = ("columns", name, "default")
        try:
            return values.literal(spec.type, source.raw.get(at, ""))
        except ValueError as error:
            message = f"{'.'.join(map(str, at))}: {error}, found `{source.raw.get(at, '')[:60]}`"
            self.wrong("P012", message, source.place(at), node=table)
            return None

    def known(self, table: str, key: str, name: str, columns: Iterable[str], where: str) -> bool:
        """Whether a key names a column of the table."""
        if name in columns:
            return True
        hint = did_you_mean(name, columns, "columns")
        self.wrong("P033", f"{key}: {table} has no column `{name}`", where, hint, table)
        return False

    def partitions(self, table: str, doc: docs.TableDoc, source: Document) -> None:
        for i, name in enumerate(doc.partition_by):
            at: Keys = ("partition_by", i)
            if not self.known(table, "partition_by", name, doc.columns, source.place(at)):
                continue
            if doc.columns[name].type.startswith(_NESTED):
                message = f"partition_by: `{name}` is {doc.columns[name].type}, which cannot partition a table"
                self.wrong("P012", message, source.place(at), "partition by a simple column", table)
            if name in doc.partition_by[:i]:
                self.wrong("P012", f"partition_by: `{name}` occurs twice", source.place(at), "remove one", table)
        if set(doc.partition_by) >= set(doc.columns):
            message = "partition_by: a table needs a column that is not a partition"
            self.wrong("P012", message, source.place(("partition_by",)), "", table)

    def clustering(self, table: str, doc: docs.TableDoc, source: Document) -> tuple[str, ...]:
        for i, name in enumerate(doc.cluster_by):
            place = source.place(("cluster_by", i))
            if not self.known(table, "cluster_by", name, doc.columns, place):
                continue
            if doc.columns[name].type.startswith(_NESTED):
                message = f"cluster_by: `{name}` is {doc.columns[name].type}, which has no order"
                self.wrong("P012", message, place, "cluster by a simple column", table)
            if name in (*doc.partition_by, *doc.cluster_by[:i]):
                message = f"cluster_by: rows are put together by `{name}` already"
                self.wrong("P012", message, place, "remove it", table)
        return tuple(doc.cluster_by)

    def time(self, table: str, doc: docs.TableDoc, source: Document) -> str:
        """The declared time; else the first timestamp; else a date that partitions the table, since that is its day."""
        if doc.time is None:
            stamps = (name for name, spec in doc.columns.items() if spec.type.startswith("timestamp"))
            dates = (name for name in doc.partition_by if name in doc.columns and doc.columns[name].type == "date")
            time = next(stamps, "") or next(dates, "")
        else:
            time, where = doc.time, source.place(("time",))
            if time and self.known(table, "time", time, doc.columns, where) and doc.columns[time].type not in TIMES:
                message = f"time: `{time}` is {doc.columns[time].type}, expected a timestamp or a date"
                self.wrong("P012", message, where, "", table)
        if doc.retention is not None and not time:
            message = "retention: the table has no time column to tell old rows by"
            self.wrong("P012", message, source.place(("retention",)), "declare one: time: COLUMN", table)
        return time

    def materialization(self, name: str, query: Query) -> Materialization | None:
        doc = self.valid(docs.MaterializationDoc, query.front, name)
        return (
            Materialization(
                name=name, into=doc.into, sql=query.sql, description=doc.description, owner=doc.owner, where=query.where
            )
            if doc
            else None
        )

    def endpoint(self, name: str, query: Query) -> Endpoint | None:
        doc = self.valid(docs.EndpointDoc, query.front, name)
        if doc is None:
            return None
        parameters: list[Parameter] = []
        for parameter, spec in doc.parameters.items():
            at: Keys = ("parameters", parameter)
            if why := wrong_parameter(parameter):
                self.wrong("P013", f"parameters: {why}", query.front.place(at, key=True), "", name)
            if parameter in self.variables:
                message = f"parameters: `{parameter}` is a variable of the pipeline already"
                self.wrong("P030", message, query.front.place(at, key=True), "rename one of them", name)
            written = query.front.raw.get((*at, "default"), "") if spec.default is not None else None
            self.parameter(name, ".".join(map(str, at)), spec, written, query.front.place((*at, "default")))
            parameters.append(Parameter(parameter, spec.type, written))
        return Endpoint(
            name=name,
            sql=query.sql,
            parameters=tuple(parameters),
            description=doc.description,
            owner=doc.owner,
            where=query.where,
        )

    def calls(self, endpoints: Sequence[Endpoint]) -> tuple[RecordedCall, ...]:
        named = {
            problem.node for problem in self.problems
        }  # the parameters of such an endpoint may not be the intended ones
        sound = tuple(endpoint for endpoint in endpoints if endpoint.name not in named)
        recorded, problems = calls.declared(self.folder.calls, sound, tuple(self.folder.queries["endpoints"]))
        self.problems += problems
        return recorded

    def parameter(self, node: str, path: str, spec: docs.ParameterDoc, default: str | None, where: str) -> None:
        if spec.type.startswith((*_NESTED, "binary")):
            self.wrong("P012", f"{path}: a parameter has a simple type, found `{spec.type}`", where, "", node)
        elif default is not None:
            try:
                values.check(spec.type, default)
            except ValueError as error:
                self.wrong("P012", f"{path}.default: {error}, found `{default[:60]}`", where, "", node)

    def copy(self, name: str, query: Query) -> Copy | None:
        doc = self.valid(docs.CopyDoc, query.front, name)
        if doc is None:
            return None
        if why := wrong_name(doc.into):
            self.wrong("P013", f"into: {why}", query.front.place(("into",)), "", name)
        return Copy(
            name=name,
            into=doc.into,
            sql=query.sql,
            mode=doc.mode,
            schedule=doc.schedule,
            description=doc.description,
            owner=doc.owner,
            where=query.where,
        )

    def sink(self, name: str, query: Query) -> Sink | None:
        doc = self.valid(docs.SinkDoc, query.front, name)
        if doc is None:
            return None
        parts = doc.path.split("/")
        strange = any(ord(char) < 32 or char in "\\\x7f" for char in doc.path) or ":" in parts[0]
        if strange or not all(parts[:1]) or {"..", "~"} & {part[:2] for part in parts} or parts[0][:1] in "~_":
            hint = "write a relative path without `..`, such as exports/daily"
            message = f"path: expected a place below the region's warehouse, found `{doc.path[:60]}`"
            self.wrong("P040", message, query.front.place(("path",)), hint, name)
        return Sink(
            name=name,
            sql=query.sql,
            path=doc.path,
            format=doc.format,
            schedule=doc.schedule,
            description=doc.description,
            owner=doc.owner,
            where=query.where,
        )
