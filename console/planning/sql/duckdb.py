"""Queries for DuckDB: a release's reads, and queries to run on generated rows."""

import re
from dataclasses import dataclass
from itertools import chain

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.errors import DataError, Problems
from console.planning.sql import compile
from console.planning.sql.compile import NameScope
from console.planning.sql.semantics.functions import called, of_conditions
from console.planning.sql.tree import DIALECT, Tables, Text, parse

_SPARK_ONLY = ("hll_", "kll_")


def read_of(read: str) -> exp.Query:
    """A table's read from a region's manifest: one SELECT over `stored` and nothing else.

    The program that reads a release runs this SQL with its own privileges. Anyone with write access to the region's
    files could have replaced it by SQL that reads local files or calls Java.

    raises  Problems, a DataError, if this planner cannot have compiled it
    """
    text = Text(sql=read, where="", node="the release")
    tree = parse(text)
    if tree is None:
        raise Problems.of(text.problems)
    # no read has a CTE, whose name could hide a table or file
    for part in tree.find_all(exp.Table, exp.CTE):
        if part.sql(dialect=DIALECT) != "stored":
            text.report("S106", f"the release reads {part.sql(dialect=DIALECT):.80}, and not what is stored", part)
    if text.problems:
        raise Problems.of(text.problems)
    return tree


# expressions with the same value in DuckDB and Spark: columns, defaults, casts of numbers to wider ones and of dates to times
_SHARED = (
    exp.Select, exp.Star, exp.From, exp.Table, exp.Alias, exp.Column, exp.Identifier, exp.Coalesce, exp.Cast, exp.DataType,
    exp.DataTypeParam, exp.Literal, exp.Null, exp.Boolean, exp.Neg, exp.Paren,
)  # fmt: skip


def refuse_computed(read: str, table: str) -> None:
    """raises  DataError if a landing table's read contains expressions that two engines may evaluate differently"""
    tree = sqlglot.parse_one(read, read=DIALECT)
    computed = (node for node in tree.walk() if not isinstance(node, _SHARED) or node.args.get("safe"))
    texts = (
        node for node in tree.find_all(exp.Cast) if node.to.is_type("text") and not isinstance(node.this, exp.Literal)
    )
    if (node := next(chain(computed, texts), None)) is not None:
        raise DataError(
            f"{table} is computed as Spark computes it: {node.sql(dialect=DIALECT):.80}",
            hint="pass a SparkSession: release.spark(name, session), or use `console query`",
            code="E_COMPUTED",
        )


def in_duckdb(read: str) -> str:
    """The read of an append table as DuckDB understands it, over a relation named `stored`.

    raises  DataError if the table keeps states that only Spark can merge, or the SQL is not a read
    """
    tree = read_of(read)
    calls = [node.name.lower() for node in tree.find_all(exp.Anonymous)]
    if any(call.startswith(_SPARK_ONLY) for call in calls) or tree.find(exp.AggFunc):
        raise DataError(
            "the table keeps partial states that only Spark merges",
            hint="pass a SparkSession: release.spark(name, session), or use `console query`",
            code="E_STATES",
        )
    return tree.sql(dialect="duckdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A query to be run on generated rows, and the values that those rows should cover.

    sql        compiled Spark SQL;  duckdb  the same for DuckDB, "" without an equivalent
    columns    its output's names, in order;  reads  table → the columns it names, typed
    numbers    and `texts`: the literals in it;  documents  columns whose text is read as JSON;  keys  read from those
    """

    sql: str
    duckdb: str
    columns: tuple[str, ...]
    reads: Tables
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    documents: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()


def trial(sql: str, tables: Tables, node: str = "the query") -> Trial:
    """Check a query against the allow-list and prepare it for running.

    raises  Problems, a DataError: unreadable, refused, or naming an unknown table or column
    """
    text = Text(sql=sql, where="", node=node)
    done = compile.query(text, NameScope(tables))
    if done is None:
        raise Problems.of(text.problems)
    tree = sqlglot.parse_one(done.sql, read=DIALECT)
    named = {part.name.lower() for column in tree.find_all(exp.Column) for part in column.parts} | {
        name.name.lower() for join in tree.find_all(exp.Join) for name in join.args.get("using") or ()
    }
    reads = {
        table: {column: kind for column, kind in columns.items() if column.lower() in named}
        for table, columns in tables.items()
        if table.lower() in done.tables
    }
    literals = list(tree.find_all(exp.Literal))
    parsed = [node for node in tree.walk() if isinstance(node, _JSON) or _named(node) in _JSON_NAMES]
    return Trial(
        sql=done.sql,
        duckdb=_duckdb(tree),
        columns=done.columns,
        reads=reads,
        numbers=tuple(sorted({literal.this for literal in literals if not literal.is_string})),
        texts=tuple(sorted({literal.this for literal in literals if literal.is_string})),
        documents=frozenset(column.name.lower() for node in parsed for column in node.find_all(exp.Column)),
        keys=tuple(sorted({key for node in parsed for key in _keys(node)})),
    )


_JSON = (exp.JSONExtractScalar, exp.JSONExtract, exp.ParseJSON)
_JSON_NAMES = ("json_tuple", "fromjson", "json_array_length", "schema_of_json")


def _named(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.key.lower()


def _keys(node: exp.Expr) -> list[str]:
    """Keys of the outermost object that a JSON function reads."""
    paths = [part.name for part in node.find_all(exp.JSONPathKey)]
    if paths:
        return [str(paths[0])]
    texts = [literal.this for literal in node.find_all(exp.Literal) if literal.is_string]
    return [name for text in texts for name in re.findall(r"(\w+)(?=[: ]+\w)", text) or [text]]


def _duckdb(tree: exp.Expr) -> str:
    copy = tree.copy()
    for call in list(copy.find_all(exp.JSONExtractScalar)):
        # Spark reads NULL from invalid JSON; DuckDB raises an error
        valid = exp.Anonymous(this="json_valid", expressions=[call.this.copy()])
        call.replace(exp.Case(ifs=[exp.If(this=valid, true=call.copy())]))
    for named in list(copy.find_all(exp.Anonymous)):
        if (condition := of_conditions(named)) is not None:
            named.replace(condition.copy())
        elif called(named) == "std":
            named.replace(exp.Stddev(this=named.expressions[0].copy()))
    try:
        text: str = copy.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)
    except (SqlglotError, ValueError):
        return ""
    return text
