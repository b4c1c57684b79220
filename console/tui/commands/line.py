"""A typed command: the screen's own action where it has one, else a line for a shell."""

from dataclasses import dataclass
from typing import Literal

from console.model.note import note_text
from console.runner.words import CommandWords
from console.tui.actions import RegionAction

ACTIONS: dict[str, RegionAction] = {
    "plan": "refresh", "apply": "start", "pause": "pause", "resume": "pause", "retry": "retry", "cancel": "cancel",
    "discard": "discard", "promote": "promote", "rollback": "rollback",
}  # fmt: skip
VIEWS: dict[str, Literal["", "handover", "history"]] = {"handover": "handover", "history": "history"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCommand:
    """A line as it was typed, and what the screen itself does for it.

    line    for a shell
    action  one of the screen's own; None where it has none
    view    a screen or sheet that shows the same; "" where a shell has to print it
    note    text of a note to be left; "" for any other command
    """

    line: str
    action: RegionAction | None
    regions: tuple[str, ...]
    view: Literal["", "handover", "history"] = ""
    note: str = ""


def typed_command(typed: str, words: CommandWords, region: str) -> TypedCommand:
    """What was typed; a command without regions is about the one under the cursor.

    raises  ConsoleError if the command line would refuse it
    """
    typed = typed.strip().removeprefix("console ")
    read = words.read(typed)
    action = ACTIONS.get(read.name) if read.bare else None
    view = VIEWS.get(read.name, "") if read.bare and not read.regions else ""
    note = note_text(read.text) if read.name == "note" and read.text else ""
    about_one = bool(note) or action not in (None, "start", "refresh")
    regions = read.regions or ((region,) if region and about_one else ())
    return TypedCommand(line=f"console {typed}", action=action, regions=regions, view=view, note=note)
