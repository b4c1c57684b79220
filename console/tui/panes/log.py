"""The operator's log of one region: the latest lines, each cut to what a screen can hold."""

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import said, sheet

LINE = 300  # characters; one cell of a megabyte freezes a terminal
LEVELS = {"error: ": "$text-error", "warning: ": "$text-warning"}


def draw_log(view: RegionView, width: int, at: float) -> Content:
    """Oldest first, as the status keeps them."""
    if not view.status.log:
        return Content.styled("no line yet: the region's agent speaks here while it works.", "$text-muted")
    return sheet(_line(line) for line in view.status.log)


def _line(line: str) -> Content:
    style = next((style for start, style in LEVELS.items() if line.startswith(start)), "")
    return said(line, style, LINE)
