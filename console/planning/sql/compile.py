"""Compiles the operator's queries to trees with resolved names, and those of the read side to Spark SQL over the
logical tables' views."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.schema import MappingSchema

from console.model.pipeline import Parameter
from console.model.schema import quoted
from console.planning.sql.relation import Relation
from console.planning.sql.resolve import qualified, schema
from console.planning.sql.semantics import functions
from console.planning.sql.syntax import roundtrip
from console.planning.sql.tree import DIALECT, Tables, Text, name, parse, render, sources, substitute

ONE_ROW = "compare columns of one row: status < 600 AND bytes >= 0"
_NOT_OF_A_ROW = (exp.Subquery, exp.Query, exp.AggFunc, exp.Window, exp.UDTF, exp.Star)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A checked query.

    sql      Spark SQL over views named like the logical tables
    tables   those tables, sorted
    columns  names of its output, in order
    """

    sql: str
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    parameters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NameScope:
    """The tables that names are resolved against: declared columns, and the semantics of rows and values."""

    tables: Tables
    relations: Mapping[str, Relation] = field(default_factory=dict)
    schema: MappingSchema | None = None

    def mapping(self) -> MappingSchema:
        return self.schema or schema(self.tables)


@dataclass(frozen=True, slots=True)
class ResolvedTree:
    """A query whose tables and columns are all known.

    written     as the operator wrote it, with variables substituted;  tree  with every name resolved
    parameters  those that occur
    """

    written: exp.Query
    tree: exp.Query
    parameters: frozenset[str]


def query(
    text: Text, known: NameScope, parameters: tuple[Parameter, ...] = (), variables: Mapping[str, str] | None = None
) -> Compiled | None:
    """Compile a query of the read side; parameters stay as `:name`. None if there are problems."""
    with guarded(text):
        resolved = resolve_names(text, known, variables or {}, (parameter.name for parameter in parameters))
        if resolved is None:
            return None
        tables = tuple(sorted({table for table, _ in sources(resolved.tree)}))
        columns = _respelled(resolved.written, resolved.tree)
        return Compiled(render(resolved.tree), tables, columns, resolved.parameters)
    return None


def resolve_names(
    text: Text, known: NameScope, variables: Mapping[str, str], parameters: Iterable[str] = ()
) -> ResolvedTree | None:
    """Parse a query and resolve its names; None if there are problems. To be called inside `guarded`."""
    tree = parse(text)
    if tree is None:
        return None
    roundtrip.check(text)
    _named(tree)
    used = substitute(tree, text, variables, parameters)
    done = qualified(tree, text, known.tables, known.mapping())
    if done is None or text.problems:
        return None
    return ResolvedTree(tree, done, frozenset(used))


@contextmanager
def guarded(text: Text) -> Iterator[None]:
    """Errors inside sqlglot become problems of the query."""
    try:
        yield
    except RecursionError:
        text.report_query("S101", "the query is nested too deeply")
    except SqlglotError as error:
        text.report_query(
            "S105", f"the query of {text.node or 'this call'} cannot be compiled: {str(error).splitlines()[0]}"
        )


def _named(tree: exp.Query) -> None:
    """Name unnamed outermost expressions by their text, as Spark does."""
    for part in list(_outermost(tree)):
        named = part.output_name or part.is_star or isinstance(part, (exp.Alias, exp.Aliases))
        if not named and not functions.generates(part):
            written = part.sql(DIALECT, normalize_functions=False, comments=False)
            part.replace(exp.alias_(part.copy(), name(written[:60])))


def _respelled(written: exp.Query, done: exp.Query) -> tuple[str, ...]:
    """Give outputs the case in which the operator wrote them: names of a result are data. Returns the names."""
    names = {part.output_name.lower(): part.output_name for part in _outermost(written) if part.output_name}
    for part in _outermost(done):
        if isinstance(part, exp.Alias):
            part.set("alias", name(names.get(part.alias.lower(), part.alias)))
    return tuple(part.alias_or_name for part in _outermost(done))


def _outermost(tree: exp.Query) -> list[exp.Expr]:
    first: exp.Expr = tree
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    return first.expressions if isinstance(first, exp.Select) else []


def reads(text: Text) -> tuple[str, ...]:
    """Tables that a query names; () if it cannot be parsed."""
    with guarded(text):
        tree = parse(text)
        return tuple(sorted({table for table, _ in sources(tree)})) if tree is not None else ()
    return ()


def row_condition(text: Text, columns: Mapping[str, str]) -> exp.Expr | None:
    """A condition over one row, in parentheses, its columns without a table; None if there are problems.

    text     the condition; its node is the table
    columns  of the table, with their types
    """
    query = replace(text, sql=f"SELECT (\n{text.sql}\n) FROM {quoted(text.node)}", problems=text.problems)
    with guarded(query):
        resolved = resolve_names(query, NameScope({text.node: columns}), {})
        if resolved is not None:
            row = _only_row(resolved.tree)
            if isinstance(row, exp.Expr):
                for column in list(row.find_all(exp.Column)):
                    column.replace(exp.column(name(column.name)))
                return row
            text.report_query("C010", row, fix=ONE_ROW)
    return None


def _only_row(tree: exp.Query) -> exp.Expr | str:
    """The condition as an expression over one row of the table, or why it is not one."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return "more than one condition is written"
    if {key for key, value in tree.args.items() if value} - {"expressions", "from_"}:
        return "it is a query, not a condition"
    row = exp.paren(tree.expressions[0].unalias().unnest())
    if isinstance(row.this, exp.Tuple):
        return "more than one condition is written"
    for node in row.walk():
        if isinstance(node, _NOT_OF_A_ROW):
            return "it needs other rows than its own"
        if functions.is_volatile(node):
            return "evaluated again, the same row could give another answer"
    return row
