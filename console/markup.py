"""Markup of text from outside: HTML and XML as trees in which every string is text, and Markdown.

A tag exists only as an `Element`, whose name and attributes' names are ours; all that is a string is escaped where it
is written. So a name, a message or a note makes no markup, wherever it comes from.
"""

import re
from dataclasses import dataclass

from console.text import safe_text

_VOID = frozenset(("br", "col", "hr", "meta"))  # HTML's elements without an end tag
_RAW = frozenset(("style",))  # its text is not parsed for entities: only constants of ours are allowed in one
# each begins a line
_LINES = frozenset((
    "body", "details", "error", "failure", "h1", "h2", "h3", "head", "header", "html", "li", "main", "meta", "p", "properties",
    "property", "rect", "section", "skipped", "style", "svg", "table", "tbody", "testcase", "testsuite", "testsuites", "thead",
    "title", "tr", "ul",
))  # fmt: skip
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
# no characters, and forbidden in XML or an error in HTML: U+FDD0 … U+FDEF, and the last two of every plane
_NONCHARACTER = re.compile("[\ufdd0-\ufdef" + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)) + "]")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Element:
    """A tag with its text and elements, in order. Strings next to each other are separated by a line break."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    children: "tuple[Element | str, ...]"


def element(name: str, /, *children: Element | str, **attributes: str | int | float) -> Element:
    """An element. attributes: `class_` stands for `class`, `aria_label` for `aria-label`; empty ones are left out, and True
    is one without a value

    raises  ValueError for a name that is none, and for attributes that a browser runs
    """
    given = {key.strip("_").replace("_", "-"): value for key, value in attributes.items() if value != ""}
    pairs = tuple((key, "" if value is True else str(value)) for key, value in given.items())
    for word in (name, *(key for key, _ in pairs)):
        if not _NAME.fullmatch(word) or word == "script" or word.startswith("on"):
            raise ValueError(f"{word!r} is not a name of an element or attribute here")
    return Element(name, pairs, children)


def html(root: Element) -> str:
    """A whole page."""
    return "<!DOCTYPE html>" + "".join(_written(root, _Escaped(), [], xml=False)) + "\n"


def xml(root: Element) -> str:
    """A whole document."""
    return '<?xml version="1.0" encoding="UTF-8"?>' + "".join(_written(root, _Escaped(), [], xml=True)) + "\n"


class _Escaped(dict[str, str]):
    """The texts of one document, each escaped once: days and figures occur in it many times. Never kept for the next one,
    by which time this process may know of another secret."""

    def __missing__(self, outside: str) -> str:
        self[outside] = shown = escaped(outside)
        return shown


def escaped(outside: str, limit: int = 2000) -> str:
    """Text from outside between tags or in a quoted attribute, of HTML and XML: control characters are made visible."""
    shown = safe_text(outside, limit)
    return _NONCHARACTER.sub(lambda match: match[0].encode("unicode_escape").decode(), shown).translate(_ENTITIES)


def _written(node: Element, texts: _Escaped, parts: list[str], *, xml: bool) -> list[str]:
    """The parts, with those of the element added."""
    attributes = "".join(f' {key}="{texts[value]}"' if value or xml else f" {key}" for key, value in node.attributes)
    lead = "\n" if node.name in _LINES else ""
    if not node.children and (xml or node.name in _VOID):
        parts.append(f"{lead}<{node.name}{attributes}{'/' if xml else ''}>")
        return parts
    parts.append(f"{lead}<{node.name}{attributes}>")
    before: Element | str | None = None
    for child in node.children:
        if isinstance(child, Element):
            _written(child, texts, parts, xml=xml)
        else:
            parts.append("\n" if isinstance(before, str) else "")
            parts.append(child if node.name in _RAW and not xml else texts[child])
        before = child
    parts.append(f"</{node.name}>")
    return parts


def safe_markdown(outside: str) -> str:
    """Text from outside in a line or cell of Markdown: it makes no markup, no list, no row and no mention."""
    shown = re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", safe_text(outside))
    shown = re.sub(r"^(\s*\d*)([-+=.)])", r"\1\\\2", shown)  # at the head of a line: a list, or a heading's underline
    return shown.replace("@", "@\u200b")
