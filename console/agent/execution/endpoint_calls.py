"""Recorded calls at the gate: run against the live release and the new one, two checks for each endpoint."""

import time
from collections.abc import Iterator, Mapping

from console.agent.calls.replay import CalledRelease, replay
from console.agent.calls.verdict import checks_of, confirmed
from console.agent.rollout.context import RolloutContext
from console.model.event import Checked
from console.model.recorded_call import PlannedCall, ReplayedCall
from console.model.step import Validate

# Hadoop does not count bytes of vectored reads of a local file; sequential reads are counted
_COUNTED = {"parquet__hadoop__vectored__io__enabled": "false"}
PASS_SECONDS = 120.0  # after which no further call begins


def call_checks(context: RolloutContext, step: Validate, pins: Mapping[str, int]) -> Iterator[Checked]:
    """The checks of all endpoints that have recorded calls. Only figures of an answer are stored. What fails has to fail again
    at once: one slow moment of the host must neither close a gate nor take a release back.

    pins    version path → Delta version: one landing position of all feeds
    raises  RolloutStopped
    """
    if not step.calls:
        return
    began = time.monotonic()
    live, new = (
        CalledRelease(session=context.spark.session(**_COUNTED), release=release, context=context, pins=pins)
        for release in (context.live(), context.plan.release)
    )
    for endpoint in dict.fromkeys(call.endpoint for call in step.calls):
        replayed = []
        for call in (call for call in step.calls if call.endpoint == endpoint):
            over = time.monotonic() - began > PASS_SECONDS
            first = _not_begun(call) if over else replay(context, call, live, new)
            replayed.append(confirmed(first, replay(context, call, live, new)) if first.failed else first)
        yield from checks_of(endpoint, replayed)


def _not_begun(call: PlannedCall) -> ReplayedCall:
    why = f"not run: the calls before it took {PASS_SECONDS:.0f} s"
    return ReplayedCall(endpoint=call.endpoint, name=call.name, same=None, same_cost=None, why=why, why_cost=why)
