"""One region in the list: a line while it rests, two while something is under way."""

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import badge, bar, cell, said, shown
from console.tui.format import short, span
from console.tui.groups import drifted
from console.tui.labels import ailing, batch, fraction, moving, releases, running, state_word, under_way, waiting
from console.tui.panes.plan import summary
from console.tui.panes.summary import lagging

WIDE = 110
INDENT = "   "


def layout(width: int) -> tuple[int, int, int, int]:
    """Cells of name, wave, environment and state in a line of this width."""
    return (18, 9, 12, 18) if width >= WIDE else (10, 8, 9, 16)


def head(width: int) -> Content:
    """The names of the columns."""
    name, wave, environment, state = layout(width)
    text = f"   {'REGION':<{name}} {'WAVE':<{wave}} {'ENV':<{environment}} {'STATE':<{state}} PROGRESS"
    return cell(Content.styled(text, "$text-muted"), max(0, width - 9)) + Content.styled("RELEASE", "$text-muted")


def tall(view: RegionView) -> bool:
    """Whether its line is two cells high: there are figures to show, or something is wrong or said."""
    return under_way(view) or view.link == "unreachable" or bool(view.problem or view.note or view.status.ailing)


def draw_line(view: RegionView, label: str, width: int, *, marked: bool, current: bool) -> list[Content]:
    """One line of `width` cells, or two where it is `tall`. label: of the region's plan, "" where all plan the same."""
    first = _first(view, label, width, marked=marked, current=current)
    return [first, cell(figures(view), width)] if tall(view) else [first]


def _first(view: RegionView, label: str, width: int, *, marked: bool, current: bool) -> Content:
    region = view.region
    name, wave, environment, state = layout(width)
    release = releases(view)
    tail = max(9, min(20, len(release)))
    role = f"{region.wave} canary" if region.canary else f"{region.wave}"
    front = Content.assemble(
        ("›" if current else " ", "bold $text-accent"),
        ("*" if marked else " ", "bold $text-accent"),
        " ", cell(said(region.name, "bold", 60), name),
        " ", cell(Content(role), wave),
        " ", cell(badge(region.environment), environment),
        " ", shown(state_word(view), state), " ",
    )  # fmt: skip
    room = width - front.cell_length - tail - 1
    return Content.assemble(
        front, cell(_middle(view, label, room), room), " ", said(release, "", 60).truncate(tail, ellipsis=True)
    )


def _middle(view: RegionView, label: str, room: int) -> Content:
    if under_way(view):
        part = fraction(view)
        cells = max(0, min(40, room - 5))
        return Content.assemble(bar(part, cells, state_word(view).style, running(view)), f" {part:4.0%}")
    return _fitting(_waits(view, label) if waiting(view) else _rests(view), room)


def _waits(view: RegionView, label: str) -> list[Content]:
    """What the plan is, then what is less needed."""
    plan = view.plan
    assert plan is not None  # else nothing waits
    first = Content.assemble((f"{label} " if label else "", "bold $text-accent"), summary(plan))
    rows = Content.styled(f"{short(plan.price.rows)} rows" if plan.price.rows else "", "$text-muted")
    return [first, _altered(view), rows]


def _rests(view: RegionView) -> list[Content]:
    return [_altered(view), Content.styled(lagging(view, rows=False), "$text-muted")]


def figures(view: RegionView) -> Content:
    """The second line: what is wrong with the region, else its figures and what it does or waits for."""
    status = view.status
    if view.link == "unreachable":
        risk = " · a batch may be running" if moving(view) else ""
        return said(f"{INDENT}{view.link_why or 'no answer'}{risk}", "$text-warning", 200)
    if status.held == "failed":
        hint = Content.assemble(" → ", said(status.hint, limit=200)) if status.hint else Content("")
        return Content.assemble(INDENT, said(status.why, "$text-error", 300), hint)
    if (told := ailing(view)) and (status.standing or not under_way(view)):
        feed = next(iter(status.standing), status.ailing[0])
        hint = Content.assemble(" → ", said(feed.hint, limit=200)) if feed.hint else Content("")
        return Content.assemble(INDENT, said(told, "$text-error" if feed.standing else "$text-warning", 300), hint)
    if view.problem and not under_way(view):
        return said(f"{INDENT}{view.problem}", "$text-error", 300)
    if view.note and not under_way(view):
        return said(f"{INDENT}{view.note}", "$text-muted", 300)
    return Content.assemble(INDENT, Content("  ").join(_parts(view)))


def _parts(view: RegionView) -> list[Content]:
    status = view.status
    texts = [f"{short(status.rows_done)}/{short(status.rows_total)} rows"] if status.rows_total else []
    if moving(view) and status.rows_running:
        so_far = short(status.rows_running)
        texts = [f"{texts[0]} +{so_far}"] if texts else [f"{so_far} rows so far"]
    if moving(view) and status.rate:
        texts.append(f"{short(status.rate)}/s")
    if moving(view) and status.eta_seconds is not None and fraction(view) < 1.0:
        texts.append(f"{span(status.eta_seconds)} left")
    if lag := lagging(view, rows=False):
        texts.append(lag)
    parts = [Content.styled(text, "$text-muted") for text in texts]
    if step := batch(view):
        parts.append(said(step.batch, limit=60))
    elif status.why:
        parts.append(said(status.why, "$text-muted", 200))
    return parts


def _altered(view: RegionView) -> Content:
    return said(drifted(view.plan.drift) if view.plan else "", "$text-warning", 80)


def _fitting(parts: list[Content], room: int) -> Content:
    """The first of them, and as many more as there is room for."""
    first, *others = [part for part in parts if part] or [Content("")]
    for part in others:
        longer = Content(" · ").join((first, part))
        first = longer if longer.cell_length <= room else first
    return first
