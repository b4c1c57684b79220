"""Rows of a pane: its lines, wrapped to its width, each with its last drawing."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from textual.content import Content
from textual.strip import Strip

NOT_DRAWN = Strip([])


class WrappedRow:
    """A line, or a part of one that is too long for one row.

    line    the line's number, and `start` where in it the row begins
    whole   the line
    look    everything that `strip` depends on besides the content; None if the strip must not be reused
    """

    __slots__ = ("content", "line", "look", "start", "strip", "whole")

    def __init__(self, content: Content, whole: Content, line: int, start: int) -> None:
        self.content, self.whole, self.line, self.start = content, whole, line, start
        self.look: object = None
        self.strip = NOT_DRAWN

    def part(self, start: int, end: int) -> tuple[int, int]:
        """Of the row, the part between these places of its line; end: -1 for the line's end."""
        length = len(self.content.plain)
        last = length if end == -1 else end - self.start
        return min(max(0, start - self.start), length), min(max(0, last), length)


def wrapped_rows(lines: Sequence[Content], width: int, known: Sequence[WrappedRow]) -> list[WrappedRow]:
    """Rows of these lines. known: rows of the same width, which are reused if their line still exists."""
    by_line = {id(own[0].whole): own for own in (list(rows) for _, rows in groupby(known, key=lambda row: row.line))}
    wrapped: list[WrappedRow] = []
    for number, line in enumerate(lines):
        own = by_line.pop(id(line), None) or list(_rows(line, number, width))
        for row in own:
            row.line = number
        wrapped += own
    return wrapped


def _rows(line: Content, number: int, width: int) -> Iterator[WrappedRow]:
    line = line.expand_tabs(8)
    if line.cell_length <= width:
        yield WrappedRow(line, line, number, 0)
        return
    end = 0
    for part in line.wrap(width):
        start = line.plain.find(part.plain, end)
        yield WrappedRow(part, line, number, start)
        end = start + len(part.plain)
