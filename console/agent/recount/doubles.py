"""Sums of doubles: which two may be the same values added up in another order.

Every order of adding n doubles ends within n·2⁻⁵³·Σ|x| of their exact sum, so the exact sum tells what is right where two
sums differ. It is computed exactly: values of a similar size are scaled to integers, and integers are summed.

source  Jeannerod & Rump, Improved error bounds for inner products in floating-point arithmetic, 2013: (n−1)·u·Σ|x|
"""

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

NEAR = 1e-9  # of the larger one: two sums no further apart are equal without looking at what they add up
UNIT = Fraction(1, 2**53)
_OVERFLOW = Fraction(sys.float_info.max)
# A double x with 2^(8k) ≤ |x| < 2^(8k+8) is an integer of at most 62 bits once it is scaled by 2^(54−8k); what is smaller than
# 2^-500 is scaled by 2^600 first, for the factor itself must be a double.
_WIDTH, _BITS, _LIFT = 8, 54, 600
_TINY = 2.0**-500
_LOWEST = -64
_SCALES = tuple(2.0 ** (_BITS - _WIDTH * k) for k in range(_LOWEST, 1024 // _WIDTH + 1))


def near(a: float | None, b: float | None) -> bool:
    """Whether two sums are equal as they stand. NaN and the infinities equal themselves only, as NULL does."""
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= NEAR * max(abs(a), abs(b))


def apart(a: Any, b: Any) -> Any:
    """The opposite of `near`, of two columns."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, lit

    endless = lit(float("inf"))
    finite = (magnitude(a) < endless) & (magnitude(b) < endless)  # to Spark NaN is larger than infinity
    close = finite & (magnitude(a - b) <= greatest(magnitude(a), magnitude(b)) * lit(NEAR))
    return ~a.eqNullSafe(b) & ~coalesce(close, lit(False))


@dataclass(frozen=True, slots=True)
class Added:
    """The values that a sum adds up. finite: their exact sum; size: that of their magnitudes; infinities and NaN apart."""

    n: int = 0
    finite: Fraction = Fraction(0)
    size: Fraction = Fraction(0)
    up: int = 0
    down: int = 0
    nan: int = 0

    def __add__(self, other: "Added") -> "Added":
        return Added(
            self.n + other.n,
            self.finite + other.finite,
            self.size + other.size,
            self.up + other.up,
            self.down + other.down,
            self.nan + other.nan,
        )

    def explains(self, told: float | None) -> bool | None:
        """Whether some order of adding up ends there; None where it may have left the range of a double on its way."""
        if told is None or not self.n:
            return told is None and not self.n
        if self.nan or (self.up and self.down):
            return math.isnan(told)
        if self.up or self.down:
            right = told == (math.inf if self.up else -math.inf)
        elif math.isfinite(told):
            right = abs(Fraction(told) - self.finite) <= self.n * UNIT * self.size
        else:
            right = False
        return right or (None if self.size > _OVERFLOW else False)


def added(values: Iterable[float | None]) -> Added:
    """What a few values add up to."""
    held = [value for value in values if value is not None]
    finite = [Fraction(value) for value in held if math.isfinite(value)]
    nan = sum(map(math.isnan, held))
    size = sum(map(abs, finite), Fraction(0))
    return Added(len(held), sum(finite, Fraction(0)), size, held.count(math.inf), held.count(-math.inf), nan)


def added_up(rows: Any, group: str, columns: Sequence[str]) -> dict[tuple[Any, str], Added]:
    """The same of any number of values, in Spark: (group, column) → what its values add up to.

    rows   a DataFrame with `group` and the columns, doubles, of few groups
    """
    from pyspark.sql.functions import array, col, count, explode, lit, struct
    from pyspark.sql.functions import sum as total

    each = explode(array(*(struct(lit(name).alias("name"), col(name).alias("x")) for name in columns)))
    values = rows.select(col(group).alias("g"), each.alias("e")).select("g", "e.name", "e.x").where("x IS NOT NULL")
    found = (
        values.select("g", "name", *_scaled(col("x")))
        .groupBy("g", "name", "special", "lifted", "bin")
        .agg(count(lit(1)).alias("n"), total("whole").alias("sum"), total("size").alias("size"))
    )
    made: defaultdict[tuple[Any, str], Added] = defaultdict(Added)
    for row in found.collect():
        made[(row["g"], row["name"])] += _of_bin(row)
    return dict(made)


def _scaled(x: Any) -> list[Any]:
    """Of one value: what it is if it is no finite number, its bin, and the integer that stands for it."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import array, floor, get, isnan, lit, log2, when

    plain = when((magnitude(x) < lit(float("inf"))) & (x != lit(0.0)), x)
    lifted = magnitude(plain) < lit(_TINY)
    z = when(lifted, plain * lit(2.0**_LIFT)).otherwise(plain)
    bin = floor(log2(magnitude(z)) / lit(float(_WIDTH))).cast("int")
    whole = (z * get(array(*map(lit, _SCALES)), bin - lit(_LOWEST))).cast("bigint").cast("decimal(20,0)")
    special = when(isnan(x), "nan").when(x == lit(float("inf")), "up").when(x == lit(float("-inf")), "down")
    return [
        special.alias("special"),
        lifted.alias("lifted"),
        bin.alias("bin"),
        whole.alias("whole"),
        magnitude(whole).alias("size"),
    ]


def _of_bin(row: Any) -> Added:
    n = int(row["n"])
    match row["special"]:
        case "nan":
            return Added(n, nan=n)
        case "up":
            return Added(n, up=n)
        case "down":
            return Added(n, down=n)
    if row["bin"] is None:  # zeros
        return Added(n)
    scale = Fraction(2) ** (_WIDTH * row["bin"] - _BITS - (_LIFT if row["lifted"] else 0))
    return Added(n, int(row["sum"]) * scale, int(row["size"]) * scale)
