"""The outcome of a barrier in each of its regions, and the skew of their flips, as this console measured it. Pure."""

from collections.abc import Iterable, Sequence
from typing import Literal

from console.errors import ConsoleError
from console.record import dataclass

FlipEnd = Literal["promoted", "live", "refused", "held", "unknown"]
DONE: frozenset[FlipEnd] = frozenset(("promoted", "live"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFlip:
    """One region of a barrier. Its flip is the commit that makes the new release live.

    end      promoted: by this barrier · live: already, with the same change · refused: it has not flipped, for `error` ·
             held: it was ready, but another region was not, so nothing was sent · unknown: no answer; the region knows
    release, was  the release that is or would be live, and the one before
    version  of the release table's commit; -1 if unknown
    sent, known   the flip lies between the two: its promotion was sent, and this console learned that it is done;
                  seconds since 1970, UTC; 0 if this barrier did not promote it
    error    None for a region that is live
    """

    region: str
    end: FlipEnd
    release: str = ""
    was: str = ""
    version: int = -1
    sent: float = 0.0
    known: float = 0.0
    error: ConsoleError | None = None


@dataclass(frozen=True, slots=True)
class FlipSkew:
    """How far apart the first and the last flip may be, in seconds: at least, and at most."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Flips:
    """A barrier's regions, in the order of waves."""

    regions: tuple[RegionFlip, ...]

    @property
    def complete(self) -> bool:
        """Whether every region is live with the change."""
        return all(each.end in DONE for each in self.regions)

    @property
    def promoted(self) -> tuple[RegionFlip, ...]:
        return tuple(each for each in self.regions if each.end == "promoted")

    @property
    def left(self) -> tuple[RegionFlip, ...]:
        """Regions that are not live with the change, as far as this console knows."""
        return tuple(each for each in self.regions if each.end not in DONE)

    @property
    def split(self) -> bool:
        """Whether some regions are live with the change and others are not."""
        return bool(self.left) and len(self.left) < len(self.regions)

    @property
    def skew(self) -> FlipSkew | None:
        """Of the regions that this barrier promoted; None for fewer than two."""
        return skew_of([(each.sent, each.known) for each in self.promoted])


def skew_of(spans: Sequence[tuple[float, float]]) -> FlipSkew | None:
    """How far apart moments are that are known only by a span (from, to) for each, in seconds of one clock.

    least  the gap between the span that ends first and the one that begins last; 0 if all overlap
    most   from the beginning of one span to the end of another
    """
    if len(spans) < 2:
        return None
    least = max(begins for begins, _ in spans) - min(ends for _, ends in spans)
    most = max(ends - begins for i, (_, ends) in enumerate(spans) for j, (begins, _) in enumerate(spans) if i != j)
    return FlipSkew(max(0.0, least), max(0.0, most))


def skew_text(skew: FlipSkew) -> str:
    """`between 0.02 and 0.14 s apart`."""
    least, most = _seconds(skew.least), _seconds(skew.most)
    return f"at most {most} s apart" if not skew.least else f"between {least} and {most} s apart"


def flips_text(flips: Flips, skew: FlipSkew) -> str:
    """`3 regions flipped between 0.02 and 0.14 s apart, as measured by this console`."""
    return f"{len(flips.promoted)} regions flipped {skew_text(skew)}, as measured by this console"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def wave_name(waves: Iterable[int], names: Sequence[str]) -> str:
    """The text that confirms several regions: `wave 2`, or their names if they belong to several waves."""
    numbers = set(waves)
    return f"wave {numbers.pop()}" if len(numbers) == 1 else ",".join(names)
