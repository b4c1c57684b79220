"""Plans for tests, which only state the parts that matter to the test."""

from typing import Any

from console.model.live import Release
from console.model.plan import Plan
from console.model.step import Step


def bare_plan(
    *,
    steps: tuple[Step, ...],
    release: Release,
    pipeline: str = "web",
    desired: str = "d",
    live: str = "",
    **more: Any,
) -> Plan:
    """Of region eu, without a node. more: other fields of a plan, as limits and throttle"""
    fields = {"format_version": 1, "tool": "t", "region": "eu", "content": "c", "nodes": (), **more}
    return Plan(pipeline=pipeline, desired=desired, live=live, steps=steps, release=release, **fields)
