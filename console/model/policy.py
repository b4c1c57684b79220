"""The throttle of a region, and the retention of table versions that a waiting rollout depends on."""

import re
from collections.abc import Iterable

from console.record import dataclass

DAY_MINUTES = 24 * 60
FILE_HOURS, LOG_HOURS = 7 * 24.0, 30 * 24.0  # Delta's own defaults
_UNITS = {"year": 8760.0, "month": 720.0, "week": 168.0, "day": 24.0, "hour": 1.0, "minute": 1 / 60, "second": 1 / 3600}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """Conditions for the next batch to begin. Waiting is not an error and has no timeout.

    lag_seconds  maximum lag of live rows; None for no limit
    hours        `22:00-06:00` in `zone`, across midnight if the end is not later than the start; "" for always
    query        in a region: SQL as written; in a plan: compiled, over the live release's `tables`; must return true
    """

    lag_seconds: float | None = None
    hours: str = ""
    zone: str = "UTC"
    query: str = ""
    tables: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        return self.lag_seconds is not None or bool(self.hours or self.query)


NO_THROTTLE = Throttle()


def within(hours: str, minute: int) -> bool:
    """Whether a minute of the day, 0 … 1439, lies in `22:00-06:00`; the start is inclusive, the end exclusive."""
    first, last = _ends(hours)
    if first == last:
        return True
    return first <= minute < last if first < last else minute >= first or minute < last


def opens_in(hours: str, minute: int) -> int:
    """Minutes until the window opens; 0 inside it."""
    return 0 if within(hours, minute) else (_ends(hours)[0] - minute) % DAY_MINUTES


def share_of_day(hours: str) -> float:
    """The share of a day that a window covers, 0 < share ≤ 1; "" covers all of it."""
    if not hours:
        return 1.0
    first, last = _ends(hours)
    return ((last - first) % DAY_MINUTES or DAY_MINUTES) / DAY_MINUTES


def _ends(hours: str) -> tuple[int, int]:
    first, last = (int(text[:2]) * 60 + int(text[3:]) for text in hours.split("-"))
    return first, last


def kept_hours(properties: Iterable[tuple[str, str]]) -> float:
    """Hours for which a version of a table stays readable after it is no longer the newest.

    Removed files are retained for `delta.deletedFileRetentionDuration`, the log that names them for `delta.logRetentionDuration`.
    """
    settings = dict(properties)
    files = _interval(settings.get("delta.deletedFileRetentionDuration", ""), FILE_HOURS)
    return min(files, _interval(settings.get("delta.logRetentionDuration", ""), LOG_HOURS))


def _interval(text: str, default: float) -> float:
    """Delta's `interval 1 week`, `interval 36 hours`, `7 days`, in hours; the default if it does not parse."""
    parts = [(float(number), unit.lower()) for number, unit in _PART.findall(text)]
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return default
    return sum(number * _UNITS[unit] for number, unit in parts)
