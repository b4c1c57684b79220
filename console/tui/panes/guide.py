"""The demo's lines about a region, above the line with the next keys."""

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines, wrap_indented

NAME_CELLS = 19  # width of a line's name


def draw_guide(view: RegionView, width: int) -> Content:
    """One line each, wrapped beside its name; empty if the demo has no lines for the region."""
    lines = []
    for text in view.guide:
        first, *rest = wrap_indented(safe(text[NAME_CELLS:]), NAME_CELLS, width)
        lines += [safe(text[:NAME_CELLS], "bold $text-accent") + first[NAME_CELLS:], *rest]
    return stack_lines(lines)
