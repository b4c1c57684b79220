"""`console demo --chaos`: kills an agent in the middle of its history, and shows that nothing is missing afterwards."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from console.demo import judging
from console.demo.prepare import Demo, agent_pid, start_traffic, stop_traffic
from console.demo.traffic.generate import TRAFFIC
from console.runner.view import RegionView
from console.runner.watch import RegionBoard

NAME = "chaos"
CELLS = 19
BACK_SECONDS = 0.2  # seconds between two checks for the next agent
Tell = Callable[[str, tuple[str, ...]], None]


class Chaos:
    """Kills one agent, that of the region with the most rows.

    board  of the fleet
    log    the user's own access log, or None for the shipped one
    tell   called with a region and its guide's new line
    """

    def __init__(self, demo: Demo, board: RegionBoard, log: Path | None, tell: Tell) -> None:
        self._demo, self._board, self._log, self._tell = demo, board, log, tell
        self.region = max((region.name for region in demo.regions), key=lambda name: TRAFFIC[name].live)
        self.killed = 0  # pid of the killed agent

    async def strike(self) -> None:
        """Wait for the middle of the region's backfill, and kill its agent there; then report when another one continues."""
        view = await self._board.until(self.region, in_history)
        batch = next(step.batch for step in view.status.steps if step.state == "running" and step.batch)
        warehouse, started = Path(view.region.warehouse), time.monotonic()
        self.killed = agent_pid(warehouse)
        with suppress(ProcessLookupError):
            os.kill(self.killed, signal.SIGKILL)
        kept = view.status.rows_done
        killing = f"agent of {self.region}, process {self.killed}, killed in batch {batch} after {kept:,} rows"
        self._say(killing)
        while (pid := agent_pid(warehouse)) in (0, self.killed):
            await asyncio.sleep(BACK_SECONDS)
        after = time.monotonic() - started
        self._say(
            killing, f"process {pid} took over {after:.0f} s later and continues from the last commit: {kept:,} rows"
        )

    async def judge(self, known: judging.Facts) -> None:
        """Once all regions are live: compare them with an independent computation, and show the result.

        known  region → figures of before
        """
        self._say("reading through the release until there are enough reads, then the tables are compared")
        await judging.await_reads(self._demo)
        await stop_traffic(self._demo)
        self._say("all rows of all regions are compared with an independent computation")
        for name, view in self._board.views.items():
            known[name]["moved"] = sum(step.bytes for step in view.status.steps)
        judgement = await judging.check(self._demo, known)
        self._say(*lines(judgement, self.killed))
        await asyncio.to_thread(start_traffic, self._demo, self._log)

    async def beside_screen(self) -> None:
        """The complete sequence, while a person controls the rollout."""
        names = tuple(self._board.views)
        before = [await self._board.until(name, pending) for name in names]
        known = {view.region.name: judging.facts(view) for view in before}
        judging.start_reader(self._demo)
        await self.strike()
        for view in before:
            await self._board.until(view.region.name, partial(promoted, was=view.live))
        await self.judge(known)

    def _say(self, *report: str) -> None:
        self._tell(self.region, tuple(f"{NAME if not at else '':<{CELLS}}{line}" for at, line in enumerate(report)))


def in_history(view: RegionView) -> bool:
    """A batch is running, and another one has been committed."""
    status = view.status
    return status.state == "backfilling" and status.rows_done > 0 and any(step.batch for step in status.steps)


def pending(view: RegionView) -> bool:
    return not view.waits and view.plan is not None and bool(view.plan.changes)


def promoted(view: RegionView, was: str) -> bool:
    return view.live not in ("", was) and view.status.state == "live"


def lines(judgement: judging.Judgement, killed: int) -> tuple[str, ...]:
    """`gaps 0, duplicates 0, changed rows 0 in 2,106,233 rows of 3 regions`"""
    total = {
        key: sum(figures[key] for figures in judgement.figures) for key in ("gaps", "duplicates", "changed", "compared")
    }
    wrong = [
        f"WRONG in {figures['region']}: {', '.join(figures['faults'])}"
        for figures in judgement.figures
        if figures["faults"]
    ]
    if not judgement.figures:
        return ("the check did not run: console demo --chaos --headless shows why",)
    count = len(judgement.figures)
    regions = f"{count} regions" if count > 1 else "1 region"
    report = (
        f"gaps {total['gaps']:,}, duplicates {total['duplicates']:,}, changed rows {total['changed']:,}"
        f" in {total['compared']:,} rows of {regions}, although process {killed} was killed"
    )
    return (report, *wrong)
