"""Which sums of doubles count as equal: random values added up in random orders. The truth is Python's own fractions."""

import math
import os
import random
import struct
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from console.agent.recount.doubles import addends, nearly_equal
from console.agent.recount.sums import judge

pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=int(os.environ.get("DOUBLES", "100")))
LARGEST = Fraction(1.7976931348623157e308)


def of_bits(bits: int) -> float:
    result: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return result


HOSTILE = st.sampled_from(
    (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e16, -1e16, 1.0, 0.1, 1e308, -1e308)
)
PLAIN = st.floats(-1e9, 1e9)
ANY = st.one_of(PLAIN, st.builds(of_bits, st.integers(0, 2**64 - 1)), HOSTILE)
FINITE = st.one_of(PLAIN, st.sampled_from((0.1, 1e16, -1e16, 1.0, -1.0, 5e-324)))


def summed(values: list[float], rng: random.Random) -> float:
    """In a random order, by random parts, as commits and merges add up."""
    left = rng.sample(values, len(values))
    while len(left) > 1:
        a, b = left.pop(rng.randrange(len(left))), left.pop(rng.randrange(len(left)))
        left.append(a + b)
    return left[0]


def passes(values: list[float], old: float | None, new: float | None) -> bool:
    return nearly_equal(old, new) or judge(addends(values), old, new) == "same"


def bound(values: list[float]) -> Fraction:
    return len(values) * Fraction(1, 2**53) * sum((abs(Fraction(value)) for value in values), Fraction(0))


@EXAMPLES
@given(st.lists(ANY, min_size=1, max_size=40), st.randoms(use_true_random=False))
@example([1e16, 1.0, -1e16, 1.0], random.Random(1))
def test_the_same_values_in_another_order_always_pass(values: list[float], rng: random.Random) -> None:
    assume(sum((abs(Fraction(v)) for v in values if math.isfinite(v)), Fraction(0)) <= LARGEST)
    assert passes(values, summed(values, rng), summed(values, rng))


@EXAMPLES
@given(st.lists(ANY, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_an_order_that_leaves_the_range_of_a_double_is_never_called_a_difference(
    values: list[float], rng: random.Random
) -> None:
    old, new = summed(values, rng), summed(values, rng)
    assert nearly_equal(old, new) or judge(addends(values), old, new) != "differ"


@EXAMPLES
@given(st.lists(FINITE, min_size=1, max_size=40), FINITE, st.randoms(use_true_random=False))
def test_a_value_that_changed_by_more_than_the_bound_never_passes(
    values: list[float], other: float, rng: random.Random
) -> None:
    changed = [other, *values[1:]]
    old, new = summed(values, rng), summed(changed, rng)
    assume(abs(Fraction(math.fsum(values)) - Fraction(new)) > 2 * bound(values))
    assume(abs(Fraction(old) - Fraction(new)) > Fraction(1e-9) * max(abs(Fraction(old)), abs(Fraction(new))))
    assert judge(addends(values), old, new) == "differ"
    assert judge(addends(values), new, old) == "differ"
    assert not nearly_equal(old, new)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1000.0, 950.0, False),
        (math.inf, 5.0, False),
        (math.nan, 5.0, False),
        (math.inf, -math.inf, False),
        (math.nan, math.inf, False),
        (math.inf, math.inf, True),
        (math.nan, math.nan, True),
        (None, 0.0, False),
        (None, None, True),
        (0.0, -0.0, True),
        (1.0, 1.0 + 5e-10, True),
        (1.0, 1.0 + 3e-9, False),
        (0.0, 5e-324, False),
        (1e308, -1e308, False),
    ],
)
def test_only_what_is_within_a_billionth_is_equal_at_sight(a: float | None, b: float | None, same: bool) -> None:
    assert nearly_equal(a, b) is nearly_equal(b, a) is same


def test_values_that_cancel_are_one_sum_in_any_order_and_a_lost_one_is_not() -> None:
    rng = random.Random(7)
    values = [rng.uniform(-1e9, 1e9) for _ in range(10_000)]
    values += [-value for value in values] + [1e-3]
    old, new = summed(values, rng), summed(values, rng)
    assert not nearly_equal(old, new)
    assert judge(addends(values), old, new) == "same"
    assert judge(addends(values), old, summed(values[:-2], rng)) == "differ"


def test_where_neither_side_is_what_the_source_adds_up_to_nothing_is_reported() -> None:
    assert judge(addends([1.0, 2.0]), 1000.0, 950.0) == "unknown"
    assert judge(addends([]), 1000.0, 950.0) == "unknown"
    assert judge(addends([1000.0]), 1000.0, 950.0) == "differ"
    assert judge(addends([950.0]), 1000.0, 950.0) == "differ"
    assert judge(addends([1e308, 1e308, -1e308]), math.inf, 1e308) == "unknown"
    assert judge(addends([1.0, math.nan]), 1.0, math.nan) == "differ"
    assert judge(addends([1.0, math.inf, -math.inf]), math.nan, math.inf) == "differ"
