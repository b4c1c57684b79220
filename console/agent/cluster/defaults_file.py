"""The operator's own `spark-defaults.conf`, read where a region names it, in the format of Java's properties."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

from console.errors import RegionError
from console.text import hide

_BYTES = 1 << 20
_PREFIX = "spark."
_SPLIT = re.compile(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_defaults(path: str) -> dict[str, str]:
    """Its settings by name; {} for "". From now on this process shows values of secret-looking names as `***`.

    As Spark reads it: only names that begin with `spark.` count, the last of two equal ones wins, values are trimmed.

    raises  RegionError E_DEFAULTS if it is not there, is no text, or may be written by everybody, since settings are code
    """
    if not path:
        return {}
    found = dict(_settings(_text(Path(path))))
    hide(found.items())
    return found


def _text(path: Path) -> str:
    if not path.is_absolute():
        raise _refused(path, "expected an absolute path on the region's host")
    try:
        held = path.stat()
        if not stat.S_ISREG(held.st_mode):
            raise _refused(path, "not a file")
        if held.st_mode & stat.S_IWOTH:
            raise _refused(
                path, "every user of its host can write it, and Spark's settings are code", f"chmod o-w {path}"
            )
        if held.st_size > _BYTES:
            raise _refused(path, f"{held.st_size:,} bytes: not a file of settings")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _refused(path, getattr(error, "strerror", "") or "not a text in UTF-8") from None


def _refused(path: Path, why: str, hint: str = "correct spark.defaults in the region's file") -> RegionError:
    return RegionError(f"spark.defaults: {path}: {why}", hint=hint, code="E_DEFAULTS")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for line in _logical_lines(text):
        if split := _SPLIT.match(line):
            name, value = (_ESCAPE.sub(_unescaped, part) for part in split.groups())
            if name.startswith(_PREFIX):
                yield name, value.strip()


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments; one that ends with an odd number of backslashes goes on in the next."""
    kept = ""
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not kept and (not line or line[0] in "#!"):
            continue
        kept += line
        if (len(kept) - len(kept.rstrip("\\"))) % 2:
            kept = kept[:-1]
            continue
        yield kept
        kept = ""
    if kept:
        yield kept


def _unescaped(match: "re.Match[str]") -> str:
    char = match[1]
    if len(char) > 1:
        return chr(int(char[1:], 16))
    return _CONTROL.get(char, char)
