"""Open rollouts in the planned regions: a new plan has to wait for them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from console.cli.status_text import queued_text
from console.drivers.protocol import RegionState
from console.model.plan import Plan
from console.model.region import Region
from console.runner.view import RegionView
from console.runner.watch import under_way
from console.runner.waves import QueuedRegion, queued_regions
from console.text import safe_text


def standing(plans: Sequence[Plan], states: Mapping[str, RegionState]) -> tuple[tuple[Plan, RegionState], ...]:
    """The regions with a running rollout, or with one at its gate."""
    return tuple(
        (plan, states[plan.region]) for plan in plans if plan.region in states and _stands(states[plan.region])
    )


def standing_text(plan: Plan, state: RegionState) -> str:
    """`us: web-2 (r1 → r2) is at its gate with this change; console promote --region us makes it live, …`."""
    region, status = safe_text(plan.region), state.status
    which = (
        f"{region}: {safe_text(status.rollout)} ({safe_text(status.was or 'nothing')} → {safe_text(status.release)})"
    )
    with_what = "" if state.plan is None else " with this change" if _same(plan, state) else " with another change"
    match status.held or status.state:
        case "failed":
            now, then = (
                "has failed",
                f"console retry --region {region} continues it, console discard --region {region} drops it",
            )
        case "paused":
            now, then = "is paused", f"console resume --region {region} continues it"
        case "awaiting-confirmation":
            now = "is at its gate"
            then = f"console promote --region {region} makes it live, console cancel --region {region} drops it"
        case word:
            now, then = f"is {word}", f"console watch --region {region} follows it"
    return f"{which} {now}{with_what}; {then}"


def waiting(
    regions: Iterable[Region], plans: Iterable[Plan], states: Mapping[str, RegionState]
) -> dict[str, QueuedRegion]:
    """The regions whose wave of a rollout has not begun."""
    planned = {plan.region: plan for plan in plans}
    views = {
        region.name: RegionView(region=region, status=states[region.name].status, plan=planned[region.name])
        for region in regions
        if region.name in planned and region.name in states
    }
    return queued_regions(views, {name: plan.desired for name, plan in planned.items()})


def waiting_text(queued: QueuedRegion) -> str:
    """`eu: wave 2 has not begun, …`."""
    return f"{safe_text(queued.region)}: {queued_text(queued)}"


def waiting_data(queued: QueuedRegion) -> dict[str, Any]:
    """For `--output json`."""
    return {"region": queued.region, "wave": queued.wave, "after": list(queued.after)}


def standing_data(plan: Plan, state: RegionState) -> dict[str, Any]:
    """For `--output json`. same  whether it makes the planned change; None if its region does not report that."""
    status = state.status
    return {
        "region": plan.region,
        "rollout": status.rollout,
        "release": status.release,
        "was": status.was,
        "state": status.shown,
        "same": None if state.plan is None else _same(plan, state),
    }


def _stands(state: RegionState) -> bool:
    return bool(state.status.held) or under_way(state.status)


def _same(plan: Plan, state: RegionState) -> bool:
    return state.plan is not None and (state.plan.desired, state.plan.live) == (plan.desired, plan.live)
