"""A materialization's query as the feed of its table: names resolved first, then its meaning and its SQL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from console.model.live import Feed, Terms
from console.model.schema import Column, Table
from console.planning.sql.aggregates import STORED, Split, split
from console.planning.sql.compile import NameScope, guarded, resolve_names
from console.planning.sql.relation import Relation
from console.planning.sql.semantics import relation_of
from console.planning.sql.states import settled_ties
from console.planning.sql.tree import DIALECT, Text, cast, inferred, kind, name, render, sources
from console.remedy import Stays


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCode:
    """One materialization compiled for its table.

    stored    the target's stored columns;  read  logical columns over the view `stored`
    rows      fingerprint of the operator's query;  values  column in lower case → fingerprint of its expression
    reads     column → (table, column) that it is computed from
    volatile  columns of which two computations may differ;  joined  those that depend on a table other than the driving one
    literals  columns that are constant, with its SQL;  exact_types  column → the certain type of its expression
    """

    feed: Feed
    stored: tuple[Column, ...]
    read: str
    rows: str
    values: dict[str, str]
    reads: dict[str, frozenset[tuple[str, str]]]
    volatile: frozenset[str]
    joined: frozenset[str]
    split: Split | None
    literals: dict[str, str]
    exact_types: dict[str, str]


@dataclass(frozen=True, slots=True)
class ResolvedFeed:
    """One materialization with resolved names; its rows and values are not fingerprinted yet.

    tree   of its query;  source  the table that drives it;  joins  the other tables that it reads, sorted
    """

    tree: exp.Query
    source: str
    joins: tuple[str, ...]


def resolve(text: Text, table: Table, known: NameScope, variables: Mapping[str, str]) -> ResolvedFeed | None:
    """Resolve the names of a materialization's query, and check what it computes against its table. None if it cannot
    be evaluated; all problems are in `text`.
    """
    with guarded(text):
        names = resolve_names(text, known, variables)
        if names is None or not _outputs_match(names.tree, table, text):
            return None
        source = _driving(names.tree)
        if source is None:
            text.report("S113", f"{text.node} reads no table: rows can only come from one", names.tree)
            return None
        _check_shape(names.tree, source, table, text)
        joins = tuple(sorted({name for name, _ in sources(names.tree)} - {source}))
        return ResolvedFeed(names.tree, source, joins)
    return None


def evaluate(resolved: ResolvedFeed, text: Text, table: Table, known: NameScope) -> FeedCode | None:
    """Fingerprint a resolved query over the meaning of its sources (`known.relations`), and make the feed's SQL. None
    if there are
    problems, those that `resolve` left in `text` included.
    """
    with guarded(text):
        return _evaluated(_without_distinct(resolved) if table.is_distinct else resolved, text, table, known)
    return None


def _without_distinct(resolved: ResolvedFeed) -> ResolvedFeed:
    """The query without DISTINCT, since the table merges repeated rows, of one commit and of several."""
    tree = resolved.tree
    if not isinstance(tree, exp.Select) or not tree.args.get("distinct") or tree.args["distinct"].args.get("on"):
        return resolved
    plain = tree.copy()
    plain.set("distinct", None)
    return replace(resolved, tree=plain)


def _evaluated(resolved: ResolvedFeed, text: Text, table: Table, known: NameScope) -> FeedCode | None:
    tree = resolved.tree
    relation = relation_of(settled_ties(tree) if table.kind == "aggregate" else tree, known.relations)
    _check_incremental(relation, table, text, tree)
    parts = split(tree, table, text) if table.kind == "aggregate" and not text.problems else None
    if text.problems:
        return None
    columns, exact = relation.columns, _exact_types(tree, known)
    feed = Feed(
        materialization=text.node, source=resolved.source, target=table.name, joins=resolved.joins,
        sql=parts.partial if parts else _rows(tree, table, exact), terms=_terms(parts, relation),
    )  # fmt: skip
    return FeedCode(
        feed=feed,
        stored=parts.stored if parts else table.columns,
        read=parts.read if parts else _plain_read(table.columns),
        rows=relation.rows,
        values={name: value.hash for name, value in columns.items()},
        reads={name: value.reads for name, value in columns.items()},
        volatile=frozenset(name for name, value in columns.items() if value.volatile or relation.volatile),
        joined=frozenset(name for name, value in columns.items() if value.joined or "inner join" in relation.marks),
        split=parts,
        literals={} if parts else _literals(tree),
        exact_types=exact,
    )


def _terms(parts: Split | None, relation: Relation) -> Terms | None:
    """An aggregate's terms, with the states that depend on now(), rand() and the like."""
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
            text.report("S110", f"the column {column} occurs twice", part)
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
    """The leftmost FROM table, through CTEs and subqueries."""
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
                Stays(instead=f"use LEFT JOIN, or {text.as_endpoint()}"),
            )
        if isinstance(join.this, exp.Table) and join.this.name.lower() == driving:
            text.report(
                "S113",
                f"{driving} is joined with itself: a commit sees only its own rows",
                join,
                Stays(instead=text.as_endpoint()),
            )


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
            f"{table.name} is not an aggregate: GROUP BY would be taken over each commit alone",
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
            Stays(instead=_as_kind(done, windowed) + text.as_endpoint()),
        )


def _as_kind(done: exp.Query, marks: frozenset[str]) -> str:
    """Beginning of a remedy: the kind of table that does over all rows what the query asks for."""
    if marks == {"distinct"} and isinstance(done, exp.Select) and done.args.get("distinct"):
        return "`kind: distinct` keeps each row once; or "
    if marks == {"window"} and done.find(exp.RowNumber) is not None:
        return "`kind: latest` keeps the newest row of each key; or "
    return ""


def _rows(done: exp.Query, table: Table, exact: Mapping[str, str]) -> str:
    """The query with columns cast, named and ordered as stored. exact: its `_exact_types`"""
    tree = done.copy()
    plain = isinstance(tree, exp.Select) and not any(
        tree.args.get(key) for key in ("distinct", "order", "limit", "offset", "group")
    )
    by_name = {part.alias_or_name.lower(): part for part in tree.selects}
    chosen: list[exp.Expr] = []
    for column in table.columns:
        part = by_name[column.name.lower()]
        value = part.unalias() if plain else exp.column(name(part.alias_or_name), table=name("_rows"))
        if exact.get(part.alias_or_name) != kind(column.type):
            value = cast(value, column.type)
        chosen.append(exp.alias_(value, name(column.name), copy=False))
    if plain:
        tree.set("expressions", chosen)
        return render(tree)
    return render(exp.select(*chosen).from_(exp.Subquery(this=tree, alias=exp.TableAlias(this=name("_rows")))))


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
        elif (
            isinstance(value, exp.Column) and aliases.get(value.table.lower()) in physical and (type := inferred(value))
        ):
            types[part.alias_or_name] = type
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


def _plain_read(columns: tuple[Column, ...]) -> str:
    """A read that shows stored columns unchanged."""
    return render(exp.select(*(exp.column(name(c.name)) for c in columns)).from_(exp.to_table(STORED)))
