"""What the demo tells of a region, above the line with the next keys."""

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines

NAME_CELLS = 19  # the first cells of a line name it


def draw_guide(view: RegionView) -> Content:
    """One line each; empty where the demo tells nothing."""
    return stack_lines(
        Content.assemble(safe(line[:NAME_CELLS], "bold $text-accent"), safe(line[NAME_CELLS:])) for line in view.guide
    )
