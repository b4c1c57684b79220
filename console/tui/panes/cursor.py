"""The keys that move a cursor over the lines of a list."""

from textual.binding import Binding

FAR = 1_000_000  # lines: to the first or the last one
CURSOR_KEYS = (
    Binding("down,j", "move(1)", "down", show=False),
    Binding("up,k", "move(-1)", "up", show=False),
    Binding("pagedown", "page(1)", "next page", show=False),
    Binding("pageup", "page(-1)", "previous page", show=False),
    Binding("home", f"move(-{FAR})", "first", show=False),
    Binding("end,G", f"move({FAR})", "last", show=False),
)


def moved(line: int, by: int, lines: int) -> int:
    """The line that the cursor reaches from this one. lines: their number, at least one"""
    return max(0, min(lines - 1, line + by))
