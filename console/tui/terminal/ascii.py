"""Fallbacks for terminals without braille or without UTF-8: every character is replaced, cell for cell."""

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
    "┄": "-", "═": "=", "║": "|", "▪": "#", "□": ".", "◪": "o", "▲": "^", "↔": "-", "←": "<", "×": "x", "•": "*",
    "▂": "_", "▃": "-", "▇": "#", "╍": "-", "≥": ">", "≤": "<",
}  # fmt: skip
BRAILLE = range(0x2800, 0x2900)
LEVELS = ((0xC0, "▂", "_"), (0x24, "▄", "-"), (0x12, "▆", "="), (0x09, "█", "#"))  # dots of a row, from below


def _level(char: str) -> tuple[str, str]:
    """The block and the ASCII character as high as the highest dot of a braille cell."""
    bits = ord(char) - BRAILLE.start
    return next(((block, plain) for row, block, plain in reversed(LEVELS) if bits & row), (" ", " "))


@lru_cache(4096)
def to_blocks(text: str) -> str:
    """The text with block elements in place of braille, which some fonts and the Linux console lack."""
    return "".join(_level(char)[0] if ord(char) in BRAILLE else char for char in text)


@lru_cache(4096)
def to_ascii(text: str) -> str:
    """The text in ASCII, of the same width in cells; characters without a replacement become `?`."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else _plain(char) for char in text)


def _plain(char: str) -> str:
    if char not in REPLACEMENTS and ord(char) in BRAILLE:
        return _level(char)[1]
    return REPLACEMENTS.get(char, "?" * cell_len(char))


class AsciiFilter(LineFilter):
    """Applied to every line that reaches the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]


class BlockFilter(LineFilter):
    """Applied to every line that reaches a terminal whose font has no braille."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_blocks(text), style, control) for text, style, control in segments]


def glyph_filters(encoding: str, terminal: str) -> list[LineFilter]:
    """The fallback that a terminal needs.

    encoding  of its output
    terminal  its `TERM`
    """
    if "utf" not in encoding.lower():
        return [AsciiFilter()]
    return [BlockFilter()] if terminal == "linux" else []
