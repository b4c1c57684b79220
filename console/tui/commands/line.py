"""A typed command, and what the screen needs of the command line: its words, since one face must not import the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from console.tui.actions import RegionAction

ACTIONS: dict[str, RegionAction] = {
    "plan": "refresh", "apply": "start", "pause": "pause", "resume": "pause", "retry": "retry", "cancel": "cancel",
    "discard": "discard", "promote": "promote", "rollback": "rollback",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadCommand:
    """A command as the command line reads it. bare: nothing but a command and its regions was given"""

    name: str
    regions: tuple[str, ...]
    bare: bool


class CommandWords(Protocol):
    """The command line's own words."""

    def complete(self, typed: str) -> Sequence[tuple[str, str]]:
        """Words that may stand at the end of what is typed, each with its help."""
        ...

    def read(self, typed: str) -> ReadCommand:
        """raises  ConsoleError as the command line itself would"""
        ...


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """line: for a shell; action: the screen's own, None where it needs a shell"""

    line: str
    action: RegionAction | None
    regions: tuple[str, ...]


def typed_command(typed: str, words: CommandWords, region: str) -> TypedCommand:
    """What was typed; a command without regions is about the one under the cursor.

    raises  ConsoleError if the command line would refuse it
    """
    typed = typed.strip().removeprefix("console ")
    read = words.read(typed)
    action = ACTIONS.get(read.name) if read.bare else None
    regions = read.regions or ((region,) if region and action not in (None, "start", "refresh") else ())
    return TypedCommand(f"console {typed}", action, regions)
