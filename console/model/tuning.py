"""Limits of a rollout that are changed while it runs: values, ranges, and their merge with the accepted plan. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from console.errors import DataError
from console.model.plan import Plan
from console.model.policy import Throttle
from console.record import dataclass

KNOBS = ("target_seconds", "rows", "bytes", "lag", "hours", "query")
NO_LIMIT = "none"
_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")
_RANGES: Mapping[str, tuple[float, float]] = {
    "target_seconds": (1.0, 3600.0),
    "rows": (1, 1 << 40),
    "bytes": (1 << 20, 1 << 45),
    "lag": (1.0, 7 * 86_400.0),
}
_QUERY_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Changes of an accepted plan's limits; None: unchanged.

    target_seconds  target duration of one batch
    rows, bytes     limits of one batch; -1 for no limit
    lag             seconds of lag above which batches wait; -1 for no limit
    hours, zone     `22:00-06:00` in a zone, "" for always
    query, tables   compiled, over tables of the live release; "" for none
    """

    target_seconds: float | None = None
    rows: int | None = None
    bytes: int | None = None
    lag: float | None = None
    hours: str | None = None
    zone: str | None = None
    query: str | None = None
    tables: tuple[str, ...] | None = None

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the changed limits."""
        return tuple(name for name in KNOBS if getattr(self, name) is not None)


AS_PLANNED = Tuning()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The rollout's limits were changed. tuning: all differences from the plan from now on"""

    by: str
    host: str
    tuning: Tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The limits of the next batch; None for no limit."""

    target_seconds: float
    rows: int | None
    bytes: int | None
    throttle: Throttle


def limits(plan: Plan, tuning: Tuning) -> BatchLimits:
    """The plan's limits with all changes since."""
    throttle = plan.throttle
    if tuning.lag is not None:
        throttle = replace(throttle, lag_seconds=None if tuning.lag < 0 else tuning.lag)
    if tuning.hours is not None:
        throttle = replace(throttle, hours=tuning.hours, zone=tuning.zone or throttle.zone)
    if tuning.query is not None:
        throttle = replace(throttle, query=tuning.query, tables=tuning.tables or ())
    return BatchLimits(
        target_seconds=plan.target_seconds if tuning.target_seconds is None else tuning.target_seconds,
        rows=_limit(plan.rows_limit, tuning.rows),
        bytes=_limit(plan.bytes_limit, tuning.bytes),
        throttle=throttle,
    )


def _limit(planned: int | None, tuned: int | None) -> int | None:
    return planned if tuned is None else None if tuned < 0 else tuned


def merged(before: Tuning, change: Tuning) -> Tuning:
    """Both changes; the later one takes precedence."""
    given = {field.name: value for field in fields(change) if (value := getattr(change, field.name)) is not None}
    return replace(before, **given)


def check_ranges(tuning: Tuning) -> None:
    """raises  DataError E_RANGE naming the first value that is out of its range, and the range"""
    for name, (least, most) in _RANGES.items():
        value = getattr(tuning, name)
        if value is None or (value == -1 and name != "target_seconds"):
            continue
        if not least <= value <= most:
            raise _out(name, f"{value:g}", f"{least:g} … {most:g}")
    if tuning.hours and not _HOURS.fullmatch(tuning.hours):
        raise _out("hours", tuning.hours, "a window such as 22:00-06:00")
    if tuning.query and len(tuning.query) > _QUERY_CHARACTERS:
        raise _out("query", f"of {len(tuning.query):,} characters", f"at most {_QUERY_CHARACTERS:,}")


def _out(name: str, value: str, expected: str) -> DataError:
    hint = f"{name} takes {expected}" + ("" if name == "target_seconds" else f", or {NO_LIMIT}")
    return DataError(f"{name}={value:.60}: expected {expected}", hint=hint, code="E_RANGE")


def parse_settings(words: Iterable[str]) -> Tuning:
    """Parse settings as typed: `rows=60000`, `lag=none`.

    raises  DataError for a word that is not a setting, a repeated one, and a value out of its range
    """
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in given:
            reason = "is given twice" if equals else "is not a setting"
            raise DataError(f"{word!r:.60} {reason}", hint=f"NAME=VALUE, of {', '.join(KNOBS)}")
        given[name] = value
    return parse(given)


def parse(words: Mapping[str, str]) -> Tuning:
    """A change as typed: `target_seconds=20`, `rows=none`. The query is kept as written, and compiled later.

    raises  DataError E_RANGE for an unknown name, an invalid value, or one out of its range
    """
    given: dict[str, Any] = {}
    for name, text in words.items():
        if name not in KNOBS:
            raise DataError(f"{name!r:.40} cannot be tuned", hint=f"one of {', '.join(KNOBS)}", code="E_RANGE")
        given[name] = _parsed(name, text.strip())
    tuning = Tuning(**given)
    check_ranges(tuning)
    return tuning


def _parsed(name: str, text: str) -> float | int | str:
    if name in ("hours", "query"):
        return "" if text == NO_LIMIT else text
    if text == NO_LIMIT and name != "target_seconds":
        return -1
    try:
        number = int(text.replace("_", "")) if name in ("rows", "bytes") else float(text.removesuffix("s").strip())
    except ValueError:
        number = -1
    if number < 0:
        raise _out(name, text, "a number")
    return number


def described(before: BatchLimits, after: BatchLimits) -> str:
    """`target_seconds 60 → 20, lag none → 30`; "" without differences. Stored, and compared by `verify`: the wording is fixed"""
    pairs = ((name, _shown(before, name), _shown(after, name)) for name in KNOBS)
    return ", ".join(f"{name} {was} → {now}" for name, was, now in pairs if was != now)


def tuned_text(plan: Plan | None, tuned: Tuned | None) -> str:
    """`target_seconds 60 → 20, by ada from laptop`; "" without differences from the plan. plan: None if unknown"""
    if tuned is None or not tuned.tuning.changed:
        return ""
    change = (
        described(limits(plan, AS_PLANNED), limits(plan, tuned.tuning)) if plan else ", ".join(tuned.tuning.changed)
    )
    return f"{change}, by {tuned.by} from {tuned.host}" if change else ""


def _shown(stored: BatchLimits, name: str) -> str:
    match name:
        case "target_seconds":
            return f"{stored.target_seconds:g}"
        case "rows":
            return NO_LIMIT if stored.rows is None else f"{stored.rows:,}"
        case "bytes":
            return NO_LIMIT if stored.bytes is None else f"{stored.bytes:,}"
        case "lag":
            return NO_LIMIT if stored.throttle.lag_seconds is None else f"{stored.throttle.lag_seconds:g}"
        case "hours":
            return f"{stored.throttle.hours} {stored.throttle.zone}" if stored.throttle.hours else "any"
        case _:
            return stored.throttle.query or NO_LIMIT
