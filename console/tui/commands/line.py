"""A typed command: the screen's own action where it has one, else a line for a shell."""

from dataclasses import dataclass

from console.runner.words import CommandWords
from console.tui.actions import RegionAction

ACTIONS: dict[str, RegionAction] = {
    "plan": "refresh", "apply": "start", "pause": "pause", "resume": "pause", "retry": "retry", "cancel": "cancel",
    "discard": "discard", "promote": "promote", "rollback": "rollback",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
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
    return TypedCommand(line=f"console {typed}", action=action, regions=regions)
