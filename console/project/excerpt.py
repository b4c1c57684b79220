"""The line of an error, with a caret under the place."""

from pathlib import Path

from console.errors import DataError
from console.project.yaml import read_text
from console.text import safe_text

_WIDTH = 100


def excerpt(root: Path, where: str) -> tuple[str, str]:
    """The text at `file:line:column`, safe to show.

    root     the project
    returns  (the line, the caret below its column); both "" if that line no longer exists
    """
    try:
        file, row, column = where.rsplit(":", 2)
        line = read_text(root / file, root).splitlines()[int(row) - 1]
        at = int(column) - 1
    except (DataError, ValueError, IndexError):
        return "", ""
    first = max(0, at - _WIDTH // 2)
    shown = safe_text(line[first : first + _WIDTH])
    return (shown, " " * len(safe_text(line[first:at])) + "^") if shown.strip() else ("", "")
