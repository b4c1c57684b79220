"""What the screen shows of a region that is being built: the days written so far, then the rollout of release r1.

Both are drawn as one rollout, so that steps, bars, rates and log are where those of any rollout are.
"""

from dataclasses import replace

from console.demo.traffic.generate import DAYS, TRAFFIC, DayWritten
from console.model.region import Region
from console.model.status import Status
from console.model.step_status import StepStatus
from console.runner.view import RegionView

WRITING, RELEASE = "write/landing", "release r1"


def begun(region: Region, at: float) -> RegionView:
    """Nothing is written yet.  at: seconds since 1970, UTC"""
    rows = expected_rows(region.name)
    writing = StepStatus(id=WRITING, state="running", rows_total=rows, planned=rows, slices=DAYS)
    later = StepStatus(id=RELEASE, rows_total=rows, planned=rows)
    status = Status(release="r1", state="preparing", by="demo", started=at, changed=at, steps=(writing, later))
    note = f"building: 0 of {DAYS} days"
    return RegionView(region=region, link="connected", status=status, note=note, notice="building", waits=True)


def with_day(view: RegionView, day: DayWritten, at: float) -> RegionView:
    """One more day of history is written."""
    writing, *others = view.status.steps
    rows, ended = writing.rows_done + day.rows, day.done == day.of
    writing = replace(
        writing, state="done" if ended else "running", slices_done=day.done, slices=day.of, rows_done=rows,
        rows_total=rows if ended else writing.rows_total, seconds=at - view.status.started, batch="" if ended else f"after {day.day}",
    )  # fmt: skip
    line = f"{day.day}: {day.rows:,} rows written to landing"
    status = replace(view.status, steps=(writing, *others), changed=at, log=(*view.status.log, line))
    return replace(view, status=status, note=f"building: {day.done} of {day.of} days")


def with_release(view: RegionView, rollout: RegionView) -> RegionView:
    """The progress of release r1's rollout, once the days are written.

    view     the region as `with_day` left it;  rollout  the same region in the fleet that rolls r1 out
    """
    status, own = view.status, rollout.status
    if own.steps:
        state = "promoting" if own.state == "awaiting-confirmation" else own.state  # it needs no confirmation
        writing = replace(view.status.steps[0], seconds=0.0)  # rows are written many times faster than they are carried
        steps, log = (writing, *own.steps), (*view.status.log, *own.log)
        status = replace(own, state=state, started=view.status.started, steps=steps, log=log)
    note = f"building: release r1, {own.shown}"
    return replace(rollout, region=view.region, status=status, note=note, notice="building", waits=True)


def expected_rows(region: str) -> int:
    """Rows of the history, assuming that its last day is complete."""
    return sum(TRAFFIC[region].rows(days_ago) for days_ago in range(DAYS))
