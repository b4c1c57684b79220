"""The only dialog class: draws its content, again whenever the state changes, and returns yes or no."""

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from console.model.consent import TICKET_CHARACTERS
from console.tui.dialogs.content import DialogAnswer, DialogFactory, DifferingDay, ReadRows
from console.tui.drawing import badge, key_hints, safe, stack_lines
from console.tui.state import ScreenState

BORDER_LINES = 2


class DialogBody(VerticalScroll, can_focus=False):
    """The lines of a dialog."""

    class Resized(Message):
        """More or fewer of the lines fit."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class Dialog(ModalScreen[bool]):
    """True only for the confirming button, or enter after the required text; the button is disabled while blocked."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "Cancel", key_display="esc"),
        Binding("left,right", "app.focus_next", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(8)", show=False),
        Binding("pageup", "scroll(-8)", show=False),
        Binding("f2", "details", show=False),
        Binding("f3", "rows", show=False),
    ]
    state: reactive[ScreenState] = reactive(ScreenState(views={}))

    def __init__(self, state: ScreenState, factory: DialogFactory, read_rows: ReadRows | None = None) -> None:
        """read_rows: fetches rows of one of the content's differing days"""
        super().__init__()
        self._read_rows, self._rows, self._rows_read = read_rows, tuple[Content, ...](), 0
        self._factory = factory
        self._content = factory(state)
        self._asked = (self._content.reason_for, self._content.ticket_for)
        self._title = Static(id="title")
        self._body = Static(id="body")
        self._blocked = Static(id="blocked")
        self._input = Input(id="typed", compact=True)
        self._input.cursor_blink = False
        self._reason = Input(id="reason", compact=True)
        self._reason.cursor_blink = False
        self._ticket = Input(id="ticket", compact=True, max_length=TICKET_CHARACTERS)
        self._ticket.cursor_blink = False
        self._detailed = False
        self._scroll = DialogBody(self._body, id="content")
        self._hint = Static(id="hint")
        self._no = Button("Cancel", id="no", compact=True)
        self._yes = Button(safe(self._content.verb), id="yes", compact=True)
        self.set_reactive(Dialog.state, state)

    def compose(self) -> ComposeResult:
        content = self._content
        with Vertical(id="dialog"):
            yield self._title
            yield self._scroll
            yield self._hint
            yield self._blocked
            if content.reason_for:
                yield Static(safe(f"Why accept {content.reason_for}?", limit=200), id="reasonable")
                yield self._reason
            if content.ticket_for:
                prompt = Content.assemble("Ticket of ", safe(content.ticket_for, "bold", 60), ":")
                yield Horizontal(Static(prompt, id="ticketed"), self._ticket, id="naming")
            if content.typed:
                prompt = Content.assemble("Type ", safe(content.typed, "bold", 60), f" to {content.verb.lower()}:")
                yield Horizontal(Static(prompt, id="prompt"), self._input, id="typing")
            yield Horizontal(self._no, self._yes, id="buttons")

    def on_mount(self) -> None:
        for change in ("scroll_y", "virtual_size"):
            self.watch(self._scroll, change, self._show_hint, init=False)
        self._redraw()
        content = self._content
        if content.reason_for and not content.blocked:
            self._reason.focus()
        elif content.ticket_for and not content.blocked:
            self._ticket.focus()
        elif content.typed and not content.blocked:
            self._input.focus()
        elif content.harmless and not content.blocked:
            self._yes.focus()
        else:
            self._no.focus()

    def watch_state(self) -> None:
        if self.is_mounted:
            content = self._factory(self.state)
            if (content.reason_for, content.ticket_for) != self._asked and not content.blocked:
                content = replace(content, blocked="the gate has changed: esc, then the key again")
            self._content = content
            self._redraw()

    def _redraw(self) -> None:
        content = self._content
        badges = [badge(name) for name in dict.fromkeys(content.environments)]
        self._title.update(Content(" ").join([safe(content.title, "bold", 120), *badges]))
        self._body.update(stack_lines(self._rows or (content.details if self._detailed else content.lines)))
        self._blocked.display = bool(content.blocked)
        self._blocked.update(safe(f"✗ {content.blocked}", "$text-error"))
        self._input.disabled = self._reason.disabled = self._ticket.disabled = bool(content.blocked)
        self._enable()
        self.call_after_refresh(self._fit)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Give the body all lines that the other parts do not need."""
        others = [part for part in self.query("#dialog > *") if part is not self._scroll and part.display]
        taken = sum(part.outer_size.height + part.styles.margin.height for part in others)
        self._scroll.styles.max_height = max(3, self.size.height - taken - BORDER_LINES)

    def on_dialog_body_resized(self) -> None:
        self._show_hint()

    def _show_hint(self) -> None:
        """How many lines follow below, and the key of the details."""
        below = round(self._scroll.max_scroll_y - self._scroll.scroll_y)
        hints = [("↓", f"{below} more lines")] if below > 0 else []
        if self._content.details:
            back = self._detailed or bool(self._rows)
            hints.append(("f2", "back to the answer" if back else "each day's comparison"))
        if self._content.differing and self._read_rows:
            hints.append(("f3", "rows of the next day" if self._rows else "rows that differ"))
        self._hint.update(key_hints(*hints))

    def _enable(self) -> None:
        self._yes.disabled = not self._allowed()

    def _allowed(self) -> bool:
        content = self._content
        if content.blocked or (content.reason_for and not self._reason.value.strip()):
            return False
        if content.ticket_for and not self._ticket.value.strip():
            return False
        return not content.typed or self._input.value.strip() == content.typed

    def on_input_changed(self) -> None:
        self._enable()

    @property
    def answer(self) -> DialogAnswer:
        """The reason and the ticket that were typed."""
        return DialogAnswer(reason=self._reason.value.strip(), ticket=self._ticket.value.strip())

    def on_input_submitted(self, message: Input.Submitted) -> None:
        content, inputs = self._content, [self._reason, self._ticket, self._input]
        asked = [bool(content.reason_for), bool(content.ticket_for), bool(content.typed)]
        later = [each for each, is_asked in zip(inputs, asked, strict=True) if is_asked]
        later = later[later.index(message.input) + 1 :]
        if later:
            later[0].focus()
        elif self._allowed():
            self.dismiss(True)

    def on_button_pressed(self, message: Button.Pressed) -> None:
        self.dismiss(message.button is self._yes and self._allowed())

    def action_scroll(self, by: int) -> None:
        self._scroll.scroll_relative(y=by, animate=False)

    def action_details(self) -> None:
        """Each day's comparison instead of the answer, and back."""
        if self._content.details:
            self._detailed, self._rows = not (self._detailed or self._rows), ()
            self._scroll.scroll_home(animate=False)
            self._redraw()

    def action_rows(self) -> None:
        """Rows of the first day that differs, then of the next one."""
        days = self._content.differing
        if days and self._read_rows:
            day = days[self._rows_read % len(days)]
            self._rows_read += 1
            self._show_rows((safe(f"reading rows of {day.table} on {day.day or 'no day'} …", limit=120),))
            self.run_worker(self._read(self._read_rows, day), exclusive=True)

    async def _read(self, read_rows: ReadRows, day: DifferingDay) -> None:
        self._show_rows(await read_rows(day))

    def _show_rows(self, lines: tuple[Content, ...]) -> None:
        self._rows = lines
        self._scroll.scroll_home(animate=False)
        self._redraw()
