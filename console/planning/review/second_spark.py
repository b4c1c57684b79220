"""Builds that are too large for the Spark that follows: their batches run on the region's second one."""

from dataclasses import replace

from console.model.plan import Plan
from console.model.region import BackfillSpark, Region
from console.model.step import Backfill


def with_second_spark(plan: Plan, region: Region) -> Plan:
    """The plan, with a mark at each build whose planned rows or bytes exceed the region's threshold."""
    second = region.backfill_spark
    if second is None:
        return plan
    steps = tuple(_placed(step, second) if isinstance(step, Backfill) else step for step in plan.steps)
    return replace(plan, steps=steps)


def _placed(step: Backfill, second: BackfillSpark) -> Backfill:
    large = not step.linked and second.takes(step.rows, step.bytes)
    return replace(step, second_spark=True) if large else step
