"""A typed command between the two faces: the command line reads it, the screen acts on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ALL = "all"  # in place of names: every region


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCommand:
    """A command as the command line reads it.

    regions  the names given, `all` for every one; () where none was
    text     the words of its one argument that takes any, as those of a note; "" where it has none
    bare     nothing but a command and its regions was given, so that the screen's own action does the same
    """

    name: str
    regions: tuple[str, ...] = ()
    bare: bool = False
    text: str = ""


class CommandWords(Protocol):
    """The command line's own words."""

    def complete(self, typed: str) -> Sequence[tuple[str, str]]:
        """Words that may stand at the end of what is typed, each with its help."""
        ...

    def read(self, typed: str) -> ReadCommand:
        """raises  ConsoleError as the command line itself would"""
        ...
