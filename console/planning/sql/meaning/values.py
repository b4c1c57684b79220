"""Expressions to values: the hash of the operator and of its operands, many spellings of one thing brought to one."""

from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.planning.sql.meaning import functions
from console.planning.sql.meaning.scope import Scope, counted
from console.planning.sql.meaning.truth import CONDITIONS, Truths, integer
from console.planning.sql.relation import Relation, Value, combined, mix
from console.planning.sql.tree import DIALECT, kind

_COMMUTES = (exp.Add, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Greatest, exp.Least)
_DATE_PARTS = {
    "year": "Year", "years": "Year", "month": "Month", "months": "Month", "day": "Day", "days": "Day", "hour": "Hour",
    "hours": "Hour", "minute": "Minute", "minutes": "Minute", "quarter": "Quarter", "week": "WeekOfYear",
    "dayofmonth": "Day", "weekofyear": "WeekOfYear",
}  # fmt: skip
_SAID = {"big_int", "_type"}  # what the parser adds by itself
_FRAME = "default frame"


@dataclass(slots=True)
class Values:
    """Evaluates the expressions of one SELECT.

    rows     the rows that windows and calls like rand() run over
    group    what is aggregated, "" where nothing is;  keys  hashes of the GROUP BY's values
    aliases  outputs that a clause may name;  done  those that are evaluated;  first  whether they win over columns of
             the same name
    """

    scope: Scope
    rows: str = ""
    group: str = ""
    keys: frozenset[str] = frozenset()
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    done: dict[str, Value] = field(default_factory=dict)
    first: bool = False
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    bound: list[dict[str, Value]] = field(default_factory=list)
    inside: int = 0
    truths: Truths = field(init=False)

    def __post_init__(self) -> None:
        self.truths = Truths(self.value, self._generic, self._asked)

    def conjuncts(self, node: exp.Expr) -> list[Value]:
        return self.truths.conjuncts(node)

    def value(self, node: exp.Expr) -> Value:
        """One expression.

        raises  Unclear where a name in it is known to nobody
        """
        node = node.unnest()
        if isinstance(node, CONDITIONS) or functions.called(node) in ("isnull", "isnotnull"):
            return self.truths.of(node)
        if (whole := integer(node)) is not None:
            return Value(mix("integer", whole))
        if functions.is_aggregate(node):
            return self._aggregate(node)
        found = self._spelled(node)
        return found if found is not None else self._generic(node)

    def _aggregate(self, call: exp.Expr) -> Value:
        self.inside += 1
        made = self._spelled(call) or self._generic(call)
        self.inside -= 1
        if functions.over_window(call):
            return made
        return replace(made, hash=mix("aggregate", self.group, made.hash))

    def _spelled(self, node: exp.Expr) -> Value | None:
        """What has several spellings, or a meaning that its arguments do not tell."""
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
                return self._cast(node)
            case exp.Case() | exp.If() | exp.Nvl2() | exp.Nullif():
                return self.truths.choice(node)
            case exp.Coalesce():
                parts = self._coalesced(node)
                return parts[0] if len(parts) == 1 else combined("Coalesce", parts)
            case exp.DPipe() | exp.Concat():
                return combined("Concat", self._concatenated(node))
            case exp.Count():
                return self._count(node)
            case exp.Window():
                return self._window(node)
            case exp.Lambda():
                return self._lambda(node)
            case exp.Struct():
                return self._struct(node)
            case exp.Star():
                return self._star("")
        if isinstance(node, _COMMUTES):
            sides = [self.value(part) for part in node.iter_expressions()]
            return combined(type(node).__name__, sorted(sides, key=lambda value: value.hash))
        return self._leaf(node) or self._date_part(node)

    def _leaf(self, node: exp.Expr) -> Value | None:
        match node:
            case exp.Literal():
                return Value(mix("literal", node.is_string, node.this))
            case exp.RawString():
                return Value(mix("literal", True, node.this))
            case exp.DataType():
                return Value(mix("type", _kind(node)))
            case exp.Identifier():
                for names in reversed(self.bound):
                    if node.name.lower() in names:
                        return names[node.name.lower()]
                return Value(mix("name", node.name))
            case exp.Var():
                return Value(mix("var", node.name.upper()))
            case exp.Interval() if isinstance(node.args.get("unit"), exp.Var):
                unit = node.args["unit"].name.upper().rstrip("S")
                return combined(f"interval {unit}", [self.value(node.this)] if node.this else [])
        return None

    def _date_part(self, node: exp.Expr) -> Value | None:
        """`extract(year FROM x)`, `date_part('year', x)` and `year(x)`."""
        name, of = type(node).__name__, node.args.get("this")
        if isinstance(node, exp.Extract):
            name, of = _DATE_PARTS.get(node.name.lower(), ""), node.expression
        elif functions.called(node) in ("date_part", "datepart") and isinstance(node.expressions[0], exp.Literal):
            name, of = _DATE_PARTS.get(node.expressions[0].name.lower(), ""), node.expressions[1]
        elif functions.called(node) in _DATE_PARTS and len(node.expressions) == 1:
            name, of = _DATE_PARTS[functions.called(node)], node.expressions[0]
        if name not in _DATE_PARTS.values() or not isinstance(of, exp.Expr):
            return None
        bare = name not in ("Hour", "Minute") and isinstance(of, exp.TsOrDsToDate) and not of.args.get("format")
        return combined(name, [self.value(of.this if bare else of)])

    def _column(self, node: exp.Column) -> Value:
        names = [part.name.lower() for part in node.parts]
        if isinstance(node.this, exp.Star):
            return self._star(node.table.lower())
        for at in range(min(len(names) - 1, 3)):
            found = self.scope.of(names[at], names[at + 1])
            if found is not None:
                break
        else:
            at, found = -1, self._unqualified(names[0])
        for part in node.parts[at + 2 :]:
            found = self._field(found, part)
        return found

    def _unqualified(self, name: str) -> Value:
        for names in reversed(self.bound):
            if name in names:
                return names[name]
        alias = self.aliases.get(name)
        if alias is None:
            return self.scope.named(name)
        sure = name in self.scope.merged or any(name in source.columns for source in self.scope.sources.values())
        if self.keys or self.group:  # HAVING: what is grouped by, or is to be aggregated, is the source's
            found = self.scope.plain(name) if sure or self.inside else None
            sure = found is not None and (bool(self.inside) or found.hash in self.keys)
        if (sure and not self.first) or _mentions(alias, name):
            return self.scope.named(name)
        if name in self.done:
            return self.done[name]
        self.scope.run.step()
        others = {key: one for key, one in self.aliases.items() if key != name}
        return replace(self, aliases=others).value(alias)

    def _field(self, of: Value, part: exp.Expr) -> Value:
        if isinstance(part, exp.Identifier):
            return combined(f"field {part.name.lower()}", [of])
        return combined("dot", [of, self.value(part)])

    def _star(self, alias: str) -> Value:
        names, rests = self.scope.star(alias)
        named = [combined(f"named {name}", [value]) for name, value in names]
        return combined("star", [*named, *(rest.value for rest in rests)])

    def _query(self, node: exp.Expr) -> Value:
        inner = self.scope.run.query(node, self.scope.within())
        values = inner.every()
        reads = inner.reads.union(*(value.reads for value in values))
        volatile = inner.volatile or any(value.volatile for value in values)
        return Value(mix("query", inner.rows, *(value.hash for value in values)), reads, volatile, True)

    def _asked(self, node: exp.Expr, filters: bool) -> Value:
        """EXISTS, and IN over a query, which is an EXISTS where unknown counts as false."""
        inner: Relation = self.scope.run.query(
            node.this if isinstance(node, exp.Exists) else node.args["query"], self.scope.within()
        )
        if isinstance(node, exp.Exists):
            return Value(mix("exists", inner.rows), inner.reads, inner.volatile, True)
        given = node.this.unnest()
        asked = [self.value(part) for part in (given.expressions if isinstance(given, exp.Tuple) else [given])]
        held = inner.every()
        reads = inner.reads.union(*(value.reads for value in (*asked, *held)))
        volatile = inner.volatile or any(value.volatile for value in asked)
        if not filters or len(asked) != len(held):
            pairs = [value.hash for value in (*asked, *held)]
            return Value(mix("in", inner.rows, *pairs), reads, volatile, True)
        equal = frozenset(
            combined("EQ", sorted((one.tagged("outer 1"), other), key=lambda v: v.hash)).hash
            for one, other in zip(asked, held, strict=True)
        )
        narrowed = replace(inner, filters=inner.filters | equal)
        return Value(mix("exists", narrowed.rows), reads, volatile, True)

    def _cast(self, node: exp.Cast) -> Value:
        careful = "try_" if isinstance(node, exp.TryCast) and node.args.get("safe") else ""
        how = "".join(f" {key}" for key in ("format", "action", "default") if node.args.get(key))
        more = [self.value(node.args[key]) for key in ("format", "default") if isinstance(node.args.get(key), exp.Expr)]
        return combined(f"{careful}cast:{_kind(node.to)}{how}", [self.value(node.this), *more])

    def _coalesced(self, node: exp.Expr) -> list[Value]:
        parts: list[Value] = []
        for item in (node.this, *node.expressions):
            inner = item.unnest()
            parts += self._coalesced(inner) if isinstance(inner, exp.Coalesce) else [self.value(inner)]
        return parts

    def _concatenated(self, node: exp.Expr) -> list[Value]:
        node = node.unnest()
        if isinstance(node, exp.DPipe):
            return [*self._concatenated(node.this), *self._concatenated(node.expression)]
        if isinstance(node, exp.Concat):
            return [part for item in node.expressions for part in self._concatenated(item)]
        return [self.value(node)]

    def _count(self, node: exp.Count) -> Value:
        of = node.this
        if isinstance(of, exp.Star) or (isinstance(of, exp.Literal) and not node.expressions):
            return Value(mix("Count", "rows"), counted(self.scope))
        if isinstance(of, exp.Distinct):
            parts = sorted((self.value(part) for part in of.expressions), key=lambda value: value.hash)
            return combined("Count/distinct", parts)
        return combined("Count", [self.value(of), *(self.value(part) for part in node.expressions)])

    def _window(self, node: exp.Window) -> Value:
        self.inside += 1
        function = self.value(node.this)
        self.inside -= 1
        named = self.windows.get(node.alias.lower()) if node.args.get("alias") else None
        given = [one for one in (named, node) if one is not None]
        partition = {v.hash: v for one in given for v in map(self.value, one.args.get("partition_by") or [])}
        orders = [one.args["order"] for one in given if one.args.get("order")]
        order = [self.value(part) for each in orders for part in each.expressions]
        frames = [one.args["spec"] for one in given if one.args.get("spec")]
        frame = _frame(frames[-1]) if frames else _FRAME
        if frame == (
            "RANGE:UNBOUNDED PRECEDING:CURRENT ROW:" if order else "ROWS:UNBOUNDED PRECEDING:UNBOUNDED FOLLOWING:"
        ):
            frame = _FRAME
        label = f"window/{self.rows}/{len(partition)}/{frame}"
        return combined(label, [function, *(partition[key] for key in sorted(partition)), *order])

    def _lambda(self, node: exp.Lambda) -> Value:
        depth = len(self.bound)
        names = [part.name.lower() for part in node.expressions]
        self.bound.append({name: Value(mix("bound", depth, at)) for at, name in enumerate(names)})
        made = self.value(node.this)
        self.bound.pop()
        return combined(f"lambda {len(names)}", [made])

    def _struct(self, node: exp.Struct) -> Value:
        """A field's name is data: `to_json` writes it."""
        parts: list[Value] = []
        for at, member in enumerate(node.expressions):
            name, of = member.alias_or_name or f"col{at + 1}", member
            if isinstance(member, (exp.PropertyEQ, exp.Alias)):
                name = member.this.name if isinstance(member, exp.PropertyEQ) else member.alias
                of = member.expression if isinstance(member, exp.PropertyEQ) else member.this
            parts.append(combined(f"named {name}", [self.value(of)]))
        return combined("Struct", parts)

    def _generic(self, node: exp.Expr) -> Value:
        said = functions.called(node)
        label: list[str] = [
            functions.SYNONYMS.get(said) or functions.SAME.get(type(node).__name__, type(node).__name__)
        ]
        if functions.strange(node):
            self.scope.run.notes.append(("a function of which nothing is known", mix(said)))
        parts: list[Value] = []
        for key in sorted(node.args):
            if key in _SAID or (key == "this" and said in functions.SYNONYMS):
                continue
            for item in node.args[key] if isinstance(node.args[key], list) else [node.args[key]]:
                if isinstance(item, exp.Expr):
                    label.append("this" if said in functions.SYNONYMS else key)
                    timely = key == "unit" or said in ("date_trunc", "trunc")
                    parts.append(_unit(item) if timely and _is_said(item) else self.value(item))
                elif item is not None and item is not False and item != "":
                    label.append(f"{key}={str(item).lower() if said else item}")
        if functions.fresh(node) or (isinstance(node, exp.Placeholder) and not node.this):
            label.append(f"{self.scope.run.number(node)} of {self.rows}")
        whole = combined("/".join(label), parts)
        return replace(whole, volatile=True) if functions.is_volatile(node) else whole


def _mentions(node: exp.Expr, name: str) -> bool:
    return any(column.name.lower() == name and not column.table for column in node.find_all(exp.Column))


def _kind(node: exp.Expr) -> str:
    try:
        return kind(node.sql(DIALECT))
    except (ValueError, SqlglotError):
        return node.sql(DIALECT).lower()


def _is_said(node: exp.Expr) -> bool:
    return isinstance(node, exp.Var) or (isinstance(node, exp.Literal) and node.is_string)


def _unit(node: exp.Expr) -> Value:
    """A unit of time is no data: HOUR and 'hour' are one."""
    return Value(mix("unit", node.name.upper()))


def _frame(spec: exp.Expr) -> str:
    def edge(which: str) -> str:
        at, side = spec.args.get(which), spec.args.get(f"{which}_side") or ""
        said = at.sql(DIALECT) if isinstance(at, exp.Expr) else str(at or "CURRENT ROW")
        return f"{said} {side}".strip().upper()

    return f"{str(spec.args.get('kind')).upper()}:{edge('start')}:{edge('end')}:{spec.args.get('exclude') or ''}"
