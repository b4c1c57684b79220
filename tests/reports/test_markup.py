"""Text stays text: in HTML, in XML, between tags and in attributes."""

import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.markup import element, escaped, html, xml
from console.text import safe_text

TEXTS = st.text(max_size=80) | st.sampled_from(
    [
        '" onclick="x',
        "' onclick='x",
        "<script>",
        "</p>",
        "]]>",
        "&amp;",
        "a\nb",
        "\x00",
        "\ud800",
        "\ufffe",
        "\U0010ffff",
    ]
)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
@given(TEXTS)
def test_any_text_is_read_back_as_what_safe_text_shows(outside: str) -> None:
    tree = element("p", outside, class_=f"a{outside}")
    shown = _characters(safe_text(outside))
    reader = Reader()
    reader.feed(html(tree))
    reader.close()
    ((tag, attributes),) = reader.tags
    assert (tag, attributes["class"], reader.text.strip("\n")) == ("p", f"a{shown}", shown.strip("\n"))
    root = ElementTree.fromstring(xml(tree).encode())
    assert (root.tag, root.attrib["class"], root.text or "", list(root)) == ("p", f"a{shown}", shown, [])


def _characters(text: str) -> str:
    """Code points that are no characters are shown by their number as well."""
    return "".join(char.encode("unicode_escape").decode() if _none(char) else char for char in text)


def _none(char: str) -> bool:
    return 0xFDD0 <= ord(char) <= 0xFDEF or ord(char) & 0xFFFE == 0xFFFE


@pytest.mark.slow
@given(TEXTS)
def test_nothing_escaped_holds_a_sign_of_markup_or_a_control(outside: str) -> None:
    text = escaped(outside)
    assert not set(text) & set("<>\"'")
    assert not [char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize(("name", "attribute"), [("script", "class"), ("p", "onclick"), ("p x", "class"), ("p", "a b")])
def test_what_a_browser_runs_cannot_be_built(name: str, attribute: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        element(name, **{attribute: "x"})


def test_lines_of_one_element_stand_below_each_other() -> None:
    assert ElementTree.fromstring(xml(element("failure", "a", "b\nc", "d"))).text == "a\nb\\nc\nd"
