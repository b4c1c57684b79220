"""A release on hold: the first stage of its cleanup, in which nobody feeds it and its files are still there. Pure."""

from console.model.sandbox import time_left
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRelease:
    """A release that was the previous one. It can be restored until its agent drops it.

    release  its id;  live  id of the release that was live then
    at, due  seconds since 1970, UTC: the beginning of the hold, and from when on it is dropped
    let_go   landing tables whose last copies are dropped as well
    """

    release: str
    live: str
    at: float
    due: float
    by: str
    let_go: tuple[str, ...] = ()

    def text(self, now: float) -> str:
        """`r1 is on hold, dropped in 23 h: until then console cleanup --restore brings it back`. now: seconds, UTC"""
        when = f"in {time_left(self.due - now)}" if self.due > now else "as soon as its agent runs"
        return f"{self.release} is on hold, dropped {when}: until then console cleanup --restore brings it back"
