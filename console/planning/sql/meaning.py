"""What a query means, as hashes: which rows it gives (`rows`), and what stands in each column (`values`).

A query is evaluated symbolically over its sources' hashes. A CTE or subquery that only selects and filters dissolves
into its source, so that moving an expression into one changes nothing; everything that is not understood goes into the
hash of the rows, so that a doubt costs a rebuild and never a wrong "unchanged". Every expression is the hash of its
operator and of its operands' hashes: names of aliases, CTEs and files take no part, operands of AND, OR, +, *, = stand
in no order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from console.planning.sql import allow
from console.planning.sql.relation import Relation, Value, combined, mix, numbered
from console.planning.sql.tree import DIALECT, kind

_COMMUTES = (exp.Add, exp.Mul, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip


def meaning(tree: exp.Query, tables: Mapping[str, Relation]) -> Relation:
    """Evaluate a qualified tree over its tables."""
    return _Evaluator(dict(tables)).query(tree)


@dataclass(slots=True)
class _Evaluator:
    named: dict[str, Relation]  # tables and CTEs
    outer: dict[str, Relation] = field(default_factory=dict)  # sources of enclosing queries
    scope: dict[str, Relation] = field(default_factory=dict)

    def query(self, tree: exp.Expr) -> Relation:
        named = dict(self.named)
        inner = _Evaluator(named, self.outer)
        with_ = tree.args.get("with_")
        for cte in with_.expressions if with_ else ():
            relation = inner.query(cte.this)
            named[cte.alias.lower()] = _renamed(relation, cte.args.get("alias"))
        match tree:
            case exp.Subquery():
                return inner.query(tree.this)
            case exp.SetOperation():
                return inner._set(tree)
            case exp.Select():
                return inner._select(tree)
        return Relation(mix("opaque", tree.sql(DIALECT)), {})

    def _set(self, tree: exp.SetOperation) -> Relation:
        sides = [self.query(tree.this), self.query(tree.expression)]
        names = list(sides[0].columns)
        flat = [list(side.columns.values()) for side in sides]
        if tree.args.get("by_name"):
            flat[1] = [sides[1].columns.get(name, Value("null")) for name in names]
        plain = isinstance(tree, exp.Union) and not tree.args.get("distinct")
        order = sorted(range(2), key=lambda i: sides[i].rows) if isinstance(tree, exp.Union) else [0, 1]
        columns = {
            name: combined("set", [flat[i][at] for i in order if at < len(flat[i])]) for at, name in enumerate(names)
        }
        rows = [type(tree).__name__, plain, *(sides[i].rows for i in order)]
        if not plain:
            rows += sorted(value.hash for value in columns.values())
        return self._ordered(
            tree,
            Relation(
                mix(*rows),
                columns,
                reads=sides[0].reads | sides[1].reads,
                marks=sides[0].marks | sides[1].marks | ({"union"} if plain else {"set"}),
                volatile=sides[0].volatile or sides[1].volatile,
            ),
        )

    def _source(self, node: exp.Expr) -> tuple[str, Relation]:
        alias = node.alias_or_name.lower()
        if isinstance(node, exp.Table):
            found = self.named.get(node.name.lower())
            relation = found if found is not None else Relation(mix("unknown", node.name), {})
        elif isinstance(node, exp.Subquery):
            relation = self.query(node)
        else:
            relation = Relation(mix("opaque", node.sql(DIALECT)), {})
        for join in node.args.get("joins") or ():  # a parenthesised join: taken as it is written
            other = self._source(join.this)[1]
            relation = replace(
                relation, base=mix("nested", relation.rows, other.rows, join.sql(DIALECT)), filters=frozenset()
            )
        return alias, _renamed(relation, node.args.get("alias"))

    def _select(self, tree: exp.Select) -> Relation:
        from_ = tree.args.get("from_")
        joins = tree.args.get("joins") or []
        if from_ is None:
            result = Relation(mix("one row"), {})
        else:
            alias, result = self._source(from_.this)
            self.scope = {alias: result}
            if joins:
                result = self._joined(alias, result, joins)
        laterals = [*(tree.args.get("laterals") or []), *((from_.this.args.get("laterals") or []) if from_ else [])]
        for lateral in laterals:
            result = self._lateral(lateral, result)
        if where := tree.args.get("where"):
            conjuncts = [self.value(part) for part in _parts(where.this, exp.And) if not _is_true(part)]
            result = replace(
                result,
                filters=result.filters | {part.hash for part in conjuncts},
                reads=result.reads.union(*(part.reads for part in conjuncts)),
                volatile=result.volatile or any(part.volatile for part in conjuncts),
                marks=result.marks | ({"inner join"} if any(part.joined for part in conjuncts) else set()),
            )
        return self._projected(tree, result)

    def _joined(self, alias: str, first: Relation, joins: list[exp.Expr]) -> Relation:
        self.scope[alias] = numbered(first, 0)
        base, reads, marks = mix("first", first.rows), first.reads, set(first.marks)
        for i, join in enumerate(joins, 1):
            name, other = self._source(join.this)
            self.scope[name] = numbered(other, i)
            on = join.args.get("on")
            condition = sorted(self.value(part).hash for part in _parts(on, exp.And)) if on is not None else []
            how = [str(join.args.get(key) or "").upper() for key in ("method", "side", "kind")]
            how[2] = "" if how[2] in ("INNER", "OUTER") else how[2]
            keeps = how[1] == "LEFT" and not how[2]
            base = mix("join", base, *how, other.rows, *condition)
            if on is not None:
                reads |= self.value(on).reads
            reads |= other.reads
            marks |= other.marks | {"join" if keeps else "inner join", f"{how[1]} join".strip().lower()}
        return Relation(base, {}, reads=reads, marks=frozenset(marks), volatile=first.volatile)

    def _lateral(self, lateral: exp.Expr, result: Relation) -> Relation:
        made = self.value(lateral.this)
        alias = lateral.args.get("alias")
        names = [c.name.lower() for c in (alias.args.get("columns") or [])] if alias else []
        self.scope[lateral.alias.lower()] = Relation(
            "", {name: replace(made, hash=mix("generated", made.hash, i)) for i, name in enumerate(names)}
        )
        base = mix("generate", result.rows, made.hash, bool(lateral.args.get("outer")))
        return replace(result, base=base, filters=frozenset(), marks=result.marks | {"generate"})

    def _projected(self, tree: exp.Select, result: Relation) -> Relation:
        columns: dict[str, Value] = {}
        for i, part in enumerate(tree.expressions):
            columns[(part.alias_or_name or f"_{i}").lower()] = self.value(part)
        marks, base, filters = set(result.marks), result.base, result.filters
        group, having = tree.args.get("group"), tree.args.get("having")
        if group or having or any(aggregates(part) for part in tree.expressions):
            keys = self._keys(tree, group)
            extra = [f"{k}={self.value(v).hash if isinstance(v, exp.Expr) else _plain(v)}" for k, v in _odd(group)]
            kept = self.value(having.this).hash if having else ""
            base, filters = mix("group", result.rows, *sorted(keys), *extra, kept), frozenset()
            marks.add("group")
        windows = any(True for part in tree.expressions for _ in part.find_all(exp.Window))
        makers = [columns[p.alias_or_name.lower()].hash for p in tree.expressions if _generates(p)]
        if windows or makers or tree.args.get("qualify"):
            chosen = self.value(tree.args["qualify"].this).hash if tree.args.get("qualify") else ""
            base, filters = mix("window", mix("rows", base, *sorted(filters)), *sorted(makers), chosen), frozenset()
            marks.add("generate" if makers and not windows else "window")
        if tree.args.get("distinct"):
            base = mix("distinct", base, *sorted(filters), "values", *sorted(value.hash for value in columns.values()))
            filters = frozenset()
            marks.add("distinct")
        made = Relation(base, columns, filters, result.reads, frozenset(marks), result.volatile)
        return self._ordered(tree, made)

    def _keys(self, tree: exp.Select, group: exp.Expr | None) -> list[str]:
        if group is None:
            return []
        if group.args.get("all"):
            return [self.value(part).hash for part in tree.expressions if not aggregates(part)]
        return [self.value(key).hash for key in group.expressions]

    def _ordered(self, tree: exp.Expr, result: Relation) -> Relation:
        limit, offset, order = (tree.args.get(key) for key in ("limit", "offset", "order"))
        if not (limit or offset):
            return result  # an order alone changes no row
        said = [node.sql(DIALECT) for node in (order, limit, offset) if node is not None]
        kept = replace(result, base=mix("limit", result.rows, *said), filters=frozenset(), volatile=True)
        return replace(kept, marks=result.marks | {"limit"})

    def value(self, node: exp.Expr) -> Value:
        """The hash of one expression; commutative, comparison and negation forms are brought to one shape first."""
        match node:
            case exp.Paren() | exp.Alias():
                return self.value(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Query():
                inner = _Evaluator(dict(self.named), {**self.outer, **self.scope}).query(node)
                values = [value.hash for value in inner.columns.values()]
                reads = inner.reads.union(*(value.reads for value in inner.columns.values()))
                return Value(mix("query", inner.rows, *values), reads, inner.volatile, True)
            case exp.And() | exp.Or():
                kind_ = exp.And if isinstance(node, exp.And) else exp.Or
                parts = {v.hash: v for v in (self.value(part) for part in _parts(node, kind_))}
                return combined(type(node).__name__, [parts[h] for h in sorted(parts)])
            case exp.Not() | exp.Between() if (plainer := _plainer(node)) is not node:
                return self.value(plainer)
            case exp.LT() | exp.LTE():
                return combined(type(node).__name__, [self.value(node.this), self.value(node.expression)])
            case exp.GT() | exp.GTE():
                less = "LT" if isinstance(node, exp.GT) else "LTE"
                return combined(less, [self.value(node.expression), self.value(node.this)])
            case exp.Cast():
                careful = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
                return combined(
                    f"{'try_' if careful else ''}cast:{kind(node.to.sql(DIALECT))}", [self.value(node.this)]
                )
            case exp.In() if node.expressions:
                options = {v.hash: v for v in map(self.value, node.expressions)}
                return combined("In", [self.value(node.this), *(options[h] for h in sorted(options))])
            case exp.If() if not isinstance(node.parent, exp.Case):
                branch = exp.If(this=node.this.copy(), true=node.args["true"].copy())
                return self.value(exp.Case(ifs=[branch], default=_copy(node.args.get("false"))))
            case _ if isinstance(node, _COMMUTES):
                return combined(
                    type(node).__name__, sorted(map(self.value, (node.this, node.expression)), key=lambda v: v.hash)
                )
        return self._generic(node)

    def _column(self, node: exp.Column) -> Value:
        source = self.scope.get(node.table.lower()) or self.outer.get(node.table.lower())
        found = source.columns.get(node.name.lower()) if source else None
        return found if found is not None else Value(mix("column", node.table.lower(), node.name.lower()))

    def _generic(self, node: exp.Expr) -> Value:
        label: list[str] = [type(node).__name__]
        if isinstance(node, exp.DataType):
            return Value(mix("type", kind(node.sql(DIALECT))))
        if isinstance(node, exp.Literal):
            return Value(mix("literal", node.is_string, node.this))
        if isinstance(node, exp.Identifier):
            return Value(mix("name", node.name))
        parts: list[Value] = []
        for key in sorted(node.args):
            for item in node.args[key] if isinstance(node.args[key], list) else [node.args[key]]:
                if isinstance(item, exp.Expr):
                    label.append(key)
                    parts.append(self.value(item))
                elif item is not None and item is not False and item != "":
                    label.append(f"{key}={str(item).lower() if isinstance(node, exp.Anonymous) else item}")
        whole = combined("/".join(label), parts)
        said = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        return (
            replace(whole, volatile=True)
            if type(node).__name__ in allow.VOLATILE_NODES or said in allow.VOLATILE_NAMES
            else whole
        )


def _renamed(relation: Relation, alias: exp.Expr | None) -> Relation:
    names = [c.name.lower() for c in (alias.args.get("columns") or [])] if isinstance(alias, exp.TableAlias) else []
    return replace(relation, columns=dict(zip(names, relation.columns.values(), strict=False))) if names else relation


def _plainer(node: exp.Expr) -> exp.Expr:
    """BETWEEN as two comparisons; NOT moved inwards, as three-valued logic allows it. All else as it is."""
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        return exp.And(this=low, expression=exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()))
    if not isinstance(node, exp.Not):
        return node
    inner = _plainer(node.this.unnest())
    if isinstance(inner, exp.Not):
        return _plainer(inner.this.unnest())
    if negated := _NEGATED.get(type(inner)):
        return negated(this=inner.this.copy(), expression=inner.expression.copy())
    if isinstance(inner, (exp.And, exp.Or)):
        other = exp.Or if isinstance(inner, exp.And) else exp.And
        sides = [exp.Not(this=side.copy()) for side in (inner.this, inner.expression)]
        return other(this=sides[0], expression=sides[1])
    return node


def _parts(node: exp.Expr, operator: type[exp.Expr]) -> list[exp.Expr]:
    node = _plainer(node.unnest())
    if isinstance(node, operator):
        return [*_parts(node.args["this"], operator), *_parts(node.args["expression"], operator)]
    return [node]


def _is_true(node: exp.Expr) -> bool:
    if isinstance(node, exp.EQ) and isinstance(node.this, exp.Literal):
        return bool(node.this == node.expression)
    return isinstance(node, exp.Boolean) and bool(node.this)


def _odd(group: exp.Expr | None) -> list[tuple[str, object]]:
    if group is None:
        return []
    return [
        (key, item)
        for key, value in sorted(group.args.items())
        if key not in ("expressions", "all") and value
        for item in (value if isinstance(value, list) else [value])
    ]


def _plain(value: object) -> str:
    return str(value)


def _copy(node: exp.Expr | None) -> exp.Expr | None:
    return node.copy() if node is not None else None


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression aggregates the rows of its own query."""
    for found in node.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        named = isinstance(found, exp.Anonymous) and str(found.this).lower() in allow.AGGREGATE_NAMES
        if (named or isinstance(found, exp.AggFunc)) and not isinstance(found.parent, exp.Window):
            return True
    return False


def _generates(node: exp.Expr) -> bool:
    if any(isinstance(n, exp.Anonymous) and str(n.this).lower() in allow.GENERATOR_NAMES for n in node.walk()):
        return True
    return any(True for _ in node.find_all(exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.UDTF))
