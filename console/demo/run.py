"""The demo without a screen: build, live traffic, the whole rollout with readers watching, and an independent check."""

import asyncio
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from console.demo import judging
from console.demo.cockpit import DemoFleet
from console.demo.prepare import Demo, start_traffic, stop, stop_agents, stop_traffic
from console.errors import ConsoleError, RegionError
from console.runner.view import Outcome, RegionView
from console.text import safe_text


@dataclass(kw_only=True)
class DemoOutput:
    """Progress lines on `progress`, one for each change; results on `data`."""

    data: TextIO
    progress: TextIO
    started: float = field(default_factory=time.monotonic)
    last_lines: dict[str, str] = field(default_factory=dict)
    guides: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def say(self, line: str) -> None:
        print(f"{time.monotonic() - self.started:6.1f} s  {safe_text(line)}", file=self.progress, flush=True)

    def view(self, view: RegionView) -> None:
        """Print a region's line, unless it equals the region's last one."""
        running = next((step for step in view.status.steps if step.state == "running"), None)
        line = view.note or view.problem or view.status.shown
        if not view.note and running:
            line += f": {f'{running.id} {running.batch}'.strip()}"
        if view.status.why:
            line += f": {view.status.why}"
        if line and self.last_lines.get(view.region.name) != line:
            self.last_lines[view.region.name] = line
            self.say(f"{view.region.name:<4}{line}")
        if view.guide and self.guides.get(view.region.name) != view.guide:
            self.guides[view.region.name] = view.guide
            for line in view.guide:
                self.say(f"{view.region.name:<4}{line}")


async def headless(demo: Demo, log: Path | None, plant: str, output: DemoOutput, *, chaos: bool = False) -> int:
    """The whole demo; its processes are ended afterwards, its tables are kept.

    plant    a bug for the agents to plant in the rollout (not in the build before it), or ""
    chaos    kill an agent in the middle of its history
    returns  0 if every region is live and the check found nothing wrong
    """
    fleet = DemoFleet(demo, log, traffic=not plant, chaos="struck" if chaos else "none")
    follower = asyncio.create_task(_follow(fleet, output))
    try:
        await fleet.refresh()
        if plant:
            await stop_agents(demo)
            os.environ["CONSOLE_PLANT"] = plant
            start_traffic(demo, log)
        await _wait_for_traffic(demo, output)
        facts = {name: judging.facts(view) for name, view in fleet.views.items()}
        judging.start_reader(demo)
        await fleet.refresh()
        outcomes = await fleet.run(yes=True)
        _report_outcomes(outcomes, output)
        for name, view in fleet.views.items():
            facts[name]["moved"] = sum(step.bytes for step in view.status.steps)
        if all(outcome.error is None for outcome in outcomes):
            for note in await judging.await_reads(demo):
                output.say(note)
        await stop_traffic(demo)
        promoted = all(outcome.state == "live" for outcome in outcomes)
        if promoted:
            output.say("comparing with an independent computation")
        passed = promoted and await _judge(demo, facts, output)
        _print_summary(fleet, output)
        return 0 if passed else 1
    finally:
        follower.cancel()
        await fleet.close()
        await stop(demo)


async def _follow(fleet: DemoFleet, output: DemoOutput) -> None:
    async for view in fleet.changes():
        output.view(view)


async def _wait_for_traffic(demo: Demo, output: DemoOutput) -> None:
    """Wait for the first acknowledged batch of every producer, so that rows arrive from the start of the rollout."""
    output.say("live traffic starts")
    until = time.monotonic() + 90
    while waiting := [r.name for r in demo.regions if '"acknowledged"' not in judging.text(demo.ledger(r.name))]:
        if time.monotonic() > until:
            name = waiting[0]
            raise RegionError(
                f"{name}: no live row in 90 s", hint=f"see {demo.processes.log(f'producer-{name}')}", code="E_DEMO"
            )
        await asyncio.sleep(0.2)


def _report_outcomes(outcomes: tuple[Outcome, ...], output: DemoOutput) -> None:
    for outcome in outcomes:
        output.say(f"{outcome.region:<4}{outcome.state}" + (f": {outcome.error}" if outcome.error else ""))


async def _judge(demo: Demo, facts: judging.Facts, output: DemoOutput) -> bool:
    judgement = await judging.check(demo, facts)
    print(judgement.report, file=output.data, end="", flush=True)
    return judgement.code == 0


def _print_summary(fleet: DemoFleet, output: DemoOutput) -> None:
    """What was done, and how to do the same with one's own tables."""
    lines = [""]
    for name, view in fleet.views.items():
        status = view.status
        rows = sum(step.rows_done for step in status.steps)
        lines.append(
            f"{name}: {status.was or '-'} → {view.live or '-'} {status.shown}, {rows:,} rows backfilled in"
            f" {status.changed - status.started:.0f} s, promoted by {status.decided_by or '-'}"
        )
    lines += [
        "",
        "With your own tables (README: your own warehouse):",
        "  console plan --project DIR",
        "  console apply --project DIR --regions NAME",
        "  console promote --project DIR --region NAME",
    ]
    print("\n".join(safe_text(line) for line in lines), file=output.data, flush=True)


async def prepare(demo: Demo, log: Path | None, live: bool, output: DemoOutput) -> int:
    """Build, and stop there; with `live`, producers and agents keep running."""
    fleet = DemoFleet(demo, log, traffic=live)
    follower = asyncio.create_task(_follow(fleet, output))
    try:
        await fleet.refresh()
    except (ConsoleError, asyncio.CancelledError):
        live = False
        raise
    finally:
        follower.cancel()
        await fleet.close()
        if not live:
            await stop(demo)
    output.say("built; next: console plan" + (" · console demo --stop ends the traffic" if live else ""))
    return 0
