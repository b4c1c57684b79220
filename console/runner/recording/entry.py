"""The lines of a recording: a header, then the changes of a region's view, each with its time (docs/versions.md).

A change by an event is stored as that event: applying it is the same fold as in the live view.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from typing import Any, Literal, get_type_hints

from console.errors import DataError, NewerFormat
from console.model.breach import Breached, WatchSteered
from console.model.codec import decode, encode, loads
from console.model.consent import Approved, CheckAccepted, TicketNamed
from console.model.event import (
    ENDED,
    Accepted,
    DriverLost,
    Ended,
    Entered,
    Event,
    Failed,
    Logged,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
    TakenOver,
    fleeting,
)
from console.model.logline import logline
from console.model.measured import FeedSample
from console.model.note import Noted
from console.model.region import Region, Spark
from console.model.status import Status
from console.model.tuning import Tuned
from console.runner.recording.times import check_figures, read_time
from console.runner.view import RegionView
from console.runner.view_events import with_event, with_samples
from console.text import redacted_data

FORMAT = "console recording"
FORMAT_VERSION = 1
LOOKED_AT = ("validating", "awaiting-confirmation")
APART = ("region", "witness", "samples")  # fields of a view that are in no entry, or stored separately
_ABSENT = object()
_HINTS = get_type_hints(RegionView, localns={"WitnessProgress": object})
_FIELDS = tuple(spec.name for spec in fields(RegionView) if spec.name not in APART)
# the fields of a view that an entry replaces: decoded like any other record, so that unknown keys are skipped
_Fields: type = make_dataclass("View", [(name, _HINTS[name], field(default=_ABSENT)) for name in _FIELDS])

Source = Literal["watched", "stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line.

    tool    version of console that wrote it
    began   seconds since 1970, UTC
    source  `watched`: all that a console received; `stored`: rebuilt from what a region has stored, without what is fleeting
    """

    format: str
    format_version: int
    tool: str
    pipeline: str
    began: float
    regions: tuple[Region, ...]
    source: Source = "watched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change of a region's view, or the end of the recording.

    at      when the console learned of it, seconds since 1970, UTC
    event   an event that makes the whole difference; None for a change of `fields` and `samples`
    fields  field of the view → its new value
    samples those that were added
    ended   nothing follows: the recording was closed in order
    decision  a person acted, or has to look: playback can jump there
    """

    at: float
    region: str = ""
    event: Recorded | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    samples: tuple[FeedSample, ...] = ()
    ended: bool = False
    decision: bool = False

    def applied(self, view: RegionView) -> RegionView:
        """The view after this entry."""
        if self.event is not None:
            view = with_event(view, self.event)
        if self.samples:
            view = with_samples(view, self.samples)
        return replace(view, **self.fields) if self.fields else view


def difference(before: RegionView, after: RegionView, recorded: Recorded | None, at: float) -> Entry:
    """The entry that leads from one view of a region to the next."""
    name = after.region.name
    if recorded is not None:
        decided = is_decision(recorded.event) and after.status is not before.status
        return Entry(at=at, region=name, event=recorded, decision=decided)
    changed = {key: value for key in _FIELDS if (value := getattr(after, key)) != getattr(before, key)}
    decided = "status" in changed and _decided(before.status, after.status)
    return Entry(at=at, region=name, fields=changed, samples=_added(before, after), decision=decided)


def _added(before: RegionView, after: RegionView) -> tuple[FeedSample, ...]:
    if after.samples is before.samples:  # as for most changes: thousands of samples are not compared
        return ()
    known = set(before.samples)
    return tuple(sample for sample in after.samples if sample not in known)


def is_decision(event: Event) -> bool:
    """Whether a person acted, or has to look."""
    match event:
        case Entered(state):
            return state in LOOKED_AT
        case (
            Accepted()
            | Paused()
            | Resumed()
            | TakenOver()
            | Failed()
            | DriverLost()
            | Promoted()
            | RolledBack()
            | Ended()
            | Logged(incident=Noted() | Tuned() | CheckAccepted() | Approved() | TicketNamed())
            | Logged(incident=Breached() | WatchSteered())
        ):
            return True
        case _:
            return False


def _decided(before: Status, after: Status) -> bool:
    """The same for a status that was adopted as a whole, without its events."""
    if not before.rollout and after.state in ENDED:
        return False  # an old one, seen for the first time
    if (before.rollout, before.held) != (after.rollout, after.held):
        return True
    return before.state != after.state and after.state in (*LOOKED_AT, *ENDED)


def decision_line(entry: Entry) -> str:
    """`eu: r8 is live, it was r7: promoted by ana`"""
    if entry.event is not None:
        return f"{entry.region}: {logline(entry.event.event, entry.event.at).partition(' ')[2]}"
    status = entry.fields.get("status")
    return f"{entry.region}: {' '.join(filter(None, (status.release, status.shown)))}" if status else entry.region


def header_line(header: Header) -> bytes:
    """The header, without transports: addresses, keys, secrets' names and Spark's settings do not concern viewers."""
    regions = tuple(
        replace(region, transport=None, spark=Spark(), secrets=(), ineffective=()) for region in header.regions
    )
    return _line(encode(replace(header, regions=regions)))


def entry_line(entry: Entry) -> bytes:
    """One line; times and marks come first, so that a reader finds them without parsing the rest."""
    data: dict[str, Any] = {"at": entry.at, **({"decision": True} if entry.decision else {})}
    if entry.event is not None:
        data |= {"region": entry.region, "event": encode(entry.event)}
    elif entry.ended:
        data["ended"] = True
    else:
        data["region"] = entry.region
        data |= {"view": {key: encode(value) for key, value in entry.fields.items()}} if entry.fields else {}
        data |= {"samples": encode(entry.samples)} if entry.samples else {}
    return _line(data)


def _line(data: Any) -> bytes:
    return json.dumps(redacted_data(data), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_header(line: bytes) -> Header:
    """raises  DataError, NewerFormat"""
    data = loads(line)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError("this is not a recording of console")
    version = data.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise NewerFormat(
            f"it has format {version}, written by {data.get('tool')!r:.60}; this console reads up to {FORMAT_VERSION}",
            hint="play it with that version or a newer one",
            code="E_NEWER",
        )
    header = decode(Header, data)
    if not header.regions:
        raise DataError("it has no regions")
    read_time(header.began)
    return header


def read_entry(line: bytes, names: frozenset[str]) -> Entry:
    """names: the regions of the header

    raises  DataError, NewerFormat
    """
    data = loads(line)
    if not isinstance(data, dict):
        raise DataError("not an entry")
    at = read_time(data.get("at"))
    if data.get("ended") is True:
        return Entry(at=at, ended=True)
    name = data.get("region")
    if not isinstance(name, str) or name not in names:
        raise DataError(f"region {name!r:.60} is not one of the recording's")
    event = _event(data["event"]) if "event" in data else None
    changed: Any = decode(_Fields, data.get("view", {}))
    given = {key: value for key in _FIELDS if (value := getattr(changed, key)) is not _ABSENT}
    samples = decode(_Samples, {"samples": data.get("samples", [])}).samples
    check_figures((event, samples, tuple(given.values())))
    decided = data.get("decision") is True
    return Entry(at=at, region=name, event=event, fields=given, samples=samples, decision=decided)


def _event(data: object) -> Recorded | None:
    """None for a fleeting event of a kind unknown to this version."""
    try:
        event = decode(Recorded, data)
    except DataError:
        if fleeting(data):
            return None
        raise
    return event


@dataclass(frozen=True, slots=True)
class _Samples:
    samples: tuple[FeedSample, ...]
