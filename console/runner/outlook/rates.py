"""The rate of history over the last hour, from samples. Pure."""

from collections.abc import Sequence

from console.model.measured import FeedSample

WINDOW_SECONDS = 600.0  # rates are means over this time, which includes a batch and its pauses
LEAST_WINDOWS, MOST_WINDOWS = 3, 6
LEAST_SHARE = 0.25  # minimum share of the mean: a window in which everything waited must not postpone the end forever


def rates(samples: Sequence[FeedSample], since: float) -> tuple[float, float] | None:
    """The lowest and the highest rate in rows of history per second, each the mean of ten minutes; None if too little was measured.

    since  when the rollout began
    """
    own = [sample for sample in samples if not sample.feed and sample.at >= since]
    if not own:
        return None
    newest = own[-1].at
    windows: dict[int, list[float]] = {}
    for sample in own:
        windows.setdefault(int((newest - sample.at) // WINDOW_SECONDS), []).append(sample.backfill)
    means = [_mean(windows[number]) for number in sorted(windows) if number < MOST_WINDOWS]
    if len(means) < LEAST_WINDOWS or not any(means):
        return None
    return max(min(means), LEAST_SHARE * _mean(means)), max(means)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
