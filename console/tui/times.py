"""Clock times and ages as the screens show them: UTC inside, the region's zone beside it. Pure."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from console.tui.format import DAY, HOUR, MINUTE

FRESH_SECONDS, PROMOTE_SECONDS, STALE_SECONDS = (
    10.0,
    30.0,
    60.0,
)  # maximum ages of a figure: then dimmed, refused for a promotion, shown with its time


@lru_cache(256)
def zone_of(name: str) -> tzinfo:
    """The zone; UTC where this machine does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def clock(at: float, zone: tzinfo = UTC) -> str:
    """`14:32:07Z`, or `14:32:07 CET`."""
    moment = datetime.fromtimestamp(at, zone)
    return moment.strftime("%H:%M:%SZ") if zone is UTC else moment.strftime("%H:%M:%S %Z")


def moment(at: float, now: float, zone: tzinfo = UTC) -> str:
    """`14:32`, with the weekday if it is another day within a week, else with the date."""
    then, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    if then.date() == today.date():
        return then.strftime("%H:%M")
    near = abs(then - today) < timedelta(days=6)
    return then.strftime("%a %H:%M") if near else then.strftime("%Y-%m-%d")


def between(low: float, high: float, now: float) -> str:
    """`15:45–16:25`, `Sat 00:03–00:05`, or one moment where both read the same."""
    first, last = moment(low, now), moment(high, now)
    if first == last:
        return first
    day, space, _ = first.partition(" ")
    return f"{first}–{last.removeprefix(day + space) if space else last}"


def as_of(measured: float, now: float) -> str:
    """` at 01:52` beside a figure that is older than a minute, else ""."""
    return f" at {moment(measured, now)}" if now - measured > STALE_SECONDS else ""


def age(seconds: float) -> str:
    """One or two units, without seconds beyond a minute: `2 s`, `40 m`, `2 h 10 m`, `1 d 19 h`."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m"
    if whole < DAY:
        minutes = whole % HOUR // MINUTE
        return f"{whole // HOUR} h {minutes:02} m" if minutes else f"{whole // HOUR} h"
    hours = whole % DAY // HOUR
    return f"{whole // DAY} d {hours} h" if hours else f"{whole // DAY} d"
