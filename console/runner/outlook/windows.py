"""Work that runs only in a throttle's hours: when it ends. Pure."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from console.model.plan import Plan
from console.model.policy import DAY_MINUTES, opens_in, share_of_day, within
from console.model.status import Status
from console.model.tuning import limits
from console.runner.outlook.between import Between

MOST_DAYS = 366


def after_work(now: float, seconds: Between, plan: Plan | None, status: Status) -> Between:
    """When this much work on history ends (seconds since 1970, UTC), in the hours of the rollout's throttle.

    plan  the accepted one; None if unknown: then no hours apply
    """
    throttle = limits(plan, status.tuning).throttle if plan else None
    if throttle is None or not throttle.hours:
        return Between(now + seconds.low, now + seconds.high)
    return Between(*(end_of_work(now, each, throttle.hours, throttle.zone) for each in (seconds.low, seconds.high)))


def end_of_work(now: float, seconds: float, hours: str, zone: str) -> float:
    """The end of this many seconds of work that runs only within `22:00-06:00` of a zone.

    A batch that is running when the hours end is finished, but not counted, so the real end may be a batch earlier.
    """
    if seconds <= 0:
        return now
    place, at, left = _zone(zone), now, seconds
    days = left / 86_400 / share_of_day(hours)
    if days > MOST_DAYS:
        return now + seconds / share_of_day(hours)
    while True:
        minute = _minute(at, place)
        if wait := opens_in(hours, minute):
            at = (at // 60 + wait) * 60
            continue
        closes = (at // 60 + _open_minutes(hours, minute)) * 60
        if at + left <= closes:
            return at + left
        left -= closes - at
        at = closes


def _open_minutes(hours: str, minute: int) -> int:
    """Minutes from one inside the hours to their end; a day where they never end."""
    return next((n for n in range(1, DAY_MINUTES) if not within(hours, (minute + n) % DAY_MINUTES)), DAY_MINUTES)


def _minute(at: float, zone: tzinfo) -> int:
    local = datetime.fromtimestamp(at, zone)
    return local.hour * 60 + local.minute


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a machine without time zone data: the region falls back in the same way
        return UTC
