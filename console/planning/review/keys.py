"""Keys of JSON columns that the pipeline's own queries extract, with the queries that do."""

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.model.pipeline import Copy, Endpoint, Materialization, Pipeline, Sink
from console.planning.sql import compile
from console.planning.sql.tree import DIALECT, Text, parse

_CALLS = {"json_tuple", "variant_get", "try_variant_get", "get_json_object"}
_STEP = re.compile(r"\.([^.\[]+)|\[['\"]([^'\"]+)['\"]\]")


def parsed_keys(pipeline: Pipeline, table: str) -> dict[str, tuple[str, ...]]:
    """Path below the JSON text (`user.name`) → the nodes whose queries extract it, sorted.

    table  a landing table; queries over downstream tables count as well, since a text may be passed on whole
    """
    below = _below(pipeline, table)
    nodes_by_path: dict[str, set[str]] = {}
    nodes: list[Materialization | Endpoint | Copy | Sink] = [*pipeline.materializations, *pipeline.endpoints]
    nodes += [*pipeline.copies, *pipeline.sinks]
    for node in nodes:
        text = Text(sql=node.sql, where=node.where, node=node.name)
        if below.intersection(compile.reads(text)) and (tree := parse(text)) is not None:
            for path in _paths(tree):
                nodes_by_path.setdefault(path, set()).add(node.name)
    return {path: tuple(sorted(names)) for path, names in sorted(nodes_by_path.items())}


def readers(key: str, parsed: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Nodes that extract a key, something inside it, or an object that contains it."""
    names: set[str] = set()
    for path, nodes in parsed.items():
        if path == key or path.startswith(f"{key}.") or key.startswith(f"{path}."):
            names.update(nodes)
    return tuple(sorted(names))


def _below(pipeline: Pipeline, table: str) -> set[str]:
    """The table and everything downstream of it."""
    reads = {
        node.name: compile.reads(Text(sql=node.sql, where=node.where, node=node.name))
        for node in pipeline.materializations
    }
    below = {table}
    while added := {n.into for n in pipeline.materializations if below.intersection(reads[n.name])} - below:
        below |= added
    return below


def _paths(tree: exp.Expr) -> set[str]:
    paths: set[str] = set()
    for node in tree.walk():
        match node:
            case exp.JSONPath():
                keys = [step.name for step in node.expressions if isinstance(step, exp.JSONPathKey)]
                paths.add(".".join(keys))
            case exp.Anonymous() if node.name.lower() in _CALLS:
                texts = [part.name for part in node.expressions[1:] if isinstance(part, exp.Literal) and part.is_string]
                tuple_ = node.name.lower() == "json_tuple"
                paths.update(texts if tuple_ else (_path(text) for text in texts[:1]))
            case exp.FromJson() | exp.ParseJSON() if isinstance(node.args.get("expression"), exp.Literal):
                paths |= _fields(node.args["expression"].name)
    return paths - {""}


def _path(text: str) -> str:
    """`$.a['b'][0]` as `a.b`."""
    return ".".join(a or b for a, b in _STEP.findall(text.removeprefix("$")))


def _fields(schema: str) -> set[str]:
    """Names in a schema given as text: `a STRING, b STRUCT<c: INT>` contains `a` and `b.c`."""
    written = schema if schema.strip().lower().startswith(("struct", "array")) else f"struct<{schema}>"
    try:
        kind = exp.DataType.build(written, dialect=DIALECT)
    except (SqlglotError, ValueError):
        return set()
    return set(_named(kind, ""))


def _named(kind: exp.Expr, above: str) -> list[str]:
    names: list[str] = []
    for part in kind.expressions:
        if isinstance(part, exp.ColumnDef):
            path = f"{above}.{part.name}" if above else part.name
            inner = _named(part.args["kind"], path) if part.args.get("kind") else []
            names += inner or [path]
        elif isinstance(part, exp.DataType):
            names += _named(part, above)
    return names
