"""When the screens are redrawn: soon after a change, rarely for lag alone, and never at the cost of keys."""

REPAINT_SECONDS = 0.125  # minimum, however fast the views change
LAG_REPAINTS = 8  # factor by which repaints are rarer if only lag has changed: at rest agents report it every second
BACKOFF = 4  # pause before the next repaint, in durations of the last one: keys come first, on a slow machine too
LONGEST_PAUSE = 5.0  # seconds, however long the last repaint took: figures must not be stale for minutes
KEY_SECONDS = 0.5  # the longest that one key delays a repaint
KEYS_SECONDS = 1.0  # the longest that keys which follow each other delay it
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
        self._key_at: float | None = None  # of a key whose effect is not on the screen yet
        self._delayed_at: float | None = None  # when a key first delayed a repaint that was due

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

    def key(self, now: float) -> None:
        """The operator pressed a key or clicked: its effect is drawn before anything else."""
        self._key_at = now

    def key_painted(self) -> None:
        """The effect of the key or click is on the screen."""
        self._key_at = None

    def begin(self, now: float) -> bool:
        """True if a repaint is due: it has begun then, and what changes from now on is for the next one."""
        if self._lag_outdated and now >= self.began + LAG_REPAINTS * self.seconds:
            self.outdated = True
        if not self.outdated or now < self._not_before or self._waits_for_key(now):
            return False
        self.outdated = self._lag_outdated = False
        self._delayed_at = None
        self.began = now
        self._not_before = now + UNSEEN_SECONDS
        return True

    def _waits_for_key(self, now: float) -> bool:
        if self._key_at is None:
            return False
        if self._delayed_at is None:
            self._delayed_at = now
        return now < min(self._key_at + KEY_SECONDS, self._delayed_at + KEYS_SECONDS)

    def end(self, now: float) -> None:
        """The repaint is on the screen."""
        self._not_before = now + min(BACKOFF * (now - self.began), LONGEST_PAUSE)
