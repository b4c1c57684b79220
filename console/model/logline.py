"""Events as lines of the operator's log, with their time. Pure; frequent events have none."""

import re
from typing import Literal

from console.model.event import (
    Accepted,
    BatchDone,
    Checked,
    DriverLost,
    Ended,
    Entered,
    Event,
    Expiring,
    Failed,
    Fenced,
    Logged,
    Paused,
    Promoted,
    Resumed,
    RolledBack,
    StepDone,
    TakenOver,
)

Level = Literal["info", "warning", "error"]
CHECKED = {True: "ok", False: "differs", None: "inconclusive"}

# older agents wrote warnings and errors without a time
_ERROR = re.compile(r"(\d\d:\d\d:\d\dZ )?error: |\d\d:\d\d:\d\dZ failed in ")
_WARNING = re.compile(r"(\d\d:\d\d:\d\dZ )?warning: ")


def logline(event: Event, at: float) -> str:
    """`12:03:11Z backfilling`; "" for events without a line.

    at  seconds since 1970, UTC
    """
    line = _line(event)
    second = int(at) % 86_400
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z {line}" if line else ""


def _line(event: Event) -> str:
    match event:
        case Logged(text, level):
            return text if level == "info" else f"{level}: {text}"
        case Expiring(_, _, message):
            return f"warning: {message}"
        case DriverLost(step, why):
            return f"warning: Spark was lost in {step}" + (f": {why}" if why else "")
        case TakenOver(by, host, _):
            return f"{by} on {host} took the rollout over"
        case Accepted(release=release, was=was, plan=_, by=by):
            return f"{was or 'nothing'} → {release}, planned by {by}"
        case Entered(state):
            return state
        case Fenced(step=step, source=source, version=version, slices=slices, rows=rows):
            return f"{step}: {rows:,} rows of {source} up to version {version}, in {slices} slices"
        case BatchDone(
            step=step, label=label, position=position, of=of, rows_in=_, rows_out=rows, bytes=_, seconds=seconds
        ):
            return f"{step} {label}: {rows:,} rows in {seconds:.1f} s, {position} of {of} slices"
        case StepDone(step):
            return f"{step} done"
        case Checked(table=table, check=check, ok=ok, detail=detail):
            return f"check {table} {check}: {CHECKED[ok]}" + (f" ({detail})" if detail else "")
        case Paused(by):
            return f"paused by {by}"
        case Resumed(by):
            return f"resumed by {by}" if by else "resumed"
        case Failed(step, why):
            return f"failed in {step}: {why}"
        case Promoted(release=release, was=was, by=by):
            before = f"it was {was}" if was else "the first release"
            return f"{release} is live, {before}: promoted by {by}"
        case RolledBack(release=release, was=was, by=by):
            return f"{release} is live again, it was {was}: rolled back by {by}"
        case Ended(state, by):
            return f"{state}, by {by}" if by else state
    return ""


def level_of(line: str) -> Level:
    """The level of a line written by `logline`: a status stores lines as text."""
    if _ERROR.match(line):
        return "error"
    return "warning" if _WARNING.match(line) else "info"
