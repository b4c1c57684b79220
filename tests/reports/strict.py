"""A strict parser of pages: errors that a browser would silently repair are errors here."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser

VOID = {"meta", "br"}
PARENTS = {
    "li": {"ul"}, "tr": {"thead", "tbody"}, "td": {"tr"}, "th": {"tr"}, "thead": {"table"}, "tbody": {"table"}, "summary": {"details"},
    "rect": {"svg"}, "head": {"html"}, "body": {"html"}, "h1": {"header"}, "main": {"body"}, "style": {"head"}, "meta": {"head"},
}  # fmt: skip
FLOW_IN_P = {"span", "a", "br", "strong", "svg", "rect", "title"}  # anything else would end a paragraph early
ATTRIBUTES = {
    "*": {"class", "id", "aria-label", "aria-hidden", "role"}, "html": {"lang"}, "meta": {"charset", "http-equiv", "content", "name"},
    "a": {"href"}, "th": {"scope"}, "td": {"data-label"}, "details": {"open"}, "svg": {"viewbox", "preserveaspectratio"},
    "rect": {"x", "y", "width", "height"},
}  # fmt: skip


@dataclass
class Tag:
    """An element as it was read. text: its own and that of the elements in it"""

    name: str
    attributes: dict[str, str]
    children: "list[Tag]" = field(default_factory=list)
    text: str = ""

    def all(self, name: str) -> "list[Tag]":
        return [item for child in self.children for item in ([child] * (child.name == name) + child.all(name))]


class Strict(HTMLParser):
    """Builds the tree of a page, and refuses whatever is not closed, nested or allowed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Tag("", {})
        self.open = [self.root]
        self.declared = 0

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html"
        assert not self.root.children
        self.declared += 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag}: an attribute twice"
        allowed = ATTRIBUTES["*"] | ATTRIBUTES.get(tag, set())
        assert set(names) <= allowed, f"{tag}: {set(names) - allowed}"
        assert self.open[-1].name in PARENTS.get(tag, {self.open[-1].name}), f"{tag} in {self.open[-1].name}"
        if any(each.name == "p" for each in self.open):
            assert tag in FLOW_IN_P, f"{tag} in a paragraph"
        element = Tag(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> ends {self.open[-1].name}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


def read(page: str) -> Tag:
    """The page's tree, once all of its rules hold."""
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.declared == 1
    assert parser.open == [parser.root], f"left open: {[each.name for each in parser.open[1:]]}"
    (html,) = parser.root.children
    assert html.name == "html"
    assert html.attributes["lang"] == "en"
    _check_references(html)
    _check_policy(page, html)
    _check_tables(html)
    assert not re.search(r"&(?!(amp|lt|gt|quot|#39);)", page.replace(_style(page), "")), "a bare ampersand"
    return html


def _check_references(html: Tag) -> None:
    every = [tag for name in ("section", "svg", "table", "div") for tag in html.all(name)]
    ids = [tag.attributes["id"] for tag in every if "id" in tag.attributes]
    assert len(ids) == len(set(ids))
    assert {link.attributes["href"] for link in html.all("a")} <= {f"#{each}" for each in ids}


def _check_policy(page: str, html: Tag) -> None:
    """The policy comes before all that it governs, allows nothing but the style, and names that by its hash."""
    head = html.children[0]
    assert [child.attributes.get("http-equiv", child.attributes.get("charset")) for child in head.children[:2]] == [
        "utf-8", "Content-Security-Policy",
    ]  # fmt: skip
    style = b64encode(sha256(_style(page).encode()).digest()).decode()
    policy = head.children[1].attributes["content"].split("; ")
    assert policy == ["default-src 'none'", f"style-src 'sha256-{style}'", "base-uri 'none'", "form-action 'none'"]
    assert not re.search(r"url\(|@import|https?:", _style(page))


def _style(page: str) -> str:
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    return str(style)


def _check_tables(html: Tag) -> None:
    for table in html.all("table"):
        widths = {len(row.children) for row in table.all("tr")}
        assert len(widths) == 1, f"rows of {widths} cells"
