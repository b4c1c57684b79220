"""Rows per second and lag over the last hour, as charts and as one line. Pure."""

from collections.abc import Callable

from textual.content import Content

from console.model.measured import FeedSample
from console.model.tuning import limits
from console.record import dataclass
from console.runner.view import RegionView
from console.tui.charts import Value, chart, chart_columns, sparkline, spread
from console.tui.drawing import stack_lines
from console.tui.format import short, span
from console.tui.labels import under_way
from console.tui.times import as_of

SPAN_SECONDS = 3600.0
LEAST_ROWS = 3  # of a chart, without its axis of time
FEWEST_SECONDS = 300.0  # a rollout that has just begun would fill only a corner of an hour


def whole(view: RegionView) -> list[FeedSample]:
    """The samples of the pipeline, all feeds together."""
    return [sample for sample in view.samples if not sample.feed]


def window(view: RegionView, now: float) -> tuple[float, float]:
    """Start and end: the last hour, or less if fewer minutes were measured."""
    first = min((sample.at for sample in whole(view)), default=now)
    return max(now - SPAN_SECONDS, min(first, now - FEWEST_SECONDS)), now


def moves_history(view: RegionView, now: float) -> bool:
    """Whether history was moved within the hour; then its rate is shown."""
    since, _ = window(view, now)
    return under_way(view) and any(sample.backfill for sample in whole(view) if sample.at >= since)


def rates_title(view: RegionView, now: float) -> str:
    samples = whole(view)
    if not samples:
        return "rows/s"
    old = as_of(samples[-1].at, now)
    if moves_history(view, now):
        return f"rows/s of history: {short(samples[-1].backfill)} · live: {short(samples[-1].rows)}{old}"
    return f"live rows/s: {short(samples[-1].rows)}{old}"


def lag_title(view: RegionView, now: float) -> str:
    samples, limit = whole(view), throttle_seconds(view)
    allowed = f" · limit {span(limit)}" if limit else ""
    if not samples:
        return "lag"
    last = samples[-1]
    return f"lag: {span(last.lag)} · {short(last.behind)} rows behind{as_of(last.at, now)}{allowed}"


def throttle_seconds(view: RegionView) -> float:
    """The lag above which no batch begins; 0 without a limit."""
    plan = view.accepted
    return (limits(plan, view.status.tuning).throttle.lag_seconds or 0.0) if plan and under_way(view) else 0.0


def draw_rates(view: RegionView, width: int, height: int, now: float) -> Content:
    """Rows of history per second while history moves, else live rows per second."""
    return _drawn(view, (width, height), now, Series(_rate(view, now), short))


def draw_lag(view: RegionView, width: int, height: int, now: float) -> Content:
    """The lag, with the throttle's limit as a line."""
    lag = Series(lambda sample: sample.lag, lambda seconds: f"{short(seconds)} s", throttle_seconds(view))
    return _drawn(view, (width, height), now, lag)


@dataclass(frozen=True, slots=True)
class Series:
    """The value drawn for each sample, the label of its scale, and the limit drawn in it; 0 for none."""

    figure: Callable[[FeedSample], float]
    label: Callable[[float], str]
    limit: float = 0.0


def _rate(view: RegionView, now: float) -> Callable[[FeedSample], float]:
    return (lambda sample: sample.backfill) if moves_history(view, now) else (lambda sample: sample.rows)


def rates_line(view: RegionView, width: int, now: float) -> Content:
    """`rows/s 18.0k ⣀⣠⣴⣾⣿   lag 2.3 s ⣀⣀⣠⣤ of 60 s`."""
    samples = whole(view)
    if not samples:
        return Content.styled("rows/s and lag: nothing measured yet", "$text-muted").truncate(width, ellipsis=True)
    last, limit = samples[-1], throttle_seconds(view)
    history = moves_history(view, now)
    heads = (
        f"{'history' if history else 'live'} rows/s {short(last.backfill if history else last.rows)} ",
        f"  lag {span(last.lag)} ",
    )
    end = (f" of {span(limit)}" if limit else "") + as_of(last.at, now)
    room = max(4, (width - sum(map(len, heads)) - len(end)) // 2)
    rate = sparkline(_values(view, now, 2 * room, _rate(view, now)), room)
    late = sparkline(_values(view, now, 2 * room, lambda s: s.lag), room, top=limit)
    line = Content.assemble(
        heads[0],
        (rate, "$text-primary"),
        heads[1],
        (late, "$text-warning" if limit and last.lag > limit else "$text-primary"),
        end,
    )
    return line.truncate(width, ellipsis=True)


def _values(view: RegionView, now: float, columns: int, figure: Callable[[FeedSample], float]) -> tuple[Value, ...]:
    since, until = window(view, now)
    return spread([(sample.at, figure(sample)) for sample in whole(view)], since, until, columns)


def _drawn(view: RegionView, size: tuple[int, int], now: float, series: Series) -> Content:
    if not whole(view):
        return Content.styled("nothing measured yet: an agent samples every ten seconds.", "$text-muted")
    since, until = window(view, now)
    moments = [_clock(at) for at in (since, (since + until) / 2, until)]
    width, height = size
    values = _values(view, now, chart_columns(width), series.figure)
    axis = moments if height > LEAST_ROWS else ()
    rows = chart(values, width, height, label=series.label, limit=series.limit, moments=axis)
    return stack_lines(Content.styled(row, "$text-primary") for row in rows)


def _clock(at: float) -> str:
    second = int(at) % 86_400
    return f"{second // 3600:02}:{second // 60 % 60:02}Z"
