"""A typed command: the screen's own action if it has one, else a line for a shell."""

from typing import Literal

from console.errors import DataError
from console.model.note import note_text
from console.model.tuning import KNOBS, Tuning, parse_settings
from console.record import dataclass
from console.runner.words import CommandWords, ReadCommand
from console.tui.actions import RegionAction

ACTIONS: dict[str, RegionAction] = {
    "plan": "refresh", "apply": "start", "pause": "pause", "resume": "resume", "retry": "retry", "cancel": "cancel",
    "discard": "discard", "promote": "promote", "rollback": "rollback",
}  # fmt: skip
VIEWS: dict[str, Literal["", "handover", "history"]] = {"handover": "handover", "history": "history"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """Limits to change. reset: earlier changes are first reset to the plan's limits"""

    tuning: Tuning
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCommand:
    """A typed line, and the screen's own equivalent.

    line    for a shell
    action  one of the screen's own, or None
    limits  to be changed; None for any other command
    view    a screen or sheet that shows the same; "" if a shell has to print it
    approves  the promotion of a region that is at its gate
    note    text of a note to be left; "" for any other command
    """

    line: str
    regions: tuple[str, ...]
    action: RegionAction | None = None
    limits: LimitChange | None = None
    view: Literal["", "handover", "history"] = ""
    note: str = ""
    approves: bool = False


def typed_command(typed: str, words: CommandWords, region: str) -> TypedCommand:
    """The parsed line; a command without regions applies to the region under the cursor.

    raises  ConsoleError if the command line would refuse it
    """
    typed = typed.strip().removeprefix("console ")
    read = words.read(typed)
    action, limits = _action(read), _limits(read)
    plain = read.bare and not read.arguments and not read.options
    view = VIEWS.get(read.name, "") if plain and not read.regions else ""
    note = note_text(read.text) if read.name == "note" and read.text else ""
    approves = read.name == "approve" and plain
    about_one = bool(note or limits or approves) or action not in (None, "start", "refresh")
    regions = read.regions or ((region,) if region and about_one else ())
    return TypedCommand(
        line=f"console {typed}", action=action, limits=limits, regions=regions, view=view, note=note, approves=approves
    )


def _action(read: ReadCommand) -> RegionAction | None:
    if not read.bare or read.arguments:
        return None
    if read.name == "plan" and read.options == {"witness"}:
        return "witness"
    return None if read.options else ACTIONS.get(read.name)


def _limits(read: ReadCommand) -> LimitChange | None:
    """raises  DataError for an unknown limit, one given twice, and a value out of range"""
    if read.name != "tune" or not read.bare or not read.options <= {"reset"}:
        return None
    if not read.arguments and not read.options:
        raise DataError("nothing to change", hint=f"NAME=VALUE, of {', '.join(KNOBS)}; or --reset")
    return LimitChange(tuning=parse_settings(read.arguments), reset="reset" in read.options)
