"""Rollouts on real Spark that are watched for a minute each after their promotion, at the agent's own pace, beside a writer.

    python -m tests.agent.watched_rollouts --minutes 30            clean ones, in several pipelines at once: none may be taken back
    python -m tests.agent.watched_rollouts --defects --minutes 30  each defect, over and over: how long until the release is taken back

A run ends in one line of docs/worlds.jsonl.
"""

import asyncio
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.rollout.declared import declare
from console.agent.soak.after_promotion import WatchRounds
from console.agent.soak.spark_checks import SparkCheck
from console.model.breach import WatchEnded
from console.model.consent import CheckAccepted
from console.model.event import Logged, RolledBack
from console.model.gate import unaccepted
from console.model.status import Status
from tests import soak
from tests.agent.watched_region import DEFECTS, QUERY, Defect, WatchedRegion
from tests.life.region import LANDING

PIPELINES = 4  # that are watched at once, by the one thread of their agent
WATCH_SECONDS = 60
DEFECTIVE = "defects after a promotion"
MOST_SECONDS = 60.0  # from the first check that could see a defect to the return
NAMES = re.compile(r"(?<!kind: )\b(landing|requests)\b")
STATUSES = ("get_json_object(payload, '$.status')", "concat(get_json_object(payload, '$.status'), '')")


