"""Conditions and choices in one shape: NOT moved inwards, chains of AND and OR as sets, BETWEEN, IN and equality as one thing.

All of it holds in three-valued logic, and with NaN as Spark orders it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from console.planning.sql.meaning import functions
from console.planning.sql.relation import FALSE, TRUE, Value, combined, mix

_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip
_COMPARED: dict[type[exp.Expr], Callable[[int, int], bool]] = {
    exp.EQ: lambda a, b: a == b, exp.NEQ: lambda a, b: a != b, exp.LT: lambda a, b: a < b,
    exp.GTE: lambda a, b: a >= b, exp.GT: lambda a, b: a > b, exp.LTE: lambda a, b: a <= b,
}  # fmt: skip
_FOLDED: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: lambda a, b: a + b, exp.Sub: lambda a, b: a - b, exp.Mul: lambda a, b: a * b,
}  # fmt: skip
_INT = 1 << 31
CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.Between, exp.Boolean, exp.In, exp.Exists, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Membership:
    """`of` is one of `options`, all of one kind of literal; or is none of them."""

    of: Value
    kind: str
    options: frozenset[Value]
    negated: bool


@dataclass(slots=True)
class Truths:
    """value  evaluates what stands in a condition;  plain  a condition with no other spelling;  subquery  EXISTS, and IN
    over a query"""

    value: Callable[[exp.Expr], Value]
    plain: Callable[[exp.Expr], Value]
    subquery: Callable[[exp.Expr, bool], Value]
    memberships: dict[str, _Membership] = field(default_factory=dict)

    def conjuncts(self, node: exp.Expr) -> list[Value]:
        """The parts of a WHERE, none where it lets every row pass.

        `NOT IN` is one part a value, since a subquery's filters and those of the query around it are one set.
        """
        parts: dict[str, Value] = {}
        for part in self._merged(exp.And, self._parts(node, False, exp.And, filters=True)):
            member = self.memberships.get(part.hash)
            if member is None or not member.negated:
                parts[part.hash] = part
                continue
            for option in member.options:
                one = self._member(_Membership(member.of, member.kind, frozenset({option}), negated=True))
                parts[one.hash] = one
        return [parts[key] for key in sorted(parts)]

    def of(self, node: exp.Expr, negated: bool = False, filters: bool = False) -> Value:
        """A condition as a value. filters: false and unknown are the same to who asks"""
        node = node.unnest()
        match node:
            case exp.Not():
                return self.of(node.this, not negated)
            case exp.And() | exp.Or() | exp.Between() if (chain := _chain(node, negated)) is not None:
                merged = self._merged(chain, self._parts(node, negated, chain))
                return _one(chain, merged)
            case exp.Boolean():
                return TRUE if bool(node.this) != negated else FALSE
            case exp.In() | exp.Exists() if _asks_a_query(node):
                return _not(self.subquery(node, filters and not negated), negated)
            case exp.In() if node.expressions:
                return self._in(node, negated)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return _not(combined("IsNull", [self.value(node.this)]), negated)
            case exp.Anonymous() if functions.is_null_test(node):
                return _not(
                    combined("IsNull", [self.value(node.expressions[0])]),
                    negated != (functions.called(node) == "isnotnull"),
                )
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._null_safe(node, negated)
        if turned(node):
            return _not(self.plain(node), not negated)
        if type(node) in _NEGATED:
            return self._compared(_NEGATED[type(node)] if negated else type(node), node.this, node.expression)
        return _not(self.plain(node) if isinstance(node, CONDITIONS) else self.value(node), negated)

    def _parts(self, node: exp.Expr, negated: bool, chain: type[exp.Expr], filters: bool = False) -> list[Value]:
        """The members of a chain, however long: not by recursion."""
        found: list[Value] = []
        waiting = [(node, negated, filters)]
        while waiting:
            node, negated, filters = waiting.pop()
            node = node.unnest()
            if isinstance(node, exp.Not):
                waiting.append((node.this, not negated, False))
            elif _chain(node, negated) is not chain:
                found.append(self.of(node, negated, filters))
            elif isinstance(node, exp.Between):
                low, high = (exp.LT, exp.GT) if negated else (exp.GTE, exp.LTE)
                found.append(self._compared(low, node.this, node.args["low"]))
                found.append(self._compared(high, node.this, node.args["high"]))
            else:  # the left side first
                waiting += [(node.args[side], negated, filters) for side in ("expression", "this")]
        return found

    def _merged(self, chain: type[exp.Expr], parts: Iterable[Value]) -> list[Value]:
        """The members of a chain: none twice, constants gone, memberships of one value made one."""
        neutral, deciding = (TRUE, FALSE) if chain is exp.And else (FALSE, TRUE)
        kept: dict[str, Value] = {}
        sets: dict[tuple[str, str], _Membership] = {}
        for part in parts:
            member = self.memberships.get(part.hash)
            if part.hash == deciding.hash:
                return [deciding]
            if member is not None and member.negated == (chain is exp.And):
                before = sets.get((member.of.hash, member.kind))
                options = member.options | (before.options if before else frozenset())
                sets[member.of.hash, member.kind] = _Membership(member.of, member.kind, options, member.negated)
            elif part.hash != neutral.hash:
                kept[part.hash] = part
        for member in sets.values():
            one = self._member(member)
            kept[one.hash] = one
        return [kept[key] for key in sorted(kept)]

    def _in(self, node: exp.In, negated: bool) -> Value:
        kinds = {_literal_kind(option) for option in node.expressions}
        of = self.value(node.this)
        options = frozenset(self.value(option) for option in node.expressions)
        if len(kinds) == 1 and (kind := kinds.pop()):
            return self._member(_Membership(of, kind, options, negated))
        if len(options) == 1:
            return self._compared(exp.NEQ if negated else exp.EQ, node.this, node.expressions[0])
        return _not(combined("In", [of, *sorted(options, key=_hash)]), negated)

    def _member(self, member: _Membership) -> Value:
        found = _not(combined("In", [member.of, *sorted(member.options, key=_hash)]), member.negated)
        self.memberships[found.hash] = member
        return found

    def _compared(self, how: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> Value:
        a, b = integer(one), integer(other)
        if a is not None and b is not None:
            return TRUE if _COMPARED[how](a, b) else FALSE
        left, right = self.value(one), self.value(other)
        if how in (exp.EQ, exp.NEQ):
            for of, option, node in ((left, right, other), (right, left, one)):
                if kind := _literal_kind(node):
                    return self._member(_Membership(of, kind, frozenset({option}), how is exp.NEQ))
            return _not(combined("EQ", sorted((left, right), key=_hash)), how is exp.NEQ)
        if how in (exp.GT, exp.GTE):
            left, right = right, left
        return combined("LT" if how in (exp.LT, exp.GT) else "LTE", [left, right])

    def _null_safe(self, node: exp.Expr, negated: bool) -> Value:
        negated = negated != isinstance(node, exp.NullSafeNEQ)
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(other, exp.Null):
                return _not(combined("IsNull", [self.value(one)]), negated)
        both = sorted((self.value(node.this), self.value(node.expression)), key=_hash)
        return _not(combined("NullSafeEQ", both), negated)

    def choice(self, node: exp.Expr) -> Value:
        """CASE, IF, NVL2 and NULLIF, all as one; what picks the first that is not NULL is COALESCE."""
        branches, default = self._branches(node)
        if len(branches) == 1:
            condition, given = branches[0]
            for tested, otherwise in ((given, default), (default, given)):
                null = combined("IsNull", [tested])
                if condition.hash == (combined("Not", [null]) if tested is given else null).hash:
                    return combined("Coalesce", [tested, otherwise])
        return combined("Case", [*(part for branch in branches for part in branch), default])

    def _branches(self, node: exp.Expr) -> tuple[list[tuple[Value, Value]], Value]:
        """(condition, result) in order and the default, of every form of a choice."""
        null = Value(mix("Null"))
        match node:
            case exp.Nullif():
                made = self._compared(exp.EQ, node.this, node.expression)
                return [(made, null)], self.value(node.this)
            case exp.Nvl2():
                is_null = combined("IsNull", [self.value(node.this)])
                otherwise = node.args.get("false")
                chosen = self.value(node.args["true"])
                return [(combined("Not", [is_null]), chosen)], self.value(otherwise) if otherwise else null
            case exp.If():
                branches, default = [(self.of(node.this), self.value(node.args["true"]))], node.args.get("false")
            case _:
                branches, default = [], node.args.get("default")
                for branch in node.args["ifs"]:
                    of = node.this
                    test = self._compared(exp.EQ, of, branch.this) if of else self.of(branch.this)
                    branches.append((test, self.value(branch.args["true"])))
        if default is None:
            return branches, null
        default = default.unnest()
        if isinstance(default, (exp.Case, exp.If)):
            more, last = self._branches(default)
            return [*branches, *more], last
        return branches, self.value(default)


def turned(node: exp.Expr) -> bool:
    """NOT LIKE, which is NOT of a LIKE; not so of LIKE ALL and ANY, where it turns each of them."""
    if not isinstance(node, (exp.Like, exp.ILike)) or not node.args.get("negate"):
        return False
    return not isinstance(node.expression, (exp.Any, exp.All))


def _chain(node: exp.Expr, negated: bool) -> type[exp.Expr] | None:
    """Whether a condition is, once NOT has been moved into it, a chain of AND or of OR."""
    if isinstance(node, exp.Between):
        return None if node.args.get("symmetric") else (exp.Or if negated else exp.And)
    if isinstance(node, (exp.And, exp.Or)):
        return exp.And if isinstance(node, exp.And) != negated else exp.Or
    return None


def _one(chain: type[exp.Expr], parts: list[Value]) -> Value:
    if len(parts) == 1:
        return parts[0]
    return combined(chain.__name__, parts) if parts else (TRUE if chain is exp.And else FALSE)


def _not(value: Value, negated: bool) -> Value:
    return combined("Not", [value]) if negated else value


def _hash(value: Value) -> str:
    return value.hash


def _asks_a_query(node: exp.Expr) -> bool:
    return isinstance(node.this, exp.Query) if isinstance(node, exp.Exists) else bool(node.args.get("query"))


def _literal_kind(node: exp.Expr) -> str:
    """Literals of one kind are compared alike, one by one or in a list."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and node.is_string:
        return "string"
    return "integer" if integer(node) is not None else ""


def ordinal(node: exp.Expr) -> int | None:
    """The number of a column, as GROUP BY and ORDER BY take a literal."""
    node = node.unnest()
    return int(node.this) if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit() else None


def integer(node: exp.Expr) -> int | None:
    """An expression of INT literals as the INT it is."""
    node = node.unnest()
    found: int | None = None
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        found = int(node.this)
    elif isinstance(node, exp.Neg) and (inner := integer(node.this)) is not None:
        found = -inner
    elif type(node) in _FOLDED:
        sides = integer(node.args["this"]), integer(node.args["expression"])
        if sides[0] is not None and sides[1] is not None:
            found = _FOLDED[type(node)](sides[0], sides[1])
    return found if found is not None and -_INT <= found < _INT else None
