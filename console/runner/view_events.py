"""The effect of events, and of a region's stored history, on its view. Pure: the watcher and a playback share it."""

from bisect import bisect_right
from collections.abc import Sequence

from console.model.event import Lagging, Promoted, Recorded, RolledBack
from console.model.measured import SAMPLE_SECONDS, FeedSample
from console.model.status import fold
from console.record import replace
from console.runner.view import RegionView

EVENTS_KEPT = 400  # of one region, in its view
SAMPLES_SECONDS = 3600.0 + 2 * SAMPLE_SECONDS  # of samples kept in a view: screens and forecasts show an hour


def with_event(view: RegionView, recorded: Recorded) -> RegionView:
    """The view after one more event, stored or fleeting, of its rollout; an event that is already in its status is only listed."""
    if recorded.seq and recorded.rollout == view.status.rollout and recorded.seq <= view.status.seq:
        return with_history(view, (recorded,))
    view = replace(view, status=fold(view.status, recorded))
    if recorded.seq:
        view = replace(view, events=(*view.events, recorded)[-EVENTS_KEPT:])
    match recorded.event:
        case Lagging(samples=samples) if samples:
            return with_samples(view, samples)
        case Promoted(release=release, was=was) | RolledBack(release=release, was=was):
            return replace(view, live=release, previous=was)
    return view


def with_history(view: RegionView, events: Sequence[Recorded]) -> RegionView:
    """The view with stored events that it did not receive: from before it was watched, or from while its link was lost."""
    known = {(recorded.rollout, recorded.seq) for recorded in view.events}
    missed = [recorded for recorded in events if recorded.seq and (recorded.rollout, recorded.seq) not in known]
    if not missed:
        return view
    every = sorted([*missed, *view.events], key=lambda recorded: (recorded.at, recorded.seq))
    return replace(view, events=tuple(every[-EVENTS_KEPT:]))


def with_samples(view: RegionView, samples: Sequence[FeedSample]) -> RegionView:
    """The view with these samples merged into its own: by time, without duplicates, for the last hour."""
    return replace(view, samples=joined(view.samples, samples))


def joined(known: tuple[FeedSample, ...], new: Sequence[FeedSample]) -> tuple[FeedSample, ...]:
    """Samples by time, without duplicates, for the last hour. known: as this function returned them

    An agent reports every ten seconds what it has just measured, so that is appended; hundreds of regions do so.
    """
    if known and new and min(map(_at, new)) <= known[-1].at:  # of a region that is read again, or of a second agent
        have = {(sample.feed, sample.at) for sample in known}
        every = tuple(sorted([*known, *(s for s in new if (s.feed, s.at) not in have)], key=_at))
    else:
        every = (*known, *sorted(new, key=_at))
    return every[bisect_right(every, every[-1].at - SAMPLES_SECONDS, key=_at) :] if every else ()


def _at(sample: FeedSample) -> float:
    return sample.at
