"""The footer: keys that apply now, each of which can be clicked. Pure; the bindings themselves are on the screens."""

from collections.abc import Sequence

from textual.content import Content
from textual.style import Style

from console.record import dataclass
from console.runner.view import RegionView
from console.tui.actions import RegionAction, objection, whole_wave
from console.tui.labels import resumes
from console.tui.state import ScreenState

FIRST, LATER, LAST = 0, 1, 2  # the order in which keys are left out of a narrow footer: the last ones first
ACTIONS: tuple[tuple[str, RegionAction, str, int], ...] = (
    ("s", "start", "start", FIRST),
    ("p", "pause", "pause", FIRST),
    ("P", "promote", "promote", FIRST),
    ("t", "retry", "retry", FIRST),
    ("R", "rollback", "back", LATER),
    ("X", "cancel", "cancel", LATER),
    ("D", "discard", "discard", LATER),
)
SCREENS = (("1", "fleet"), ("2", "rollout"), ("3", "plan"), ("4", "gate"), ("5", "history"))


@dataclass(frozen=True, slots=True)
class FooterKey:
    """A key, its effect, the action behind it, and how dispensable it is."""

    key: str
    label: str
    action: str
    rank: int = LATER


ALWAYS = (
    FooterKey("@", "what was run", "screen.commands_run", LAST),
    FooterKey(":", "command", "screen.command", FIRST),
    FooterKey("?", "keys", "screen.help", FIRST),
    FooterKey("q", "quit", "app.quit", LAST),
)


def screen_key(name: str) -> str:
    """The key that leads to a screen."""
    return next((key for key, screen in SCREENS if screen == name), "")


def screen_keys(current: str) -> tuple[FooterKey, ...]:
    """The keys of the other screens."""
    return tuple(FooterKey(key, name, f"screen.goto('{name}')", LAST) for key, name in SCREENS if name != current)


def action_keys(state: ScreenState, view: RegionView | None, targets: Sequence[str] = ()) -> tuple[FooterKey, ...]:
    """The actions that apply to the regions now: the marked ones, or the one under the cursor."""
    views = [state.views[name] for name in targets if name in state.views] or ([view] if view else [])
    keys = []
    here = view.region.name if view and not targets[1:] else ""
    for key, action, label, rank in ACTIONS:
        if whole_wave(action, state.splits, here) and not state.refusal(action):
            does = "finish the wave" if action == "promote" else "return the wave"
            keys.append(FooterKey(key, does, f"screen.request('{action}')", FIRST))
            continue
        fitting = [each for each in views if not objection(action, each, state.refusal(action))]
        if fitting:
            again = action == "pause" and all(resumes(each) for each in fitting)
            keys.append(FooterKey(key, "resume" if again else label, f"screen.request('{action}')", rank))
    return tuple(keys)


def draw_footer(keys: Sequence[FooterKey], width: int) -> Content:
    """One line; if there is no room for all keys, those of the highest rank are left out, the last first."""
    kept = list(keys)
    while kept and sum(len(key.key) + len(key.label) + 3 for key in kept) > width:
        rank = max(key.rank for key in kept)
        kept.remove(next(key for key in reversed(kept) if key.rank == rank))
    parts = []
    for key in kept:
        hint = Content.assemble((f" {key.key}", "bold $text-accent"), f" {key.label} ")
        parts.append(hint.stylize(Style.from_meta({"@click": key.action})))
    return Content("").join(parts)
