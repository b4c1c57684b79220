"""What a region in a bucket cannot do yet (docs/stores.md), named in its plans."""

from collections.abc import Iterator
from dataclasses import replace

from console.errors import Problem
from console.model.plan import Plan
from console.model.region import Region
from console.model.step import Backfill
from console.remedy import Edit

_BUCKETS = ("s3://", "s3a://")


def with_limits_of_bucket(plan: Plan, region: Region) -> Plan:
    """The plan with P044 for each part that its region cannot carry out."""
    if not region.warehouse.startswith(_BUCKETS):
        return plan
    return replace(plan, problems=(*plan.problems, *_refused(plan)))


def _refused(plan: Plan) -> Iterator[Problem]:
    for step in plan.steps:
        if isinstance(step, Backfill) and step.linked:
            message = f"{step.target}: files in a bucket have one name each, so a version's history cannot be linked to another"
            remedies = (Edit(node=step.target, how="`history: carry`, which copies the rows"),)
            yield Problem(code="P044", message=message, node=step.target, remedies=remedies)
