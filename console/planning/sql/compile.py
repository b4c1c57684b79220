"""Operator's queries to plain Spark SQL over views named like the logical tables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.schema import MappingSchema

from console.model.live import Feed, Terms
from console.model.pipeline import Materialization, Parameter
from console.model.schema import Column, Table
from console.planning.sql.aggregates import STORED, Split, split
from console.planning.sql.relation import Relation
from console.planning.sql.resolve import qualified, schema
from console.planning.sql.semantics import functions, relation_of
from console.planning.sql.states import settled_ties
from console.planning.sql.syntax import roundtrip
from console.planning.sql.tree import (
    DIALECT,
    Tables,
    Text,
    cast,
    inferred,
    kind,
    name,
    parse,
    render,
    sources,
    substitute,
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCode:
    """One materialization compiled for its table.

    stored    the target's stored columns;  read  logical columns over the view `stored`
    relation  semantics of the operator's query
    literals  columns that are one constant, with its SQL;  exact_types  column → the type its expression surely has
    """

    feed: Feed
    stored: tuple[Column, ...]
    read: str
    relation: Relation
    split: Split | None
    literals: dict[str, str]
    exact_types: dict[str, str]


def query(
    text: Text, known: NameScope, parameters: tuple[Parameter, ...] = (), variables: Mapping[str, str] | None = None
) -> Compiled | None:
    """Compile a query of the read side; parameters stay as `:name`. None if there are problems."""
    with _guarded(text):
        tree = parse(text)
        if tree is None:
            return None
        roundtrip.check(text)
        _named(tree)
        used = substitute(tree, text, variables or {}, (p.name for p in parameters))
        done = qualified(tree, text, known.tables, known.mapping())
        if done is None or text.problems:
            return None
        tables = tuple(sorted({table for table, _ in sources(done)}))
        columns = _respelled(tree, done)
        return Compiled(render(done), tables, columns, frozenset(used))
    return None


@contextmanager
def _guarded(text: Text) -> Iterator[None]:
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
    """Name outermost expressions that have no name by their text, as Spark does."""
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


def feed(
    materialization: Materialization, table: Table, known: NameScope, variables: Mapping[str, str]
) -> tuple[FeedCode | None, Text]:
    """Compile one materialization; the text carries its problems."""
    text = Text(sql=materialization.sql, where=materialization.where, node=materialization.name)
    with _guarded(text):
        return _feed(materialization, table, known, variables, text), text
    return None, text


def _feed(
    materialization: Materialization, table: Table, known: NameScope, variables: Mapping[str, str], text: Text
) -> FeedCode | None:
    tree = parse(text)
    if tree is None:
        return None
    roundtrip.check(text)
    _named(tree)
    substitute(tree, text, variables, ())
    done = qualified(tree, text, known.tables, known.mapping())
    if done is None or text.problems or not _outputs_match(done, table, text):
        return None
    driving = _driving(done)
    if driving is None:
        text.report("S113", f"{materialization.name} reads no table: rows can only come from one", done)
        return None
    _check_shape(done, driving, table, text)
    relation = relation_of(settled_ties(done) if table.kind == "aggregate" else done, known.relations)
    _check_incremental(relation, table, text, done)
    parts = split(done, table, text) if table.kind == "aggregate" and not text.problems else None
    if text.problems:
        return None
    joins = tuple(sorted({source for source, _ in sources(done)} - {driving}))
    sql = parts.partial if parts else _rows(done, table, known)
    return FeedCode(
        feed=Feed(
            materialization=materialization.name,
            source=driving,
            target=table.name,
            sql=sql,
            joins=joins,
            terms=_terms(parts, relation),
        ),
        stored=parts.stored if parts else table.columns,
        read=parts.read if parts else plain_read(table.columns),
        relation=relation,
        split=parts,
        literals={} if parts else _literals(done),
        exact_types=_exact_types(done, known),
    )


def _terms(parts: Split | None, relation: Relation) -> Terms | None:
    """Of an aggregate, with the states that depend on now(), rand() and the like."""
    if parts is None:
        return None
    shaky = [column for column, value in relation.columns.items() if value.volatile or relation.volatile]
    states = [
        state.name for state in parts.stored if f"{state.name.lower()}__".startswith(tuple(f"{n}__" for n in shaky))
    ]
    return replace(parts.terms, volatile=tuple(states))


def _outputs_match(done: exp.Query, table: Table, text: Text) -> bool:
    declared = {column.name.lower() for column in table.columns}
    given = [column.lower() for column in done.named_selects]
    before = len(text.problems)
    for part, column in zip(done.selects, given, strict=True):
        if given.count(column) > 1:
            text.report("S110", f"the column {column} stands twice", part)
        elif column not in declared:
            text.report(
                "S110",
                f"{table.name} declares no column {column}",
                part,
                f"declare it in tables/{table.name}.yaml, or name it `AS …`",
            )
    if missing := [c.name for c in table.columns if c.name.lower() not in given]:
        text.report(
            "S110",
            f"{table.name} declares {', '.join(missing)}, which {text.node} does not compute",
            None,
            "add it to the SELECT",
        )
    return len(text.problems) == before


def _driving(tree: exp.Expr) -> str | None:
    """The leftmost FROM table, CTEs and subqueries followed."""
    ctes: dict[str, exp.Expr] = {}
    while True:
        if with_ := tree.args.get("with_"):
            ctes |= {cte.alias.lower(): cte.this for cte in with_.expressions}
        match tree:
            case exp.SetOperation() | exp.Subquery():
                tree = tree.this
            case exp.Select() if tree.args.get("from_"):
                tree = tree.args["from_"].this
            case exp.Table():
                inner = ctes.pop(tree.name.lower(), None)
                if inner is None:
                    return tree.name.lower()
                tree = inner
            case _:
                return None


def _check_shape(tree: exp.Query, driving: str, table: Table, text: Text) -> None:
    for union in tree.find_all(exp.SetOperation):
        for branch in (union.this, union.expression):
            if (other := _driving_in(branch, tree)) != driving:
                text.report(
                    "S113", f"one branch reads {other or 'no table'}, another {driving}: only one table can drive a feed",
                    branch, f"write a second materialization into {table.name}",
                )  # fmt: skip
    for join in tree.find_all(exp.Join):
        if str(join.args.get("side") or "").upper() in ("RIGHT", "FULL"):
            text.report(
                "S113",
                "RIGHT and FULL JOIN would repeat the other table's rows with every commit",
                join,
                "use LEFT JOIN",
            )
        if isinstance(join.this, exp.Table) and join.this.name.lower() == driving:
            text.report("S113", f"{driving} is joined with itself: a commit sees only its own rows", join)


def _driving_in(branch: exp.Expr, tree: exp.Query) -> str | None:
    wrapped = branch.copy()
    if (with_ := tree.args.get("with_")) and not wrapped.args.get("with_"):
        wrapped.set("with_", with_.copy())
    return _driving(wrapped)


def _check_incremental(relation: Relation, table: Table, text: Text, done: exp.Query) -> None:
    inner = relation.marks & {"group", "distinct", "window", "limit", "set"}
    if table.kind == "append" and "group" in inner:
        text.report(
            "S113",
            f"{table.name} is no aggregate: GROUP BY would be taken over each commit alone",
            done,
            "declare `kind: aggregate`",
        )
    if isinstance(done, exp.Select) and table.kind == "aggregate":
        below = [
            n
            for n in done.find_all(exp.Group, exp.Distinct)
            if n.parent is not done and not isinstance(n.parent, exp.AggFunc)
        ]
        for node in below:
            text.report("S113", "only the outermost SELECT of an aggregate may group", node)
    if windowed := inner & {"distinct", "window", "limit", "set"}:
        word = sorted(windowed)[0].upper()
        text.report(
            "S113",
            f"{word} would be taken over each commit alone, not over the table",
            done,
            "compute it in an endpoint",
        )


def _rows(done: exp.Query, table: Table, known: NameScope) -> str:
    """The query with its columns cast, named and ordered as stored."""
    plain = isinstance(done, exp.Select) and not any(
        done.args.get(key) for key in ("distinct", "order", "limit", "offset", "group")
    )
    exact = _exact_types(done, known)
    by_name = {part.alias_or_name.lower(): part for part in done.selects}
    chosen: list[exp.Expr] = []
    for column in table.columns:
        part = by_name[column.name.lower()]
        value = part.unalias().copy() if plain else exp.column(name(part.alias_or_name), table=name("_rows"))
        if exact.get(part.alias_or_name) != kind(column.type):
            value = cast(value, column.type)
        chosen.append(exp.alias_(value, name(column.name)))
    if plain:
        tree = done.copy()
        tree.set("expressions", chosen)
        return render(tree)
    return render(exp.select(*chosen).from_(exp.Subquery(this=done.copy(), alias=exp.TableAlias(this=name("_rows")))))


def _exact_types(done: exp.Query, known: NameScope) -> dict[str, str]:
    """Types that need no inference: a table's own column, or an explicit cast."""
    if not isinstance(done, exp.Select):
        return {}
    aliases = {t.alias_or_name.lower(): t.name.lower() for t in done.find_all(exp.Table)}
    physical = {t.lower() for t in known.tables} - {cte.alias.lower() for cte in done.find_all(exp.CTE)}
    types: dict[str, str] = {}
    for part in done.selects:
        value = part.unalias().unnest()
        if isinstance(value, exp.Cast):
            types[part.alias_or_name] = kind(value.to.sql(DIALECT))
        elif isinstance(value, exp.Column) and aliases.get(value.table.lower()) in physical and inferred(value):
            types[part.alias_or_name] = inferred(value)
    return types


def _literals(done: exp.Query) -> dict[str, str]:
    if not isinstance(done, exp.Select):
        return {}
    return {part.alias_or_name: render(part.unalias()) for part in done.selects if _is_literal(part.unalias())}


def _is_literal(node: exp.Expr) -> bool:
    node = node.unnest()
    if isinstance(node, (exp.Cast, exp.Neg)):
        return _is_literal(node.this)
    return isinstance(node, (exp.Literal, exp.Null, exp.Boolean))


def plain_read(columns: tuple[Column, ...]) -> str:
    """Stored columns as they are."""
    return render(exp.select(*(exp.column(name(c.name)) for c in columns)).from_(exp.to_table(STORED)))


def reads(text: Text) -> tuple[str, ...]:
    """Tables that a query names; () where it cannot be read."""
    with _guarded(text):
        tree = parse(text)
        return tuple(sorted({table for table, _ in sources(tree)})) if tree is not None else ()
    return ()
