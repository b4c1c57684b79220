"""A running rollout in a few lines: the answer to what is happening in a region. Pure."""

from textual.content import Content

from console.model.calendar import DayCell, calendar
from console.runner.view import RegionView
from console.tui.charts import sparkline
from console.tui.drawing import NAME_CELLS, named_line, safe
from console.tui.fleet.figures import hour_of, samples
from console.tui.format import count, plural, short, span
from console.tui.labels import running_step
from console.tui.panes.steps import draw_steps
from console.tui.panes.summary import figures
from console.tui.times import as_of

SIGNS = {
    "waiting": ("□", "$text-muted"),
    "running": ("◪", "$text-primary"),
    "retried": ("▲", "$text-warning"),
    "done": ("▪", "$text-success"),
}


def running_lines(view: RegionView, width: int, at: float) -> list[Content]:
    """The current wait, progress, the running batch, a sign for each day, the last hour, and the steps."""
    status = view.status
    lines = []
    if status.why and status.held != "failed":
        lines.append(named_line("waits", safe(status.why, "$text-warning", 200), width))
    lines.append(named_line("done", Content(" · ".join(figures(view))), width))
    if step := running_step(view):
        rows = f" · {count(step.batch_rows)} rows so far" if step.batch_rows else ""
        tries = f" · {plural(step.tries, 'failed try', 'failed tries')}" if step.tries else ""
        lines.append(named_line("batch", safe(f"{step.batch}{rows}{tries}", limit=120), width))
        if step.job:
            job = step.job
            longest = f"longest {span(job.longest)}"
            skew = f"skewed: {longest}, median {span(job.median)}" if job.skewed else longest
            text = f"job {job.job} · stage {job.stage} of {job.stages} · {job.done} of {job.tasks} tasks · {skew}"
            lines.append(named_line("Spark", safe(text, limit=160), width))
    lines += _days(view, width)
    if view.samples:
        lines += _hour(view, at, width)
    return [*lines, Content(""), draw_steps(view, width, at)]


def _days(view: RegionView, width: int) -> list[Content]:
    """One line per backfill: the newest day, a sign for each, and the oldest."""
    lines = []
    for step in calendar(view.events):
        days = step.days[: max(1, width - NAME_CELLS - 30)]
        if days:
            signs = [Content.styled(*SIGNS[day.state]) for day in days]
            ends = Content.assemble(f"{_short_day(days[0])} ", *signs, f" {_short_day(days[-1])}")
            done = sum(day.state in ("done", "retried") for day in step.days)
            lines.append(
                named_line("days", Content.assemble(ends, f"  {done} of {len(step.days)} from {step.source}"), width)
            )
    return lines


def _short_day(day: DayCell) -> str:
    """`11-22`; a label that is not a date stays whole."""
    return day.label[5:] if day.label[4:5] == "-" else day.label


def _hour(view: RegionView, at: float, width: int) -> list[Content]:
    """Rows and lag of the last hour, as one line each."""
    cells = min(60, max(10, width - NAME_CELLS - 24))
    latest = samples(view)[-1:]
    lines = []
    for name, figure in (("rows/s", "rows"), ("lag", "lag")):
        spark = sparkline(hour_of(view, "rows" if figure == "rows" else "lag", at, 2 * cells), cells)
        now = "" if not latest else short(latest[0].rows) if figure == "rows" else span(latest[0].lag)
        old = as_of(latest[0].at, at) if latest else ""
        lines.append(
            named_line(name, Content.assemble((spark, "$text-primary"), f" {now}", (old, "$text-muted")), width)
        )
    return lines
