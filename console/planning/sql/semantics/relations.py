"""FROM: tables, subqueries, joins and generators, multiplied into one product of parts."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from console.planning.sql.relation import Relation, Rest, Value, built_of, combined, mix, unknown
from console.planning.sql.semantics import functions
from console.planning.sql.semantics.rewrites import simpler
from console.planning.sql.semantics.scope import NAMELESS, Scope, Unclear
from console.planning.sql.semantics.set_ops import either_order, pivoted
from console.planning.sql.semantics.values import Values
from console.planning.sql.tree import DIALECT

_TABLE_ARGS = {"this", "db", "catalog", "alias", "joins", "laterals", "hints", "pivots", "sample", "version", "with_"}
_PARTS = 1000
_KINDS = {"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"}


@dataclass(slots=True)
class From:
    """rows: the product;  views: alias → its visible columns; merged, hidden: as in `Scope`"""

    rows: Relation
    views: dict[str, Relation]
    merged: dict[str, Value] = field(default_factory=dict)
    hidden: set[tuple[str, str]] = field(default_factory=set)

    def tagged(self, tags: Iterable[str]) -> None:
        for tag in tags:
            self.views = {alias: view.tagged(tag) for alias, view in self.views.items()}
            self.merged = {name: value.tagged(tag) for name, value in self.merged.items()}


def read(from_: exp.Expr, joins: Iterable[exp.Expr], scope: Scope) -> From:
    """Evaluate a FROM with its joins; `scope` supplies outer names and CTEs."""
    sources = source(from_, scope)
    for join in joins:
        sources = _joined(sources, join, scope)
    return sources


def source(node: exp.Expr, scope: Scope) -> From:
    """Evaluate one item of a FROM, with the joins in its own parentheses."""
    alias = node.alias_or_name.lower() or f"{NAMELESS}{id(node)}"
    pivots = node.args.get("pivots") or []
    if pivots and pivots[-1].alias:
        alias = pivots[-1].alias.lower()
    if isinstance(node, exp.Lateral):
        return generated(From(Relation(parts=(mix("one row"),), columns={}), {}), node, scope)
    if (
        isinstance(node, exp.Subquery)
        and isinstance(node.this, (exp.Table, exp.Subquery))
        and not node.this.args.get("with_")
    ):
        sources = source(node.this, scope)
        if node.alias:
            names, rests = _scope(sources, scope).star()
            sources = From(sources.rows, {alias: replace(sources.rows, columns=dict(names), rest=tuple(rests))})
    else:
        relation = _relation(node, scope)
        sources = From(relation, {alias: relation})
    if len(sources.views) == 1:
        only = _modified(node, next(iter(sources.views.values())), scope)
        sources = replace(
            sources, rows=replace(only, columns={}, rest=()), views={alias or next(iter(sources.views)): only}
        )
    for join in node.args.get("joins") or ():
        sources = _joined(sources, join, scope)
    for lateral in node.args.get("laterals") or ():
        sources = generated(sources, lateral, scope)
    return sources


def _relation(node: exp.Expr, scope: Scope) -> Relation:
    if isinstance(node, exp.Table):
        if odd := [key for key, value in node.args.items() if value and key not in _TABLE_ARGS]:
            raise Unclear(f"{odd[0].rstrip('_').upper()} of a table is not understood")
        alias = node.args.get("alias")
        if alias is not None and not isinstance(alias.this, (exp.Identifier, type(None))):
            raise Unclear(f"{alias.this.sql(DIALECT)} after {node.name} is not a name")
        if not isinstance(node.this, exp.Identifier):
            return _function(node.this, scope)
        name = ".".join(_part(part.name) for part in node.parts)
        relation = scope.ctes.get(name) or scope.run.tables.get(name)
        if relation is None and node.name.lower() in scope.run.tables:  # equally named columns in another database
            relation = scope.run.tables[node.name.lower()].tagged(mix("of", name))
        relation = relation if relation is not None else unknown(name)
        if version := node.args.get("version"):
            relation = relation.tagged(mix("version", version.sql(DIALECT).lower()))
        return relation
    if isinstance(node, exp.Subquery):
        return scope.run.query(node, scope.beside())
    if isinstance(node, exp.Values):
        return _values(node, scope)
    if isinstance(node, (exp.Unnest, exp.Func)):
        return _function(node, scope)
    raise Unclear(f"{type(node).__name__.upper()} in FROM is not understood")


def _part(name: str) -> str:
    """One part of a table's name: a path keeps its case, and a dot in it is not a separator."""
    written = name if "/" in name else name.lower()
    return f"`{written}`" if "." in written and "/" not in written else written


