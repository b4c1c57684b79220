"""Sums of doubles: whether two different results can come from the same values, added in another order.

Adding n doubles in any order yields a result within n·2⁻⁵³·Σ|x| of their exact sum, so the exact sum decides if two
results differ. It
is computed exactly: values of similar size are scaled to integers, and the integers are summed.

source  Jeannerod & Rump, Improved error bounds for inner products in floating-point arithmetic, 2013: (n−1)·u·Σ|x|
"""

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

NEAR = 1e-9  # relative to the larger one: sums this close count as equal without reading their addends
UNIT = Fraction(1, 2**53)
_OVERFLOW = Fraction(sys.float_info.max)
# A double x with 2^(8k) ≤ |x| < 2^(8k+8) is an integer of at most 62 bits once it is scaled by 2^(54−8k); values below
# 2^-500 are scaled by 2^600 first, since the factor itself must be a double.
_WIDTH, _BITS, _LIFT = 8, 54, 600
_TINY = 2.0**-500
_LOWEST = -64
_SCALES = tuple(2.0 ** (_BITS - _WIDTH * k) for k in range(_LOWEST, 1024 // _WIDTH + 1))


def nearly_equal(a: float | None, b: float | None) -> bool:
    """Whether two sums are equal up to `NEAR`. NaN, the infinities and NULL equal only themselves."""
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= NEAR * max(abs(a), abs(b))


def differ(a: Any, b: Any) -> Any:
    """Column: the opposite of `nearly_equal`, for two columns."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, lit

    endless = lit(float("inf"))
    finite = (magnitude(a) < endless) & (magnitude(b) < endless)  # to Spark NaN is larger than infinity
    close = finite & (magnitude(a - b) <= greatest(magnitude(a), magnitude(b)) * lit(NEAR))
    return ~a.eqNullSafe(b) & ~coalesce(close, lit(False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Addends:
    """The addends of a sum.

    n         how many;  up, down, nan  how many of them are +∞, -∞ and NaN
    finite    exact sum of the finite ones;  size  exact sum of their magnitudes
    """

    n: int = 0
    finite: Fraction = Fraction(0)
    size: Fraction = Fraction(0)
    up: int = 0
    down: int = 0
    nan: int = 0

    def __add__(self, other: "Addends") -> "Addends":
        return Addends(
            n=self.n + other.n,
            finite=self.finite + other.finite,
            size=self.size + other.size,
            up=self.up + other.up,
            down=self.down + other.down,
            nan=self.nan + other.nan,
        )

    def explains(self, total: float | None) -> bool | None:
        """Whether the total can result from some order of addition; None where an intermediate sum may have overflowed."""
        if total is None or not self.n:
            return total is None and not self.n
        if self.nan or (self.up and self.down):
            return math.isnan(total)
        if self.up or self.down:
            right = total == (math.inf if self.up else -math.inf)
        elif math.isfinite(total):
            right = abs(Fraction(total) - self.finite) <= self.n * UNIT * self.size
        else:
            right = False
        return right or (None if self.size > _OVERFLOW else False)


def addends(values: Iterable[float | None]) -> Addends:
    """The addends of a few values, in Python."""
    present = [value for value in values if value is not None]
    finite = [Fraction(value) for value in present if math.isfinite(value)]
    nan = sum(map(math.isnan, present))
    size = sum(map(abs, finite), Fraction(0))
    return Addends(
        n=len(present),
        finite=sum(finite, Fraction(0)),
        size=size,
        up=present.count(math.inf),
        down=present.count(-math.inf),
        nan=nan,
    )


def addends_by_group(rows: Any, group: str, columns: Sequence[str]) -> dict[tuple[Any, str], Addends]:
    """The addends of any number of values, in Spark: (group, column) → addends.

    rows   DataFrame with `group` and the columns, which are doubles; few groups
    """
    from pyspark.sql.functions import array, col, count, explode, lit, struct
    from pyspark.sql.functions import sum as total

    each = explode(array(*(struct(lit(name).alias("name"), col(name).alias("x")) for name in columns)))
    values = rows.select(col(group).alias("g"), each.alias("e")).select("g", "e.name", "e.x").where("x IS NOT NULL")
    bins = (
        values.select("g", "name", *_scaled(col("x")))
        .groupBy("g", "name", "special", "lifted", "bin")
        .agg(count(lit(1)).alias("n"), total("whole").alias("sum"), total("size").alias("size"))
    )
    addends: defaultdict[tuple[Any, str], Addends] = defaultdict(Addends)
    for row in bins.collect():
        addends[(row["g"], row["name"])] += _of_bin(row)
    return dict(addends)


def _scaled(x: Any) -> list[Any]:
    """Columns for one value: its name if it is not finite, its bin, and its integer in that bin's scale."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import array, floor, get, isnan, lit, log2, when

    finite = when((magnitude(x) < lit(float("inf"))) & (x != lit(0.0)), x)
    lifted = magnitude(finite) < lit(_TINY)
    scaled = when(lifted, finite * lit(2.0**_LIFT)).otherwise(finite)
    bin = floor(log2(magnitude(scaled)) / lit(float(_WIDTH))).cast("int")
    integer = (scaled * get(array(*map(lit, _SCALES)), bin - lit(_LOWEST))).cast("bigint").cast("decimal(20,0)")
    special = when(isnan(x), "nan").when(x == lit(float("inf")), "up").when(x == lit(float("-inf")), "down")
    return [
        special.alias("special"),
        lifted.alias("lifted"),
        bin.alias("bin"),
        integer.alias("whole"),
        magnitude(integer).alias("size"),
    ]


def _of_bin(row: Any) -> Addends:
    n = int(row["n"])
    match row["special"]:
        case "nan":
            return Addends(n=n, nan=n)
        case "up":
            return Addends(n=n, up=n)
        case "down":
            return Addends(n=n, down=n)
    if row["bin"] is None:  # zeros
        return Addends(n=n)
    scale = Fraction(2) ** (_WIDTH * row["bin"] - _BITS - (_LIFT if row["lifted"] else 0))
    return Addends(n=n, finite=int(row["sum"]) * scale, size=int(row["size"]) * scale)
