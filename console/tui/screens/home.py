"""The first screen: does anything need me? Needs, all regions, and below them the question of the region under the
cursor, beside what happened in all regions.
"""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer
from textual.widgets import Input, Static

from console.model.region import Region
from console.runner.outlook.attention import RegionNeed, troubled
from console.runner.view import RegionView
from console.tui.actions import ActionRequest, RegionAction
from console.tui.commands.keys import FIRST, LAST, LATER, FooterKey
from console.tui.commands.printing import fleet_commands
from console.tui.drawing import stack_lines
from console.tui.fleet.events import Happenings, draw_events
from console.tui.fleet.memory import FleetMemory
from console.tui.fleet.needs import draw_needs, needs_title
from console.tui.fleet.order import ORDERS, next_order
from console.tui.fleet.question import draw_question, question_title
from console.tui.fleet.regions import RegionList
from console.tui.fleet.tally import draw_tally
from console.tui.format import MINUTE
from console.tui.groups import draw_groups, same_plan
from console.tui.panes.pane import Pane
from console.tui.quiet import TitledLine
from console.tui.screens.base import BaseScreen, GoTo
from console.tui.screens.pane_screens import SCREENS, first_pane
from console.tui.state import ScreenState
from console.tui.times import moment

GROUP_LINES = 4  # twice as many on a high screen
NEED_LINES, NEED_LINES_HIGH = 1, 5  # on a low screen, where the pane has no border, and on a high one
HIGH, LOWEST = 36, 20
LISTED_LINES = 20  # of the events: with fewer, a region's routine is one line
BELOW, BELOW_HIGH = 8, 16  # minimum height of the panes below
WIDE = 110
FOLLOW_SECONDS = 0.1  # without a move of the cursor before the panes follow it: drawing them delays the next key
NOWHERE = RegionView(region=Region(name="", warehouse=""))


