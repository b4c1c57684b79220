"""What the operator can ask of a region, when it fits, and what to press next. Pure."""

from dataclasses import dataclass
from typing import Literal, assert_never

from textual.content import Content
from textual.message import Message

from console.runner.view import RegionView
from console.tui.drawing import key_hints
from console.tui.labels import change_pending, idle, state_label, working
from console.tui.state import ScreenState

RegionAction = Literal["refresh", "start", "pause", "retry", "cancel", "discard", "promote", "rollback", "witness"]


@dataclass
class ActionRequest(Message):
    """The operator pressed the key of a deed; `regions` are the marked ones, or the one in view."""

    deed: RegionAction
    regions: tuple[str, ...]


def objection(deed: RegionAction, view: RegionView, readonly: bool = False) -> str:
    """Why this deed does not fit the region now, in a sentence; "" where it fits.

    Only what the view shows is judged: the region itself decides, and says so when the call is made.
    """
    name, state = view.region.name, state_label(view).text
    if deed == "refresh":
        return ""
    if deed == "witness":  # runs nothing in the region, so a read-only console may
        return "" if view.plan else f"{name}: {view.problem or view.note or 'still being read'}"
    if readonly:
        return "this console is read-only; start it without --readonly"
    if view.link == "unreachable":
        return f"{name} does not answer; r tries again"
    match deed:
        case "start":
            return _start_objection(view)
        case "pause":
            fits = working(view) or view.status.held == "paused"
            return "" if fits else f"{name} is {state}: nothing moves that could pause"
        case "retry":
            return "" if view.status.held == "failed" else f"{name} is {state}: only a failed rollout is tried again"
        case "cancel":
            return f"{name} is {state}: no rollout to cancel" if idle(view) else ""
        case "discard":
            stands = (not idle(view) and not working(view)) or view.status.state == "cancelled"
            return "" if stands else f"{name} is {state}: only what stands can be discarded; X cancels"
        case "promote":
            fits = view.status.state == "awaiting-confirmation" and not view.status.held
            return "" if fits else f"{name} is {state}: only a region at its gate can be promoted"
        case "rollback":
            if not view.previous:
                return f"{name} keeps no previous release to go back to"
            return "" if idle(view) else f"{name} is {state}: X cancels the rollout first"
        case _:
            assert_never(deed)


def _start_objection(view: RegionView) -> str:
    name = view.region.name
    if not idle(view):
        word = state_label(view).text
        instead = {"failed": "t tries again", "paused": "p goes on", "at the gate": "P promotes"}.get(word, "")
        return f"{name} is {word}" + (f"; {instead}" if instead else "")
    if view.problem:
        return f"{name} has no plan: {view.problem}"
    if view.plan is None:
        return f"{name}: {view.note or 'still being read'}"
    if view.plan.refusals:
        return f"{name}: the plan is refused: {view.plan.refusals[0].message}"
    return "" if view.plan.changes else f"{name} has nothing to change"


def coach(scene: ScreenState, region: str, *, inside: bool = False) -> Content:
    """The next keys for the region in view; never empty. inside: its own screen is open, `enter` leads nowhere."""
    view = scene.views.get(region)
    if view is None:
        if scene.views:
            return key_hints(("esc", "clear the filter"), ("?", "all keys"))
        return Content.assemble(
            "no region yet: write regions/<name>.yaml, then ", key_hints(("r", "refresh"), ("q", "quit"))
        )
    said, pairs = _next(scene, view)
    if inside:
        pairs = [pair for pair in pairs if pair[0] not in ("enter", "space", "↑↓")] + [("esc", "back")]
    return Content.assemble(said, key_hints(*pairs))


def _next(scene: ScreenState, view: RegionView) -> tuple[str, list[tuple[str, str]]]:
    """A word before the keys, and the keys."""
    name = view.region.name
    gate = next((other for other, v in scene.views.items() if v.status.state == "awaiting-confirmation"), "")
    if view.link == "unreachable":
        return "", [("r", "try to reach it again"), ("enter", "see why"), ("q", "quit")]
    if view.status.held == "failed":
        return "", [("enter", "see why"), ("t", "try again"), ("D", "discard"), ("l", "log")]
    if view.status.held == "paused":
        return "", [("p", "go on"), ("X", "cancel"), ("enter", "watch")]
    if view.status.state == "awaiting-confirmation":
        return "", [("P", f"promote {name}"), ("v", "validations"), ("X", "cancel")]
    if working(view):
        return "", [("enter", "watch"), ("p", "pause"), ("l", "log"), ("q", "leave, it goes on")]
    if gate:
        return "", [("↑↓", f"go to {gate}: it is at its gate"), ("P", "promote")]
    if view.note:
        return "this screen follows by itself · ", [("l", "log"), ("q", "quit")]
    if turn := scene.turns.get(name):
        if turn.after:
            return f"{name} is wave {turn.wave}, after {', '.join(turn.after)} · ", [
                ("enter", "see why"),
                ("s", "start it now"),
            ]
        return f"it is the turn of {name}, wave {turn.wave} · ", [
            ("s", "start"),
            ("enter", "see why"),
            ("?", "all keys"),
        ]
    if change_pending(view):
        return "", [("enter", "see why"), ("s", "start"), ("w", "witness"), ("space", "mark"), ("?", "all keys")]
    if view.problem or (view.plan and view.plan.refusals):
        return "", [("enter", "see why"), ("r", "refresh, once the files are right")]
    if view.plan is None:
        return "reading the region · ", [("r", "read it again"), ("q", "quit")]
    if view.previous:
        return "", [("R", "roll back"), ("r", "refresh"), ("q", "quit")]
    return "nothing to do: edit plans/, then ", [("r", "refresh"), ("q", "quit")]
