"""A terminal recording as one SVG without scripts: frames of a screen, of which each line is drawn once and shown by CSS."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from rich.color import ColorTriplet
from rich.segment import Segment
from textual.strip import Strip

from console.tui.app import ConsoleApp

CELL, LINE, FONT = 8.43, 17.0, 14.0  # pixels
MARGIN = 8.0
PLAIN, GROUND = ColorTriplet(0xD5, 0xDD, 0xE3), ColorTriplet(0x10, 0x14, 0x18)


@dataclass(frozen=True, slots=True)
class Frame:
    """One screen. lines: each drawn as SVG, at height 0; seconds: how long it is shown"""

    lines: tuple[str, ...]
    seconds: float


def frame(app: ConsoleApp, seconds: float) -> Frame:
    """The screen as it is now."""
    return Frame(tuple(_line(strip) for strip in app.screen._compositor.render_strips(size=app.size)), seconds)


def _line(strip: Strip) -> str:
    """Backgrounds, then text: runs of cells of one style."""
    grounds, texts, column = [], [], 0
    for segment in Segment.simplify(strip):
        style, cells = segment.style, segment.cell_length
        x, width = MARGIN + column * CELL, cells * CELL
        column += cells
        ink = style.color.get_truecolor() if style and style.color else PLAIN
        ground = style.bgcolor.get_truecolor() if style and style.bgcolor else GROUND
        if style and style.reverse:
            ink, ground = ground, ink
        if ground != GROUND:
            grounds.append(f'<path fill="{ground.hex}" d="M{x:.1f} 0h{width:.1f}v{LINE:g}h-{width:.1f}z"/>')
        if text := segment.text.rstrip():
            lead = len(text) - len(text.lstrip())
            place = f'x="{x + lead * CELL:.1f}" textLength="{(len(text) - lead) * CELL:.1f}"'
            bold = ' font-weight="bold"' if style and style.bold else ""
            shown = escape(text.lstrip(), quote=False).replace(" ", "\u00a0")
            texts.append(f'<text {place} y="13" fill="{ink.hex}"{bold}>{shown}</text>')
    return "".join((*grounds, *texts))


def animated(frames: Sequence[Frame], columns: int, title: str) -> str:
    """All frames after each other, without end; whoever wants no motion sees the last one."""
    rows = max(len(frame.lines) for frame in frames)
    ends = [sum(frame.seconds for frame in frames[: number + 1]) for number in range(len(frames))]
    total, spans, groups = ends[-1], dict[tuple[int, int], str](), []
    for row in range(rows):
        for first, last, line in _runs([frame.lines[row] if row < len(frame.lines) else "" for frame in frames]):
            if line:
                always = (first, last) == (0, len(frames))
                kind = "" if always else f' class="{spans.setdefault((first, last), f"s{len(spans)}")}"'
                groups.append(f'<g transform="translate(0 {MARGIN + row * LINE:g})"{kind}>{line}</g>')
    width, height = 2 * MARGIN + columns * CELL, 2 * MARGIN + rows * LINE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">',
            "<style>", *_styles(spans, [0.0, *ends], total, len(frames)), "</style>",
            f'<rect width="{width:g}" height="{height:g}" rx="6" fill="{GROUND.hex}"/>',
            '<g class="all">', *groups, "</g>", "</svg>", "",
        ]
    )  # fmt: skip


def _runs(lines: Sequence[str]) -> Iterable[tuple[int, int, str]]:
    """(first frame, frame after the last one, line): as long as a line stays as it is."""
    first = 0
    for number in range(1, len(lines) + 1):
        if number == len(lines) or lines[number] != lines[first]:
            yield first, number, lines[first]
            first = number


def _styles(spans: dict[tuple[int, int], str], at: Sequence[float], total: float, count: int) -> Iterable[str]:
    yield f'.all text{{font:{FONT:g}px "DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre}}'
    for (first, last), name in spans.items():
        begin, end = 100 * at[first] / total, 100 * at[last] / total
        shown = f"{begin:.2f}%{{visibility:visible}}" + (f"{end:.2f}%{{visibility:hidden}}" if last < count else "")
        before = "0%{visibility:hidden}" if first else ""
        yield f"@keyframes {name}{{{before}{shown}}}"
        yield f".{name}{{visibility:hidden;animation:{name} {total:g}s step-end infinite}}"
    still = ",".join(f".{name}" for (_, last), name in spans.items() if last == count)
    yield f"@media (prefers-reduced-motion){{.all g{{animation:none!important}}{still}{{visibility:visible}}}}"
