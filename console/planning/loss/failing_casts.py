"""The predicate for source rows with a value that does not convert, by which a failing batch finds them.

A batch with such a value fails as a whole, and its error names one row. The feed's own casts, turned into TRY_CAST,
find all of them; only unconditional casts count, since a branch that is not taken converts nothing. The same applies to
a day that cannot be a partition's.
"""

from collections.abc import Iterator, Mapping

import sqlglot
from sqlglot import exp

from console.model.schema import Table
from console.model.slices import FIRST, LAST, day_name
from console.model.step import Fragile
from console.planning.sql.syntax.flat import conjuncts, merged
from console.planning.sql.tree import DIALECT, name, render

KEYS = 2
_TEXT = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR, exp.DataType.Type.CHAR, exp.DataType.Type.BINARY)


def fragile(sql: str, source: str, table: Table, days: tuple[str, ...] = ()) -> Fragile | None:
    """The rows of `source` that make a feed's query fail.

    table    the source; its first columns that are not being converted locate a row
    days     columns of the query by whose day the target is partitioned
    returns  None if no cast or day can be tested
    """
    tree = _flat(sql, source)
    if tree is None:
        return None
    alias = tree.args["from_"].this.alias_or_name.lower() if tree.args.get("from_") else source.lower()
    types, grouped = {column.name.lower(): column.type for column in table.columns}, bool(tree.args.get("group"))
    casts = [c for part in tree.expressions for c in _casts(part) if _only(c, alias, grouped) and not _never(c, types)]
    parts = [part.unalias() for part in tree.expressions if part.alias_or_name in days]
    parts = [part for part in parts if _only(part, alias, grouped)]
    lost = list(
        dict.fromkeys([*(_bare(_does_not_convert(cast)) for cast in casts), *(_bare(_outside(part)) for part in parts)])
    )
    if not lost:
        return None
    asked = {column.name.lower() for part in casts for column in part.find_all(exp.Column)}
    where = tree.args.get("where")
    passing = (
        [_bare(_with_try_casts(part)) for part in conjuncts(where.this) if _only(part, alias, False)] if where else []
    )
    predicate = " AND ".join(
        [*(f"({part})" for part in passing), "(" + " OR ".join(f"({part})" for part in lost) + ")"]
    )
    others = [column.name for column in table.columns if column.name.lower() not in asked]
    keys = list(dict.fromkeys([*others[:1], *([table.time] if table.time in others else []), *others[:KEYS]]))[:KEYS]
    return Fragile(predicate, tuple(keys))


def _flat(sql: str, source: str) -> exp.Select | None:
    """The query as one SELECT from the source, its subqueries merged; None if it is not one, as in a refused plan."""
    tree = merged(sqlglot.parse_one(sql, read=DIALECT)) if sql else None
    if not isinstance(tree, exp.Select) or tree.args.get("with_"):
        return None
    driving = tree.args.get("from_")
    table = driving.this if driving is not None else None
    return tree if isinstance(table, exp.Table) and table.name.lower() == source.lower() else None


def _casts(part: exp.Expr) -> Iterator[exp.Expr]:
    """Conversions that every row undergoes."""
    for node in _always(part):
        if _fails(node) and not node.args["to"].is_type(*_TEXT):
            yield node
        if isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
            yield node


def _fails(node: exp.Expr) -> bool:
    """Whether it is a CAST, not a TRY_CAST; sqlglot parses Spark's CAST as one that is not `safe`."""
    return isinstance(node, exp.Cast) and not node.args.get("safe")


def _never(cast: exp.Expr, types: Mapping[str, str]) -> bool:
    """Whether a conversion cannot fail: of a time to a day, or of a day to itself."""
    value = cast.this.unnest()
    if isinstance(value, exp.TsOrDsToDate):
        return True
    return isinstance(value, exp.Column) and types.get(value.name.lower(), "").startswith(("date", "timestamp"))


def _always(node: exp.Expr) -> Iterator[exp.Expr]:
    yield node
    if isinstance(node, (exp.Lambda, exp.Subquery, exp.Select, exp.Filter)):
        return
    if isinstance(node, exp.Case):
        first = node.this or node.args["ifs"][0].this
        children = [first]
    elif isinstance(node, (exp.If, exp.Coalesce, exp.And, exp.Or)):
        children = [node.this]
    else:
        children = list(node.iter_expressions())
    for child in children:
        yield from _always(child)


def _only(node: exp.Expr, alias: str, grouped: bool) -> bool:
    """Whether it can be evaluated on one source row; in a grouped query an unknown function may aggregate."""
    columns = list(node.find_all(exp.Column))
    other = node.find(exp.AggFunc, exp.Subquery, exp.Select, exp.Window, exp.Lambda)
    other = other or (node.find(exp.Anonymous) if grouped else None)
    return bool(columns) and other is None and all(column.table.lower() in ("", alias) for column in columns)


def _does_not_convert(cast: exp.Expr) -> exp.Expr:
    value = _with_try_casts(cast.this)
    to = cast.args.get("to") or exp.DataType.build("date")
    kept = exp.TryCast(this=value.copy(), to=to.copy(), safe=True)
    return exp.and_(
        exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.Null())), exp.Is(this=kept, expression=exp.Null())
    )


def _outside(part: exp.Expr) -> exp.Expr:
    """The condition that a partition's day is out of the representable range."""
    first, last = (exp.cast(exp.Literal.string(day_name(number)), "date") for number in (FIRST, LAST))
    day = exp.cast(exp.paren(_with_try_casts(part)), "date")
    return exp.or_(exp.LT(this=day.copy(), expression=first), exp.GT(this=day, expression=last))


def _with_try_casts(node: exp.Expr) -> exp.Expr:
    """The same with TRY_CAST for each cast that could fail."""

    def turned(part: exp.Expr) -> exp.Expr:
        return exp.TryCast(this=part.this, to=part.args["to"], safe=True) if _fails(part) else part

    return node.copy().transform(turned)


def _bare(node: exp.Expr) -> str:
    """As Spark SQL over the source's columns, without the table's name."""
    return render(
        node.copy().transform(lambda part: exp.column(name(part.name)) if isinstance(part, exp.Column) else part)
    )
