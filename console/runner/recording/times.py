"""Times of a recording: read, typed and shown. Pure."""

import math
import re
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta

from console.errors import DataError, UsageError

_BY = re.compile(r"([+-])(\d{1,6})([smhd])")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?Z?")
LATEST = 253_402_300_799.0  # the last second that a clock can show, seconds since 1970, UTC
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_moment(typed: str, now: float, begins: float, ends: float) -> float:
    """`13:02`, `13:02:10`, `2026-11-23T13:02Z`, `+5m`, `-1h` (from now) as seconds since 1970, UTC.

    A clock time is that of the first day of the recording that has it.
    raises  UsageError for anything that is not a time of the recording
    """
    text = typed.strip()
    if by := _BY.fullmatch(text):
        wanted = now + int(by[2]) * _SECONDS[by[3]] * (1 if by[1] == "+" else -1)
        return max(begins, min(ends, wanted))
    clock = _CLOCK.fullmatch(text)
    wanted = _clock_time(clock, begins, ends) if clock else _date_and_time(text)
    # a second is the finest that is typed or shown: both ends belong to it
    if not int(begins) <= wanted <= ends + 1:
        raise UsageError(
            f"{text} is not in the recording, which begins {shown(begins)} and ends {shown(ends)}",
            hint="name a time between",
        )
    return max(begins, min(ends, wanted))


def _clock_time(clock: re.Match[str], begins: float, ends: float) -> float:
    hour, minute, second = (int(part or 0) for part in clock.groups())
    day = datetime.fromtimestamp(begins, UTC)
    try:
        first = day.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError:
        raise _no_time(clock[0]) from None
    if first.timestamp() < int(begins) and (first + timedelta(days=1)).timestamp() <= ends + 1:
        first += timedelta(days=1)
    return first.timestamp()


def _date_and_time(text: str) -> float:
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise _no_time(text) from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()


def _no_time(text: str) -> UsageError:
    return UsageError(f"{text!r:.60} is not a time", hint="13:02, 13:02:10, 2026-11-23T13:02Z, +5m or -1h")


def shown(at: float) -> str:
    """`2026-11-23T13:02:10Z`"""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(value: object) -> float:
    """raises  DataError for a value that is not a time on a clock"""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{value!r:.40} is not a time")
    if not 0 <= value <= LATEST:
        raise DataError(f"{value!r:.40} is not a time between 1970 and 9999")
    return float(value)


def check_figures(value: object) -> None:
    """raises  DataError for a figure in a record, at any depth, that no clock or column can show"""
    if isinstance(value, float):
        if not -LATEST <= value <= LATEST:
            raise DataError(f"{value!r:.40} is not a possible figure")
    elif isinstance(value, tuple):
        for item in value:
            check_figures(item)
    elif is_dataclass(value):
        for spec in fields(value):
            check_figures(getattr(value, spec.name))
