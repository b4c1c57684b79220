"""Widgets that are drawn again only where they would look different.

Setting a title or a content that has not changed draws the whole widget again in Textual; over regions that report
every second, that was most of what the screen cost.
"""

from typing import Any

from textual.content import Content, ContentType
from textual.visual import VisualType
from textual.widgets import Static


class Line(Static):
    """A `Static` that ignores an update to what it already shows."""

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        if isinstance(content, Content) and isinstance(self.content, Content) and content.is_same(self.content):
            return
        super().update(content, layout=layout)


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
