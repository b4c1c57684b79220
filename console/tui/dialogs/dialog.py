"""The one dialog: draws a question, again whenever the scene changes, and answers yes or no."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from console.tui.dialogs.content import DialogFactory
from console.tui.drawing import badge, safe, stack_lines
from console.tui.state import ScreenState


class Dialog(ModalScreen[bool]):
    """True only for the verb's button, or enter after what had to be typed; the verb is dead while the question says so."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "Cancel", key_display="esc"),
        Binding("left,right", "app.focus_next", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
    ]
    scene: reactive[ScreenState] = reactive(ScreenState({}))

    def __init__(self, scene: ScreenState, asking: DialogFactory) -> None:
        super().__init__()
        self._asking = asking
        self._question = asking(scene)
        self._title = Static(id="title")
        self._body = Static(id="body")
        self._blocked = Static(id="blocked")
        self._input = Input(id="typed", compact=True)
        self._input.cursor_blink = False
        self._no = Button("Cancel", id="no", compact=True)
        self._yes = Button(safe(self._question.verb), id="yes", compact=True)
        self.set_reactive(Dialog.scene, scene)

    def compose(self) -> ComposeResult:
        question = self._question
        with Vertical(id="dialog"):
            yield self._title
            with VerticalScroll(id="content", can_focus=False):
                yield self._body
            yield self._blocked
            if question.typed:
                prompt = Content.assemble("Type ", safe(question.typed, "bold", 60), f" to {question.verb.lower()}:")
                yield Horizontal(Static(prompt, id="prompt"), self._input, id="typing")
            yield Horizontal(self._no, self._yes, id="buttons")

    def on_mount(self) -> None:
        self._redraw()
        question = self._question
        if question.typed and not question.blocked:
            self._input.focus()
        elif question.gentle and not question.blocked:
            self._yes.focus()
        else:
            self._no.focus()

    def watch_scene(self) -> None:
        if self.is_mounted:
            self._question = self._asking(self.scene)
            self._redraw()

    def _redraw(self) -> None:
        question = self._question
        badges = [badge(name) for name in dict.fromkeys(question.environments)]
        self._title.update(Content(" ").join([safe(question.title, "bold", 120), *badges]))
        self._body.update(stack_lines(question.lines))
        self._blocked.display = bool(question.blocked)
        self._blocked.update(safe(f"✗ {question.blocked}", "$text-error"))
        self._input.disabled = bool(question.blocked)
        self._enable()

    def _enable(self) -> None:
        self._yes.disabled = not self._may()

    def _may(self) -> bool:
        question = self._question
        return not question.blocked and (not question.typed or self._input.value.strip() == question.typed)

    def on_input_changed(self) -> None:
        self._enable()

    def on_input_submitted(self) -> None:
        if self._may():
            self.dismiss(True)

    def on_button_pressed(self, message: Button.Pressed) -> None:
        self.dismiss(message.button is self._yes and self._may())

    def action_scroll(self, by: int) -> None:
        self.query_one("#content", VerticalScroll).scroll_relative(y=by, animate=False)
