"""The list of regions: in the order of waves, with a cursor, marks and a filter."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Click, Resize
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from console.runner.view import RegionView
from console.tui.groups import labels
from console.tui.panes.line import RegionLine, head
from console.tui.scene import Scene
from console.tui.words import state_word


def matches(view: RegionView, wanted: str, plan: str = "") -> bool:
    """Whether name, environment, owner, state or plan hold every word of the filter; a word after `!` must be absent.

    plan  the letter of the region's plan, found by `plan:b`
    """
    region = view.region
    told = f"{region.name} {region.environment} {region.owner} {state_word(view).text} wave{region.wave} plan:{plan}"
    told += " drifted" if view.plan and view.plan.drift else ""
    told = f"{told} canary".lower() if region.canary else told.lower()
    return all((part[1:] not in told) if part[:1] == "!" else part in told for part in wanted.lower().split())


class RegionList(VerticalScroll, can_focus=True):
    """Draws the regions of `scene`; says where the cursor is and which regions are marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("home,g", "move(-1000000)", "first", show=False),
        Binding("end,G", "move(1000000)", "last", show=False),
        Binding("enter", "open", "Open", key_display="enter", tooltip="open the region: why, steps, checks, log"),
        Binding("space", "mark", "Mark", key_display="space", tooltip="mark: keys then act on the marked regions"),
    ]
    scene: reactive[Scene] = reactive(Scene({}))
    wanted: reactive[str] = reactive("")
    current: reactive[str] = reactive("")

    @dataclass
    class Moved(Message):
        """Another region is under the cursor; "" where none is shown."""

        region: str

    @dataclass
    class Opened(Message):
        """The operator asks for this region's screen."""

        region: str

    def __init__(self) -> None:
        super().__init__()
        self.marked: frozenset[str] = frozenset()
        self._head = Static(id="head")
        self._lines: dict[str, RegionLine] = {}

    def compose(self) -> ComposeResult:
        yield self._head

    @property
    def shown(self) -> list[str]:
        """Names of the regions that the filter lets through, in order."""
        plans = labels(self.scene.groups)
        return [name for name, view in self.scene.views.items() if matches(view, self.wanted, plans.get(name, ""))]

    def on_resize(self, event: Resize) -> None:
        self._head.update(head(self.scrollable_content_region.width))

    async def watch_scene(self, scene: Scene) -> None:
        for name in [name for name in self._lines if name not in scene.views]:
            await self._lines.pop(name).remove()
        fresh = [name for name in scene.views if name not in self._lines]
        self._lines |= {name: RegionLine() for name in fresh}
        self.marked &= frozenset(scene.views)
        if fresh and self.is_attached:
            await self.mount(*(self._lines[name] for name in fresh))
        self._draw()

    def watch_wanted(self) -> None:
        self._draw()

    def watch_current(self, current: str) -> None:
        self._draw()
        if line := self._lines.get(current):
            line.scroll_visible(animate=False)
        self.post_message(self.Moved(current))

    def _draw(self) -> None:
        shown, plans = self.shown, labels(self.scene.groups)
        if self.current not in shown:
            self.current = shown[0] if shown else ""
        for name, line in self._lines.items():
            line.display = name in shown
            line.view = self.scene.views[name]
            line.label = plans.get(name, "")
            line.marked, line.current = name in self.marked, name == self.current

    def action_move(self, by: int) -> None:
        if shown := self.shown:
            at = shown.index(self.current) if self.current in shown else 0
            self.current = shown[max(0, min(len(shown) - 1, at + by))]

    def action_open(self) -> None:
        if self.current:
            self.post_message(self.Opened(self.current))

    def action_mark(self) -> None:
        if self.current:
            self.marked ^= {self.current}
            self._draw()
            self.action_move(1)

    def on_click(self, event: Click) -> None:
        names = {line: name for name, line in self._lines.items()}
        if isinstance(event.widget, RegionLine) and event.widget in names:
            self.current = names[event.widget]
            if event.chain > 1:
                self.action_open()
