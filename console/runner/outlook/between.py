"""Intervals of an estimate, and their sums. Pure."""

from collections.abc import Iterable

from console.record import dataclass


@dataclass(frozen=True, slots=True)
class Between:
    """An interval: low ≤ high, of one unit."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def times(self, factor: float) -> "Between":
        return Between(self.low * factor, self.high * factor)

    def scaled(self, by: "Between") -> "Between":
        """Times a factor that is itself uncertain."""
        return Between(self.low * by.low, self.high * by.high)

    def less(self, done: float) -> "Between":
        """The rest after a part; of an estimate that was too low, a part of its width."""
        width = self.high - self.low
        return Between(max(0.0, self.low - done), max(0.0, self.high - done, width / 4))


NOTHING = Between(0.0, 0.0)


def total(parts: Iterable[Between]) -> Between:
    """The sum of independent estimates: their errors cancel in part, so that its width is the root of the sum of squares."""
    kept = tuple(parts)
    middle = sum(part.middle for part in kept)
    half = sum(((part.high - part.low) / 2) ** 2 for part in kept) ** 0.5
    return Between(middle - half, middle + half)
