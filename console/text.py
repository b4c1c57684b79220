"""Text from outside, made safe to show: no control sequence of another reaches the terminal."""

import unicodedata

# controls, bidi and zero-width marks, lone surrogates, line and paragraph separators
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def safe_text(outside: str, limit: int = 2000) -> str:
    """Show every character that could steer a terminal as its escape, `\\x1b` for ESC.

    outside  a name, log line or error text from a file, a region or a store
    limit    characters kept; a longer text ends in `…` (one cell of a megabyte freezes a table)
    returns  the same text with nothing in it but what is seen; markup is the caller's: pass it as `Content`
    """
    cut = outside if len(outside) <= limit else outside[: limit - 1] + "…"
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _STEERING else char for char in cut
    )
