"""Charts of braille dots, as rows of text. Pure: no widget, no colour.

A measured zero is one dot high, and a moment without a measurement is empty, to distinguish the two.
Terminals that cannot show braille get the same cells in blocks or ASCII (`console.tui.terminal.ascii`).
"""

import math
from collections.abc import Callable, Iterable, Sequence

from rich.cells import cell_len

from console.tui.format import short

ACROSS, UP = 2, 4  # dots of one braille cell
BRAILLE = 0x2800
_LEFT, _RIGHT = (0x00, 0x40, 0x44, 0x46, 0x47), (0x00, 0x80, 0xA0, 0xB0, 0xB8)  # filled from the bottom, 0 … 4 dots
_STEPS = (1.0, 2.0, 5.0, 10.0)
_SMALLEST = 1e-9
Value = float | None  # None: nothing was measured


def spread(
    samples: Iterable[tuple[float, float]], since: float, until: float, columns: int, *, hold: float = 15.0
) -> tuple[Value, ...]:
    """Samples as the values of that many columns, oldest first; the maximum of a column is shown, so that no peak is lost.

    samples  (seconds since 1970, value), in any order
    hold     seconds for which a sample stands: longer ones without any are a gap
    """
    values: list[Value] = [None] * columns
    step = (until - since) / columns if columns else 0.0
    if step <= 0:
        return tuple(values)
    for at, value in samples:
        first, last = math.floor((at - since) / step), math.ceil((at + hold - since) / step)
        for column in range(max(0, first), min(columns, max(last, first + 1))):
            known = values[column]
            values[column] = value if known is None else max(known, value)
    return tuple(values)


def round_top(values: Iterable[Value]) -> float:
    """The end of a scale that holds all values: 1, 2 or 5 times a power of ten; 1 if no value is above 0."""
    highest = _highest(values)
    if highest < _SMALLEST:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(highest))
    return next((step * power for step in _STEPS if step * power >= highest), 10.0 * power)


def sparkline(values: Sequence[Value], width: int, *, top: float = 0.0) -> str:
    """The latest values in one row of `width` cells, two values per cell, from 0 to `top` (0: the highest value)."""
    return dots(values, width, 1, top or _highest(values))[0]


def dots(values: Sequence[Value], width: int, height: int, top: float) -> tuple[str, ...]:
    """The area under the latest values in `height` rows of `width` cells, the uppermost first; the newest at the right."""
    latest = list(values[-ACROSS * width :]) if width > 0 else []
    heights = [0] * (ACROSS * width - len(latest)) + [_height(value, top, UP * height) for value in latest]
    rows = []
    for row in reversed(range(height)):
        inside = [min(UP, max(0, dots_up - UP * row)) for dots_up in heights]
        pairs = zip(inside[::2], inside[1::2], strict=True)
        rows.append("".join(chr(BRAILLE + _LEFT[a] + _RIGHT[b]) if a or b else " " for a, b in pairs))
    return tuple(rows)


def chart(
    values: Sequence[Value],
    width: int,
    height: int,
    *,
    label: Callable[[float], str] = short,
    limit: float = 0.0,
    moments: Sequence[str] = (),
) -> tuple[str, ...]:
    """`height` rows of `width` cells: the scale at the left, the area, and below it the moments, the last at the right.

    values   one per dot: `chart_columns(width)` of them fill it
    limit    drawn as a dashed line, within the scale; 0 for none
    moments  texts for the axis of time, spread evenly; () for an axis without any
    """
    top = round_top([*values, limit or None])
    rows = max(1, height - (1 if moments else 0))
    gutter, inside = SCALE_CELLS, max(0, width - SCALE_CELLS - 1)
    area = list(dots(values, inside, rows, top))
    if limit:
        at = min(rows - 1, max(0, rows - math.ceil(limit / top * rows)))
        area[at] = area[at].replace(" ", "┄")
    labels = [""] * rows
    labels[-1], labels[0] = "0", label(top)
    sides = ["│"] * (rows - 1) + ["└"]
    lines = [f"{text[:gutter]:>{gutter}}{side}{row}" for text, side, row in zip(labels, sides, area, strict=True)]
    if moments:
        lines.append(" " * (gutter + 1) + _axis(moments, inside))
    return tuple(lines)


SCALE_CELLS = 5  # of a scale's label at the left


def chart_columns(width: int) -> int:
    """How many values a chart of this width shows."""
    return ACROSS * max(0, width - SCALE_CELLS - 1)


def _axis(moments: Sequence[str], width: int) -> str:
    """`13:32 ───── 14:02 ───── 14:32`; only the first and the last if there is no room for all."""
    kept = list(moments)
    if sum(cell_len(text) + 3 for text in kept) > width:
        kept = [kept[0], kept[-1]] if len(kept) > 1 else kept
    if sum(cell_len(text) + 1 for text in kept) > width:
        kept = kept[-1:]
    if len(kept) == 1:
        return (kept[0] if cell_len(kept[0]) <= width else "").rjust(width)
    free = width - sum(cell_len(text) for text in kept)
    line, places = kept[0], len(kept) - 1
    for number, text in enumerate(kept[1:], 1):
        room = free * number // places - free * (number - 1) // places
        line += f" {'─' * max(0, room - 2)} "[:room] + text
    return line


def _highest(values: Iterable[Value]) -> float:
    return max((value for value in values if value is not None and math.isfinite(value)), default=0.0)


def _height(value: Value, top: float, most: int) -> int:
    """In dots: at least one for anything measured, at most the whole height."""
    if value is None or math.isnan(value):
        return 0
    if top <= 0 or value <= 0:
        return 1
    return most if value >= top else max(1, math.ceil(value / top * most))
