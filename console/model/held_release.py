"""A release on hold: the first stage of its cleanup, in which it is no longer fed and its files still exist. Pure."""

from dataclasses import field

from console.model.codec import BESIDE
from console.model.sandbox import time_left
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRelease:
    """A release that was the previous one. It can be restored until its agent drops it.

    release  its id;  live  id of the release that was live then
    at, due  seconds since 1970, UTC: the beginning of the hold, and from when on it is dropped
    let_go   landing tables whose last copies are dropped as well
    dropping   its files are being deleted: it cannot be restored any more
    restoring  it becomes the previous release again: it is not dropped when it is due
    """

    release: str
    live: str
    at: float
    due: float
    by: str
    let_go: tuple[str, ...] = ()
    dropping: bool = field(default=False, metadata=BESIDE)
    restoring: bool = field(default=False, metadata=BESIDE)

    def over(self, now: float) -> bool:
        """Whether it is dropped rather than restored. now: seconds, UTC"""
        return self.dropping or (self.due <= now and not self.restoring)

    def text(self, now: float) -> str:
        """`r1 is on hold, dropped in 23 h: until then console cleanup --restore brings it back`. now: seconds, UTC"""
        if self.over(now):
            return f"{self.release} is on hold, dropped as soon as its agent runs"
        if self.restoring:
            return f"{self.release} is not restored yet: console cleanup --restore, or the next start of its agent, finishes it"
        when = f"in {time_left(self.due - now)}"
        return f"{self.release} is on hold, dropped {when}: until then console cleanup --restore brings it back"
