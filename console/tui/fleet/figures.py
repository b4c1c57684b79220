"""Figures of one region for the list: rates, lag, time of completion, and its activity or the reason for none. Pure."""

from typing import Literal

from console.model.measured import FeedSample
from console.record import dataclass
from console.runner.outlook.forecast import forecast_of
from console.runner.view import RegionView
from console.tui.charts import Value, spread
from console.tui.format import HOUR, short, span
from console.tui.groups import drift_text
from console.tui.labels import change_pending, feed_trouble, moving, running_step, under_way, working
from console.tui.panes.plan import action_counts
from console.tui.times import age, between, moment


@dataclass(frozen=True, slots=True)
class RowReason:
    """A region's activity, or the reason for none. text may come from outside: draw it through `safe`."""

    text: str
    style: str = ""


def rows_per_second(view: RegionView) -> str:
    """Of the running backfill, 0 while it waits, else of the live feeds; "?" if the region is unreachable."""
    if view.link == "unreachable":
        return "?"
    if working(view) and view.status.rate and view.status.fraction < 1.0:
        return short(view.status.rate if moving(view) else 0)
    latest = samples(view)[-1:]
    return short(latest[0].rows) if latest else ""


def lag(view: RegionView, cells: int = 8) -> str:
    """`0.4 s`, `8 h 12 m`; one unit if there is less room; "" if nothing was measured."""
    if view.link == "unreachable":
        return "?"
    status = view.status
    if not (status.lag_seconds or status.lag_commits or status.lag_rows or samples(view)):
        return ""
    text = span(status.lag_seconds)
    return text if len(text) <= cells else " ".join(text.split()[:2])


def behind(view: RegionView) -> str:
    """Rows that wait in front of the live feeds; "" if nothing was measured."""
    if view.link == "unreachable":
        return "?"
    return short(view.status.lag_rows) if lag(view) else ""


def ready_at(view: RegionView) -> str:
    """`15:45–16:25`: between when its rollout is expected at its gate; "" if unknown."""
    expected = forecast_of(view, view.heard)
    return between(expected.gate.low, expected.gate.high, view.heard) if expected else ""


def ready_late(view: RegionView) -> str:
    """`16:25`: the later of the two; "" if unknown."""
    expected = forecast_of(view, view.heard)
    return moment(expected.gate.high, view.heard) if expected else ""


def hour_of(
    view: RegionView, figure: Literal["rows", "lag"], at: float, columns: int, feed: str = ""
) -> tuple[Value, ...]:
    """The last hour's samples in that many columns; a rollout's rows of history count as rows."""
    until = (int(at) // 60 + 1) * 60.0  # redrawn once a minute
    since = until - HOUR
    points = [
        (sample.at, sample.lag if figure == "lag" else max(sample.rows, sample.backfill))
        for sample in samples(view, feed)
        if sample.at >= since  # an earlier one would stand for the first column's time, which may be minutes
    ]
    return spread(points, since, until, columns, hold=HOUR / columns) if points else ()


def samples(view: RegionView, feed: str = "") -> tuple[FeedSample, ...]:
    """The samples of one feed, or of the pipeline as a whole, oldest first."""
    return tuple(sample for sample in view.samples if sample.feed == feed)


def reason(view: RegionView) -> RowReason:
    """The region's current activity, or the reason for none; trouble comes first."""
    status = view.status
    if view.link == "unreachable":
        risk = " · a batch may be running" if working(view) else ""
        return RowReason(f"{view.link_why or 'no answer'}{risk}", "$text-warning")
    if status.held == "failed":
        return RowReason(status.why, "$text-error")
    if trouble := feed_trouble(view):
        return RowReason(trouble, "$text-error" if status.standing else "$text-warning")
    if under_way(view):
        step = running_step(view)
        text = status.why or (step.batch if step else "")
        waits = "$text-warning" if status.held or status.why else ""
        return RowReason(text or _between(view), waits)
    if view.problem:
        return RowReason(view.problem, "$text-error")
    if view.note:
        return RowReason(view.note, "$text-primary")
    return _at_rest(view)


def _between(view: RegionView) -> str:
    status = view.status
    if status.state == "awaiting-confirmation":
        passed = sum(check.ok is True for check in status.checks)
        return f"{passed} of {len(status.checks)} checks passed" if status.checks else "no check has run"
    step = next((step.id for step in status.steps if step.state == "running"), "")
    return step or "between two steps"


def _at_rest(view: RegionView) -> RowReason:
    drift = drift_text(view.plan.drift) if view.plan else ""
    if change_pending(view) and view.plan:
        rows = f"{short(view.plan.price.rows)} rows" if view.plan.price.rows else ""
        parts = (action_counts(view.plan).plain, drift, rows)
        return RowReason(" · ".join(part for part in parts if part), "$text-warning" if drift else "")
    if view.plan and view.plan.refusals:
        return RowReason(view.plan.refusals[0].message, "$text-error")
    if view.attended is False:
        return RowReason(
            " · ".join(filter(None, (drift, "no agent runs: the live feeds stand still"))), "$text-warning"
        )
    since = view.status.changed
    live = f"live for {age(view.heard - since)}" if view.status.state == "live" and since and view.heard > since else ""
    return RowReason(" · ".join(filter(None, (drift, live))), "$text-warning" if drift else "$text-muted")
