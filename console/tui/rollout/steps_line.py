"""The states of a rollout as one line of steps: `✓ create 2 ── ▶ backfill requests 6/15 ── · catch-up ── ◆ gate: ask`. Pure."""

from collections.abc import Sequence

from textual.content import Content

from console.model.step_id import BACKFILL, PROMOTE, VALIDATE, StepId
from console.model.step_status import StepStatus
from console.record import dataclass
from console.runner.view import RegionView
from console.tui.drawing import safe
from console.tui.labels import STYLES, Tone, idle

SYMBOLS: dict[str, tuple[str, Tone]] = {"waiting": ("·", "quiet"), "running": ("▶", "busy"), "done": ("✓", "good")}
WORDS = {VALIDATE.kind: "compare"}
JOINT, MAX_STEPS = " ── ", 200


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps of one kind in a row. kind: the first part of their ids"""

    kind: str
    steps: tuple[StepStatus, ...]

    @property
    def state(self) -> str:
        states = {step.state for step in self.steps}
        return states.pop() if len(states) == 1 else "running"


def draw_steps_line(view: RegionView, width: int) -> Content:
    """The stages in their order; if they do not fit, without joints, and then without their details."""
    stages = _stages(view.status.steps[:MAX_STEPS])
    if not stages:
        return Content.styled("no steps: no rollout has begun", "$text-muted").truncate(width, ellipsis=True)
    for joint, detailed in ((JOINT, True), (" ", True), (" ", False)):
        line = Content(joint).join([_stage(view, stage, detailed) for stage in stages])
        if line.cell_length <= width:
            break
    return line.truncate(width, ellipsis=True)


def _stages(steps: Sequence[StepStatus]) -> list[Stage]:
    stages: list[Stage] = []
    for step in steps:
        kind = StepId.parse(step.id).kind
        if stages and stages[-1].kind == kind:
            stages[-1] = Stage(kind, (*stages[-1].steps, step))
        else:
            stages.append(Stage(kind, (step,)))
    return stages


def _stage(view: RegionView, stage: Stage, detailed: bool) -> Content:
    if stage.kind == PROMOTE.kind:
        return _gate(view)
    symbol, tone = SYMBOLS[stage.state]
    if stage.state == "running" and view.status.held:
        symbol, tone = ("✗", "bad") if view.status.held == "failed" else ("‖", "warn")
    elif stage.state == "running" and idle(view):  # the rollout ended in it
        symbol, tone = SYMBOLS["waiting"]
    name = safe(WORDS.get(stage.kind, stage.kind), "bold" if stage.state == "running" else "", 40)
    detail = _detail(stage, detailed)
    return Content.assemble((f"{symbol} ", STYLES[tone]), name, safe(f" {detail}" if detail else "", "$text-muted", 80))


def _detail(stage: Stage, detailed: bool) -> str:
    if stage.kind != BACKFILL:
        done = sum(step.state == "done" for step in stage.steps)
        several = len(stage.steps) > 1 and detailed
        return "" if not several else str(done) if stage.state == "done" else f"{done}/{len(stage.steps)}"
    running = next((step for step in stage.steps if step.state == "running"), None)
    if running is None:
        return ", ".join(_target(step) for step in stage.steps) if detailed else ""
    of = f" {running.slices_done}/{running.slices}" if running.slices else ""
    return f"{_target(running) if detailed else ''}{of}".strip()


def _target(step: StepStatus) -> str:
    return StepId.parse(step.id).subject


def _gate(view: RegionView) -> Content:
    policy, state = view.region.policy.promote, view.status.state
    if state == "awaiting-confirmation":
        return Content.styled(f"◆ gate: {policy}", f"bold {STYLES['warn']}")
    signs: dict[str, tuple[str, Tone]] = {
        "live": ("✓", "good"),
        "rolled-back": ("✓", "good"),
        "promoting": ("▶", "busy"),
    }
    symbol, tone = signs.get(state, ("·", "quiet"))
    return Content.assemble((f"{symbol} ", STYLES[tone]), f"gate: {policy}")
