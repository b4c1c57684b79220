"""Shared by the commands that make another release live: the states read again before, and the waves that follow."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from console.errors import AtGate, Conflict, Unreachable
from console.text import safe_text

if TYPE_CHECKING:
    from console.runner.fleet import Fleet
    from console.runner.view import RegionView
    from console.runner.waves import Waves

Act = Literal["promote", "rollback"]
NOTHING = "nothing"  # shown as the live release before a region's first one


async def attached(fleet: "Fleet", names: Sequence[str]) -> None:
    """Attach to the regions; one without an answer is an error here, since it was named explicitly."""
    await fleet.attach(names)
    for name in names:
        view = fleet.views[name]
        if view.link == "unreachable":
            raise Unreachable(f"{name}: {view.link_why}", region=name, hint="console doctor")


def unmoved(confirmed: "RegionView", now: "RegionView") -> None:
    """Ensure that the confirmed release is the one promoted."""
    before = (confirmed.live, confirmed.previous, confirmed.status.rollout)
    if before != (now.live, now.previous, now.status.rollout):
        name = now.region.name
        state = f"{now.live or NOTHING} is live, {now.status.shown}{_by(confirmed, now)}"
        raise Conflict(
            f"{name}: changed while it was being confirmed: {state}",
            region=name,
            hint=f"console status --region {name}",
        )


def _by(confirmed: "RegionView", now: "RegionView") -> str:
    """Who changed it. The release's row is of the same commit as the change, the rollout's event is written after it."""
    row = now.live_row
    if row is not None and row.by and row.id == now.live != confirmed.live:
        return f"; made live by {row.by} from {row.host} at {time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime(row.at))}"
    return f" by {now.status.decided_by}" if now.status.decided_by else ""


def yes_suffices(view: "RegionView") -> None:
    """raises  AtGate where the policy lets only a person open the gate"""
    name = view.region.name
    if view.region.policy.promote == "never":
        raise AtGate(
            f"{name}: the region's policy never lets --yes open the gate",
            region=name,
            hint=f"console promote --region {name}, on a terminal",
        )


def then_text(rest: "Waves", promoted: Sequence[str]) -> str:
    """The waves that follow these promotions, and the command for them: without an open console no wave begins by itself."""
    beside, *waves = rest
    names = ",".join(safe_text(name) for name in waves[0])
    others = [safe_text(name) for name in beside if name not in promoted]
    first = f"when {', '.join(others)} {'is' if len(others) == 1 else 'are'} live too" if others else "next"
    return f"{first}: console apply --regions {names}"
