"""GROUP BY: the grouping values, and the sets of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from console.planning.sql.relation import Value, mix
from console.planning.sql.semantics import functions
from console.planning.sql.semantics.rewrites.numbers import ordinal
from console.planning.sql.semantics.scope import Unclear
from console.planning.sql.semantics.values import Values

_MOST = 10  # columns of a CUBE
Sets = list[frozenset[str]]


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """values: by their hash, in order; sets: the values that each result row is grouped by"""

    values: dict[str, Value]
    sets: tuple[frozenset[str], ...]

    @property
    def plain(self) -> bool:
        return len(self.sets) == 1

    @property
    def hash(self) -> str:
        return mix(*sorted(mix(*sorted(one)) for one in self.sets))


def grouping(group: exp.Expr | None, projections: Sequence[exp.Expr], values: Values) -> GroupingSets:
    """The grouping of a SELECT that aggregates; one empty set where it has no GROUP BY."""
    reader = _Reader(values, list(projections), {})
    if group is None:
        return GroupingSets({}, (frozenset(),))
    if group.args.get("all"):
        if len([key for key, value in group.args.items() if value]) > 1:
            raise Unclear("GROUP BY ALL beside other keys")
        every = frozenset(key for part in projections for key in reader.outside(part))
        return GroupingSets(reader.keys, (every,))
    if group.args.get("totals"):
        raise Unclear("WITH TOTALS is not understood")
    factors = [reader.sets(part) for part in group.expressions]
    for key in ("grouping_sets", "rollup", "cube"):
        for one in group.args.get(key) or ():
            if key == "grouping_sets":
                factors = [reader.sets(one)]
            elif isinstance(one, exp.Expr) and not one.expressions:
                plain = [next(iter(factor)) for factor in factors if len(factor) == 1]
                factors = [_rolled(plain) if key == "rollup" else _cubed(plain)]
            else:
                factors.append(reader.sets(one))
    sets = [frozenset().union(*chosen) for chosen in product(*factors)]
    return GroupingSets(reader.keys, tuple(sets))


@dataclass(slots=True)
class _Reader:
    values: Values
    projections: list[exp.Expr]
    keys: dict[str, Value]

    def sets(self, node: exp.Expr) -> Sets:
        match node:
            case exp.Rollup():
                return _rolled([self._one(part) for part in node.expressions])
            case exp.Cube():
                return _cubed([self._one(part) for part in node.expressions])
            case exp.GroupingSets():
                return [one for part in node.expressions for one in self.sets(part)]
        return [self._one(node)]

    def _one(self, node: exp.Expr) -> frozenset[str]:
        if isinstance(node, exp.Tuple):
            return frozenset().union(*(self._one(part) for part in node.expressions))
        at = ordinal(node)
        if at is not None:
            if not 1 <= at <= len(self.projections):
                raise Unclear(f"GROUP BY {at}: there is no such column")
            node = self.projections[at - 1].unalias()
            if isinstance(node, exp.Star) or any(part.is_star for part in self.projections[:at]):
                raise Unclear("GROUP BY a number counts over a star")
        value = self.values.value(node)
        self.keys[value.hash] = value
        return frozenset({value.hash})

    def outside(self, part: exp.Expr) -> list[str]:
        """The columns of a projection outside of its aggregates; all of its columns if it has none."""
        if part.is_star:
            scope, alias = self.values.scope, part.args.get("table")
            named, rests = scope.star(alias.name.lower() if alias else "")
            values = [*(value for _, value in named), *(rest.value for rest in rests)]
        elif functions.aggregates(part):
            within = {id(n) for call in functions.aggregate_calls(part) for n in call.walk()}
            values = [self.values.value(c) for c in part.find_all(exp.Column) if id(c) not in within]
        else:
            values = [self.values.value(part)]
        self.keys |= {value.hash: value for value in values}
        return [value.hash for value in values]


def _rolled(parts: list[frozenset[str]]) -> Sets:
    return [frozenset().union(*parts[:size]) for size in range(len(parts), -1, -1)]


def _cubed(parts: list[frozenset[str]]) -> Sets:
    if len(parts) > _MOST:
        raise Unclear(f"CUBE of more than {_MOST} columns")
    return [frozenset().union(*some) for size in range(len(parts) + 1) for some in combinations(parts, size)]
