"""States of variances and correlations: whether two of them can come from the same values, combined in another order.

A state holds the number of values, their means, and sums of squares (and products) about the means. The number is
exact. The rounding error of the rest grows with the distance of the values from zero relative to their spread; two
states differ beyond that bound and beyond a billionth.

source  Chan, Golub & LeVeque, Algorithms for computing the sample variance, 1983: n·u·κ, with κ = sqrt(Σx² / Σ(x − mean)²)
"""

from typing import Any

from console.agent.recount.doubles import NEAR

SUFFIX = "__moments"  # suffix of such a state, as the planner names it
_UNIT = 2.0**-53
_MARGIN = 8.0  # factor on the bound's first term, for the algorithms involved


def of_two(type: str) -> bool:
    """Whether a state of this type describes pairs of values."""
    return "sxy" in type


def merged(states: Any, type: str) -> Any:
    """Column: the united state of a group."""
    from pyspark.sql.functions import aggregate, collect_list, expr

    fields = ("n", "mx", "my", "sx", "sy", "sxy") if of_two(type) else ("n", "mx", "sx")
    none = expr(f"CAST(struct({', '.join('0' for _ in fields)}) AS {type})")
    return aggregate(collect_list(states), none, lambda a, b: _united(a, b, fields))


def _united(a: Any, b: Any, fields: tuple[str, ...]) -> Any:
    from pyspark.sql.functions import struct, when

    n = a["n"] + b["n"]
    apart = {x: b[f"m{x}"] - a[f"m{x}"] for x in ("x", "y") if f"m{x}" in fields}
    parts = [n.alias("n")]
    for field in fields[1:]:
        if field.startswith("m"):
            parts.append((a[field] + apart[field[1]] * (b["n"] / n)).alias(field))
        else:
            cross = apart[field[1]] * apart[field[-1]] * (a["n"] * (b["n"] / n))
            parts.append((a[field] + b[field] + cross).alias(field))
    return when(a["n"] == 0, b).otherwise(struct(*parts))


def moments_differ(a: Any, b: Any, type: str) -> Any:
    """Column: two states cannot come from the same values. A state of no values counts as NULL."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, lit, sqrt, when

    empty = [coalesce(side["n"] == 0, lit(True)) for side in (a, b)]
    rounding = a["n"] * lit(_UNIT)
    squares = {x: greatest(a[f"s{x}"], b[f"s{x}"]) for x in ("x", "y") if x == "x" or of_two(type)}
    sizes = {x: squares[x] + a["n"] * a[f"m{x}"] * a[f"m{x}"] for x in squares}
    off = ~a["n"].eqNullSafe(b["n"])
    for x, about in squares.items():
        mean = greatest(magnitude(a[f"m{x}"]), magnitude(b[f"m{x}"])) * lit(NEAR)
        off = off | _apart(a[f"m{x}"], b[f"m{x}"], mean + rounding * lit(_MARGIN) * sqrt(sizes[x] / a["n"]))
        off = off | _apart(a[f"s{x}"], b[f"s{x}"], _bound(about, about, sizes[x], sizes[x], rounding))
    if of_two(type):
        bound = _bound(squares["x"], squares["y"], sizes["x"], sizes["y"], rounding)
        off = off | _apart(a["sxy"], b["sxy"], bound)
    return when(empty[0] | empty[1], ~empty[0].eqNullSafe(empty[1])).otherwise(off)


def _bound(sx: Any, sy: Any, size_x: Any, size_y: Any, rounding: Any) -> Any:
    from pyspark.sql.functions import lit, sqrt

    first = sqrt(size_x) * sqrt(sy) + sqrt(size_y) * sqrt(sx)
    second = rounding * rounding * lit(2 * _MARGIN) * sqrt(size_x) * sqrt(size_y)
    return lit(NEAR) * sqrt(sx) * sqrt(sy) + rounding * lit(_MARGIN) * first + second


def _apart(a: Any, b: Any, bound: Any) -> Any:
    """Column: two doubles differ by more than the bound; NaN and the infinities equal only themselves."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, lit

    endless = lit(float("inf"))
    finite = (magnitude(a) < endless) & (magnitude(b) < endless)
    return ~a.eqNullSafe(b) & ~coalesce(finite & (magnitude(a - b) <= bound), lit(False))
