"""Chains of AND and OR in their shortest form: ranges, absorption, common members, implied members.

All of it holds in three-valued logic, except with `filters`, where false and unknown are the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from console.planning.sql.relation import FALSE, TRUE, Relation, Value, built_of, combined, mix

Chain = type[exp.Expr]
_WHOLE = ("tinyint", "smallint", "int", "bigint")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_MAX_MEMBERS = 200  # members of a chain that are compared with each other
# types whose equal values are indistinguishable
_ONE_SPELLING = frozenset([*_WHOLE, "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary"])
# conditions with the same result for equal values
_COMPARES = frozenset(["EQ", "LT", "LTE", "In", "IsNull", "Not", "And", "Or", "NullSafeEQ"])
# operators that are NULL if an operand is, by label prefix
_STRICT = frozenset([
    "EQ", "LT", "LTE", "In", "Add", "Sub", "Mul", "Div", "Mod", "Neg", "IntDiv", "cast:", "Lower", "Upper", "Trim",
    "Length", "Abs", "Year", "Month", "Day", "Hour", "Minute", "Like", "ILike", "RegexpLike", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "BitwiseNot", "Concat", "TsOrDsToDate", "Floor", "Ceil", "Substring",
])  # fmt: skip


def merged(chain: Chain, parts: Iterable[Value], filters: bool = False) -> list[Value]:
    """The members of a chain, sorted, without duplicates, constants and implied members."""
    neutral, deciding = (TRUE, FALSE) if chain is exp.And else (FALSE, TRUE)
    kept = {one.hash: one for part in parts for one in _members(part, chain.__name__)}
    kept.pop(neutral.hash, None)
    if deciding.hash in kept:
        return [deciding]
    kept = _by_value(chain, kept, filters)
    if deciding.hash in kept:
        return [deciding]
    if len(kept) > _MAX_MEMBERS:
        return [kept[key] for key in sorted(kept)]
    kept = _absorbed(chain, kept)
    if filters and chain is exp.And:
        kept = _without_implied(kept)
    kept = _shared(chain, kept, filters)
    return [kept[key] for key in sorted(kept)]


def narrowed(rows: Relation, conditions: Iterable[Value]) -> Relation:
    """The rows that pass these conditions as well, without filters that others imply."""
    conditions = list(conditions)
    before = [value for value in rows.predicates if value.hash in rows.filters]
    constraints = split(merged(exp.And, [*before, *conditions], filters=True))
    narrower = rows.narrowed(conditions)
    others = rows.filters - {value.hash for value in before}
    filters = frozenset({FALSE.hash}) if FALSE in constraints else others | {value.hash for value in constraints}
    return replace(narrower, filters=filters, predicates=tuple(constraints))


def lifted(rows: Relation, keys: frozenset[str]) -> tuple[Relation, list[Value]]:
    """The rows without the filters on these values alone, and those filters, which keep or drop whole groups."""
    asked = (value for value in rows.predicates if value.hash in rows.filters and built_of(value, keys))
    of_keys = [value for value in asked if value.hash in keys or _is_one_key(value, keys)]
    without = rows.filters - {value.hash for value in of_keys}
    return replace(rows, filters=without), of_keys


def _is_one_key(value: Value, keys: frozenset[str]) -> bool:
    """Whether an expression has one result for all values that are one key: 0.0 and -0.0, 'a' and 'A' of a collation."""
    if value.hash in keys:
        type = value.type.lower()
        return type in _ONE_SPELLING or type.startswith("decimal")
    parts = value.parts or ()
    if value.kind not in _COMPARES or any(part.kind.startswith("Collate") for part in parts):
        return all(_is_one_key(part, keys) for part in parts)
    return all(part.hash in keys or _is_one_key(part, keys) for part in parts)


def split(parts: Iterable[Value]) -> list[Value]:
    """`NOT IN` as one conjunct per value, since a subquery's filters and those of its outer query are one set."""
    by_hash: dict[str, Value] = {}
    for part in parts:
        inner = part.parts[0] if part.kind == "Not" and part.parts else part
        if inner is part or inner.kind != "In" or not inner.parts or len(inner.parts) < 3:
            by_hash[part.hash] = part
            continue
        of, *options = inner.parts
        for option in options:
            single = negated(combined("In", [of, option]))
            by_hash[single.hash] = single
    return [by_hash[key] for key in sorted(by_hash)]


def one(chain: Chain, parts: list[Value]) -> Value:
    """A chain as a value."""
    if len(parts) == 1:
        return parts[0]
    return combined(chain.__name__, parts) if parts else (TRUE if chain is exp.And else FALSE)


def negated(value: Value) -> Value:
    if value.kind == "Not" and value.parts:
        return value.parts[0]
    return combined("Not", [value])


def _members(part: Value, kind: str) -> Iterable[Value]:
    return part.parts if part.kind == kind and part.parts else (part,)


