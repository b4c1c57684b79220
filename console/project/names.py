"""Rules for console's own names, and the nearest name to a misspelt one."""

import re
from collections.abc import Iterable

from console.model.landing import is_reserved

RULE = "a lower-case letter, then up to 62 of a-z 0-9 _ -"
SAVED = "saved"  # the folder beside the pipelines that holds saved plans
# `stored` is the view under which every compiled query finds a table's own rows: a table of that name would be given another's
RESERVED = frozenset((SAVED, "stored"))
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,62}")
# controls, line separators, lone surrogates, and the marks that reverse the reading of what follows
_UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Delta refuses these in tables without column mapping, which ours never have (docs/design.md, rule 9)
_NOT_IN_DELTA = re.compile(r"[ ,;{}()=]")


def wrong_name(name: str) -> str:
    """Why `name` cannot be one of ours (region, pipeline, table, query), or "" if it can."""
    if name in RESERVED:
        return f"`{name}` is a reserved name"
    return "" if _NAME.fullmatch(name) else f"`{name[:70]}` is not a valid name: {RULE}"


def wrong_parameter(name: str) -> str:
    """Why `name` cannot stand as `:name` in SQL, or ""."""
    good = _PARAMETER.fullmatch(name)
    return (
        "" if good else f"`{name[:70]}` is not a valid parameter name: a lower-case letter, then up to 62 of a-z 0-9 _"
    )


def wrong_column(name: str, ours: bool) -> str:
    """Why `name` cannot be a column, or "". In a foreign table it may be almost anything.

    ours  True for tables that we write
    """
    if not name:
        return "a column needs a name"
    if len(name) > 255:
        return f"the column name `{name[:30]}…` has {len(name)} characters; 255 are allowed"
    if _UNREADABLE.search(name):
        return f"the column name {name!a} holds a control character"
    if ours and (near := _NOT_IN_DELTA.search(name)):
        return f"the column name `{name}` holds `{near[0]}`, which Delta does not store"
    return ""


def kept_column(name: str) -> str:
    """Why `name` cannot be a column of a managed landing table, or ""."""
    return (
        f"the column name `{name}` is kept for the stored values of `{name.partition('@')[0]}`"
        if is_reserved(name)
        else ""
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, or ""."""
    from difflib import get_close_matches

    choices = sorted(known)
    if near := get_close_matches(word.lower(), choices, 1, 0.6):
        return near[0]
    return next((name for name in choices if len(word) > 2 and name.startswith(word.lower())), "")


def did_you_mean(word: str, known: Iterable[str], what: str = "known") -> str:
    """A hint: the nearest name if one is near, else all of them.

    what  how the list is introduced: `known keys`, `tables`
    """
    choices = sorted(known)
    if near := nearest(word, choices):
        return f"did you mean `{near}`?"
    listed = ", ".join(choices[:20]) + (", …" if len(choices) > 20 else "")
    return f"{what}: {listed}" if choices else ""


class Unfit(ValueError):
    """A value of another form than the expected one, which the message names; the value itself is not in it.

    meant  the value that may have been meant, or ""
    """

    def __init__(self, expected: str, meant: str = "") -> None:
        super().__init__(f"expected {expected}")
        self.meant = meant


class Misspelt(ValueError):
    """A value that does not fit, and the one that may have been meant."""

    def __init__(self, message: str, meant: str) -> None:
        super().__init__(f"{message}, did you mean `{meant}`?")
        self.message, self.meant = message, meant
