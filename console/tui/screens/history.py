"""The history screen: rollouts of all regions, one of them in full with its verification, and the events of all regions."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer

from console.model.event import ENDED, Recorded
from console.model.region import Region
from console.model.status import Status
from console.runner.view import RegionView
from console.tui.actions import RegionAction
from console.tui.commands.keys import FIRST, LATER, FooterKey
from console.tui.commands.printing import ALL_REGIONS, happened_commands
from console.tui.commands.ran import command_line
from console.tui.drawing import safe
from console.tui.fleet.events import Happenings, draw_events
from console.tui.format import MINUTE
from console.tui.history.rollouts import RolloutList
from console.tui.history.state import AuditState, ListedRollout, RolloutKey, ended_steps, listed_rollouts
from console.tui.history.whole import of_rollout, whole_lines
from console.tui.panes.pane import Pane
from console.tui.rollout.log import LogEntries
from console.tui.screens.base import BaseScreen, GoTo, RepaintRequest, ScreenName
from console.tui.state import ScreenState

LOW = 20  # lines of a screen
# Between two drawings of the list of events: with hundreds of regions each drawing has new lines only, which is most of the
# screen's cost, and a key that meets it waits for it.
EVENTS_SECONDS = 1.0
NOWHERE = RegionView(region=Region(name="", warehouse=""))


@dataclass
class RolloutsRequest(Message):
    """The rollouts of all regions are wanted, or one of them in full."""

    rollout: RolloutKey | None = None


@dataclass
class AuditRequest(Message):
    """A rollout is to be verified, or its verification to be cancelled."""

    rollout: RolloutKey
    cancel: bool = False


class HistoryScreen(BaseScreen):
    """The list above (or beside) the chosen rollout; a narrow screen has either that or the events below the list."""

    AUTO_FOCUS = "#rollouts"
    in_region = True
    name_of: ClassVar[ScreenName] = "history"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", key_display="esc", tooltip="back to the regions"),
    ]

    def __init__(self, state: ScreenState, region: str) -> None:
        super().__init__(state)
        self._region = region
        self._happenings = Happenings()
        self._rollouts = RolloutList()
        self._whole = Pane("", self._draw_whole, inputs=self._whole_inputs, id="whole")
        self._events = Pane("what happened in all regions", self._draw, inputs=self._inputs, id="events")
        self._log = LogEntries()
        self._events_timer: Timer | None = None  # runs while they were drawn recently
        self._events_waiting = False
        self._asked: dict[RolloutKey, int] = {}  # ended steps at its last request
        self._listed: tuple[ScreenState, list[ListedRollout]] = (ScreenState(views={}), [])

    def body(self) -> ComposeResult:
        yield Container(Vertical(self._rollouts, self._events, id="listed"), self._whole, id="history")

    def on_mount(self) -> None:
        self.post_message(RolloutsRequest())
        self.redraw()

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    @property
    def chosen(self) -> RolloutKey | None:
        """Region and rollout under the cursor."""
        return self._rollouts.chosen

    @property
    def current_region(self) -> str:
        return self.chosen[0] if self.chosen else self._region

    @property
    def listed(self) -> list[ListedRollout]:
        """Rollouts of all regions, the newest first."""
        if self._listed[0] is not self.state:
            self._listed = (self.state, listed_rollouts(self.state.views, self.state.history))
        return self._listed[1]

    def redraw(self) -> None:
        listed = self.listed
        self.set_class(self.app.size.height < LOW, "-low")
        self._rollouts.border_title = safe(self._list_title(len(listed)), limit=160)
        self._rollouts.show(listed, self.state.at, self._region)
        if self._events_timer is None:
            self._show_events()
        else:
            self._events_waiting = True
        self._show_whole()
        super().redraw()

    def _show_events(self) -> None:
        self._events_waiting = False
        self._events.show(self.current_view or NOWHERE, self.state.at)
        self._events.renew()
        if self.state.position is None:  # a playback is drawn as it is moved
            self._events_timer = self.set_timer(EVENTS_SECONDS, self._request_events)

    def _request_events(self) -> None:
        """Events that came meanwhile are drawn at the next repaint, which waits for keys."""
        self._events_timer = None
        if self._events_waiting:
            self.post_message(RepaintRequest())

    def _list_title(self, number: int) -> str:
        history = self.state.history
        parts = [f"rollouts of all regions: {number}" if number else "no rollout yet"]
        parts += [f"reading {len(history.reading)} regions …"] if history.reading else []
        parts += [f"not read: {', '.join(sorted(history.errors))}"] if history.errors else []
        return " · ".join(parts)

    def on_rollout_list_moved(self, message: RolloutList.Moved) -> None:
        self._show_whole()
        self.update_keys()

    def on_rollout_list_opened(self, message: RolloutList.Opened) -> None:
        self.remove_class("-events")
        self._whole.focus()

    def _show_whole(self) -> None:
        if key := self.chosen:
            self._whole.border_title = safe(f"{key[1]} in {key[0]}", limit=100)
            ended = ended_steps(self._status(key))
            if ended != self._known_steps(key):
                self._asked[key] = ended
                self.post_message(RolloutsRequest(key))
        self._whole.show(self.current_view or NOWHERE, self.state.at)
        self._whole.renew()

    def _known_steps(self, key: RolloutKey) -> int | None:
        """Ended steps whose receipts were read or requested; None before the first request."""
        past = self.state.history.whole.get(key)
        read = next((ended_steps(status) for status in past.rollouts if status.rollout == key[1]), 0) if past else None
        return self._asked.get(key, read)

    def _draw_whole(self, view: RegionView, width: int, at: float) -> list[Content]:
        key = self.chosen
        if key is None:
            return [
                Content("a rollout that is chosen in the list is shown here: who did what, its receipts and checks.")
            ]
        past, audit = self.state.history.whole.get(key), self._audit
        view = of_rollout(view, self._status(key), self._known_events(key))
        error = self.state.history.errors.get(key[0], "")
        return list(whole_lines(view, past, error, audit, width, at, log=self._log.of(view)))

    def _whole_inputs(self, view: RegionView) -> object:
        """Values are replaced and never mutated, so that object identity stands for equality."""
        key, audit = self.chosen, self._audit
        if key is None:
            return None
        running = audit is not None and audit.outcome == "running"
        going = running or self._status(key).state not in ENDED
        at = int(self.state.at) if going else int(self.state.at // MINUTE)
        history, shown = self.state.history, self.state.views.get(key[0])
        parts = (
            history.whole.get(key),
            audit,
            self._status(key),
            shown.events if shown else None,
            shown and shown.accepted,
        )
        return key, at, history.errors.get(key[0]), tuple(map(id, parts))

    @property
    def _audit(self) -> AuditState | None:
        return self.state.history.audits.get(self.chosen) if self.chosen else None

    def _status(self, key: RolloutKey) -> Status:
        return next((rollout.status for rollout in self.listed if rollout.key == key), Status(rollout=key[1]))

    def _known_events(self, key: RolloutKey) -> tuple[Recorded, ...]:
        """The events that were read, and those received since."""
        past, view = self.state.history.whole.get(key), self.state.views.get(key[0])
        known = past.events if past else ()
        last = known[-1].seq if known else 0
        newer = (r for r in view.events if r.rollout == key[1] and r.seq > last) if view else ()
        return (*known, *newer)

    def _draw(self, view: RegionView, width: int, at: float) -> list[Content]:
        happenings, rows = self._happenings.of(self.state.views), self._events.needed_rows
        return draw_events(happenings, self.state.looked, at, width, rows=rows)

    def _inputs(self, view: RegionView) -> object:
        rows = self._events.needed_rows
        return self._happenings.of(self.state.views), self.state.looked, int(self.state.at // MINUTE), rows

    # -- keys

    def own_keys(self) -> tuple[FooterKey, ...]:
        keys = []
        if self.chosen and self.state.position is None:
            running = self._audit is not None and self._audit.outcome == "running"
            keys.append(FooterKey("V", "cancel" if running else "verify", "screen.verify", FIRST))
        keys.append(FooterKey("esc", "fleet", "screen.leave", FIRST))
        return (
            *keys,
            FooterKey("]", "pane", "screen.tab(1)", FIRST),
            FooterKey("h", "handover", "screen.handover", LATER),
        )

    def action_leave(self) -> None:
        self.post_message(GoTo("fleet", self.current_region))

    def action_request(self, action: RegionAction) -> None:
        """A refresh also reads the past again."""
        if action == "refresh":
            self._asked.clear()
            self.post_message(RolloutsRequest())
            if self.chosen:
                self.post_message(RolloutsRequest(self.chosen))
        super().action_request(action)

    async def action_verify(self) -> None:
        """Verify the chosen rollout, or cancel that."""
        if self.state.position:
            self.refuse(self.state.refusal("verify"))
        elif self.chosen is None:
            self.refuse("no rollout is chosen")
        else:
            running = self._audit is not None and self._audit.outcome == "running"
            self.post_message(AuditRequest(self.chosen, cancel=running))

    def action_tab(self, by: int) -> None:
        """Focus the pane before or after; on a narrow screen the events take the place of the rollout."""
        panes = [self._rollouts, self._whole, self._events]
        at = next((number for number, pane in enumerate(panes) if pane.has_focus), 0)
        chosen = panes[(at + by) % len(panes)]
        self.set_class(chosen is self._events, "-events")
        chosen.focus()

    def copied_commands(self) -> tuple[str, ...]:
        if self.chosen is None or self.focused is self._events:
            return happened_commands(self.state.views)
        region, rollout = self.chosen
        words = [f"verify --rollout {rollout}"] if self._audit else []
        shown = [command_line(each, (region,)) for each in (*words, f"show {rollout}")]
        return (*shown, f"{shown[-1]} --output json", "console history --output json", *ALL_REGIONS)
