"""What each round of checks begins with: a context of its own, and one landing position of all feeds."""

import time
from concurrent.futures import TimeoutError as FutureTimeout

from console.agent.pipeline import PipelineController
from console.agent.rollout.context import RolloutContext
from console.errors import RegionError
from console.model.live import Release

ALIGN_SECONDS = 120.0  # for the feeds to reach one landing position


def context_of(controller: PipelineController) -> RolloutContext:
    """A context of the newest rollout, which a round may halt without halting anything else."""
    execution = controller.execution
    return RolloutContext(
        warehouse=controller.warehouse,
        spark=controller.spark,
        releases=controller.releases,
        recorder=controller.recorder,
        follower=controller.feeds.follower,
        keep_hours=execution.keep_hours,
    )


def older_release(context: RolloutContext) -> Release | None:
    """The release that the new one is compared with: the live one at the gate, after that the one before it while it is fed."""
    if context.before is not None:
        return context.before
    stored = context.releases.in_state("live")
    return stored.release if stored is not None and stored.row.id != context.plan.release.id else None


def aligned(context: RolloutContext, seconds: float = ALIGN_SECONDS) -> dict[str, int]:
    """Table path → Delta version, at one landing position of every feed that moves.

    raises  RolloutStopped; AgentEnding; RegionError if they do not get there in time
    """
    alignment = context.follower.align(context.plan.pipeline)
    end = time.monotonic() + seconds
    try:
        while True:
            context.check_halt()
            try:
                return alignment.result(0.2)
            except FutureTimeout:
                if time.monotonic() > end:
                    behind = context.follower.lag(context.plan.pipeline).rows
                    why = f"the feeds did not reach one landing position in {seconds:.0f} s ({behind:,} rows behind)"
                    raise RegionError(why, hint="console status shows their lag") from None
    finally:
        context.follower.forget(alignment)
