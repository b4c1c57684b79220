"""Quantities and columns in text: the common format of counts, sizes, times and tables."""

from collections.abc import Sequence
from difflib import unified_diff

from console.model.plan import Price
from console.text import safe_text

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count(number: int, word: str, plural: str = "") -> str:
    """`1 day`, `14 days`, `1,500,000 rows`."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def size(number: float) -> str:
    """Bytes in binary units, three digits: `420 MiB`, `1.46 GiB`."""
    step = 0
    while number >= 1000 and step < len(_UNITS) - 1:
        number /= 1024
        step += 1
    return f"{number:.3g} {_UNITS[step]}" if step else f"{number:.0f} B"


def span(seconds: float | None) -> str:
    """A length of time: `40 s`, `2 min 10 s`, `3 h 05 min`, `unknown` for None."""
    if seconds is None:
        return "unknown"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 3600:
        return f"{round(whole / 60)} min"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def percent(part: float, whole: float) -> str:
    """A share in whole percent, rounded down: `99 %` until nothing is left, `0 %` of nothing."""
    if not whole:
        return "0 %"
    return "100 %" if part >= whole else f"{min(99, int(100 * part / whole))} %"


def expected(price: Price) -> str:
    """How long it will take, by the region's measured rate: `~2 min 10 s`."""
    if not price.rows:
        return "0 s"
    return f"~{span(price.seconds)}" if price.seconds else "not measured"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: int = 0) -> str:
    """Columns aligned by their widest cell, two spaces apart; the last one is not padded.

    right  indexes of the columns set flush right (figures)
    """
    cells = [list(heads), *[list(row) for row in rows]] if any(heads) else [list(row) for row in rows]
    if not cells:
        return ""
    widths = [max(_width(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        padded = [
            " " * (widths[i] - _width(cell)) + cell if i in right else cell + " " * (widths[i] - _width(cell))
            for i, cell in enumerate(row)
        ]
        lines.append((" " * indent + "  ".join(padded)).rstrip())
    return "\n".join(lines)


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of a file that an edit removes and adds, safe to show."""
    diff = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))
    return [f"    {safe_text(line)}" for line in diff[2:] if not line.startswith("@@")]


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # 30 ms, and most tables are ASCII

    return cell_len(text)
