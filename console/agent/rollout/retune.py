"""Changes of a rollout's limits while it runs."""

from collections.abc import Callable

from console.agent.rollout.ownership import in_progress
from console.agent.rollout.recorder import Recorder
from console.errors import Conflict, DataError
from console.model.event import Logged
from console.model.live import Release
from console.model.status import Status
from console.model.tuning import AS_PLANNED, Tuned, Tuning, check_ranges, described, limits, merged
from console.text import redacted


def retune(
    recorder: Recorder, live: Callable[[], Release], change: Tuning, *, pipeline: str, by: str, host: str, reset: bool
) -> Status:
    """Store changed limits for the rollout in progress, so that the next agent keeps them; no effect if none changes.
    The caller holds the pipeline's lock.

    live    returns the live release; called only if tables are named
    reset   go back to the plan first
    raises  Conflict E_STATE without a rollout in progress; DataError E_RANGE, also for a table that is not live
    """
    status = recorder.status
    if not in_progress(status):
        raise Conflict(f"{pipeline}: nothing is under way", hint="console status", code="E_STATE")
    check_ranges(change)
    for table in change.tables or ():
        if live().table(table) is None:
            raise DataError(f"query reads {table!r:.60}, which is not in the live release", code="E_RANGE")
    tuning = merged(AS_PLANNED if reset else status.tuning, change)
    plan = recorder.plan
    if tuning == status.tuning or plan is None:
        return status
    text = described(limits(plan, status.tuning), limits(plan, tuning)) or "as planned"
    recorder.store(Logged(redacted(f"{by} from {host}: {text}"), "info", Tuned(by=by, host=host, tuning=tuning)))
    return recorder.status
