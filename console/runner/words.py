"""A typed command, shared by the two faces: the command line parses it, the screen acts on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.runner.view import RegionView

ALL = "all"  # instead of names: every region


def chosen(words: Sequence[str], views: Mapping[str, RegionView]) -> tuple[str, ...]:
    """The regions that these words name, each once; a word that names none is kept unchanged."""
    named: list[str] = []
    for word in words:
        group = [name for name, view in views.items() if word == ALL or word in view.region.groups]
        named += group or [word]
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCommand:
    """A command as the command line reads it.

    regions    the names given, `@wave2` for those of a wave, `all` for every one; () where none was
    arguments  words that are not options: `rows=60000`
    options    names of the command's own options that were given
    text       the words of its one argument that takes any, as those of a note; "" where it has none
    bare       nothing but a command, its regions, arguments and own options was given: no option of the whole program, so
               that the screen's own action does the same
    """

    name: str
    regions: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    bare: bool = False
    text: str = ""


class CommandWords(Protocol):
    """The command line's own words."""

    def complete(self, typed: str) -> Sequence[tuple[str, str]]:
        """Possible completions of the last typed word, each with its help."""
        ...

    def read(self, typed: str) -> ReadCommand:
        """raises  ConsoleError as the command line itself would"""
        ...