@dataclass(slots=True, kw_only=True)
class _About:
    """The constraints of a chain on one value: options of IN and of NOT IN; bounds as (number, whether strict)."""

    of: Value
    options: dict[str, Value] | None = None
    others: dict[str, Value] | None = None
    low: tuple[int, bool] | None = None
    high: tuple[int, bool] | None = None


def _by_value(chain: Chain, kept: dict[str, Value], filters: bool) -> dict[str, Value]:
    """Bounds and memberships of one value, merged."""
    result: dict[str, Value] = {}
    about: dict[tuple[str, str], _About] = {}
    for part in kept.values():
        if (constraint := _constraint(part)) is None or (
            part.kind == "Not" if chain is exp.Or else _met_by_several(part)
        ):
            result[part.hash] = part
        else:
            key, this = constraint
            about[key] = _both(chain, about[key], this) if key in about else this
    for known in about.values():
        for part in _written(chain, known, filters):
            result[part.hash] = part
    return result


def _constraint(part: Value) -> tuple[tuple[str, str], _About] | None:
    """(the constrained value and the kind of literals, the constraint)"""
    inner = part.parts[0] if part.kind == "Not" and part.parts else part
    if inner.kind == "In" and inner.parts:
        of, *options = inner.parts
        kinds = {option.kind.partition(":")[0] for option in options}
        if len(kinds) != 1 or not kinds <= {"integer", "text"}:
            return None
        literals = {option.hash: option for option in options}
        about = _About(of=of, options=literals) if inner is part else _About(of=of, others=literals)
        return (of.hash, _key(of, kinds.pop(), part)), about
    if part.kind not in ("LT", "LTE") or not part.parts:
        return None
    left, right = part.parts
    strict = part.kind == "LT"
    if (number := number_of(left)) is not None and number_of(right) is None:
        return (right.hash, _key(right, "integer", part)), _About(of=right, low=(number, strict))
    if (number := number_of(right)) is not None and number_of(left) is None:
        return (left.hash, _key(left, "integer", part)), _About(of=left, high=(number, strict))
    return None


def _met_by_several(part: Value) -> bool:
    """Whether one value may equal two texts that differ: `d = '2024-01-01' AND d = '2024-1-1'` of a date."""
    if part.kind != "In" or not part.parts:
        return False
    of, *options = part.parts
    return of.type.lower() != "string" and any(option.kind.startswith("text:") for option in options)


def _key(of: Value, kind: str, part: Value) -> str:
    """Bounds and memberships are compared with each other if both certainly compare numbers."""
    return kind if of.type in NUMBERS else f"{kind} {'by bounds' if part.kind in ('LT', 'LTE') else 'by options'}"


def number_of(value: Value) -> int | None:
    return int(value.kind.partition(":")[2]) if value.kind.startswith("integer:") else None


def _both(chain: Chain, a: _About, b: _About) -> _About:
    strongest = chain is exp.And

    def pick(x: tuple[int, bool] | None, y: tuple[int, bool] | None, up: bool) -> tuple[int, bool] | None:
        if x is None or y is None:
            return x or y
        rank = (lambda e: (e[0], e[1])) if up else (lambda e: (e[0], not e[1]))
        return max(x, y, key=rank) if up == strongest else min(x, y, key=rank)

    def options(x: dict[str, Value] | None, y: dict[str, Value] | None, unite: bool) -> dict[str, Value] | None:
        if x is None or y is None:
            return x if y is None else y
        return {**x, **y} if unite else {key: x[key] for key in x if key in y}

    return _About(
        of=a.of,
        options=options(a.options, b.options, not strongest),
        others=options(a.others, b.others, strongest),
        low=pick(a.low, b.low, True),
        high=pick(a.high, b.high, False),
    )


def _within(number: int, about: _About) -> bool:
    low, high = about.low, about.high
    above = low is None or number > low[0] or (number == low[0] and not low[1])
    below = high is None or number < high[0] or (number == high[0] and not high[1])
    return above and below


def _written(chain: Chain, about: _About, filters: bool) -> list[Value]:
    """The constraints on a value in as few parts as possible."""
    if chain is exp.And:
        _narrowed(about)
        empty = about.options == {} or _contradict(about)
        if empty and filters:
            return [FALSE]
    else:
        _widened(about)
    parts = []
    if about.options is not None:
        chosen = [about.options[key] for key in sorted(about.options)]
        parts.append(combined("In", [about.of, *chosen]) if chosen else combined("In", [about.of]))
    if about.others:
        parts.append(negated(combined("In", [about.of, *(about.others[key] for key in sorted(about.others))])))
    if about.low is not None:
        parts.append(combined("LT" if about.low[1] else "LTE", [integer(about.low[0]), about.of]))
    if about.high is not None:
        parts.append(combined("LT" if about.high[1] else "LTE", [about.of, integer(about.high[0])]))
    return parts


