"""The steps of a rollout with their bars; before it starts, the steps of the plan."""

from textual.content import Content

from console.model.share import progress_percent
from console.model.step import Backfill, Step
from console.model.step_status import StepStatus
from console.runner.view import RegionView
from console.tui.drawing import bar, cell, key_hints, safe, stack_lines, wrap_indented
from console.tui.format import count, plural, short, span
from console.tui.labels import STYLES, moving, under_way

SYMBOLS = {"waiting": ("·", STYLES["quiet"]), "running": ("▶", STYLES["busy"]), "done": ("✓", STYLES["good"])}
HELD = {"paused": ("‖", STYLES["warn"]), "failed": ("✗", STYLES["bad"])}
MAX_STEPS = 200


def draw_steps(view: RegionView, width: int, at: float) -> Content:
    """One line a step, and a second one for a step with a running batch."""
    steps = _all_lines(view, width)
    if steps and under_way(view):
        return stack_lines(steps)
    if view.plan and view.plan.steps:
        lines = [cell(_planned_line(step), width) for step in view.plan.steps[:MAX_STEPS]]
        return stack_lines([*lines, Content(""), key_hints(("s", "start"))])
    if steps:
        over = f"no rollout is under way; steps of the last one, {view.status.rollout} ({view.status.state}):"
        return stack_lines([*wrap_indented(safe(over, "$text-muted", 200), 0, width), *steps])
    nothing = Content.assemble("no steps yet: ", key_hints(("esc", "back to the regions"), ("r", "refresh")))
    return stack_lines(wrap_indented(nothing, 0, width))


def draw_progress(view: RegionView, width: int, at: float) -> Content:
    """The steps of the rollout that is under way, or was the last one; never those of a pending plan."""
    lines = _all_lines(view, width)
    return stack_lines(lines) if lines else Content.styled("no rollout has begun in this region.", "$text-muted")


def _all_lines(view: RegionView, width: int) -> list[Content]:
    return [line for step in view.status.steps[:MAX_STEPS] for line in _step_lines(view, step, width)]


def _planned_line(step: Step) -> Content:
    size = ""
    if isinstance(step, Backfill):
        size = f"about {count(step.rows)} rows in {plural(step.batches, 'batch', 'batches')}"
        size += ", on the second Spark" if step.second_spark else ""
    return Content.assemble(("· ", "$text-muted"), cell(safe(step.id, limit=100), 44), (size, "$text-muted"))


def _mark(view: RegionView, step: StepStatus) -> tuple[str, str, str]:
    """Symbol, style and word. The step in which a rollout is held, or has ended, is not running."""
    if step.state != "running":
        return *SYMBOLS[step.state], step.state
    if view.status.held:
        return *HELD[view.status.held], view.status.held
    return (*SYMBOLS["running"], "running") if under_way(view) else ("·", STYLES["quiet"], "stopped")


def _step_lines(view: RegionView, step: StepStatus, width: int) -> list[Content]:
    symbol, style, word = _mark(view, step)
    done = step.rows_done if step.history else step.batch_rows  # a catch-up has no receipts to count
    total = max(step.rows_total, done)
    moves = total > 0 or step.slices > 0
    bar_cells = min(30, max(0, width // 4 - 4)) if moves else 0
    room = width - 2 - bar_cells - 22
    part = step.fraction if step.history else done / total if total else 0.0
    ahead = step.batch_rows / total if step.history and total else 0.0
    if not moves:
        name = cell(safe(step.id, limit=120), min(48, width - 11))
        return [cell(Content.assemble((symbol, style), " ", name, " ", (word, style)), width)]
    head = Content.assemble((symbol, style), " ", cell(safe(step.id, limit=120), min(48, room)))
    percent = f"{step.percent:3}%" if step.history else f"{progress_percent(part):3}%"
    figures = f"{percent} {short(done)} / {short(total)}"
    lines = [cell(Content.assemble(head, " ", bar(part, bar_cells, style, ahead), " ", figures), width)]
    if step.state == "running":
        lines.append(cell(_running_line(step, moving(view)), width))
    return lines


def _running_line(step: StepStatus, goes_on: bool) -> Content:
    """goes_on: it is not waiting, so that the time left can be estimated"""
    parts = [f"{short(step.batch_rows)} rows so far"] if step.batch_rows else []
    parts += [f"{step.slices_done}/{step.slices} slices"] if step.slices else []
    rate = step.rows_done / step.seconds if step.seconds else 0.0
    if rate:
        left = max(0, step.rows_total - step.rows_done - step.batch_rows)
        parts += [f"{short(rate)}/s", *([f"{span(left / rate)} left"] if left and goes_on else [])]
    head = safe(step.batch or "between batches", limit=80)
    return Content.assemble("  ", head, *((f"  {part}", "$text-muted") for part in parts))
