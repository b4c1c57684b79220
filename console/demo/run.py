"""The demo without a screen: build, live traffic, the whole rollout with readers watching, and an independent check."""

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from deltalake import DeltaTable

from console.demo.cockpit import DemoFleet
from console.demo.prepare import PIPELINE, Demo, start_traffic, stop, stop_agents, stop_traffic
from console.errors import ConsoleError, RegionError
from console.runner.view import Outcome, RegionView
from console.text import safe_text

CHECK, READER = Path(__file__).parent / "check.py", Path(__file__).parent / "reader.py"
MIN_READS = 200
MAX_READ_SECONDS = 240.0


@dataclass
class DemoOutput:
    """Progress lines on `progress`, one for each change; results on `data`."""

    data: TextIO
    progress: TextIO
    started: float = field(default_factory=time.monotonic)
    last_lines: dict[str, str] = field(default_factory=dict)

    def say(self, line: str) -> None:
        print(f"{time.monotonic() - self.started:6.1f} s  {safe_text(line)}", file=self.progress, flush=True)

    def view(self, view: RegionView) -> None:
        """A region's line, unless it was the last one of that region."""
        running = next((step for step in view.status.steps if step.state == "running"), None)
        line = view.note or view.problem or view.status.shown
        if not view.note and running:
            line += f": {f'{running.id} {running.batch}'.strip()}"
        if view.status.why:
            line += f": {view.status.why}"
        if line and self.last_lines.get(view.region.name) != line:
            self.last_lines[view.region.name] = line
            self.say(f"{view.region.name:<4}{line}")


async def headless(demo: Demo, log: Path | None, plant: str, output: DemoOutput) -> int:
    """The whole demo; its processes are ended afterwards, its tables are kept.

    plant    a bug for the agents to plant in the rollout (not in the build before it), or ""
    returns  0 if every region is live and the check found nothing wrong
    """
    fleet = DemoFleet(demo, log, traffic=not plant)
    follower = asyncio.create_task(_follow(fleet, output))
    try:
        await fleet.refresh()
        if plant:
            await stop_agents(demo)
            os.environ["CONSOLE_PLANT"] = plant
            start_traffic(demo, log)
        await _wait_for_traffic(demo, output)
        facts = {region.name: _facts(demo, fleet, region.name) for region in demo.regions}
        _start_reader(demo)
        await fleet.refresh()
        outcomes = await fleet.run(yes=True)
        _report_outcomes(outcomes, output)
        for name, view in fleet.views.items():
            facts[name]["moved"] = sum(step.bytes for step in view.status.steps)
        if all(outcome.error is None for outcome in outcomes):
            await _await_reads(demo, output)
        await stop_traffic(demo)
        promoted = all(outcome.state == "live" for outcome in outcomes)
        if promoted:
            output.say("comparing with an independent computation")
        passed = promoted and await _check(demo, facts, output) == 0
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
    while waiting := [r.name for r in demo.regions if '"acknowledged"' not in _text(demo.ledger(r.name))]:
        if time.monotonic() > until:
            name = waiting[0]
            raise RegionError(
                f"{name}: no live row in 90 s", hint=f"see {demo.processes.log(f'producer-{name}')}", code="E_DEMO"
            )
        await asyncio.sleep(0.2)


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _facts(demo: Demo, fleet: DemoFleet, region: str) -> dict[str, int]:
    landing = DeltaTable(str(Path(demo.project.region(region).warehouse) / "landing"))
    rows = sum(landing.get_add_actions(flatten=True).column("num_records").to_pylist())
    plan = fleet.views[region].plan
    if plan is None or not plan.changes:
        raise RegionError(f"{region}: no change is pending", hint="start over: console demo --reset", code="E_DEMO")
    return {"before": rows, "moved": 0, "everything": plan.everything.bytes}


def _warehouses(demo: Demo) -> list[str]:
    return [word for region in demo.regions for word in ("--region", f"{region.name}={region.warehouse}")]


def _reads(demo: Demo) -> Path:
    return demo.run / "reads.json"


def _start_reader(demo: Demo) -> None:
    _reads(demo).unlink(missing_ok=True)
    demo.processes.start(
        "reader", str(READER), *_warehouses(demo), "--results", str(_reads(demo)), "--pipeline", PIPELINE
    )


async def _await_reads(demo: Demo, output: DemoOutput) -> None:
    """Let the reader read the new release too before it is stopped."""
    until = time.monotonic() + MAX_READ_SECONDS
    while demo.processes.alive("reader") and time.monotonic() < until:
        reads: dict[str, Any] = json.loads(_text(_reads(demo)) or "{}")
        if reads and min(figures["reads"] for figures in reads.values()) >= MIN_READS:
            break
        await asyncio.sleep(0.5)
    for name, figures in json.loads(_text(_reads(demo)) or "{}").items():
        for note in figures["notes"]:
            output.say(f"{name:<4}{note}")


def _report_outcomes(outcomes: tuple[Outcome, ...], output: DemoOutput) -> None:
    for outcome in outcomes:
        output.say(f"{outcome.region:<4}{outcome.state}" + (f": {outcome.error}" if outcome.error else ""))


async def _check(demo: Demo, facts: dict[str, dict[str, int]], output: DemoOutput) -> int:
    path = demo.run / "facts.json"
    path.write_text(json.dumps(facts))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", str(CHECK), *_warehouses(demo), "--pipeline", PIPELINE, "--reads", str(_reads(demo)),
        "--ledgers", str(demo.run / "ledgers"), "--facts", str(path), "--json", str(demo.run / "check.json"),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    print(out.decode(), file=output.data, end="", flush=True)
    return process.returncode or 0


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
