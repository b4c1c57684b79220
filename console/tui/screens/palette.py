"""The command palette: safe commands first; commands that end or decide a rollout last, and only if they apply."""

from collections.abc import Callable, Iterable
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.tui.actions import RegionAction, objection
from console.tui.screens.base import BaseScreen, ScreenName

SCREENS: tuple[tuple[ScreenName, str], ...] = (
    ("fleet", "all regions: does anything need me?"),
    ("rollout", "what is happening in the selected region, and why"),
    ("plan", "the plan of the selected region"),
    ("gate", "is it safe to confirm?"),
    ("history", "what happened in all regions"),
)
ACTIONS: tuple[tuple[str, RegionAction, str], ...] = (
    ("Refresh", "refresh", "read project files and regions again"),
    ("Witness", "witness", "smallest rows on which the edited queries differ"),
    ("Start", "start", "roll out the pending change, wave by wave"),
    ("Pause or resume", "pause", "the rollout of the selected region"),
    ("Retry", "retry", "after a failure"),
    ("Promote", "promote", "open the gate of the selected region"),
    ("Roll back", "rollback", "to the previous release"),
    ("Cancel the rollout", "cancel", "of the selected region"),
    ("Discard", "discard", "drop what a failed or paused rollout has built"),
)
Entry = tuple[str, str, Callable[[], object]]  # name, description, action


def entries(screen: BaseScreen) -> Iterable[Entry]:
    """Screens, then read-only commands, then actions that apply to the selected region, harmless ones first."""
    for name, description in SCREENS:
        if name != screen.name_of:
            yield f"Go to {name}", description, partial(screen.action_goto, name)
    yield "Keys", "all keys and symbols", screen.action_help
    yield "Handover", "what the next shift must know, as Markdown to copy", partial(screen.run_action, "app.handover")
    if screen.current_region and not screen.state.readonly:
        begun = f"app.command({f'note --region {screen.current_region} '!r})"
        yield "Note", "leave one with the selected region", partial(screen.run_action, begun)
    yield "What was run", "as commands, each of which can be copied", partial(screen.run_action, "app.commands_run")
    yield "Save a picture", "of this screen", partial(screen.run_action, "app.export")
    yield "Theme", "light, dark, high contrast, colour-blind", partial(screen.run_action, "app.change_theme")
    yield "Coach line", "show or hide the line with the next keys", partial(screen.run_action, "app.coach")
    yield "Quit", "the agents keep running", partial(screen.run_action, "app.quit")
    view = screen.current_view
    for action_name, action, description in ACTIONS:
        refusal = screen.state.refusal(action)
        if (action == "refresh" and not refusal) or (view and not objection(action, view, refusal)):
            yield action_name, description, partial(screen.action_request, action)


class ConsoleCommands(Provider):
    """Keeps the order of `entries` while the input is empty; Textual would sort them by name."""

    def _entries(self) -> list[Entry]:
        screen = self.screen
        return list(entries(screen)) if isinstance(screen, BaseScreen) else []

    async def discover(self) -> Hits:
        for rank, (name, description, call) in enumerate(self._entries()):
            yield DiscoveryHit(name, call, text=f"{rank:02} {name}", help=description)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, description, call in self._entries():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), call, text=name, help=description)
