"""ASCII fallback for terminals without UTF-8: every character is replaced, cell for cell."""

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

REPLACEMENTS = {
    "━": "=", "╌": "-", "─": "-", "│": "|", "┃": "|", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "┌": "+", "┐": "+",
    "└": "+", "┘": "+", "▔": "-", "▁": "_", "▏": "|", "▎": "|", "▌": "|", "▊": "|", "▕": "|", "█": "#", "✓": "v",
    "✗": "x", "▶": ">", "◆": "*", "○": "o", "‖": "=", "↶": "<", "→": ">", "…": "~", "—": "-", "›": ">", "·": ".",
    "↑": "^", "↓": "v", "▅": "_", "▆": "_", "▄": "_", "▀": "-",
}  # fmt: skip


@lru_cache(4096)
def to_ascii(text: str) -> str:
    """The text in ASCII, of the same width in cells; characters without a replacement become `?`."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else REPLACEMENTS.get(char, "?" * cell_len(char)) for char in text)


class AsciiFilter(LineFilter):
    """Applied to every line that reaches the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]
