"""The log of one region: the latest lines, each cut to what a screen can hold."""

from textual.content import Content

from console.model.logline import Level, level_of
from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines

MAX_LINE = 300  # characters: a line of a megabyte freezes a terminal
LEVEL_STYLES: dict[Level, str] = {"info": "", "warning": "$text-warning", "error": "$text-error"}


def draw_log(view: RegionView, width: int, at: float) -> Content:
    """Oldest first, as the status holds them."""
    if not view.status.log:
        return Content.styled("no entries yet: the region's rollouts are logged here.", "$text-muted")
    return stack_lines(_line(line) for line in view.status.log)


def _line(line: str) -> Content:
    return safe(line, LEVEL_STYLES[level_of(line)], MAX_LINE)
