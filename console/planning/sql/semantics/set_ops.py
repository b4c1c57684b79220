"""Operations on whole rows: UNION, INTERSECT and EXCEPT, which match columns by position, PIVOT, DISTINCT and LIMIT."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from console.planning.sql.relation import Relation, Rest, Value, combined, mix
from console.planning.sql.semantics.rewrites import simpler
from console.planning.sql.semantics.rewrites.numbers import integer, ordinal
from console.planning.sql.semantics.scope import Scope, Unclear
from console.planning.sql.semantics.values import Values
from console.planning.sql.semantics.windowed import total
from console.planning.sql.tree import DIALECT

Query = Callable[[exp.Expr], Relation]
_ORDERS = ("order", "sort", "cluster", "distribute")
_OF_QUERIES = {"this", "expression", "distinct", "by_name", "side", "kind", "on", "with_", "limit", "offset", *_ORDERS}


def united(tree: exp.SetOperation, query: Query, notes: list[tuple[str, str]]) -> Relation:
    """The result of a set operation.

    raises  Unclear if the sides have different numbers of columns
    """
    if odd := [key for key in ("side", "kind", "on") if tree.args.get(key)]:
        raise Unclear(f"{odd[0].upper()} of a set operation is not understood")
    for part in (tree, tree.this, tree.expression):
        alone(part)
    plain = not tree.args.get("distinct")
    if isinstance(tree, exp.Union):
        branches = [branch for side in (tree.this, tree.expression) for branch in _branches(side, plain, tree, query)]
        union = _united(tree, branches)
        hashes = [len(branches)] if plain else sorted(value.hash for value in union.all_values())
        notes.append(("UNION ALL" if plain else "UNION", mix(*hashes)))
        return union if plain else without_repeats(replace(union, marks=union.marks - {"union"}), "set")
    sides = [query(tree.this), query(tree.expression)]
    compared = _compared(tree, sides[0], sides[1], plain)
    notes.append((type(tree).__name__.upper(), compared.rows))
    return compared


def alone(tree: exp.Expr) -> None:
    """raises Unclear if a set operation, or a query in parentheses, has a modifier that only a source can have"""
    if not isinstance(tree, (exp.SetOperation, exp.Subquery)):
        return
    if odd := [key for key, value in tree.args.items() if value and key not in _OF_QUERIES]:
        raise Unclear(f"{odd[0].rstrip('_').upper()} after a whole query is not understood")


def _branches(node: exp.Expr, plain: bool, above: exp.Expr, query: Query) -> list[Relation]:
    """The branches of nested unions, which are one union; below UNION, UNION ALL and UNION are alike."""
    inner = node
    while isinstance(inner, exp.Subquery) and set(k for k, v in inner.args.items() if v) <= {"this"}:
        inner = inner.this
    extra = any(inner.args.get(key) for key in ("limit", "offset", "with_", "side", "kind", "on", *_ORDERS))
    by_name = bool(inner.args.get("by_name")) == bool(above.args.get("by_name"))
    if isinstance(inner, exp.Union) and not extra and by_name and (not plain or not inner.args.get("distinct")):
        return [one for side in (inner.this, inner.expression) for one in _branches(side, plain, above, query)]
    return [query(node)]


@dataclass(frozen=True, slots=True)
class _Branch:
    relation: Relation
    values: tuple[Value, ...]

    @property
    def order(self) -> tuple[str, ...]:
        return (self.relation.rows, *(value.hash for value in self.values))


def _united(tree: exp.Expr, relations: list[Relation]) -> Relation:
    names = list(relations[0].columns)
    if any(relation.rest for relation in relations):
        return _open(relations, names)
    if tree.args.get("by_name"):
        null = Value(hash=mix("Null"))
        names = list(dict.fromkeys(name for relation in relations for name in relation.columns))
        branches = [_Branch(one, tuple(one.columns.get(name, null) for name in names)) for one in relations]
    else:
        branches = [_Branch(one, tuple(one.columns.values())) for one in relations]
        if len({len(branch.values) for branch in branches}) > 1:
            raise Unclear("the sides of a UNION have not the same number of columns")
    apart = tuple(
        replace(branch.relation, columns=dict(zip(names, branch.values, strict=True)), branches=())
        for branch in branches
    )
    branches.sort(key=lambda branch: branch.order)
    part = mix("union", *(branch.relation.rows for branch in branches))
    columns = {name: _either([branch.values[at] for branch in branches]) for at, name in enumerate(names)}
    return replace(_relation_of(part, columns, relations, "union"), branches=apart)


def _either(values: list[Value]) -> Value:
    either = combined("set", values)
    return either.opaque(either.hash)


def put_together(relations: list[Relation]) -> Relation:
    """A UNION ALL of evaluated relations."""
    return _united(exp.Union(), relations)


def _open(relations: list[Relation], names: list[str]) -> Relation:
    """A union with a star over an unknown table, in which no column position is certain."""
    hashes = sorted(mix(one.rows, *(value.hash for value in one.all_values())) for one in relations)
    part = mix("union", *sorted(one.rows for one in relations))
    every = [value for one in relations for value in one.all_values()]
    reads = frozenset().union(*(value.reads for value in every))
    columns = {name: Value(hash=mix("set", name, *hashes), reads=reads, joined=True) for name in names}
    union = _relation_of(part, columns, relations, "union")
    return replace(union, rest=(Rest(mix("set", *hashes), "", joined=True),))


def _relation_of(part: str, columns: dict[str, Value], relations: list[Relation], mark: str) -> Relation:
    return Relation(
        parts=(part,),
        columns=columns,
        reads=frozenset().union(*(one.reads for one in relations)),
        marks=frozenset({mark}).union(*(one.marks for one in relations)),
        volatile=any(one.volatile for one in relations),
        doubts=frozenset().union(*(one.doubts for one in relations)),
        bare=True,
        order=either_order(relations) if mark == "union" else "",
        earlier_arrival=mix(mark, *(one.arrival for one in relations)),
    )


def either_order(relations: list[Relation]) -> str:
    """The order of rows from several relations, "" if none of them has one."""
    orders = [one.order for one in relations]
    return mix(*orders) if any(orders) else ""


def without_repeats(rows: Relation, mark: str) -> Relation:
    """The distinct rows: grouped by all of their values."""
    keys = frozenset(value.hash for value in rows.all_values())
    if rows.unique is not None and rows.unique <= keys:
        return replace(rows, marks=rows.marks | {mark})
    rows, of_keys = simpler.lifted(rows, keys)
    part = mix("group", rows.rows, mix(mix(*sorted(keys))))
    reads = rows.reads.union(*(value.reads for value in rows.all_values()))
    return simpler.narrowed(replace(rows.sealed(part, mark), unique=keys, reads=reads), of_keys)


def _compared(tree: exp.SetOperation, left: Relation, right: Relation, plain: bool) -> Relation:
    """INTERSECT and EXCEPT: the result depends on every column of both sides."""
    how, first, second, columns = type(tree).__name__, left, right, left.columns
    if left.rest or right.rest:
        pairs = [mix(*(value.hash for value in side.all_values())) for side in (left, right)]
    elif len(left.columns) != len(right.columns):
        raise Unclear(f"the sides of {how.upper()} have not the same number of columns")
    else:
        if isinstance(tree, exp.Intersect):  # INTERSECT's sides are unordered
            first, second = sorted((left, right), key=lambda one: _Branch(one, tuple(one.columns.values())).order)
        both = list(zip(first.columns.values(), second.columns.values(), strict=True))
        pairs = sorted(mix(one.hash, other.hash) for one, other in both)
        if isinstance(tree, exp.Intersect):
            columns = {name: _either(list(pair)) for name, pair in zip(left.columns, both, strict=True)}
    part = mix(how, plain, first.rows, second.rows, *pairs)
    result = _relation_of(part, columns, [left, right], "set")
    reads = result.reads.union(*(value.reads for side in (left, right) for value in side.all_values()))
    result = replace(result, rest=left.rest, reads=reads)
    return result if plain else replace(result, unique=frozenset(value.hash for value in result.all_values()))


def limited(tree: exp.Expr, rows: Relation, values: Values, shown: list[Value]) -> Relation:
    """ORDER BY with LIMIT or OFFSET; an order alone only affects the rows that an outer LIMIT takes.

    shown  the outputs, in order
    """
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    order, by = _ordered(tree, values, shown)
    rows = replace(rows, order=order or rows.order)
    if isinstance(limit, exp.Limit) and limit.expression and limit.expression.name.upper() == "ALL":
        limit = None
    if order:
        values.scope.run.notes.append(("ORDER BY", order))
    if not (limit or offset):
        return rows
    ends = [_end(node) for node in (limit, offset) if node is not None]
    values.scope.run.notes.append(("LIMIT", mix(rows.order, *ends)))
    shows = {value.hash for value in rows.all_values()}
    if not total({value.hash for value in by}, rows.unique) and not shows <= {value.hash for value in by}:
        values.scope.run.ties.add((mix("limit", rows.rows, order, *ends), rows.arrival))
    kept = rows.sealed(mix("limit", rows.rows, rows.order, *ends), "limit")
    reads = rows.reads.union(*(value.reads for value in by))
    return replace(kept, volatile=True, unique=rows.unique, order=rows.order, reads=reads)


def _end(node: exp.Expr) -> str:
    number = integer(node.expression) if isinstance(node.expression, exp.Expr) else None
    return f"{node.key} {number}" if number is not None else node.sql(DIALECT).lower()


def _ordered(tree: exp.Expr, values: Values, shown: list[Value]) -> tuple[str, list[Value]]:
    """The order of a query's rows, "" for none, and the values by which they are ordered."""
    keys = [key for key in _ORDERS[1:] if tree.args.get(key)]  # no total order
    by: list[Value] = []
    for part in (part for key in _ORDERS if tree.args.get(key) for part in tree.args[key].expressions):
        of = part.this if isinstance(part, exp.Ordered) else part
        at = ordinal(of)
        if isinstance(of, exp.Var) and of.name.upper() == "ALL":
            chosen = shown
        else:
            chosen = [shown[at - 1] if at is not None and 1 <= at <= len(shown) else values.value(of)]
        by += chosen
        how = str(bool(part.args.get("desc"))), str(bool(part.args.get("nulls_first")))
        keys += [word for value in chosen for word in (value.hash, *how)]
    return mix(*keys) if keys else "", by


