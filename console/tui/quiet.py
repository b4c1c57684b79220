"""Widgets that are redrawn only if they have changed.

Textual redraws a whole widget when an unchanged title or content is set; with regions that report
every second, that was most of the screen's cost.
"""

from typing import Any

from textual.content import Content, ContentType
from textual.visual import VisualType
from textual.widgets import Static


class Line(Static):
    """A `Static` that ignores an update to its current content, and keeps its layout while its height stays the same.

    A layout redraws the whole screen, so it is requested only if the widget's height changes.
    """

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        before = self.content
        if isinstance(content, Content) and isinstance(before, Content):
            if content.is_same(before):
                return
            layout = layout and not self._as_high(content, before)
        super().update(content, layout=layout)

    def _as_high(self, content: Content, before: Content) -> bool:
        width = self.content_size.width
        if width <= 0 or self.styles.is_auto_width:
            return False
        rules = self.styles.get_rules()
        return bool(content) and content.get_height(rules, width) == before.get_height(rules, width)


class Titled:
    """For a widget that ignores a border title that it already has."""

    _given_title: ContentType | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "border_title":
            if same(value, self._given_title):
                return
            self._given_title = value
        super().__setattr__(name, value)


def same(new: ContentType | None, old: ContentType | None) -> bool:
    if isinstance(new, Content) and isinstance(old, Content):
        return new.is_same(old)
    return type(new) is type(old) and new == old


class TitledLine(Titled, Line):
    """A line with a border title."""
