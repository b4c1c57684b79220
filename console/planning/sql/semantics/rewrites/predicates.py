"""Conditions and choices in one shape: NOT moved inwards, chains of AND and OR as sets, BETWEEN, IN and equality as one thing.

All of it holds in three-valued logic, and with NaN as Spark orders it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from console.planning.sql.relation import FALSE, TRUE, Value, combined
from console.planning.sql.semantics import functions
from console.planning.sql.semantics.rewrites import simpler
from console.planning.sql.semantics.rewrites.numbers import INT, as_whole, integer, whole

_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip
_COMPARED: dict[type[exp.Expr], Callable[[int, int], bool]] = {
    exp.EQ: lambda a, b: a == b, exp.NEQ: lambda a, b: a != b, exp.LT: lambda a, b: a < b,
    exp.GTE: lambda a, b: a >= b, exp.GT: lambda a, b: a > b, exp.LTE: lambda a, b: a <= b,
}  # fmt: skip
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.Between, exp.Boolean, exp.In, exp.Exists, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
)  # fmt: skip


@dataclass(slots=True)
class Truths:
    """value  evaluates an operand of a condition;  plain  a condition with no other spelling;  subquery  EXISTS, and IN
    over a query;  counts  a comparison of a count that means any row, or none"""

    value: Callable[[exp.Expr], Value]
    plain: Callable[[exp.Expr], Value]
    subquery: Callable[[exp.Expr, bool], Value]
    counts: Callable[[exp.Expr], tuple[Value, bool] | None]

    def conjuncts(self, node: exp.Expr) -> list[Value]:
        """The conjuncts of a WHERE, none if every row passes.

        `NOT IN` is one conjunct per value, since a subquery's filters and those of its outer query are one set.
        """
        return simpler.split(simpler.merged(exp.And, self._parts(node, False, exp.And, filters=True), filters=True))

    def asked(self, node: exp.Expr) -> Value:
        """A condition of which only the truth matters (false and NULL are alike), as in CASE and FILTER."""
        return simpler.one(exp.And, self.conjuncts(node))

    def of(self, node: exp.Expr, negated: bool = False, filters: bool = False) -> Value:
        """A condition as a value. filters: false and unknown count as the same"""
        node = node.unnest()
        if (truth := self._of_truth(node, negated, filters)) is not None:
            return truth
        match node:
            case exp.Not():
                return self.of(node.this, not negated, filters)
            case exp.And() | exp.Or() | exp.Between() if (chain := _chain(node, negated)) is not None:
                return simpler.one(chain, simpler.merged(chain, self._parts(node, negated, chain, filters), filters))
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

    def _of_truth(self, node: exp.Expr, negated: bool, filters: bool) -> Value | None:
        """A condition within a test of its truth: `= true`, IS TRUE, `coalesce(…, false)`, a CASE of conditions."""
        if type(node) in _COMPARED and (asked := self.counts(node)) is not None:
            some, none = asked
            if filters and negated == none and some.parts:
                return some.parts[0]
            return _not(some, negated != none)
        match node:
            case exp.EQ() | exp.NEQ():
                for of, constant in ((node.this, node.expression), (node.expression, node.this)):
                    if isinstance(constant := constant.unnest(), exp.Boolean) and self.is_condition(of):
                        turns = bool(constant.this) == isinstance(node, exp.NEQ)
                        return self.of(of, negated != turns, filters)
            case exp.Is() if isinstance(node.expression, exp.Boolean) and self.is_condition(node.this):
                return self._true(node.this, not node.expression.this, negated, filters)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                negated = negated != isinstance(node, exp.NullSafeNEQ)
                for of, constant in ((node.this, node.expression), (node.expression, node.this)):
                    if isinstance(constant := constant.unnest(), exp.Boolean) and self.is_condition(of):
                        return self._true(of, not constant.this, negated, filters)
            case exp.Coalesce() if len(node.expressions) == 1 and isinstance(
                constant := node.expressions[0], exp.Boolean
            ):
                if self.is_condition(node.this):
                    turns = bool(constant.this)  # unknown counts as true, since its negation is not true
                    return self._true(node.this, turns, negated != turns, filters)
            case exp.Case() | exp.If() if filters and not negated:
                return self._chosen(node)
        return None

    def _true(self, node: exp.Expr, turned: bool, negated: bool, filters: bool) -> Value:
        """Whether a condition, or its negation, is true: never unknown itself."""
        if filters and not negated:
            return self.of(node, turned, filters=True)
        asked = self.asked(exp.Not(this=node.copy()) if turned else node)
        if asked.hash in (TRUE.hash, FALSE.hash):
            return TRUE if (asked.hash == TRUE.hash) != negated else FALSE
        return _not(combined("Coalesce", [asked, FALSE]), negated)

    def _chosen(self, node: exp.Expr) -> Value | None:
        """A CASE of conditions of which only the truth matters."""
        ifs = searched(node)
        default = node.args.get("false" if isinstance(node, exp.If) else "default")
        if len(ifs) != 1:
            return None
        test, given = ifs[0].this, ifs[0].args["true"].unnest()
        default = default.unnest() if default is not None else exp.Null()
        never = isinstance(default, exp.Null) or (isinstance(default, exp.Boolean) and not default.this)
        if never and self.is_condition(given):
            both = [self.of(test, filters=True), self.of(given, filters=True)]
            return simpler.one(exp.And, simpler.merged(exp.And, both, filters=True))
        if isinstance(given, exp.Boolean) and given.this and self.is_condition(default):
            either = [self.of(test, filters=True), self.of(default, filters=True)]
            return simpler.one(exp.Or, simpler.merged(exp.Or, either, filters=True))
        return None

    def is_condition(self, node: exp.Expr) -> bool:
        """Whether an expression is certainly a boolean."""
        node = node.unnest()
        if isinstance(node, (*CONDITIONS, exp.Like, exp.ILike, exp.RegexpLike)) or functions.is_null_test(node):
            return True
        if isinstance(node, (exp.LogicalOr, exp.LogicalAnd)):
            return True
        if isinstance(node, exp.Coalesce):
            return all(self.is_condition(part) for part in (node.this, *node.expressions))
        if isinstance(node, exp.Column):
            return self.value(node).type == "boolean"
        return False

    def _parts(self, node: exp.Expr, negated: bool, chain: type[exp.Expr], filters: bool = False) -> list[Value]:
        """The members of a chain, however long: not by recursion."""
        members: list[Value] = []
        waiting = [(node, negated, filters)]
        while waiting:
            node, negated, filters = waiting.pop()
            node = node.unnest()
            if isinstance(node, exp.Not):
                waiting.append((node.this, not negated, filters))
            elif _chain(node, negated) is not chain:
                members.append(self.of(node, negated, filters))
            elif isinstance(node, exp.Between):
                low, high = (exp.LT, exp.GT) if negated else (exp.GTE, exp.LTE)
                members.append(self._compared(low, node.this, node.args["low"]))
                members.append(self._compared(high, node.this, node.args["high"]))
            else:  # the left side first
                waiting += [(node.args[side], negated, filters) for side in ("expression", "this")]
        return members

    def _in(self, node: exp.In, negated: bool) -> Value:
        listed = [whole(option) for option in node.expressions]
        kinds = {_literal_kind(option) for option in listed}
        of = self.value(node.this)
        options = frozenset(self.value(option) for option in listed)
        if simpler.constants(of, *options):
            return TRUE if (of in options) != negated else FALSE
        if len(kinds) == 1 and kinds.pop():
            return _not(combined("In", [of, *sorted(options, key=_hash)]), negated)
        if len(options) == 1:
            return self._compared(exp.NEQ if negated else exp.EQ, node.this, node.expressions[0])
        return _not(combined("In", [of, *sorted(options, key=_hash)]), negated)

    def _compared(self, how: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> Value:
        one, other = whole(one), whole(other)
        a, b = integer(one), integer(other)
        if a is not None and b is not None:
            return TRUE if _COMPARED[how](a, b) else FALSE
        left, right = self.value(one), self.value(other)
        one, other = as_whole(one, right), as_whole(other, left)
        if isinstance(one, exp.Literal) or isinstance(other, exp.Literal):
            left, right = self.value(one), self.value(other)
        if how in (exp.EQ, exp.NEQ):
            if simpler.constants(left, right):
                return TRUE if (left.hash == right.hash) == (how is exp.EQ) else FALSE
            for of, option, node in ((left, right, other), (right, left, one)):
                if _literal_kind(node):
                    return _not(combined("In", [of, option]), how is exp.NEQ)
            return _not(combined("EQ", sorted((left, right), key=_hash)), how is exp.NEQ)
        if how in (exp.GT, exp.GTE):
            left, right = right, left
        return _bounded(how in (exp.LT, exp.GT), left, right)

    def _null_safe(self, node: exp.Expr, negated: bool) -> Value:
        negated = negated != isinstance(node, exp.NullSafeNEQ)
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(other, exp.Null):
                return _not(combined("IsNull", [self.value(one)]), negated)
        both = sorted((self.value(node.this), self.value(node.expression)), key=_hash)
        return _not(combined("NullSafeEQ", both), negated)

    def choice(self, node: exp.Expr) -> Value:
        """CASE, IF, NVL2 and NULLIF in one form; a choice of the first value that is not NULL is a COALESCE."""
        branches, default = self._branches(node)
        branches, default = _decided(branches, default)
        if not branches:
            return default
        if len(branches) == 1:
            condition, given = branches[0]
            if (given.hash, default.hash) in ((TRUE.hash, FALSE.hash), (FALSE.hash, TRUE.hash)):
                return _not(combined("Coalesce", [condition, FALSE]), given.hash == FALSE.hash)
            for tested, otherwise in ((given, default), (default, given)):
                null = combined("IsNull", [tested])
                if condition.hash == (combined("Not", [null]) if tested is given else null).hash:
                    return combined("Coalesce", [tested, otherwise])
        return combined("Case", [*(part for branch in branches for part in branch), default])

    def _branches(self, node: exp.Expr) -> tuple[list[tuple[Value, Value]], Value]:
        """(condition, result) in order and the default, of every form of a choice."""
        null = combined("Null", [])
        match node:
            case exp.Nullif():
                equal = self._compared(exp.EQ, node.this, node.expression)
                return [(equal, null)], self.value(node.this)
            case exp.Nvl2():
                is_null = combined("IsNull", [self.value(node.this)])
                otherwise = node.args.get("false")
                chosen = self.value(node.args["true"])
                return [(combined("Not", [is_null]), chosen)], self.value(otherwise) if otherwise else null
            case exp.If():
                branches, default = (
                    [(self.asked(node.this), self.value(node.args["true"]))],
                    node.args.get("false"),
                )
            case _:
                branches, default = [], node.args.get("default")
                for branch in searched(node):
                    branches.append((self.asked(branch.this), self.value(branch.args["true"])))
        if default is None:
            return branches, null
        default = default.unnest()
        if isinstance(default, (exp.Case, exp.If)):
            more, last = self._branches(default)
            return [*branches, *more], last
        return branches, self.value(default)


def searched(node: exp.Expr) -> list[exp.If]:
    """The branches of a choice; those of `CASE x WHEN y` as comparisons."""
    if isinstance(node, exp.If):
        return [node]
    branches: list[exp.If] = node.args["ifs"]
    if node.this is None:
        return branches
    return [
        exp.If(this=exp.EQ(this=node.this.copy(), expression=one.this.copy()), true=one.args["true"].copy())
        for one in branches
    ]


def turned(node: exp.Expr) -> bool:
    """NOT LIKE, which is NOT of a LIKE, except for LIKE ALL and ANY, where NOT applies to each pattern."""
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


def _not(value: Value, negated: bool) -> Value:
    return simpler.negated(value) if negated else value


def _decided(branches: list[tuple[Value, Value]], default: Value) -> tuple[list[tuple[Value, Value]], Value]:
    """Without branches that are never taken, if all have one type, since the type of the whole depends on all branches."""
    types = {value.type for _, value in branches} | {default.type}
    if len(types) != 1 or "" in types:
        return branches, default
    kept: list[tuple[Value, Value]] = []
    for condition, given in branches:
        if condition.hash == TRUE.hash:
            return kept, given
        if condition.hash != FALSE.hash:
            kept.append((condition, given))
    return kept, default


def _bounded(strict: bool, left: Value, right: Value) -> Value:
    """Integer bounds in one form: an integer greater than 1 is at least 2."""
    low, high = simpler.number_of(left), simpler.number_of(right)
    if strict and low is not None and right.type in _INTEGERS and low + 1 < INT:
        return combined("LTE", [simpler.integer(low + 1), right])
    if strict and high is not None and left.type in _INTEGERS and high - 1 >= -INT:
        return combined("LTE", [left, simpler.integer(high - 1)])
    return combined("LT" if strict else "LTE", [left, right])


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
