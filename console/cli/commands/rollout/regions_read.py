"""The regions as commands show them: states, samples and stored events, requested from all at once."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from console.cli.wiring import OpenProject
from console.errors import ConsoleError
from console.model.event import RUNNING, Promoted, Recorded, RolledBack
from console.model.measured import FeedSample
from console.runner.journal import Journal
from console.runner.view import RegionView

if TYPE_CHECKING:
    from console.drivers.protocol import Driver, RegionState


async def samples_of(
    project: OpenProject, hours: float, names: Sequence[str]
) -> "tuple[dict[str, tuple[FeedSample, ...]], dict[str, ConsoleError]]":
    """The samples of the last hours from each region's agent, or from the last agent's file; requested at once."""
    samples: dict[str, tuple[FeedSample, ...]] = {}
    errors: dict[str, ConsoleError] = {}

    async def ask(name: str) -> None:
        try:
            samples[name] = await drivers[name].samples(project.pipeline, hours, None)
        except ConsoleError as error:
            errors[name] = error

    async with project.drivers() as drivers:
        await asyncio.gather(*map(ask, names))
    return {name: samples[name] for name in names if name in samples}, errors


async def with_measured(project: OpenProject, views: "Sequence[RegionView]") -> "list[RegionView]":
    """The views, with the stored events and the last hour's samples where a backfill runs, for the forecast of its end."""
    wanted = [view.region.name for view in views if _wanted(view)]
    if not wanted:
        return list(views)
    samples, _ = await samples_of(project, 1.0, wanted)
    async with project.drivers() as drivers:
        stored = await asyncio.gather(
            *(stored_events(drivers[view.region.name], project.pipeline, view) for view in views if _wanted(view))
        )
    events = dict(stored)
    return [
        replace(view, samples=samples.get(view.region.name, ()), events=events.get(view.region.name, ()))
        for view in views
    ]


def _wanted(view: "RegionView") -> bool:
    return view.link == "connected" and view.status.state in RUNNING and bool(view.status.rate)


async def stored_events(driver: "Driver", pipeline: str, view: "RegionView") -> "tuple[str, tuple[Recorded, ...]]":
    """A region's name and the stored events of its rollout; () if they cannot be read now: its state was."""
    try:
        history = await driver.history(pipeline, view.status.rollout) if view.status.rollout else None
    except ConsoleError:
        history = None
    return view.region.name, history.events if history else ()


async def views_of(project: OpenProject) -> "tuple[list[RegionView], dict[str, ConsoleError]]":
    """Every region's state, requested at once; a region without an answer is listed with its error."""
    async with project.drivers() as drivers:
        states = await asyncio.gather(*(_state(drivers[name], project.pipeline) for name in project.names))
    views, errors = [], {}
    for region, state in zip(project.regions, states, strict=True):
        if isinstance(state, ConsoleError):
            errors[region.name] = state
            views.append(
                RegionView(
                    region=region, link="unreachable", link_why=str(state), live=_last_seen(project, region.name)
                )
            )
        else:
            behind = state.digest != project.pipelines[region.name].digest() if state.digest else None
            views.append(
                RegionView(
                    region=region,
                    link="connected",
                    status=state.status,
                    plan=state.plan,
                    accepted=state.plan,
                    live=state.live,
                    live_row=state.live_row,
                    previous=state.previous,
                    behind=behind,
                    attended=state.attended,
                    heard=float(int(time.time())),
                )
            )
    return views, errors


def _last_seen(project: OpenProject, region: str) -> str:
    """The last release that this machine saw go live in an unreachable region; "" if none."""
    journal, release = Journal(), ""
    if not journal.path.exists():
        return ""
    with suppress(ConsoleError):  # a damaged journal is reported by commands that need it
        for recorded in journal.events(region, project.pipeline):
            if isinstance(recorded.event, Promoted | RolledBack):
                release = recorded.event.release
    journal.close()
    return release


async def _state(driver: "Driver", pipeline: str) -> "RegionState | ConsoleError":
    try:
        return await driver.state(pipeline)
    except ConsoleError as error:
        return error
