"""How the agent of a region follows its landing tables, as it reports it. Pure."""

from console.model.region import FOLLOW, Follow
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class Following:
    """The settings with which the agent was started; the region's file may say something else by now."""

    follow: Follow

    def text(self, declared: Follow) -> str:
        """`follows with 40 % of a core at most, rows readable within 5 s`; "" where nothing differs from the defaults.

        declared  the settings in the region's file
        """
        if declared != self.follow:
            return f"{_words(self.follow)}; from its agent's next start: {_words(declared)}"
        return _words(self.follow) if self.follow != FOLLOW else ""


def _words(follow: Follow) -> str:
    within = "" if follow.lag_seconds is None else f", rows readable within {follow.lag_seconds:g} s"
    return f"follows with {follow.share:.0%} of a core at most".replace("%", " %") + within
