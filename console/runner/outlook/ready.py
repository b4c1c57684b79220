"""The end of a running backfill, as a range estimated from the rates of the last hour. Pure."""

from collections.abc import Sequence

from console.model.measured import FeedSample
from console.runner.view import RegionView

WINDOW_SECONDS = 600.0  # rates are means over this time, which includes a batch and its pauses
LEAST_WINDOWS, MOST_WINDOWS = 3, 6
SLOW_SHARE, FAST_SHARE = 0.8, 1.25  # factors of the measured rate, if less than that was measured
LEAST_SHARE = 0.25  # minimum share of the mean: a window in which everything waited must not postpone the end forever


def ready_between(view: RegionView, now: float) -> tuple[float, float] | None:
    """The earliest and the latest end of the backfill (seconds since 1970, UTC); None if it is unknown, the region is
    not heard, or the rollout waits, since the length of a wait is unknown.

    The later steps are not included: catching up, the comparison and a person's decision.

    now  when its figures were heard
    """
    status = view.status
    left = max(0, status.rows_total - status.rows_done - status.rows_running)
    finished = status.rows_done >= status.rows_total
    if view.link == "unreachable" or status.held or status.why or not now:
        return None
    if status.state not in ("preparing", "backfilling") or finished or not status.rate:
        return None
    slow, fast = rates(view.samples, status.started) or (status.rate * SLOW_SHARE, status.rate * FAST_SHARE)
    return now + left / fast, now + left / slow


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
