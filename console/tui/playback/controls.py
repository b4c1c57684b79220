"""Keys of a playback, and their effect on its player."""

from dataclasses import dataclass
from typing import Literal, assert_never

from textual.binding import Binding, BindingType
from textual.message import Message

from console.runner.view import Player
from console.tui.format import MINUTE

Control = Literal["toggle", "slower", "faster", "decision_before", "decision_after", "back", "on", "time"]

BINDINGS: list[BindingType] = [
    Binding("space", "playback('toggle')", "Pause", tooltip="playback: pause or continue; at the end, start over"),
    Binding("less_than_sign", "playback('slower')", "Slower", tooltip="playback: slower"),
    Binding("greater_than_sign", "playback('faster')", "Faster", tooltip="playback: faster, up to ×1000"),
    Binding("comma", "playback('decision_before')", "Back", tooltip="playback: back to the decision before"),
    Binding("full_stop", "playback('decision_after')", "Next", tooltip="playback: on to the next decision"),
    Binding("b", "playback('back')", "Back", tooltip="playback: a minute back"),
    Binding("f", "playback('on')", "On", tooltip="playback: a minute on"),
    Binding("a", "playback('time')", "Time", tooltip="playback: go to a time"),
]


@dataclass
class PlaybackRequest(Message):
    """The operator pressed a key of the playback."""

    pressed: Control


async def perform(control: Control, player: Player) -> str:
    """Perform the request; returns why nothing happened, or ""."""
    match control:
        case "toggle":
            player.toggle()
        case "slower":
            player.faster(-1)
        case "faster":
            player.faster(1)
        case "decision_before":
            return "" if await player.seek_decision(-1) else "there is no decision before"
        case "decision_after":
            return "" if await player.seek_decision(1) else "there is no further decision"
        case "back" | "on":
            by = MINUTE if control == "on" else -MINUTE
            await player.seek(player.position.at + by)
        case "time":
            pass  # the time is asked for first
        case _:
            assert_never(control)
    return ""
