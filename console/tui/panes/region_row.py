"""One region in the list: one line while idle, two while a rollout is under way."""

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import badge, bar, cell, draw_label, safe
from console.tui.format import short, span
from console.tui.groups import drift_text
from console.tui.labels import (
    change_pending,
    done_fraction,
    feed_trouble,
    release_text,
    running_fraction,
    running_step,
    state_label,
    under_way,
    working,
)
from console.tui.panes.plan import action_counts
from console.tui.panes.summary import lag_text

WIDE = 110
INDENT = "   "


def column_widths(width: int) -> tuple[int, int, int, int]:
    """Cells of the columns name, wave, environment and state."""
    return (18, 9, 12, 18) if width >= WIDE else (10, 8, 9, 16)


def draw_header(width: int) -> Content:
    """The names of the columns."""
    name, wave, environment, state = column_widths(width)
    text = f"   {'REGION':<{name}} {'WAVE':<{wave}} {'ENV':<{environment}} {'STATE':<{state}} PROGRESS"
    return cell(Content.styled(text, "$text-muted"), max(0, width - 9)) + Content.styled("RELEASE", "$text-muted")


def has_details(view: RegionView) -> bool:
    """Whether it takes a second line: for figures, a problem or a note."""
    return under_way(view) or view.link == "unreachable" or bool(view.problem or view.note or view.status.ailing)


def draw_row(view: RegionView, plan_letter: str, width: int, *, marked: bool, current: bool) -> list[Content]:
    """One line of `width` cells, or two. plan_letter: of the region's plan, "" where all plans are equal."""
    first = _main_line(view, plan_letter, width, marked=marked, current=current)
    return [first, cell(draw_details(view), width)] if has_details(view) else [first]


def _main_line(view: RegionView, plan_letter: str, width: int, *, marked: bool, current: bool) -> Content:
    region = view.region
    name, wave, environment, state = column_widths(width)
    release = release_text(view)
    tail = max(9, min(20, len(release)))
    role = f"{region.wave} canary" if region.canary else f"{region.wave}"
    front = Content.assemble(
        ("›" if current else " ", "bold $text-accent"),
        ("*" if marked else " ", "bold $text-accent"),
        " ", cell(safe(region.name, "bold", 60), name),
        " ", cell(Content(role), wave),
        " ", cell(badge(region.environment), environment),
        " ", draw_label(state_label(view), state), " ",
    )  # fmt: skip
    room = width - front.cell_length - tail - 1
    return Content.assemble(
        front, cell(_middle(view, plan_letter, room), room), " ", safe(release, "", 60).truncate(tail, ellipsis=True)
    )


def _middle(view: RegionView, plan_letter: str, room: int) -> Content:
    if under_way(view):
        part = done_fraction(view)
        cells = max(0, min(40, room - 5))
        return Content.assemble(bar(part, cells, state_label(view).style, running_fraction(view)), f" {part:4.0%}")
    return _fit(_pending_parts(view, plan_letter) if change_pending(view) else _idle_parts(view), room)


def _pending_parts(view: RegionView, plan_letter: str) -> list[Content]:
    """The plan in short, then what is needed less."""
    plan = view.plan
    assert plan is not None  # else no change is pending
    first = Content.assemble((f"{plan_letter} " if plan_letter else "", "bold $text-accent"), action_counts(plan))
    rows = Content.styled(f"{short(plan.price.rows)} rows" if plan.price.rows else "", "$text-muted")
    return [first, _drift(view), rows]


def _idle_parts(view: RegionView) -> list[Content]:
    return [_drift(view), Content.styled(lag_text(view, rows=False), "$text-muted")]


def draw_details(view: RegionView) -> Content:
    """The second line: what is wrong with the region, else its figures and what it does or waits for."""
    status = view.status
    if view.link == "unreachable":
        risk = " · a batch may be running" if working(view) else ""
        return safe(f"{INDENT}{view.link_why or 'no answer'}{risk}", "$text-warning", 200)
    if status.held == "failed":
        hint = Content.assemble(" → ", safe(status.hint, limit=200)) if status.hint else Content("")
        return Content.assemble(INDENT, safe(status.why, "$text-error", 300), hint)
    if (trouble := feed_trouble(view)) and (status.standing or not under_way(view)):
        feed = next(iter(status.standing), status.ailing[0])
        hint = Content.assemble(" → ", safe(feed.hint, limit=200)) if feed.hint else Content("")
        return Content.assemble(INDENT, safe(trouble, "$text-error" if feed.standing else "$text-warning", 300), hint)
    if view.problem and not under_way(view):
        return safe(f"{INDENT}{view.problem}", "$text-error", 300)
    if view.note and not under_way(view):
        return safe(f"{INDENT}{view.note}", "$text-muted", 300)
    return Content.assemble(INDENT, Content("  ").join(_progress_parts(view)))


def _progress_parts(view: RegionView) -> list[Content]:
    status = view.status
    texts = [f"{short(status.rows_done)}/{short(status.rows_total)} rows"] if status.rows_total else []
    if working(view) and status.rows_running:
        so_far = short(status.rows_running)
        texts = [f"{texts[0]} +{so_far}"] if texts else [f"{so_far} rows so far"]
    if working(view) and status.rate:
        texts.append(f"{short(status.rate)}/s")
    if working(view) and status.eta_seconds is not None and done_fraction(view) < 1.0:
        texts.append(f"{span(status.eta_seconds)} left")
    if lag := lag_text(view, rows=False):
        texts.append(lag)
    parts = [Content.styled(text, "$text-muted") for text in texts]
    if step := running_step(view):
        parts.append(safe(step.batch, limit=60))
    elif status.why:
        parts.append(safe(status.why, "$text-muted", 200))
    return parts


def _drift(view: RegionView) -> Content:
    return safe(drift_text(view.plan.drift) if view.plan else "", "$text-warning", 80)


def _fit(parts: list[Content], room: int) -> Content:
    """The first part, and as many of the others as there is room for."""
    first, *others = [part for part in parts if part] or [Content("")]
    for part in others:
        longer = Content(" · ").join((first, part))
        first = longer if longer.cell_length <= room else first
    return first
