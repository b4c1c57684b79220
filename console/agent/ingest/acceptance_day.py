"""Changes the day from which a landing table refuses lines of older shapes, in the live release, without a rollout."""

from collections.abc import Mapping
from datetime import date

from console.agent.pipeline import PipelineController
from console.agent.rollout.notes import leave_note
from console.errors import Conflict, DataError


def accept_until(
    controller: PipelineController, release: str, days: Mapping[str, str], by: str, host: str
) -> dict[str, str]:
    """Set another day for tables of the live release, and record the author in the pipeline's notes. Safe to repeat.

    release  the one that the console believes to be live;  days: table → `2026-12-24`, "" for until the cleanup
    returns  the tables whose day changed
    raises   Conflict E_STALE; DataError for an invalid day, or a table that is not a managed landing table of the release
    """
    with controller.lock:
        live = controller.live()
        if live.id != release:
            raise Conflict(f"{live.id} is live, not {release}", hint="console accept-until", code="E_STALE")
        for table, day in days.items():
            state = live.table(table)
            if state is None or state.table.kind != "landing" or not state.table.managed:
                raise DataError(f"{table} is not a managed landing table of {live.id}", hint="console plan")
            _check_day(day)
        moved = {
            table: day
            for table, day in days.items()
            if (state := live.table(table)) is not None and state.table.accepts_until != day
        }
        if moved and controller.recorder.rollout:  # first, so that no change is without an author
            shown = ", ".join(f"{table} until {day or 'the cleanup'}" for table, day in sorted(moved.items()))
            leave_note(controller, f"lines of older shapes are accepted: {shown}"[:500], by, host)
        if moved:
            controller.releases.accept_until(release, moved)
    return moved


def _check_day(day: str) -> None:
    try:
        if day:
            date.fromisoformat(day)
    except ValueError:
        raise DataError(f"{day!r:.40} is not a day such as 2026-12-01") from None
