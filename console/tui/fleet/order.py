"""The orders of the list of regions. Pure; applied when the operator chooses one, never while reading."""

from collections.abc import Mapping
from typing import Literal, assert_never, get_args

from console.runner.outlook.attention import attention
from console.runner.view import RegionView

Order = Literal["waves", "needs", "lag", "name"]
ORDERS: tuple[Order, ...] = get_args(Order)


def next_order(order: Order) -> Order:
    return ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]


def arranged(views: Mapping[str, RegionView], order: Order, now: float) -> tuple[str, ...]:
    """The names of the regions in this order; ties are in the order of waves."""
    match order:
        case "waves":
            return tuple(views)
        case "needs":
            needing = dict.fromkeys(need.region for need in attention(views, now))
            return (*needing, *(name for name in views if name not in needing))
        case "lag":
            return tuple(sorted(views, key=lambda name: -views[name].status.lag_seconds))
        case "name":
            return tuple(sorted(views))
        case _:
            assert_never(order)
