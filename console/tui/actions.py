"""The actions that an operator can take on a region, why one may not apply, and which keys come next. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from textual.content import Content
from textual.message import Message

from console.model.gate import unaccepted
from console.runner import after_promotion
from console.runner.together.readiness import SplitWave
from console.runner.view import RegionView
from console.tui.drawing import key_hints
from console.tui.labels import Condition, change_pending, condition, idle, resumes, state_label, working
from console.tui.panes.checks import promotion_blocker
from console.tui.state import ScreenState
from console.tui.times import PROMOTE_SECONDS, age

RegionAction = Literal[
    "refresh", "start", "pause", "resume", "retry", "cancel", "discard", "promote", "rollback", "witness"
]
KeyHint = tuple[str, str]  # a key, and what it does
LIST_KEYS = ("enter", "space", "↑↓")  # without use on the screen of one region


@dataclass
class ActionRequest(Message):
    """The operator pressed the key of an action.

    regions  the marked ones, or the selected one
    named    a person marked or typed exactly these; else they are where the cursor is
    """

    action: RegionAction
    regions: tuple[str, ...]
    named: bool = False


def objection(action: RegionAction, view: RegionView, refusal: str = "", now: float = 0.0) -> str:
    """Why the action does not apply to the region now, as a sentence; "" if it does.

    Judged by the view alone: the region itself decides, and answers when the call is made.

    refusal  why no action is possible in any region (`ScreenState.refusal`)
    now      seconds since 1970, UTC; 0 leaves the age of the figures out
    """
    if refusal:
        return refusal
    name, state = view.region.name, state_label(view).text
    if action == "refresh":
        return ""
    if action == "witness":
        return "" if view.plan else _no_plan(view)
    if view.link == "unreachable":
        return f"{name} is unreachable; r retries"
    match action:
        case "start":
            return _start_objection(view)
        case "pause":
            applies = working(view) or resumes(view) or after_promotion.is_watched(view)
            return "" if applies else f"{name} ({state}): there is no running rollout to pause"
        case "resume":
            return "" if resumes(view) else f"{name} ({state}): there is no paused rollout to resume"
        case "retry":
            return "" if view.status.held == "failed" else f"{name} ({state}): only a failed rollout can be retried"
        case "cancel":
            return f"{name} ({state}): there is no rollout to cancel" if idle(view) else ""
        case "discard":
            return _discard_objection(view)
        case "promote":
            if view.status.state != "awaiting-confirmation" or view.status.held:
                return f"{name} ({state}): only a region at its gate can be promoted"
            return _too_old(view, now)
        case "rollback":
            if not view.previous:
                return f"{name} has no previous release to roll back to"
            return "" if idle(view) else f"{name} ({state}): cancel the rollout first (X)"
        case _:
            assert_never(action)


def whole_wave(action: RegionAction, splits: Mapping[str, SplitWave], region: str) -> tuple[str, ...]:
    """The regions of a wave that is live in part on which the action acts from any of its regions: promoting finishes the
    rest, and rolling back applies to all that are live; () in any other case.
    """
    split = splits.get(region)
    if split is None or action not in ("promote", "rollback"):
        return ()
    return split.waiting if action == "promote" else split.live


def tune_objection(view: RegionView, readonly: bool = False) -> str:
    """Why limits cannot be changed in the region now; "" if they can."""
    name = view.region.name
    if readonly:
        return "this console is read-only; start it without --readonly"
    if view.link == "unreachable":
        return f"{name} is unreachable; r retries"
    return f"{name}: no rollout is running; its limits are in regions/*.yaml" if idle(view) else ""


def _too_old(view: RegionView, now: float) -> str:
    """Figures older than the limit must not be the basis of a promotion."""
    old = now - view.heard
    if not now or old <= PROMOTE_SECONDS:
        return ""
    how = f"are {age(old)} old" if view.heard else "have not been seen by this console"
    return f"{view.region.name}: its figures {how}; r reads them again, then P"


def _no_plan(view: RegionView) -> str:
    return f"{view.region.name}: {view.problem or view.note or 'the plan is not ready yet'}"


def _discard_objection(view: RegionView) -> str:
    if view.status.state == "cancelled" or not (idle(view) or working(view)):
        return ""
    why = "a running rollout is ended with X" if working(view) else "there is no rollout to discard"
    return f"{view.region.name} ({state_label(view).text}): {why}"


def _start_objection(view: RegionView) -> str:
    name = view.region.name
    if not idle(view):
        hint = {Condition.FAILED: "; t retries", Condition.PAUSED: "; p resumes", Condition.AT_GATE: "; P promotes"}
        return f"{name} is {state_label(view).text}{hint.get(condition(view), '')}"
    if view.problem:
        return f"{name} has no plan: {view.problem}"
    if view.plan is None:
        return _no_plan(view)
    if view.plan.refusals:
        return f"{name}: the plan is refused: {view.plan.refusals[0].message}"
    return "" if view.plan.changes else f"{name} has no pending change"


def coach(state: ScreenState, region: str, *, in_region: bool = False, here: str = "") -> Content:
    """The next keys for the selected region; never empty.

    in_region  its own screen is open, so `enter` has no effect
    here       the key of the open screen, which has no effect either
    """
    view = state.views.get(region)
    if view is None:
        if state.views:
            return key_hints(("esc", "clear the filter"), ("?", "all keys"))
        return Content.assemble(
            "no regions yet: add regions/<name>.yaml, then ", key_hints(("r", "refresh"), ("q", "quit"))
        )
    lead, hints = _next(state, view)
    hints = [hint for hint in hints if hint[0] != here]
    if in_region:
        if hints[0][0] == "↑↓":  # about another region, out of reach of this screen's keys
            hints = [("1", hints[0][1])]
        hints = [hint for hint in hints if hint[0] not in LIST_KEYS] + [("esc", "back")]
    return Content.assemble(lead, key_hints(*hints))


def _next(state: ScreenState, view: RegionView) -> tuple[str, list[KeyHint]]:
    """A remark before the keys, and the keys."""
    name = view.region.name
    gate = next((other for other, v in state.views.items() if v.status.state == "awaiting-confirmation"), "")
    if view.link == "unreachable":
        return "", [("r", "retry the connection"), ("enter", "see why"), ("q", "quit")]
    if view.status.held == "failed":
        return "", [("enter", "see why"), ("t", "retry"), ("D", "discard"), ("l", "log")]
    if view.waits:
        return "this screen updates by itself · ", [("enter", "watch"), ("l", "log"), ("q", "quit")]
    if view.status.state == "live" and (held := view.status.watched.holds):
        return f"next wave held: {held} · ", [("R", "take it back"), ("p", "let it begin"), ("enter", "why")]
    if view.status.held == "paused":
        return "", [("p", "resume"), ("X", "cancel"), ("enter", "watch")]
    if split := state.splits.get(name):
        return f"wave {split.wave} is live in part · ", [
            ("P", "finish the rest"),
            ("R", "return all"),
            ("?", "all keys"),
        ]
    if view.status.state == "awaiting-confirmation":
        unclear = unaccepted(view.status) and not any(check.ok is False for check in view.status.checks)
        if blocked := promotion_blocker(view.status):
            accept = [("P", "accept them and promote")] if unclear else []
            return f"{blocked} · ", [("4", "is it safe?"), ("v", "validations"), *accept, ("X", "cancel")]
        if waits := next((each for each in view.gate.closed_by if each.state == "waiting"), None):
            return f"{waits.name}: {waits.why} · ", [("4", "is it safe?"), (":", "approve"), ("X", "cancel")]
        return "", [("P", f"promote {name}"), ("v", "validations"), ("X", "cancel")]
    if working(view):
        return "", [("enter", "watch"), ("p", "pause"), ("l", "log"), ("q", "quit, the rollout continues")]
    if gate:
        return "", [("↑↓", f"go to {gate}, which is at its gate"), ("P", "promote")]
    if view.note:
        return "this screen updates by itself · ", [("l", "log"), ("q", "quit")]
    if queued := state.queued.get(name):
        why = ("enter", "see why")
        if queued.after:
            return f"{name} is in wave {queued.wave}, after {', '.join(queued.after)} · ", [why, ("s", "start it now")]
        return f"{name} is next, in wave {queued.wave} · ", [("s", "start"), why, ("?", "all keys")]
    return _next_idle(view)


def _next_idle(view: RegionView) -> tuple[str, list[KeyHint]]:
    """For an idle region that is not queued for a wave."""
    if change_pending(view):
        return "", [("3", "see why"), ("s", "start"), ("w", "witness"), ("space", "mark"), ("?", "all keys")]
    if view.problem or (view.plan and view.plan.refusals):
        return "", [("enter", "see why"), ("r", "refresh once the files are fixed")]
    if view.plan is None:
        return "reading the region · ", [("r", "read it again"), ("q", "quit")]
    if view.previous:
        return "", [("R", "roll back"), ("r", "refresh"), ("q", "quit")]
    return "nothing to do: edit plans/, then ", [("r", "refresh"), ("q", "quit")]
