"""Evaluates expressions to values: the hash of the operator and its operands, with equivalent spellings in one form."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from console.planning.sql.relation import Relation, Value, combined, mix
from console.planning.sql.semantics import forms, functions
from console.planning.sql.semantics.rewrites import casts, counts, literals, simpler
from console.planning.sql.semantics.rewrites.numbers import integer
from console.planning.sql.semantics.rewrites.predicates import CONDITIONS, Truths, turned
from console.planning.sql.semantics.scope import Scope, Unclear, counted
from console.planning.sql.semantics.windowed import windowed

_COMMUTES = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Greatest, exp.Least)
_CASTS = ("int", "bigint", "smallint", "tinyint")
_PARSER_ARGS = {"big_int", "_type"}  # arguments that the parser adds by itself


@dataclass(slots=True, kw_only=True)
class Values:
    """Evaluates the expressions of one SELECT.

    rows     the rows that windows and calls like rand() run over;  order  of these rows;  arrival  the order of ties among them
    unique   values that are unique among these rows, None if none are known
    group    the aggregated rows, "" for none;  keys  hashes of the GROUP BY's values;  nonempty  whether every
             group has a row
    aliases  outputs that a clause may refer to;  done  those already evaluated;  first  whether they win over columns of
             the same name
    """

    scope: Scope
    rows: str = ""
    order: str = ""
    group: str = ""
    keys: frozenset[str] = frozenset()
    nonempty: bool = False
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    done: dict[str, Value] = field(default_factory=dict)
    first: bool = False
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    bound: list[dict[str, Value]] = field(default_factory=list)
    inside: int = 0
    arrival: str = ""
    unique: frozenset[str] | None = None
    truths: Truths = field(init=False)

    def __post_init__(self) -> None:
        self.truths = Truths(self.value, self._generic, self._asked, self._counts)

    def conjuncts(self, node: exp.Expr) -> list[Value]:
        return self.truths.conjuncts(node)

    def value(self, node: exp.Expr) -> Value:
        """One expression.

        raises  Unclear if a name in it is unknown
        """
        node = node.unnest()
        if isinstance(node, CONDITIONS) or turned(node) or functions.is_null_test(node) or self._is_truth(node):
            return self.truths.of(node)
        if isinstance(node, exp.Filter) and (instead := counts.filtered(node)) is not None:
            return self.value(instead)
        if (named := functions.of_conditions(node)) is not None:
            return self.value(named)
        all_of = isinstance(node, (exp.LogicalAnd, exp.Min)) and not functions.over_window(node)
        if all_of and self.truths.is_condition(node.this):  # every row passes if none fails
            return self.truths.of(exp.Not(this=exp.Max(this=exp.Not(this=node.this.copy()))))
        if (whole := integer(node)) is not None:
            return simpler.integer(whole)
        if functions.is_aggregate(node):
            return self._aggregate(node)
        result = self._spelled(node)
        return result if result is not None else self._generic(node)

    def _aggregate(self, call: exp.Expr) -> Value:
        self.inside += 1
        result = counts.aggregate(call, self) or self._spelled(call) or self._generic(call)
        self.inside -= 1
        if functions.over_window(call):
            return result  # functions whose order is the window's
        if self.order and functions.takes_order(call):
            result = result.opaque(mix("in order", self.order, result.hash))
        return self.grouped(result)

    def grouped(self, aggregate: Value) -> Value:
        """An aggregate of the rows of this group."""
        kept = aggregate.opaque(mix("aggregate", self.group, aggregate.hash))
        return replace(kept, type="bigint" if aggregate.kind.startswith("Count") else "")

    def _is_truth(self, node: exp.Expr) -> bool:
        """`coalesce(p, false)` of a condition."""
        one = (
            isinstance(node, exp.Coalesce)
            and len(node.expressions) == 1
            and isinstance(node.expressions[0], exp.Boolean)
        )
        return one and self.truths.is_condition(node.this)

    def _counts(self, node: exp.Expr) -> tuple[Value, bool] | None:
        test = counts.asks_for_one(node, self)
        return (counts.some(test[0], self), test[1]) if test is not None else None

    def _spelled(self, node: exp.Expr) -> Value | None:
        """Evaluates expressions with several spellings, or with semantics beyond their arguments."""
        match node:
            case exp.Alias() | exp.Where() | exp.PivotAlias():
                return self.value(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Dot():
                return self._field(self.value(node.this), node.expression)
            case exp.Query():
                return self._query(node)
            case exp.Cast():
                return casts.cast(node, self)
            case exp.Case() | exp.If() | exp.Nvl2() | exp.Nullif():
                return self.truths.choice(node)
            case exp.Coalesce():
                if (count := counts.of_zero(node, self)) is not None:
                    return count
                parts = self._coalesced(node)
                return parts[0] if len(parts) == 1 else combined("Coalesce", parts)
            case exp.DPipe() | exp.Concat() if type(node) is not exp.ConcatWs:
                return literals.concatenated(self._concatenated(node))
            case exp.Count():
                return self._count(node)
            case exp.Window():
                return windowed(node, self)
            case exp.Lambda():
                return self._lambda(node)
            case exp.Struct():
                return self._struct(node)
            case exp.Star():
                return self._star("")
        if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
            return literals.arithmetic(type(node), self.value(node.this), self.value(node.expression))
        if isinstance(node, _COMMUTES):
            sides = [self.value(part) for part in node.iter_expressions()]
            return combined(type(node).__name__, sorted(sides, key=lambda value: value.hash))
        if (twin := forms.another(node)) is not None:
            parts = [self.value(part) for part in twin[1]]
            return parts[0] if twin[0] == forms.TO_DATE and parts[0].type == "date" else combined(twin[0], parts)
        return self._leaf(node) or casts.date_part(node, self)

    def _leaf(self, node: exp.Expr) -> Value | None:
        match node:
            case exp.Literal():
                return (
                    simpler.text(node.this)
                    if node.is_string
                    else Value(hash=mix("literal", False, node.this), parts=())
                )
            case exp.RawString():
                return simpler.text(node.this)
            case exp.DataType():
                return Value(hash=mix("type", forms.type_of(node)), parts=())
            case exp.Identifier():
                for names in reversed(self.bound):
                    if node.name.lower() in names:
                        return names[node.name.lower()]
                return Value(hash=mix("name", node.name))
            case exp.Var():
                return Value(hash=mix("var", node.name.upper()))
            case exp.Lag() | exp.Lead():
                offset, default = node.args.get("offset"), node.args.get("default")
                further = self.value(offset) if offset is not None else simpler.integer(1)
                missing = self.value(default) if default is not None else combined("Null", [])
                return combined(type(node).__name__, [self.value(node.this), further, missing])
            case exp.Anonymous() if functions.called(node) in _CASTS and len(node.expressions) == 1:
                to = exp.DataType.build(functions.called(node))
                return casts.cast(exp.Cast(this=node.expressions[0].copy(), to=to), self)
            case exp.Interval() if isinstance(node.args.get("unit"), exp.Var):
                unit = node.args["unit"].name.upper().rstrip("S")
                return combined(f"interval {unit}", [self.value(node.this)] if node.this else [])
        return None

    def _column(self, node: exp.Column) -> Value:
        names = [part.name.lower() for part in node.parts]
        if isinstance(node.this, exp.Star):
            return self._star(node.table.lower())
        for at in range(min(len(names) - 1, 3)):
            value = self.scope.of(names[at], names[at + 1])
            if value is not None:
                break
        else:
            at, value = -1, self._unqualified(names[0])
        self.scope.run.named |= value.reads
        for part in node.parts[at + 2 :]:
            value = self._field(value, part)
        return value

    def _unqualified(self, name: str) -> Value:
        for names in reversed(self.bound):
            if name in names:
                return names[name]
        alias = self.aliases.get(name)
        if alias is None:
            return self.scope.named(name)
        sure, may = self.scope.has(name), self.scope.may_have(name)
        if self.keys or self.group:  # HAVING: grouping and aggregated columns are the source's
            value = self.scope.plain(name) if sure or may or self.inside else None
            grouped = value is not None and value.hash in self.keys
            sure, may = grouped or (sure and bool(self.inside)), may and not grouped and bool(self.inside)
        if not self.first and (self.inside or not (self.keys or self.group)):
            sure = sure or forms.mentions(
                alias, name
            )  # an alias whose expression uses its own name reads the source's column
        if sure and not self.first:
            return self.scope.named(name)
        if name in self.done:
            value = self.done[name]
        else:
            self.scope.run.step()
            others = {key: one for key, one in self.aliases.items() if key != name}
            value = replace(self, aliases=others).value(alias)
        # a source with unknown columns may have it, and would take precedence
        return combined("either", [self.scope.named(name), value]) if may and not self.first else value

    def _field(self, of: Value, part: exp.Expr) -> Value:
        if isinstance(part, exp.Identifier):
            name, type = forms.field(of.type, part.name)
            return replace(combined(f"field {name}", [of]), type=type)
        return combined("dot", [of, self.value(part)])

    def _star(self, alias: str) -> Value:
        return combined("star", self._starred(alias))

    def _starred(self, alias: str) -> list[Value]:
        """The columns that a star expands to, by names as written."""
        names, rests = self.scope.star(alias)
        spelled = [(value.name if value.name.lower() == name else name, value) for name, value in names]
        return [*(combined(f"named {name}", [value]) for name, value in spelled), *(rest.value for rest in rests)]

    def _query(self, node: exp.Expr) -> Value:
        inner = self.scope.run.query(node, self.scope.within())
        values = inner.all_values()
        reads = inner.reads.union(*(value.reads for value in values))
        volatile = inner.volatile or any(value.volatile for value in values)
        return Value(
            hash=mix("query", inner.rows, *(value.hash for value in values)),
            reads=reads,
            volatile=volatile,
            joined=True,
        )

    def _asked(self, node: exp.Expr, filters: bool) -> Value:
        """EXISTS, and IN over a query, which is an EXISTS if unknown counts as false."""
        asked_of = node.this if isinstance(node, exp.Exists) else node.args["query"]
        inner: Relation = self.scope.run.query(_with_repeats(asked_of), self.scope.within())
        if isinstance(node, exp.Exists):
            return Value(hash=mix("exists", inner.rows), reads=inner.reads, volatile=inner.volatile, joined=True)
        given = node.this.unnest()
        asked = [self.value(part) for part in (given.expressions if isinstance(given, exp.Tuple) else [given])]
        inner_values = inner.all_values()
        reads = inner.reads.union(*(value.reads for value in (*asked, *inner_values)))
        volatile = inner.volatile or any(value.volatile for value in asked)
        if not filters or len(asked) != len(inner_values):
            pairs = [value.hash for value in (*asked, *inner_values)]
            return Value(hash=mix("in", inner.rows, *pairs), reads=reads, volatile=volatile, joined=True)
        equal = frozenset(
            combined("EQ", sorted((one.tagged("outer 1"), other), key=lambda v: v.hash)).hash
            for one, other in zip(asked, inner_values, strict=True)
        )
        narrowed = replace(inner, filters=inner.filters | equal)
        return Value(hash=mix("exists", narrowed.rows), reads=reads, volatile=volatile, joined=True)

    def _coalesced(self, node: exp.Expr) -> list[Value]:
        parts: list[Value] = []
        for item in (node.this, *node.expressions):
            inner = item.unnest()
            parts += self._coalesced(inner) if isinstance(inner, exp.Coalesce) else [self.value(inner)]
        return [part for part in parts if part.kind != "Null"] or parts

    def _concatenated(self, node: exp.Expr) -> list[Value]:
        node = node.unnest()
        if isinstance(node, exp.DPipe):
            return [*self._concatenated(node.this), *self._concatenated(node.expression)]
        if type(node) is exp.Concat:
            return [part for item in node.expressions for part in self._concatenated(item)]
        return [self.value(node)]

    def _count(self, node: exp.Count) -> Value:
        of = node.this
        if of is None:
            raise Unclear("count() counts nothing")
        if isinstance(of, exp.Star) or (isinstance(of, exp.Literal) and not node.expressions):
            return Value(hash=mix("Count", "rows"), reads=counted(self.scope))
        if isinstance(of, exp.Distinct):
            parts = sorted((self.value(part) for part in of.expressions), key=lambda value: value.hash)
            return combined("Count/distinct", parts)
        return combined("Count", [self.value(of), *(self.value(part) for part in node.expressions)])

    def _lambda(self, node: exp.Lambda) -> Value:
        depth = len(self.bound)
        names = [part.name.lower() for part in node.expressions]
        self.bound.append({name: Value(hash=mix("bound", depth, at)) for at, name in enumerate(names)})
        body = self.value(node.this)
        self.bound.pop()
        return combined(f"lambda {len(names)}", [body])

    def _struct(self, node: exp.Struct) -> Value:
        """A struct, hashed with its field names, which are data: `to_json` writes them."""
        parts: list[Value] = []
        for at, member in enumerate(node.expressions):
            if member.is_star:
                parts += self._starred(member.args["table"].name.lower() if member.args.get("table") else "")
                continue
            name, of = member.alias_or_name or f"col{at + 1}", member
            if isinstance(member, (exp.PropertyEQ, exp.Alias)):
                name = member.this.name if isinstance(member, exp.PropertyEQ) else member.alias
                of = member.expression if isinstance(member, exp.PropertyEQ) else member.this
            parts.append(combined(f"named {name}", [self.value(of)]))
        return combined("Struct", parts)

    def _generic(self, node: exp.Expr) -> Value:
        function = functions.called(node)
        label: list[str] = [
            functions.SYNONYMS.get(function) or functions.SAME.get(type(node).__name__, type(node).__name__)
        ]
        if functions.strange(node):
            self.scope.run.notes.append(("a function of which nothing is known", mix(function)))
        parts: list[Value] = []
        for key in sorted(node.args):
            if (
                literals.by_default(key, node.args[key])
                or key in _PARSER_ARGS
                or (key == "this" and function in functions.SYNONYMS)
                or (key == "negate" and turned(node))
            ):
                continue
            for item in node.args[key] if isinstance(node.args[key], list) else [node.args[key]]:
                if isinstance(item, exp.Expr):
                    label.append("this" if function in functions.SYNONYMS else key)
                    timely = forms.is_unit(node, key, item)
                    parts.append(Value(hash=mix("unit", forms.unit(node, item))) if timely else self.value(item))
                elif item is not None and item is not False and item != "":
                    label.append(f"{key}={str(item).lower() if function else item}")
        if functions.fresh(node) or (isinstance(node, exp.Placeholder) and not node.this):
            label.append(f"{self.scope.run.number(node)} of {self.rows}{self.order}")
        if isinstance(node, exp.ArraysZip):  # its fields are named after its arguments
            label += [part.alias_or_name for part in node.expressions]
        whole = combined("/".join(label), parts)
        return replace(whole, volatile=True) if functions.is_volatile(node) else whole


def _with_repeats(query: exp.Expr) -> exp.Expr:
    """The query without DISTINCT, if it is only tested for rows."""
    inner = query
    while isinstance(inner, exp.Subquery) and {key for key, value in inner.args.items() if value} <= {"this"}:
        inner = inner.this
    if not isinstance(inner, exp.Select) or not inner.args.get("distinct") or inner.args["distinct"].args.get("on"):
        return query
    if inner.args.get("limit") or inner.args.get("offset"):
        return query
    plain = inner.copy()
    plain.set("distinct", None)
    return plain
