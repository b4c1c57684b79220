"""The operator's actions as command lines. Pure: lines are kept, shown and copied, never run from here."""

import shlex
from collections.abc import Sequence

from console.record import dataclass
from console.tui.actions import RegionAction

WORDS: dict[RegionAction, str] = {
    "refresh": "plan", "start": "apply", "pause": "pause", "resume": "resume", "retry": "retry", "cancel": "cancel", "discard": "discard",
    "promote": "promote", "rollback": "rollback", "witness": "plan --witness",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RanCommand:
    """One action. at: seconds since 1970, UTC; result: `done`, or why not"""

    at: float
    line: str
    result: str


def action_command(action: RegionAction, regions: Sequence[str]) -> str:
    """`console pause --regions eu,us`: the equivalent command line."""
    return command_line(WORDS[action], regions)


def command_line(words: str, regions: Sequence[str]) -> str:
    named = f" --regions {shlex.quote(','.join(regions))}" if regions else ""
    return f"console {words}{named}"
