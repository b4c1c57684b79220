"""The log of one region: the latest lines, each cut to what a screen can hold."""

import re

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines

MAX_LINE = 300  # characters: a line of a megabyte freezes a terminal
LEVELS = {"error: ": "$text-error", "warning: ": "$text-warning"}
FAILED = re.compile(r"\d\d:\d\d:\d\dZ failed ")


def draw_log(view: RegionView, width: int, at: float) -> Content:
    """Oldest first, as the status holds them."""
    if not view.status.log:
        return Content.styled("no entries yet: the region's rollouts are logged here.", "$text-muted")
    return stack_lines(_line(line) for line in view.status.log)


def _line(line: str) -> Content:
    style = next((style for start, style in LEVELS.items() if line.startswith(start)), "")
    if FAILED.match(line):
        style = LEVELS["error: "]
    return safe(line, style, MAX_LINE)