class HomeScreen(BaseScreen):
    """Needs, regions, and two panes about the region under the cursor and about all of them."""

    AUTO_FOCUS = "RegionList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", tooltip="show regions with these words; !word excludes"),
        Binding("escape", "clear", "Clear", tooltip="clear filter and marks; show all regions and panes"),
    ]

    def __init__(self, state: ScreenState, *, height: int = 0, classes: str = "") -> None:
        # the classes are set here, before any widget exists whose style they would change
        super().__init__(state, classes=f"{classes} -high" if height >= HIGH else classes or None)
        self._needs = TitledLine(id="needs")
        self._list = RegionList()
        self._tally = Static(id="tally")
        self._groups = Static(id="groups")
        self._groups.display = False
        self._happenings = Happenings()
        self._question = Pane("", self._draw_question, id="question")
        self._events = Pane("what happened", self._draw_events, inputs=self._events_inputs, id="events")
        self._filter: Input | None = None  # until it is first opened
        self._following: Timer | None = None
        self._drawn: dict[Static, Content] = {}
        self._drawn_at = Size(0, 0)
        self._need: RegionNeed | None = None

    def body(self) -> ComposeResult:
        yield self._needs
        yield Vertical(self._list, self._tally, self._groups, id="fleet")
        yield Horizontal(self._question, self._events, id="below")

    @property
    def current_region(self) -> str:
        return self._list.current

    @property
    def target_regions(self) -> tuple[str, ...]:
        marked = self._list.marked
        return tuple(name for name in self.state.views if name in marked) if marked else super().target_regions

    @property
    def list(self) -> RegionList:
        return self._list

    def remembered(self) -> FleetMemory:
        return FleetMemory(cursor=self._list.current, order=self._list.order, filter=self._list.filter_text)

    def restore(self, memory: FleetMemory) -> None:
        """Restore the operator's last place."""
        if memory.order in ORDERS:
            self._list.sort(next(order for order in ORDERS if order == memory.order))
        if memory.filter:
            self._open_filter(memory.filter)
        if memory.cursor in self._list.shown:
            self._list.current = memory.cursor

    def redraw(self) -> None:
        self._list.state = self.state
        self._show_fleet()
        if not self._following:
            self._show_region()
        else:
            self.show_time()

    def show_time(self) -> None:
        super().show_time()
        self._list.refresh_changed()

    def on_region_list_moved(self) -> None:
        if self._following:
            self._following.stop()
        self._following = self.set_timer(FOLLOW_SECONDS, self._show_region)

    def on_region_list_opened(self, message: RegionList.Opened) -> None:
        pane = first_pane(self.state.views.get(message.region))
        self.post_message(GoTo(SCREENS[pane], message.region, pane))

    def on_region_list_header_clicked(self) -> None:
        self.action_order()

    def on_resize(self) -> None:
        if self._drawn_at != self.app.size:
            self._drawn.clear()
            self._show_fleet()

    def _show_fleet(self) -> None:
        """Needs above, tally and groups below the list; a widget is updated only if it has changed."""
        size = self._drawn_at = self.app.size
        high = size.height >= HIGH
        self.set_class(high, "-high")
        inner = size.width - (4 if high else 2)
        most, wrapped = NEED_LINES_HIGH if high else NEED_LINES, size.height >= LOWEST
        self._put(self._needs, stack_lines(draw_needs(self.state, inner, most, wrapped=wrapped)))
        self._needs.border_title = needs_title(self.state.needs)
        groups = draw_groups(self.state.groups, size.width, GROUP_LINES * (2 if high else 1))
        if not high and self._list_lines(len(groups)) <= len(self._list.shown):
            groups = []  # the regions themselves come first
        self._groups.display = bool(groups)
        self._put(self._groups, stack_lines(groups))
        lines = self._list_lines(len(groups))
        self._list.styles.max_height = lines
        below = max(0, len(self._list.shown) + 1 - lines)
        self._put(self._tally, draw_tally(self.state, self._list.hidden, below, self._list.order, size.width))

    def _list_lines(self, groups: int) -> int:
        """Maximum height of the list: the panes that matter for a decision always have room below it."""
        size, needs = self.app.size, len(self._drawn[self._needs].split("\n"))
        high = size.height >= HIGH
        frame = 3 + (2 if high else 0) + (1 if self.state.coach else 0)  # banner, tally, footer; border; coach
        below = BELOW_HIGH if high else BELOW if size.height >= LOWEST else 0
        return max(3, size.height - frame - needs - groups - below)

    def _put(self, widget: Static, content: Content) -> None:
        before = self._drawn.get(widget)
        if before is None or not content.is_same(before):
            self._drawn[widget] = content
            higher = before is None or content.plain.count("\n") != before.plain.count("\n")
            widget.update(content, layout=higher)  # laying out draws the whole screen

    def _show_region(self) -> None:
        self._following = None
        region = self.current_region
        view = self.state.views.get(region)
        self._question.border_title = question_title(self.state, region)
        self._question.show(view, self.state.at)
        looked = self.state.looked
        since = f" · since {moment(looked, self.state.at)}, when you last looked" if looked else ""
        self._events.border_title = f"what happened{since}"
        self._events.show(view or NOWHERE, self.state.at)
        self._events.renew()
        super().redraw()

    def _draw_question(self, view: RegionView, width: int, at: float) -> Content:
        size = width, self._question.size.height
        return draw_question(view, same_plan(self.state.views, view.region.name), size, at)

    def _draw_events(self, view: RegionView, width: int, at: float) -> Sequence[Content]:
        happenings, pane = self._happenings.of(self.state.views), self._events
        folded = pane.size.height < LISTED_LINES
        return draw_events(happenings, self.state.looked, at, width, folded=folded, rows=pane.needed_rows)

    def _events_inputs(self, view: RegionView) -> object:
        low, rows = self._events.size.height < LISTED_LINES, self._events.needed_rows
        return self._happenings.of(self.state.views), self.state.looked, int(self.state.at // MINUTE), low, rows

    def own_keys(self) -> tuple[FooterKey, ...]:
        keys = [FooterKey("n", "next", "screen.next_need", FIRST)] if self.state.needs else []
        if self.current_region:
            keys += [FooterKey("enter", "open", "screen.open")]
            keys += [FooterKey("space", "mark", "screen.mark", LAST)] if self.state.position is None else []
        keys.append(FooterKey("/", "filter", "screen.filter"))
        if self._list.hidden or self._list.marked:
            keys.append(FooterKey("esc", "all", "screen.clear", LATER))
        if len(self.state.views) > 1:
            keys.append(FooterKey("o", "order", "screen.order", LAST))
            if troubled(self.state.needs) or self._list.only is not None:
                keys.append(FooterKey("e", "troubled" if self._list.only is None else "all", "screen.troubled", LAST))
        return tuple(keys)

    def action_request(self, action: RegionAction) -> None:
        # a change is rolled out to all regions unless some are marked, since canary and waves are part of it
        everywhere = action in ("start", "refresh") and not self._list.marked
        regions = tuple(self.state.views) if everywhere else self.target_regions
        self.post_message(ActionRequest(action=action, regions=regions, named=bool(self._list.marked)))

    def action_next_need(self) -> None:
        """Move the cursor to the region of the next need, even if it was hidden."""
        if not self.state.needs:
            self.refuse("nothing needs you")
            return
        names = list(dict.fromkeys(need.region for need in self.state.needs))
        at = names.index(self.current_region) + 1 if self.current_region in names else 0
        name = names[at % len(names)]
        if name not in self._list.shown:
            self.action_clear()
        self._list.current = name
        self._list.focus()

    def action_order(self) -> None:
        self._list.sort(next_order(self._list.order))
        self._show_fleet()

    def action_troubled(self) -> None:
        if self._list.only is not None:
            self._list.only = None
        elif names := troubled(self.state.needs):
            self._list.only = names
        else:
            self.refuse("no region is in trouble: there is nothing to show alone")
            return
        self._show_fleet()
        self.update_keys()

    def action_pane(self, name: str) -> None:
        if self.current_region:
            self.post_message(GoTo(SCREENS[name], self.current_region, name))
        else:
            self.refuse("no region is selected")

    def action_open(self) -> None:
        self._list.action_open()

    def action_mark(self) -> None:
        self._list.action_mark()
        self.update_keys()

    def action_tab(self, by: int) -> None:
        """The other pane below; on a narrow screen with room for only one, it replaces the first."""
        events = not self.has_class("-events")
        self.set_class(events, "-events")
        (self._events if events else self._question).focus()

    def copied_commands(self) -> tuple[str, ...]:
        if isinstance(self.focused, Pane):
            return super().copied_commands()
        return fleet_commands(self.state.views, (need.region for need in self.state.needs))

    def action_filter(self) -> None:
        self._open_filter().focus()

    def _open_filter(self, text: str | None = None) -> Input:
        """Open the filter line, with this text if given."""
        if self._filter is None:
            self._filter = Input(placeholder="name, environment or state; !word excludes", id="filter", compact=True)
            self._filter.cursor_blink = False
            self.query_one("#parts").mount(self._filter)
        if text is not None:
            self._filter.value = text
        self._filter.display = True
        return self._filter

    def action_clear(self) -> None:
        if not self._list.filter_text and not (self._filter and self._filter.display):
            self._list.marked = frozenset()
        self._list.only = None
        if self._filter:
            self._filter.value = ""
            self._filter.display = False
        self._list.focus()
        self.redraw()

    def on_input_changed(self, message: Input.Changed) -> None:
        self._list.filter_text = message.value
        self._show_fleet()

    def on_input_submitted(self) -> None:
        if self._filter:
            self._filter.display = bool(self._filter.value)
        self._list.focus()