def pivoted(relation: Relation, pivot: exp.Expr, scope: Scope) -> Relation:
    """The pivoted relation; columns that the pivot does not name are grouped by, or repeated."""
    named = {column.name.lower() for column in pivot.find_all(exp.Column)}
    kept = {name: value for name, value in relation.columns.items() if name not in named}
    rests = tuple(rest.without(named) for rest in relation.rest)
    values = Values(scope=replace(scope.beside(), sources={"": relation}), rows=relation.rows)
    grouped = sorted(value.hash for value in (*kept.values(), *(rest.value for rest in rests)))
    if pivot.args.get("unpivot"):
        columns, part = _unpivot(relation, pivot, values, named)
    else:
        columns, part = _pivot(relation, pivot, values, grouped)
    scope.run.notes.append(("UNPIVOT" if pivot.args.get("unpivot") else "PIVOT", mix(pivot.sql(DIALECT), *grouped)))
    reads = relation.reads.union(*(value.reads for value in columns.values()))
    result = replace(relation, columns={**kept, **columns}, rest=rests, reads=reads, unique=None)
    return result.sealed(part, "group")


def _pivot(relation: Relation, pivot: exp.Expr, values: Values, grouped: list[str]) -> tuple[dict[str, Value], str]:
    part = mix("pivot", relation.rows, *grouped)
    values.group = part
    fields = [values.value(field.this) for field in pivot.args.get("fields") or ()]
    options = [values.value(option) for field in pivot.args.get("fields") or () for option in field.expressions]
    results = [values.value(result) for result in pivot.expressions]
    names = [column.name.lower() for column in pivot.args.get("columns") or ()]
    all_hashes = [value.hash for value in (*fields, *options, *results)]
    columns = {}
    for at, name in enumerate(names):
        hashes = all_hashes
        if len(fields) == 1 and len(names) == len(options) * len(results):
            option, result = options[at // len(results)], results[at % len(results)]
            hashes = [fields[0].hash, option.hash, result.hash]
        reads = frozenset().union(*(value.reads for value in (*fields, *results)))
        columns[name] = Value(hash=mix("pivoted", part, *hashes), reads=reads)
    # without names for the new columns, all columns count as unknown
    return columns, part if names else mix(part, *all_hashes)


def _unpivot(relation: Relation, pivot: exp.Expr, values: Values, named: set[str]) -> tuple[dict[str, Value], str]:
    turned = [values.value(column) for column in pivot.find_all(exp.Column)]
    reads = frozenset().union(*(value.reads for value in turned))
    part = mix("unpivot", relation.rows, pivot.sql(DIALECT), *(value.hash for value in turned))  # its labels are data
    labels = [part.name.lower() for part in pivot.expressions if isinstance(part, exp.Identifier)]
    for field in pivot.args.get("fields") or ():
        if isinstance(field.this, exp.Identifier):
            labels.append(field.this.name.lower())
    return {name: Value(hash=mix("@", part, name), reads=reads) for name in labels}, part