@contextmanager
def ticking(region: WatchedRegion) -> Iterator[None]:
    """The agent's duties of each second."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(1.0):
            region.service.agent.tick()

    thread = threading.Thread(target=tick, name="ticks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


@dataclass(slots=True)
class Clean:
    """Pipelines of one region, each with tables of its own, and the rollouts that were drawn for them.

    unclear  rollouts whose watch ended with an inconclusive check
    """

    region: WatchedRegion
    drawn: random.Random
    number: int = 0
    rounds: int = 0
    unclear: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def landing(self, at: int) -> str:
        return str(self.region.warehouse / f"landing{at}")

    def begins(self) -> None:
        """Some rows in every landing table, and a writer for all of them."""
        for at in range(PIPELINES):
            for _ in range(3):
                self._write(at, 80)
        threading.Thread(target=self._writes, name="writer", daemon=True).start()

    def _write(self, at: int, number: int) -> None:
        rows = [self.region._next() for _ in range(number)]
        write_deltalake(self.landing(at), pa.Table.from_pylist(rows, LANDING), mode="append")

    def _writes(self) -> None:
        while not self.over.wait(self.drawn.random() * 0.6):
            self._write(self.drawn.randrange(PIPELINES), self.drawn.randint(1, 6))

    async def rolls_out(self, *, first: bool = False) -> list[str]:
        """A rollout of each pipeline, watched at once; what was held against them."""
        names = [f"web{at}" for at in range(PIPELINES)]
        for at, name in enumerate(names):
            await self._accepted(at, name, first=first)
        controllers = [self.region.service.agent.controller(name) for name in names]
        for controller in controllers:
            executor = controller.execution.executor
            assert executor is not None
            await asyncio.to_thread(executor.join, 600)
            status = controller.recorder.status
            assert status.shown == "awaiting-confirmation", status.why
            bad = [check for check in status.checks if check.ok is False]
            if bad:
                return [f"{controller.pipeline}: at its gate: {bad}"]
            for check in unaccepted(status):
                doubt = CheckAccepted(table=check.table, check=check.check, detail=check.detail, reason="a busy host")
                declare(controller, status.rollout, doubt)
            controller.promote(status.rollout, status.was, "ada", "laptop")
        if first:
            return []
        end = time.monotonic() + 10 * WATCH_SECONDS
        wrong: list[str] = []
        for controller in controllers:
            recorder = controller.recorder
            while recorder.status.state == "live" and not recorder.status.watched.ended and time.monotonic() < end:
                await asyncio.sleep(0.5)
            watched = recorder.status.watched
            self.unclear += bool(watched.unclear)
            if watched.breaches or not watched.ended or recorder.status.state != "live":
                wrong.append(f"{controller.pipeline} {recorder.status.rollout}: {watched} {recorder.status.checks}")
            ended = (event.incident for event in recorder.events(Logged) if isinstance(event.incident, WatchEnded))
            self.rounds += sum(news.rounds for news in ended)
            self.number += 1
            controller.cleanup("soak", dry_run=False, previous=False)
        return wrong

    async def _accepted(self, at: int, name: str, *, first: bool) -> None:
        """Plan and accept the next release of a pipeline: another expression for one column, and what is drawn with it."""
        region = self.region
        place = region.root / "drawn" / name
        status = STATUSES[self.number // PIPELINES % 2]
        shutil.rmtree(place, ignore_errors=True)
        region.written(place, first=first)
        for file in [each for each in place.rglob("*") if each.is_file()]:
            text = NAMES.sub(rf"\g<0>{at}", file.read_text())
            file.write_text(text.replace(f"{STATUSES[0]} AS status", f"{status} AS status"))
            if file.stem in ("landing", "requests"):
                file.rename(file.with_stem(f"{file.stem}{at}"))
        query = QUERY.replace("requests", f"requests{at}")
        region.policy(f'policy: {{watch: {WATCH_SECONDS}s, on_breach: rollback, watch_query: "{query}"}}')
        region.install(name, place)
        plan = await region.plan(name)
        assert not plan.refusals, plan.refusals
        region.service.agent.controller(name).accept(plan, "ada", "laptop")


async def clean(asked: Any) -> int:
    known = (line["until"] for line in soak.lines(soak.WORLDS) if line["generator"] == "clean watches")
    run = soak.Soak(asked, soak.WORLDS, max(known, default=1))
    with tempfile.TemporaryDirectory(prefix="console-watched-") as place:
        region = WatchedRegion(Path(place))
        seeds = run.seeds()
        drawn = Clean(region, random.Random(next(seeds)))
        drawn.begins()
        try:
            with ticking(region):
                await drawn.rolls_out(first=True)
                for seed in seeds:
                    drawn.drawn.seed(seed)
                    for wrong in await drawn.rolls_out():
                        run.differs(wrong)
                    print(f"{drawn.number} rollouts, {drawn.rounds} rounds, {drawn.unclear} unclear", flush=True)
        finally:
            drawn.over.set()
            region.service.agent.stop()
            await region.close()
    return run.summary("clean watches", {"drawn": drawn.number, "rounds": drawn.rounds, "unclear": drawn.unclear})


@dataclass(slots=True)
class Looks:
    """When checks began, by their kind, seconds since 1970: `round` for those of logs."""

    began: list[tuple[str, float]] = field(default_factory=list)

    def first_after(self, kinds: Collection[str], at: float) -> float:
        return next(began for name, began in self.began if name in kinds and began >= at)


@contextmanager
def noted(looks: Looks) -> Iterator[None]:
    results, begins = SparkCheck.results, WatchRounds.round

    def noted_results(check: SparkCheck, *args: Any) -> Any:
        if time.monotonic() >= check.due:
            looks.began.append((check.name, time.time()))
        return results(check, *args)

    def noted_round(rounds: WatchRounds, *args: Any) -> float:
        looks.began.append(("round", time.time()))
        return begins(rounds, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkCheck, "results", noted_results)
        patch.setattr(WatchRounds, "round", noted_round)
        yield


async def taken_back(region: WatchedRegion, defect: Defect, looks: Looks) -> dict[str, Any]:
    """Roll out, plant, and wait for the return."""
    region.watched("rollback")
    await region.releases(region.root / "again")
    until(region, lambda status: status.watch is not None and status.watch.rounds >= 1)
    planted = time.time()
    defect.plant(region)
    if defect.kind:
        region.follow()
    there = time.time()
    status = until(region, lambda status: status.state == "rolled-back")
    back = _at(region)
    kinds = [kind or "round" for kind in defect.kinds]
    seen = looks.first_after(kinds, there if defect.kind else planted)
    (judged, *_) = [each for each in region.judged() if each["state"] == "live"]
    return {
        "defect": defect.name,
        "found": [breach.name for breach in status.watched.breaches],
        "planted_to_return": round(back - planted, 1),
        "first_check_to_return": round(back - seen, 1),
        "lost": judged["lost"],
        "extra": judged["extra"],
    }


def _at(region: WatchedRegion) -> float:
    """When the release was taken back, seconds since 1970."""
    events = region.controller.rollouts.events(region.status.rollout)
    (back,) = (each.at for each in events if isinstance(each.event, RolledBack))
    return back


def until(region: WatchedRegion, true: Any, seconds: float = 400.0) -> Status:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true(region.status):
            return region.status
        time.sleep(0.1)
    raise AssertionError(f"still {region.status.watch} {region.status.watched} {region.status.checks}")


async def defects(asked: Any) -> int:
    """Each in a region of its own: what it leaves in a landing table stops the next rollout before its gate."""
    known = (line["until"] for line in soak.lines(soak.WORLDS) if line["generator"] == DEFECTIVE)
    run, slowest, lost = soak.Soak(asked, soak.WORLDS, max(known, default=0)), 0.0, 0
    for number in run.seeds():
        looks = Looks()
        with tempfile.TemporaryDirectory(prefix="console-watched-") as place, noted(looks):
            region = WatchedRegion(Path(place))
            try:
                with ticking(region):
                    await region.releases(region.root / "first", first=True)
                    line = await taken_back(region, DEFECTS[number % len(DEFECTS)], looks)
            finally:
                region.service.agent.stop()
                await region.close()
        print(line, flush=True)
        slowest, lost = max(slowest, line["first_check_to_return"]), lost + line["lost"] + line["extra"]
        if line["lost"] or line["extra"] or line["first_check_to_return"] > MOST_SECONDS:
            run.differs(f"{number}: {line}")
    return run.summary(DEFECTIVE, {"slowest_s": round(slowest), "lost": lost})


def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("--defects", action="store_true", help="plant defects instead, one a rollout, and measure")
    asked = parser.parse_args()
    return asyncio.run(defects(asked) if asked.defects else clean(asked))


if __name__ == "__main__":
    sys.exit(main())
