"""Samples of the last hours as text and as JSON: rates, lag and rows behind, each with a small chart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.cli.format import span, table
from console.model.measured import FeedSample
from console.text import safe_text

COLUMNS = 40
HOLD_SECONDS = 15.0  # seconds covered by a sample: a longer time without any is a gap
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table. per_feed: whether a single feed has it, or only the whole pipeline"""

    name: str
    of: Callable[[FeedSample], float]
    per_feed: bool = True


_FIGURES = (
    Figure("rows/s", lambda sample: sample.rows),
    Figure("lag, s", lambda sample: sample.lag),
    Figure("rows behind", lambda sample: float(sample.behind)),
    Figure("history rows/s", lambda sample: sample.backfill, per_feed=False),
)


def history_text(samples: Mapping[str, Sequence[FeedSample]], hours: float, now: float) -> str:
    """Each region's figures: newest, minimum and maximum, and a chart.

    samples  region → samples, oldest first
    now      seconds since 1970, UTC: the right edge of the charts
    """
    rows, heads = [], ["region", "feed", "figure", "now", "least", "most", f"last {span(hours * 3600)}"]
    for region, taken in samples.items():
        if not taken:
            rows.append([safe_text(region), "", "no samples: no agent has run, or an older one", "", "", "", ""])
        for feed in sorted({sample.feed for sample in taken}):
            own = [sample for sample in taken if sample.feed == feed]
            for figure in _FIGURES:
                if feed and not figure.per_feed:
                    continue
                values = [figure.of(sample) for sample in own]
                now_or_age = _short(values[-1]) if now - own[-1].at < 60 else f"{span(now - own[-1].at)} ago"
                chart = sparkline([(s.at, figure.of(s)) for s in own], now - hours * 3600, now)
                cells = [now_or_age, _short(min(values)), _short(max(values)), chart]
                rows.append([safe_text(region), safe_text(feed) or "all", figure.name, *cells])
    return table(heads, rows, right=(3, 4, 5))


def history_data(samples: Sequence[FeedSample], hours: float) -> dict[str, Any]:
    """For `--output json`: all samples, oldest first; a feed's name is "" in those of the whole pipeline."""
    figures = [
        {
            "at": sample.at,
            "feed": sample.feed,
            "rows_per_second": sample.rows,
            "lag_seconds": sample.lag,
            "rows_behind": sample.behind,
            "history_rows_per_second": sample.backfill,
        }
        for sample in samples
    ]
    return {"hours": hours, "samples": figures}


def sparkline(values: Sequence[tuple[float, float]], since: float, until: float, columns: int = COLUMNS) -> str:
    """One character per column, its maximum; blank if nothing was measured.

    values  (seconds since 1970, value)
    """
    step, top = (until - since) / columns, max((value for _, value in values), default=0.0)
    highest: list[float | None] = [None] * columns
    for at, value in values:
        first, last = int((at - since) // step), int((at + HOLD_SECONDS - since) // step)
        for column in range(max(0, first), min(columns, max(first + 1, last))):
            highest[column] = max(value, highest[column] or 0.0)
    return "".join(" " if value is None else _bar(value, top) for value in highest)


def _bar(value: float, top: float) -> str:
    return _BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] if top > 0 and value > 0 else _BARS[0]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