def _narrowed(about: _About) -> None:
    """Options that also satisfy the other constraints replace them."""
    if about.low and about.high and about.low == about.high and not about.low[1] and about.options is None:
        only = integer(about.low[0])
        about.options = {only.hash: only}
    if about.options is not None:
        others = about.others or {}
        passing = {
            key: option
            for key, option in about.options.items()
            if key not in others and ((n := number_of(option)) is None or _within(n, about))
        }
        if passing or all(number_of(option) is not None for option in about.options.values()):
            about.options, about.others, about.low, about.high = passing, None, None, None
    elif about.others:
        about.others = {
            key: option for key, option in about.others.items() if (n := number_of(option)) is None or _within(n, about)
        }


def _widened(about: _About) -> None:
    """Options of IN that a bound admits anyway are dropped, and an option next to a bound moves it."""
    if about.options is not None and about.of.type in _WHOLE and about.low is not None and not about.low[1]:
        while (below := integer(about.low[0] - 1)).hash in about.options:
            about.low = (about.low[0] - 1, False)
            about.options = {key: option for key, option in about.options.items() if key != below.hash}
    if about.options is None or (about.low is not None and about.high is not None):
        return
    if about.low is None and about.high is None:
        return
    left = {k: o for k, o in about.options.items() if (n := number_of(o)) is None or not _within(n, about)}
    about.options = left or None


def _contradict(about: _About) -> bool:
    low, high = about.low, about.high
    if low is None or high is None:
        return False
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))


def constants(*values: Value) -> bool:
    """Whether all are literals of one kind that are equal only if written alike."""
    return {value.kind.partition(":")[0] for value in values} in ({"integer"}, {"text"})


def integer(number: int) -> Value:
    return Value(hash=mix("integer", number), type="int", kind=f"integer:{number}", parts=())


def text(written: str) -> Value:
    return Value(hash=mix("literal", True, written), type="string", kind=f"text:{written}", parts=())


def _absorbed(chain: Chain, kept: dict[str, Value]) -> dict[str, Value]:
    """`p AND (p OR q)` is p, and so is `p OR (p AND q)`."""
    other = "Or" if chain is exp.And else "And"
    sets = {key: {member.hash for member in _members(part, other)} for key, part in kept.items()}
    return {
        key: part for key, part in kept.items() if not any(sets[rival] < sets[key] for rival in kept if rival != key)
    }


def _shared(chain: Chain, kept: dict[str, Value], filters: bool) -> dict[str, Value]:
    """`(p AND q) OR (p AND r)` is `p AND (q OR r)`, and the other way round."""
    within = exp.Or if chain is exp.And else exp.And
    split = {key: part for key, part in kept.items() if part.kind == within.__name__}
    if len(split) < 2 or (chain is exp.Or and len(split) < len(kept)):
        return kept
    sets = {key: {member.hash: member for member in _members(part, within.__name__)} for key, part in split.items()}
    common = reduce(lambda a, b: {key: a[key] for key in a if key in b}, sets.values())
    if not common:
        return kept
    rests = [
        one(within, merged(within, [m for h, m in members.items() if h not in common], filters))
        for members in sets.values()
    ]
    whole = one(within, merged(within, [*common.values(), one(chain, merged(chain, rests, filters))], filters))
    left = {key: part for key, part in kept.items() if key not in split}
    return {**left, **{member.hash: member for member in _members(whole, chain.__name__)}}


def _without_implied(kept: dict[str, Value]) -> dict[str, Value]:
    """`x IS NOT NULL` is redundant beside a condition that no NULL satisfies."""
    needed = {key: needs(part) for key, part in kept.items()}
    remaining = {}
    for key, part in kept.items():
        others = frozenset().union(*(hashes for rival, hashes in needed.items() if rival != key))
        inner = part.parts[0] if part.kind == "Not" and part.parts else part
        if inner.kind == "IsNull" and inner.parts and inner.parts[0].hash in others:
            if inner is part:
                return {FALSE.hash: FALSE}
            continue
        remaining[key] = part
    return remaining


def needs(condition: Value, true: bool = True) -> frozenset[str]:
    """Values that are not NULL if a condition is true, or if it is false."""
    parts = condition.parts or ()
    match condition.kind:
        case "Not":
            return needs(parts[0], not true)
        case "And" | "Or":
            sets = [needs(part, true) for part in parts]
            every = (condition.kind == "And") == true
            return frozenset().union(*sets) if every else frozenset.intersection(*sets)
        case "IsNull":
            return frozenset() if true else known(parts[0])
    return known(condition)


def known(value: Value) -> frozenset[str]:
    """Values that are not NULL if this one is not."""
    hashes, waiting = set(), [value]
    while waiting:
        one_ = waiting.pop()
        hashes.add(one_.hash)
        label = one_.kind.partition("/")[0]
        if one_.parts and (label in _STRICT or label.startswith("cast:")):
            waiting += one_.parts[:1] if label == "In" else one_.parts  # an option may be NULL beside one that matches
    return frozenset(hashes)
