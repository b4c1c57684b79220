"""Widgets that are drawn again only where they would look different.

Setting a title or a content that has not changed draws the whole widget again in Textual; over regions that report
every second, that was most of what the screen cost.
"""

from typing import Any

from textual.content import Content, ContentType
from textual.visual import VisualType
from textual.widgets import Static


class Line(Static):
    """A `Static` that ignores an update to what it already shows, and keeps its place where its height stays.

    Laying out draws the whole screen, so it is asked for only where the widget becomes higher or lower.
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
