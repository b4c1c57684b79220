"""How the agent of a region follows its landing tables, as it reports it. Pure."""

from console.model.region import FOLLOW, Follow
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class Following:
    """The settings with which the agent was started; the region's file may say something else by now.

    asleep_since  seconds since 1970, UTC: since when it has no Spark; 0 while it has one
    """

    follow: Follow
    asleep_since: float = 0.0

    def text(self, declared: Follow) -> str:
        """`follows with 40 % of a core at most, rows readable within 5 s`; "" where nothing differs from the defaults.

        declared  the settings in the region's file
        """
        if declared != self.follow:
            return f"{_words(self.follow)}; from its agent's next start: {_words(declared)}"
        return _words(self.follow) if self.follow != FOLLOW else ""


def _words(follow: Follow) -> str:
    parts = [f"follows with {follow.share * 100:g} % of a core at most"]
    parts += [] if follow.lag_seconds is None else [f"rows readable within {follow.lag_seconds:g} s"]
    if follow.idle_seconds != FOLLOW.idle_seconds:
        parts += [
            "never ends Spark" if follow.idle_seconds is None else f"ends Spark after {follow.idle_seconds:g} s at rest"
        ]
    return ", ".join(parts)
