"""The head of a region's screen: its state, its figures, and why it waits or has stopped."""

from datetime import datetime

from textual.content import Content

from console.model.sandbox import time_left
from console.model.share import progress_percent
from console.model.way_back import proof_text
from console.runner import after_promotion
from console.runner.outlook.forecast import forecast_of
from console.runner.view import RegionView
from console.tui.drawing import badge, bar, cell, draw_label, safe, stack_lines, wrap_indented
from console.tui.format import count, span
from console.tui.labels import (
    STYLES,
    Tone,
    done_fraction,
    feed_trouble,
    moving,
    release_text,
    running_fraction,
    running_step,
    state_label,
    status_label,
    under_way,
    working,
)
from console.tui.times import moment, zone_of

REASON_LINES = 4
MAX_PREVIEWS = 3  # named in the head


def draw_summary(view: RegionView, width: int, at: float) -> Content:
    """Name, environment, state and bar; figures; and, wrapped, why it waits or has stopped, with the hint."""
    region, label = view.region, state_label(view)
    role = f"wave {region.wave}" + (" · canary" if region.canary else "")
    head = Content.assemble(
        safe(region.name, "bold", 60), " ", badge(region.environment), f" {role}  ", draw_label(label)
    )
    if under_way(view):
        part = done_fraction(view)
        room = max(0, min(40, width - head.cell_length - 8))
        head = Content.assemble(
            head, "  ", bar(part, room, label.style, running_fraction(view)), f" {progress_percent(part)}%"
        )
    why = _reason(view, at)
    return stack_lines(
        [
            cell(head, width),
            cell(_figures(view, at), width),
            *(wrap_indented(why, 0, width)[:REASON_LINES] if why else []),
        ]
    )


def _figures(view: RegionView, at: float) -> Content:
    parts = [safe(release_text(view), limit=60), *(Content(text) for text in figures(view))]
    if step := running_step(view):
        rows = f" ({count(step.batch_rows)} rows so far)" if step.batch_rows else ""
        parts.append(safe(f"batch {step.batch}{rows}", limit=80))
    if previews := view.status.sandboxes:
        named = ", ".join(f"{each.name} {each.state}" for each in previews[:MAX_PREVIEWS])
        more = f" and {len(previews) - MAX_PREVIEWS} more" if len(previews) > MAX_PREVIEWS else ""
        parts.append(safe(f"{'preview' if len(previews) == 1 else 'previews'} {named}{more}", limit=140))
    if held := tuple(each for each in view.status.on_hold if not each.restoring):
        left = time_left(held[-1].due - at)
        parts.append(safe(f"{held[-1].release} on hold, dropped in {left}", limit=80))
    if (following := view.status.following) is not None and following.asleep_since:
        parts.append(Content(f"Spark sleeps since {_clock(view, following.asleep_since)}"))
    if expected := forecast_of(view, view.heard):
        zone = zone_of(view.region.zone)
        times = dict.fromkeys(moment(each, at, zone) for each in (expected.gate.low, expected.gate.high))
        parts.append(Content(f"at its gate {'–'.join(times)} {datetime.fromtimestamp(at, zone):%Z}"))
    if under_way(view) and view.status.started:
        parts.append(Content(f"since {_clock(view, view.status.started)} ({span(max(0.0, at - view.status.started))})"))
    return Content(" · ").join(parts)


def figures(view: RegionView) -> list[str]:
    """Rows, rate, time left and lag, each if known."""
    status, texts = view.status, []
    if under_way(view):
        if status.rows_total:
            texts.append(f"{count(status.rows_done)} of {count(status.rows_total)} rows")
        unfinished = working(view) and view.link != "unreachable" and status.fraction < 1.0
        if unfinished and status.rate:
            texts.append(f"{count(status.rate) if moving(view) else 0} rows/s")
        if unfinished and moving(view) and status.eta_seconds is not None:
            texts.append(f"{span(status.eta_seconds)} left")
    if lag := lag_text(view):
        texts.append(lag)
    return texts


def lag_text(view: RegionView, *, rows: bool = True) -> str:
    """`lag 0.4 s`, and the number of rows behind, if any; "" if nothing was measured."""
    status = view.status
    if not (status.lag_seconds or status.lag_commits or status.lag_rows):
        return ""
    behind = f" ({count(status.lag_rows)} rows)" if rows and status.lag_rows else ""
    return f"lag {span(status.lag_seconds)}{behind}"


def way_back_proof(view: RegionView, at: float) -> Content:
    """Whether a rollback would work now, and how long ago that was checked."""
    proof = view.status.way_back
    known = proof if proof is not None and proof.release == view.previous else None
    state = known.state_at(at) if known else "inconclusive"
    tone: Tone = "good" if state == "passed" else "bad" if state == "failed" else "warn"
    return safe(proof_text(known, view.previous, at, attended=view.attended), STYLES[tone], 300)


def _reason(view: RegionView, at: float) -> Content:
    status = view.status
    if view.link == "unreachable":
        risk = " · a batch may be running" if working(view) else ""
        return Content.assemble(safe(view.link_why or "no answer", "$text-warning"), (risk, "$text-warning"))
    if status.held != "failed" and (trouble := feed_trouble(view)):
        feed = next(iter(status.standing), status.ailing[0])
        hint = Content.assemble("  → ", safe(feed.hint)) if feed.hint else Content("")
        return Content.assemble(safe(trouble, "$text-error" if feed.standing else "$text-warning"), hint)
    if status.why:
        style = "$text-error" if status.held == "failed" else "$text-muted"
        hint = Content.assemble("  → ", safe(status.hint)) if status.hint else Content("")
        return Content.assemble(safe(status.why, style), _pause_limit(view, at), hint)
    if (line := next(after_promotion.lines(view, at), None)) is not None and line.tone != "good":
        return safe(line.text, STYLES[line.tone], 500)
    if status.decided_by and not under_way(view):
        what = f"{status.release} promoted" if status.state == "live" else status_label(status).text
        return safe(f"{what} by {status.decided_by}", "$text-muted")
    return safe(view.note, "$text-muted")


def _pause_limit(view: RegionView, at: float) -> str:
    """How long a paused rollout may stay paused: the files of its history are not kept forever."""
    until = view.status.reads_until
    if view.status.held != "paused" or not until:
        return ""
    return (
        f"; can stay paused for {span(until - at)}" if until > at else "; files of its history may already be deleted"
    )


def _clock(view: RegionView, at: float) -> str:
    return datetime.fromtimestamp(at, zone_of(view.region.zone)).strftime("%H:%M:%S %Z")
