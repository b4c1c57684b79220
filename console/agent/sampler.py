"""Measures every pipeline every ten seconds and keeps a day of figures, with or without watchers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from console.agent.clock import Clock, WallClock
from console.agent.feeds.follower import FeedFollower
from console.agent.store.samples import SampleRing
from console.model.measured import SAMPLE_SECONDS, FeedSample
from console.model.status import Status


@dataclass(slots=True)
class _Seen:
    """Counters at the last measurement: rows by feed and source, rows of history, both monotonic."""

    moved: dict[tuple[str, str, str], int] = field(default_factory=dict)
    rollout: str = ""
    history: int = 0


@dataclass(slots=True, kw_only=True)
class Sampler:
    """One for all pipelines of a region; called once a second by the agent's own thread."""

    ring: SampleRing
    follower: FeedFollower
    clock: Clock = field(default_factory=WallClock)
    failed: str = ""  # why the last samples could not be written
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _measured: float | None = None  # monotonic

    def tick(self, statuses: Mapping[str, Status]) -> dict[str, tuple[FeedSample, ...]]:
        """The new samples by pipeline, if it is time for them; they are written before they are returned."""
        now, last = self.clock.elapsed(), self._measured
        if last is not None and now - last < SAMPLE_SECONDS:
            return {}
        self._measured = now
        samples = {
            name: self._measure(name, status, 0.0 if last is None else now - last) for name, status in statuses.items()
        }
        try:
            for name, sample in samples.items():
                self.ring.append(name, sample)
            self.failed = ""
        except OSError as error:
            self.failed = f"samples are not kept: {error.strerror or error}"
        return samples

    def _measure(self, pipeline: str, status: Status, seconds: float) -> tuple[FeedSample, ...]:
        """seconds: since the last measurement; 0 for the first one, which has no rates"""
        seen = self._seen.setdefault(pipeline, _Seen())
        at, lag, figures = self.clock.now(), self.follower.lag(pipeline), self.follower.figures(pipeline)
        moved = {each.key: each.moved for each in figures}
        rates = {key: _rate(rows - seen.moved.get(key, rows), seconds) for key, rows in moved.items()}
        seen.moved = moved
        landed: dict[str, float] = {}  # by landing table, whose feeds all read the same rows
        feeds: dict[str, FeedSample] = {}
        targets: dict[str, str] = {}  # of the first feed of a name, which is the live release's
        for each in figures:
            rate = rates[each.key]
            if each.from_landing:
                landed[each.source] = max(rate, landed.get(each.source, 0.0))
            first = targets.setdefault(each.feed, each.target) == each.target
            name = each.feed if first else f"{each.feed} → {each.target}"  # of another release
            new = FeedSample(at=at, feed=name, rows=rate, lag=each.lag, behind=each.behind)
            feeds[name] = _worse(feeds[name], new) if name in feeds else new
        whole = FeedSample(
            at=at,
            feed="",
            rows=sum(landed.values()),
            lag=lag.seconds,
            behind=lag.rows,
            backfill=self._backfill(seen, status, seconds),
        )
        return (whole, *feeds.values())

    def _backfill(self, seen: _Seen, status: Status, seconds: float) -> float:
        """Rows of history per second: those of finished batches and an estimate for the running one."""
        history = status.rows_done + status.rows_running
        before = seen.history if seen.rollout == status.rollout else history
        seen.rollout, seen.history = status.rollout, history
        return _rate(history - before, seconds)


def _rate(rows: int, seconds: float) -> float:
    return max(0, rows) / seconds if seconds > 0 else 0.0


def _worse(one: FeedSample, other: FeedSample) -> FeedSample:
    return replace(
        one, rows=max(one.rows, other.rows), lag=max(one.lag, other.lag), behind=max(one.behind, other.behind)
    )
