"""The commands that print the figures of a pane. Pure; `y` copies them, one after the other."""

import shlex
from collections.abc import Iterable, Mapping
from itertools import islice

from console.runner.view import RegionView
from console.tui.commands.ran import command_line
from console.tui.labels import change_pending, under_way

MOST_SHOWN = 5
JSON = ("--output", "json")
ALL_REGIONS = ("console status --history 1h --output json", "console plan --output json")


def printing_commands(pane: str, region: str, views: Mapping[str, RegionView]) -> tuple[str, ...]:
    """The commands that print a pane's content, the most informative first.

    pane    its id; "" for none
    region  shown in the pane; "" for all
    """
    view = views.get(region)
    if pane == "events":
        return happened_commands(views)
    if view is None:
        return ALL_REGIONS
    match pane:
        case "question":
            return _question(view)
        case "days" | "log":
            return (*_shown(view), *_status(region))
        case "slow":
            return (*_shown(view), *ALL_REGIONS)
        case "rates" | "lag":
            return (f"{command_line('status --history 1h', (region,))} --output json", *_shown(view))
        case "safety":
            return (*_status(region), *_shown(view), *ALL_REGIONS)
        case "plan":
            return (f"{command_line('plan', (region,))} --output json", *_status(region))
        case "witness":
            return (f"{command_line('plan --witness', (region,))} --output json",)
        case _:
            return _status(region)


def fleet_commands(views: Mapping[str, RegionView], needing: Iterable[str]) -> tuple[str, ...]:
    """For the needs and the list of regions. needing: regions that need a person; their rollouts hold the reason"""
    shown = (line for name in dict.fromkeys(needing) for line in _shown(views[name]) if name in views)
    return (*ALL_REGIONS, *islice(shown, MOST_SHOWN))


def happened_commands(views: Mapping[str, RegionView]) -> tuple[str, ...]:
    """For the events of all regions: the list of rollouts, and each rollout in full."""
    names = dict.fromkeys(recorded.rollout for view in views.values() for recorded in reversed(view.events))
    return (
        "console history",
        "console history --output json",
        *(shlex.join(["console", "show", name, *JSON]) for name in names if name),
    )


def _question(view: RegionView) -> tuple[str, ...]:
    region = view.region.name
    hour = f"{command_line('status --history 1h', (region,))} --output json"
    plan = f"{command_line('plan', (region,))} --output json"
    if under_way(view):
        return (hour, *_shown(view), *ALL_REGIONS)
    return (plan, hour) if change_pending(view) or view.problem else (hour, plan)


def _status(region: str) -> tuple[str, ...]:
    return (f"{command_line('status', (region,))} --output json",)


def _shown(view: RegionView) -> tuple[str, ...]:
    rollout = view.status.rollout
    return (shlex.join(["console", "show", rollout, "--region", view.region.name, *JSON]),) if rollout else ()
