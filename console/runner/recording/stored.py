"""A recording built from the events and samples that a region has stored of a rollout."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from console.model.event import Accepted, Lagging, Recorded
from console.model.measured import FeedSample
from console.model.plan import Plan
from console.model.region import Region
from console.runner.recording.entry import Entry, entry_line, header_line, is_decision
from console.runner.recording.reader import RecordingReader
from console.runner.recording.writer import header

AROUND_SECONDS = 3600.0  # of samples before the first event and after the last one


def stored_recording(
    pipeline: str, region: Region, events: Sequence[Recorded], samples: Sequence[FeedSample], plan: Plan | None
) -> RecordingReader:
    """events: of one rollout, at least one; plan: the accepted one, where the region still has it"""
    first, last = events[0].at, events[-1].at
    near = [sample for sample in samples if first - AROUND_SECONDS <= sample.at <= last + AROUND_SECONDS]
    before = tuple(sample for sample in near if sample.at < first)
    made = replace(header(pipeline, (region,), first), source="stored")
    start = events[0].event
    known = {"link": "connected", "accepted": plan, "live": start.was if isinstance(start, Accepted) else ""}
    entries = [Entry(at=first, region=region.name, fields={**known, "heard": first}, samples=before)]
    measured = [sample for sample in near if sample.at >= first]
    later = [*_events(region.name, events), *_samples(region.name, events[0].rollout, measured)]
    entries += sorted(later, key=attrgetter("at"))
    lines = [header_line(made), *map(entry_line, entries), entry_line(Entry(at=entries[-1].at, ended=True))]
    return RecordingReader(io.BytesIO(b"".join(lines)), f"{events[0].rollout} of {region.name}")


def _events(region: str, events: Sequence[Recorded]) -> Iterator[Entry]:
    """Each event, with the region heard at its time; if a clock was set back, time does not go back with it."""
    latest = 0.0
    for recorded in events:
        latest = max(latest, recorded.at)
        yield Entry(at=latest, region=region, event=recorded, decision=is_decision(recorded.event))
        yield Entry(at=latest, region=region, fields={"heard": latest, "attended": True})


def _samples(region: str, rollout: str, samples: Sequence[FeedSample]) -> Iterator[Entry]:
    """The samples of each moment; that of the pipeline is the lag until the next one."""
    for at, group in groupby(sorted(samples, key=attrgetter("at")), key=attrgetter("at")):
        each = tuple(group)
        yield Entry(at=at, region=region, samples=each, fields={"heard": at, "attended": True})
        if whole := next((sample for sample in each if not sample.feed), None):
            lagging = Lagging(commits=0, rows=whole.behind, seconds=whole.lag)  # samples count no commits
            yield Entry(at=at, region=region, event=Recorded(rollout, 0, at, lagging))
