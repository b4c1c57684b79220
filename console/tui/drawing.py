"""Drawing primitives shared by all panes: safe outside text, bars, badges, indented paragraphs."""

from collections.abc import Iterable

from textual.content import Content

from console.text import safe_text
from console.tui.labels import Label

NAME_CELLS = 11  # width of the name in front of a line of figures
MAX_TEXT = 400  # characters shown of one outside text
ENVIRONMENT_STYLES = {
    "prod": "$text-error on $error-muted",
    "production": "$text-error on $error-muted",
    "staging": "$text-warning on $warning-muted",
    "stage": "$text-warning on $warning-muted",
}
DEFAULT_ENVIRONMENT_STYLE = "$text-success on $success-muted"


def safe(outside: str, style: str = "", limit: int = MAX_TEXT) -> Content:
    """Text from a file, a region or a store: escaped, cut, and never interpreted as markup."""
    return Content.styled(safe_text(outside, limit), style)


def cell(content: Content, width: int) -> Content:
    """Exactly `width` cells: cut with an ellipsis, or padded."""
    return content.truncate(max(0, width), ellipsis=True, pad=True)


def bar(fraction: float, width: int, style: str, running: float = 0.0) -> Content:
    """`━━━━━╍╍╌╌╌`, `width` cells; full only when everything is done. running: share of the running batch."""
    filled = min(width, int(fraction * width))
    started = max(filled, min(width - 1, int((fraction + running) * width)))
    return Content.assemble(
        ("━" * filled, style), ("╍" * (started - filled), style), ("╌" * (width - started), "$text-disabled")
    )


def badge(environment: str) -> Content:
    """The environment's name on its colour, or `no environment`."""
    name = environment or "no environment"
    return safe(f" {name} ", ENVIRONMENT_STYLES.get(environment.lower(), DEFAULT_ENVIRONMENT_STYLE), 24)


def draw_label(label: Label, width: int = 0) -> Content:
    """Symbol, then text."""
    content = Content.assemble(Content.styled(label.symbol, label.style), " ", safe(label.text, label.style, 120))
    return cell(content, width) if width else content


def wrap_indented(content: Content, indent: int, width: int) -> list[Content]:
    """A paragraph wrapped to `width`, every line indented."""
    lines = content.wrap(max(10, width - indent))
    return [Content.assemble(" " * indent, line) for line in lines]


def named_line(name: str, content: Content, width: int) -> Content:
    """`days       11-15 ▪▪◪□`: a muted name in front, `width` cells."""
    return cell(Content.assemble((f"{name:<{NAME_CELLS}}", "$text-muted"), content), width)


def stack_lines(lines: Iterable[Content]) -> Content:
    """Lines as one content."""
    return Content("\n").join(lines)


def heading(text: str) -> Content:
    return Content.styled(text, "bold $text-muted")


def key_hints(*pairs: tuple[str, str]) -> Content:
    """`P promote · v validations`: the next keys, and what they do."""
    parts: list[Content] = []
    for key, does in pairs:
        if parts:
            parts.append(Content.styled(" · ", "$text-muted"))
        parts.append(Content.assemble((key, "bold $text-accent"), " ", safe(does)))
    return Content("").join(parts)
