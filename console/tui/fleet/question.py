"""The question about the region under the cursor: at rest, are its feeds well? Running: how far are its days?
At its gate: is it safe? With a change pending: what would it do? Pure.
"""

from collections.abc import Sequence

from textual.content import Content

from console.runner.view import RegionView
from console.tui.charts import sparkline
from console.tui.drawing import badge, cell, heading, named_line, safe, stack_lines, wrap_indented
from console.tui.fleet.figures import hour_of, samples
from console.tui.format import short, span
from console.tui.groups import plan_title, same_plan
from console.tui.labels import change_pending, feed_trouble, under_way, working
from console.tui.panes.plan import draw_plan
from console.tui.panes.summary import figures, way_back_proof
from console.tui.state import ScreenState
from console.tui.times import as_of, moment

FEED_CELLS, FIGURE_CELLS = 40, 51  # widths of a feed's name and figures in the table of feeds
LEAST_SPARE = 5  # lines; fewer of them below the answer stay empty


def question_title(state: ScreenState, region: str) -> Content:
    """`eu prod · is it safe to confirm?`"""
    view = state.views.get(region)
    if view is None:
        return Content("no region is selected")
    return Content.assemble(
        safe(region, "bold", 60), " ", badge(view.region.environment), " · ", safe(_question(state, view))
    )


def _question(state: ScreenState, view: RegionView) -> str:
    if _at_gate(view):
        from console.tui.panes.safety import confirm_title  # loaded with the first gate, not before the first picture

        return confirm_title(view, same_plan(state.views, view.region.name), state.at)
    if under_way(view):
        return "what is happening?"
    if view.problem or change_pending(view) or (view.plan and view.plan.refusals):
        return plan_title(state.groups, view.region.name)
    return "are its feeds well?"


def draw_question(view: RegionView, others: Sequence[RegionView], size: tuple[int, int], at: float) -> Content:
    """The answer, most important lines first; reasons for a standstill come before everything else.

    others  regions with the same plan
    size    width and height: if there is room below the answer, the account of time, the log or charts follow
    """
    width, height = size
    lines = [] if _at_gate(view) else _trouble(view, width)
    lines += _answer(view, others, width, at)
    room = height - sum(line.plain.count("\n") + 1 for line in lines)  # some are several lines in one content
    if room >= LEAST_SPARE:
        from console.tui.fleet.spare import spare_lines  # loaded only if there is room for it

        lines += spare_lines(view, others, (width, room), at)
    return stack_lines(lines)


def _at_gate(view: RegionView) -> bool:
    return under_way(view) and view.status.state == "awaiting-confirmation"


def _answer(view: RegionView, others: Sequence[RegionView], width: int, at: float) -> list[Content]:
    if _at_gate(view):
        from console.tui.panes.safety import safety_lines  # loaded with the first gate

        return safety_lines(view, others, width, at)
    if under_way(view):
        from console.tui.fleet.running import running_lines  # loaded with the first rollout

        return running_lines(view, width, at)
    if view.problem or view.note or view.plan is None or change_pending(view) or view.plan.refusals:
        return [draw_plan(view, width, at)]
    return [*_feeds(view, width, at), Content(""), draw_plan(view, width, at)]


def _trouble(view: RegionView, width: int) -> list[Content]:
    status = view.status
    if view.link == "unreachable":
        risk = " · a batch may be running" if working(view) else ""
        shown = safe(f"! {view.link_why or 'no answer'}{risk}", "$text-warning")
        return wrap_indented(shown, 0, width)
    if status.held == "failed":
        hint = Content.assemble("  → ", safe(status.hint)) if status.hint else Content("")
        return wrap_indented(Content.assemble(safe(f"✗ {status.why}", "$text-error"), hint), 0, width)
    if trouble := feed_trouble(view):
        feed = next(iter(status.standing), status.ailing[0])
        hint = Content.assemble("  → ", safe(feed.hint)) if feed.hint else Content("")
        return wrap_indented(Content.assemble(safe(f"✗ {trouble}", "$text-error"), hint), 0, width)
    return []


def _feeds(view: RegionView, width: int, at: float) -> list[Content]:
    """Feed by feed: rows a second and lag with the last hour, and rows behind."""
    newest = max((sample.at for sample in view.samples), default=0.0)
    # all feeds are measured at once: one without the newest sample is of a release that is no longer followed, or was renamed
    names = list(dict.fromkeys(sample.feed for sample in view.samples if sample.at == newest and sample.feed))
    lines = []
    if names:
        first = max(8, min(FEED_CELLS, width - FIGURE_CELLS))
        old = as_of(newest, at)
        lines.append(heading(f"{'feed' + old:<{first}} {'rows/s':>7}  last hour  {'lag':>8}  last hour  {'behind':>7}"))
    for name in names:
        last = samples(view, name)[-1]
        rate = sparkline(hour_of(view, "rows", at, 20, name), 10)
        late = sparkline(hour_of(view, "lag", at, 20, name), 10)
        text = f" {short(last.rows):>7}  {rate:<10} {span(last.lag):>8}  {late:<10} {short(last.behind):>7}"
        lines.append(cell(Content.assemble(cell(safe(name, "bold", 60), first), text), width))
    if not lines and (shown := figures(view)):
        lines.append(named_line("feeds", Content(" · ".join(shown)), width))
    state = (
        "an agent moves them" if view.attended else "no agent runs: they stand still" if view.attended is False else ""
    )
    lines.append(
        named_line("release", safe(" · ".join(filter(None, (view.live or "nothing is live", state))), limit=120), width)
    )
    if view.previous and view.status.changed:
        until = view.status.changed + view.region.policy.rollback_window_hours * 3600
        kept = safe(f"R: {view.previous}, kept up to date until {moment(until, at)}", limit=120)
        lines.append(named_line("way back", kept, width))
        if view.status.way_back is not None:  # None from older agents, and within the first minute of any
            lines.append(named_line("", way_back_proof(view, at), width))
    return lines
