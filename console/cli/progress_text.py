"""The events worth reporting between two views of a rollout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from console.cli.format import count, span
from console.cli.gate_text import check_line
from console.cli.status_text import is_moving
from console.model.codec import encode
from console.model.status import Status
from console.model.step_status import StepStatus
from console.runner.view import RegionView
from console.text import safe_text

Kind = Literal[
    "apply_start",
    "apply_progress",
    "apply_waiting",
    "apply_paused",
    "apply_errored",
    "apply_complete",
    "check",
    "link",
    "taken_over",
    "note",
]


@dataclass(frozen=True, slots=True)
class StatusLine:
    """An event worth a line. fleeting: printed only once in a while per kind.

    text  for people, made safe, without the region's name;  data  for programs, exact
    """

    kind: Kind
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    fleeting: bool = False


def progress_lines(before: RegionView, after: RegionView) -> list[StatusLine]:
    """The events of a region between two views, in order; without repetition if each pair is passed once."""
    lines: list[StatusLine] = []
    if after.link != before.link and "unreachable" in (after.link, before.link):
        back = after.link != "unreachable"
        text = "reached again" if back else f"unreachable, a batch may be running: {safe_text(after.link_why)}"
        lines.append(StatusLine("link", text, {"link": after.link, "why": after.link_why}))
    if after.note != before.note and after.waits:
        lines.append(StatusLine("apply_waiting", safe_text(after.note), {"why": after.note}))
    old, new = before.status, after.status
    if new.rollout and new.rollout != old.rollout:
        text = f"{new.rollout}: {new.was or 'nothing'} → {new.release}, planned by {new.by}"
        lines.append(
            StatusLine("apply_start", safe_text(text), {"rollout": new.rollout, "release": new.release, "was": new.was})
        )
        old = Status()
    if new.console and new.console != old.console:
        text = f"{new.taken_by} took {new.rollout} over"
        lines.append(StatusLine("taken_over", safe_text(text), {"by": new.taken_by, "rollout": new.rollout}))
    lines += [
        StatusLine("note", safe_text(f"note by {note.by}: {note.text}"), encode(note))
        for note in new.notes
        if note not in old.notes
    ]
    lines += _step_lines(old, new)
    lines += [
        StatusLine("check", f"check {check_line(check, new)}", {"check": encode(check)})
        for check in new.checks
        if check not in old.checks
    ]
    return lines + _state_lines(old, new) + _rows_lines(old, new)


def _step_lines(old: Status, new: Status) -> list[StatusLine]:
    was = {step.id: step.state for step in old.steps}
    done = [step for step in new.steps if step.state == "done" and was.get(step.id) != "done"]
    return [
        StatusLine("apply_progress", _done(step), {"step": step.id, "state": "done", "rows": step.rows_done})
        for step in done
    ]


def _done(step: StepStatus) -> str:
    rows = f": {count(step.rows_done, 'row')} in {span(step.seconds)}" if step.rows_done and step.seconds else ""
    return safe_text(f"{step.id} done{rows}")


def _state_lines(old: Status, new: Status) -> list[StatusLine]:
    state = {"state": new.state, "held": new.held, "why": new.why}
    if new.held and (new.held, new.why) != (old.held, old.why):
        kind: Kind = "apply_errored" if new.held == "failed" else "apply_paused"
        hint = f"; {new.hint}" if new.hint else ""
        return [StatusLine(kind, safe_text(f"{new.held}: {new.why}{hint}"), {**state, "hint": new.hint})]
    if old.held and not new.held:
        return [StatusLine("apply_progress", f"continues: {new.state}", state)]
    if new.state not in (old.state, "none"):
        if not is_moving(new):
            by = f", by {new.decided_by}" if new.decided_by else ""
            return [StatusLine("apply_complete", safe_text(f"{new.state}{by}"), {**state, "release": new.release})]
        return [StatusLine("apply_progress", new.state, state)]
    if new.why and new.why != old.why:
        return [StatusLine("apply_waiting", safe_text(f"waiting: {new.why}"), state, fleeting=True)]
    return []


def _rows_lines(old: Status, new: Status) -> list[StatusLine]:
    if new.rows_done == old.rows_done or new.held or not new.rows_total or not is_moving(new):
        return []
    running = next((step for step in new.steps if step.state == "running"), None)
    if running is None:
        return []
    parts = [f"{new.percent} %", f"{new.rows_done:,} of {count(new.rows_total, 'row')}"]
    if new.rate:
        parts += [f"{new.rate:,.0f} rows/s", f"about {span(new.eta_seconds)} left"]
    parts += [text for text in (running.id, running.batch) if text]
    data = {
        "step": running.id,
        "batch": running.batch,
        "rows_done": new.rows_done,
        "rows_total": new.rows_total,
        "rows_per_second": round(new.rate, 1),
        "eta_seconds": new.eta_seconds,
    }
    return [StatusLine("apply_progress", safe_text(" · ".join(parts)), data, fleeting=True)]
