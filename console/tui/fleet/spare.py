"""The content of the room below the answer about a region: the account of time, its log, and charts of the last hour. Pure."""

from collections.abc import Sequence

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import heading
from console.tui.labels import under_way
from console.tui.rollout.log import latest_entries, log_lines
from console.tui.rollout.rates import draw_lag, draw_rates, lag_title, rates_title, whole
from console.tui.rollout.slow import slow_lines

LEAST_LOG = 3  # minimum height in lines
LEAST_CHART, CHART = 5, 12  # minimum and maximum height of a chart in lines


def spare_lines(view: RegionView, others: Sequence[RegionView], size: tuple[int, int], at: float) -> list[Content]:
    """As many of these as fit: the account of time and the log first for a running rollout, the charts for a region at rest.

    size  width, and the remaining height
    """
    parts = (_slow, _log, _charts) if under_way(view) else (_charts, _log)
    lines: list[Content] = []
    for part in parts:
        lines += part(view, others, (size[0], size[1] - len(lines)), at)
    return lines


def _slow(view: RegionView, others: Sequence[RegionView], size: tuple[int, int], at: float) -> list[Content]:
    if view.status.state == "awaiting-confirmation":
        return []  # it waits for a person
    slow = slow_lines(view, others, size[0], at)
    return [Content(""), heading("where the time went"), *slow] if len(slow) + 2 <= size[1] else []


def _log(view: RegionView, others: Sequence[RegionView], size: tuple[int, int], at: float) -> list[Content]:
    width, room = size[0], size[1] - 2
    if room < LEAST_LOG or not (view.status.rollout or under_way(view)):
        return []
    name = "log" if under_way(view) else f"log of {view.status.rollout}"
    entries = log_lines(latest_entries(view, room))
    return [Content(""), heading(name), *(entry.truncate(width, ellipsis=True) for entry in entries)]


def _charts(view: RegionView, others: Sequence[RegionView], size: tuple[int, int], at: float) -> list[Content]:
    """Rows per second and lag, one below the other; only the first if there is no room for both."""
    width, room = size
    charts = ((rates_title(view, at), draw_rates), (lag_title(view, at), draw_lag))[: room // (LEAST_CHART + 2)]
    if not charts or not whole(view):
        return []
    high = min(CHART, room // len(charts) - 2)
    return [
        line
        for title, draw in charts
        for line in (Content(""), heading(title), *draw(view, width, high, at).split("\n"))
    ]