def _values(node: exp.Values, scope: Scope) -> Relation:
    """VALUES, in any order."""
    values = Values(scope=scope.beside())
    tuples = [list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    rows = sorted(mix(*(values.value(cell).hash for cell in row)) for row in tuples)
    part = mix("values", *rows)
    columns = {f"col{at + 1}": Value(hash=mix("@", part, at)) for at in range(len(tuples[0]) if tuples else 0)}
    return Relation(parts=(part,), columns=columns)


def _function(call: exp.Expr, scope: Scope) -> Relation:
    """A function that yields rows, as a table."""
    value = generator(call, Values(scope=scope.beside()))
    part = mix("table function", functions.outer(call), value.hash)
    return Relation(parts=(part,), columns={}, reads=value.reads, rest=(Rest(part, ""),), volatile=value.volatile)


def _modified(node: exp.Expr, relation: Relation, scope: Scope) -> Relation:
    """PIVOT, TABLESAMPLE and the names given to columns."""
    for pivot in node.args.get("pivots") or ():
        relation = pivoted(relation, pivot, scope)
    if sample := node.args.get("sample"):
        sampling = sample.sql(DIALECT).lower()
        scope.run.notes.append(("TABLESAMPLE", mix(sampling)))
        sampled = relation.sealed(mix("sample", relation.rows, sampling))
        relation = replace(sampled, volatile=True, unique=None, order=relation.order)
    alias = node.args.get("alias")
    names = [c.name.lower() for c in (alias.args.get("columns") or [])] if isinstance(alias, exp.TableAlias) else []
    return renamed(relation, names)


def renamed(relation: Relation, names: list[str]) -> Relation:
    """Columns renamed by `AS t(a, b)`."""
    if not names:
        return relation
    if relation.rest:
        whole = mix(*(value.hash for value in relation.all_values()))
        reads = frozenset().union(*(value.reads for value in relation.all_values()))
        columns = {name: Value(hash=mix("position", whole, at), reads=reads) for at, name in enumerate(names)}
    else:
        columns = dict(zip(names, relation.columns.values(), strict=False))
    branches = tuple(renamed(branch, names) for branch in relation.branches)
    return replace(relation, columns=columns, rest=(), branches=branches)


def _scope(sources: From, around: Scope) -> Scope:
    return Scope(
        run=around.run,
        ctes=around.ctes,
        outer=around.outer,
        sources=sources.views,
        merged=sources.merged,
        hidden=sources.hidden,
    )


def _joined(left: From, join: exp.Expr, scope: Scope) -> From:
    method, side, kind = (str(join.args.get(key) or "").upper() for key in ("method", "side", "kind"))
    if method not in ("", "NATURAL") or kind not in _KINDS:
        raise Unclear(f"{method or kind} JOIN is not understood")
    if isinstance(join.this, exp.Lateral):
        return generated(left, join.this, scope, join)
    right = source(join.this, scope)
    if kind in ("SEMI", "ANTI"):
        return _half(left, right, join, scope, kind)
    right.views = {alias: view.of_another() for alias, view in right.views.items()}
    left.rows, tags = left.rows.distinguished(())
    left.tagged(tags)
    right.rows, tags = right.rows.distinguished(left.rows.parts)
    right.tagged(tags)
    if twice := set(left.views) & set(right.views):
        raise Unclear(f"two sources are called {min(twice)}")
    pairs = _shared(left, right, join, scope)
    both = From(left.rows, {**left.views, **right.views}, dict(left.merged), left.hidden | right.hidden)
    conditions = [combined("EQ", sorted(pair, key=lambda v: v.hash)) for pair in pairs.values()]
    if (on := join.args.get("on")) is not None:
        conditions += Values(scope=_scope(both, scope), rows=mix(left.rows.rows, right.rows.rows)).conjuncts(on)
    scope.run.notes.append((f"{side} JOIN".strip(), mix(*sorted(one.hash for one in conditions))))
    product = _product(left, right, side, conditions)
    for name, (one, other) in pairs.items():
        either = combined("Coalesce", [value.tagged(product.rows.parts[0]) for value in (one, other)])
        product.merged[name] = {"RIGHT": other, "FULL": either}.get(side, one)
        holders = [alias for alias, view in product.views.items() if name in view.columns or view.rest]
        product.hidden |= {(alias, name) for alias in holders}
    return product


def _product(left: From, right: From, side: str, conditions: list[Value]) -> From:
    """The product of both sides; an optional side of LEFT, RIGHT and FULL carries the join's conditions itself."""
    hashes = {one.hash for one in conditions}
    reads = left.rows.reads.union(right.rows.reads, *(one.reads for one in conditions))
    marks = (
        left.rows.marks
        | right.rows.marks
        | {"join" if side == "LEFT" else "inner join", f"{side} join".strip().lower()}
    )
    rows = replace(
        left.rows, reads=reads, marks=marks, unique=None, doubts=left.rows.doubts | right.rows.doubts,
        volatile=left.rows.volatile or right.rows.volatile or any(one.volatile for one in conditions),
    )  # fmt: skip
    parts, filters = (*left.rows.parts, *right.rows.parts), left.rows.filters | right.rows.filters
    predicates = (*left.rows.predicates, *right.rows.predicates)
    if side in ("LEFT", "RIGHT"):
        kept, added = (left, right) if side == "LEFT" else (right, left)
        part = mix("left", *sorted(added.rows.parts), "on", *sorted(added.rows.filters | hashes))
        parts, filters, predicates = _another(kept.rows.parts, part), kept.rows.filters, kept.rows.predicates
        tag = parts[-1]
        if _at_most_one(kept, added, conditions):
            parts, tag = kept.rows.parts, part
            rows = replace(rows, unique=kept.rows.unique)
        added.tagged([tag])
    elif side == "FULL":
        part = mix("full", *sorted((left.rows.rows, right.rows.rows)), "on", *sorted(hashes))
        parts, filters = (part,), frozenset()
        left.tagged([part])
        right.tagged([part])
    if len(parts) > _PARTS:
        raise Unclear("it unfolds into too many sources")
    arrival = mix(side, left.rows.arrival, right.rows.arrival)
    order = either_order([left.rows, right.rows])
    rows = replace(
        rows, parts=parts, filters=filters, bare=False, order=order, earlier_arrival=arrival, predicates=predicates,
        branches=(),
    )  # fmt: skip
    if side not in ("LEFT", "RIGHT", "FULL"):
        rows = simpler.narrowed(rows, conditions)
    return From(rows, {**left.views, **right.views}, {**left.merged, **right.merged}, left.hidden | right.hidden)


def _at_most_one(kept: From, added: From, conditions: list[Value]) -> bool:
    """Whether each kept row matches at most one added row: the columns that the condition fixes are unique there."""
    unique = added.rows.unique
    if unique is None or added.rows.volatile or added.rows.doubts:
        return False
    mine = frozenset(value.hash for view in kept.views.values() for value in view.columns.values())
    fixed = set()
    for condition in conditions:
        if condition.kind == "EQ" and condition.parts:
            one, other = condition.parts
            if not one.type or one.type.lower() != other.type.lower():
                continue  # keys of another type are cast, which may make two of them equal
            fixed |= {a.hash for a, b in ((one, other), (other, one)) if built_of(b, mine) and a.hash not in mine}
        elif condition.kind == "In" and condition.parts and len(condition.parts) == 2:
            of, option = condition.parts
            kind = "string" if option.kind.startswith("text:") else "int"
            if of.type.lower() == kind or (kind == "int" and of.type.lower() == "bigint"):
                fixed.add(of.hash)
    return unique <= fixed


def _another(parts: tuple[str, ...], part: str) -> tuple[str, ...]:
    """The parts and one more, distinct from equal parts."""
    unique_part, at = part, 0
    while unique_part in parts:
        at += 1
        unique_part = mix("@", f"again {at}", part)
    return (*parts, unique_part)


def _shared(left: From, right: From, join: exp.Expr, scope: Scope) -> dict[str, tuple[Value, Value]]:
    """Columns that USING and NATURAL equate, by name."""
    names = [part.name.lower() for part in join.args.get("using") or ()]
    mine, others = _scope(left, scope), _scope(right, scope)
    if str(join.args.get("method") or "").upper() == "NATURAL":
        (known, open_), (right_known, right_open) = mine.star(), others.star()
        if open_ or right_open:
            raise Unclear("the columns that a NATURAL JOIN makes equal depend on a schema that is not known")
        right_names = {name for name, _ in right_known}
        names = list(dict.fromkeys(name for name, _ in known if name in right_names))
    pairs = {}
    for name in names:
        one, other = mine.plain(name), others.plain(name)
        if one is None or other is None:
            raise Unclear(f"USING ({name}): not both sides have it")
        pairs[name] = (one, other)
    return pairs


def _half(left: From, right: From, join: exp.Expr, scope: Scope, kind: str) -> From:
    """LEFT SEMI and LEFT ANTI JOIN: rows of the left side with, or without, a match on the right."""
    around = _scope(left, scope)
    pairs = _shared(left, right, join, scope)
    conditions = [
        combined("EQ", sorted((one.tagged("outer 1"), other), key=lambda v: v.hash)) for one, other in pairs.values()
    ]
    if (on := join.args.get("on")) is not None:
        inside = Scope(
            run=scope.run, ctes=scope.ctes, outer=around, sources=right.views, merged=right.merged, hidden=right.hidden
        )
        conditions += Values(scope=inside, rows=right.rows.rows).conjuncts(on)
    inner = simpler.narrowed(right.rows, conditions)
    exists = Value(hash=mix("exists", inner.rows), reads=inner.reads, volatile=inner.volatile, joined=True)
    condition = exists if kind == "SEMI" else combined("Not", [exists])
    scope.run.notes.append((f"LEFT {kind} JOIN", condition.hash))
    left.rows = simpler.narrowed(left.rows, [condition])
    marks = left.rows.marks | {"inner join", "left join"}
    left.rows = replace(left.rows, doubts=left.rows.doubts | inner.doubts, marks=marks)
    return left


def generated(sources: From, lateral: exp.Expr, scope: Scope, join: exp.Expr | None = None) -> From:
    """LATERAL VIEW, LATERAL and other generators of rows per row."""
    alias = lateral.alias.lower() or f"{NAMELESS}{id(lateral)}"
    if alias in sources.views:
        raise Unclear(f"two sources are called {alias}")
    given = lateral.args.get("alias")
    names = [c.name.lower() for c in (given.args.get("columns") or [])] if given else []
    around = _scope(sources, scope)
    side = str(join.args.get("side") or "").upper() if join is not None else ""
    if side not in ("", "LEFT"):
        raise Unclear(f"{side} JOIN LATERAL is not understood")
    kept = bool(lateral.args.get("outer")) or side == "LEFT"
    inner = lateral.this
    if isinstance(inner, (exp.Subquery, exp.Query)):
        relation = scope.run.query(inner, around.within())
        view, part = renamed(relation.of_another(), names), mix("lateral", kept, relation.rows)
        reads, volatile = relation.reads, relation.volatile
        marks = sources.rows.marks | relation.marks | {"inner join"}
        sources.rows = replace(sources.rows, doubts=sources.rows.doubts | relation.doubts, marks=marks)
    else:
        values = Values(scope=around, rows=sources.rows.rows, order=sources.rows.order)
        value = generator(inner, values)
        one_row, kept = functions.is_one_row(inner), kept or functions.outer(inner)
        part = "" if one_row else mix("generate", kept, value.hash)
        view = yielded(inner, value, names, values)
        reads, volatile = value.reads, value.volatile and not one_row
    sources.rows = replace(sources.rows, reads=sources.rows.reads | reads, volatile=sources.rows.volatile or volatile)
    if (on := join.args.get("on") if join is not None else None) is not None:
        seen = From(sources.rows, {**sources.views, alias: view}, sources.merged, sources.hidden)
        conditions = Values(scope=_scope(seen, scope), rows=mix(sources.rows.rows, part)).conjuncts(on)
        part = mix(part, *(one.hash for one in conditions)) if conditions else part
    if part:
        parts = _another(sources.rows.parts, part)
        view, sources.rows = view.tagged(parts[-1]), replace(sources.rows, parts=parts, unique=None)
        scope.run.notes.append(("a generator", part))
    sources.rows = replace(sources.rows, marks=sources.rows.marks | {"generate"})
    sources.views[alias] = view
    return sources


def yielded(call: exp.Expr, value: Value, names: list[str], values: Values) -> Relation:
    """A generator's columns, by position, or by unknown names; `json_tuple` has one for each key."""
    if functions.is_one_row(call) and call.expressions:
        document, *keys = (values.value(part) for part in call.expressions)
        names = names or [f"c{at}" for at in range(len(keys))]
        return Relation(
            parts=(), columns={n: combined("json_tuple", [document, key]) for n, key in zip(names, keys, strict=False)}
        )
    columns = {name: value.opaque(mix("yielded", value.hash, at)) for at, name in enumerate(names)}
    rest = () if names else (Rest(mix("yielded", value.hash), ""),)
    return Relation(parts=(), columns=columns, rest=rest)


def generator(call: exp.Expr, values: Values) -> Value:
    """Hash of a generator by kind and arguments, the same for its OUTER form."""
    if functions.generator(call) is not call:
        return values.value(call)
    kind = functions.called(call).removesuffix("_outer") or type(call).__name__.strip("_").removesuffix("Outer").lower()
    return combined(f"generator {kind}", [values.value(part) for part in call.iter_expressions()])
