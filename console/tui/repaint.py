"""When the screens are redrawn: soon after a change, rarely for lag alone, and never at the cost of keys."""

REPAINT_SECONDS = 0.125  # minimum, however fast the views change
LAG_REPAINTS = 8  # factor by which repaints are rarer if only lag has changed: at rest agents report it every second
BACKOFF = 4  # pause before the next repaint, in durations of the last one: keys come first, on a slow machine too
LONGEST_PAUSE = 5.0  # seconds, however long the last repaint took: figures must not be stale for minutes
UNSEEN_SECONDS = 2.0  # after which a repaint counts as done although its screen was closed before it was shown


class RepaintSchedule:
    """Times are those of one monotonic clock, in seconds.

    seconds   shortest time between two repaints
    outdated  something other than lag has changed since the last repaint began
    began     when the last repaint began
    """

    def __init__(self, seconds: float = REPAINT_SECONDS) -> None:
        self.seconds = seconds
        self.outdated = False
        self.began = 0.0
        self._lag_outdated = False
        self._not_before = 0.0

    @property
    def settled(self) -> bool:
        """True if nothing waits to be drawn."""
        return not (self.outdated or self._lag_outdated)

    def outdate(self) -> None:
        """Everything is redrawn at the next repaint."""
        self.outdated = True

    def outdate_lag(self) -> None:
        """Only lag has changed: it can wait for a while."""
        self._lag_outdated = True

    def begin(self, now: float) -> bool:
        """True if a repaint is due: it has begun then, and what changes from now on is for the next one."""
        if self._lag_outdated and now >= self.began + LAG_REPAINTS * self.seconds:
            self.outdated = True
        if not self.outdated or now < self._not_before:
            return False
        self.outdated = self._lag_outdated = False
        self.began = now
        self._not_before = now + UNSEEN_SECONDS
        return True

    def end(self, now: float) -> None:
        """The repaint is on the screen."""
        self._not_before = now + min(BACKOFF * (now - self.began), LONGEST_PAUSE)
