"""Rollouts on real Spark that are watched after their promotion, at the agent's own pace, beside a writer: several pipelines
of one region at once.

    python -m tests.agent.watched_rollouts --minutes 40            clean ones, watched for a minute each: none may be taken back
    python -m tests.agent.watched_rollouts --defects --minutes 20  a defect each: how long until the release is taken back

Ten clean ones are one line of docs/worlds.jsonl; a defect has a line of its own.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import pytest

from console.agent.soak.after_promotion import WatchRounds
from console.agent.soak.spark_checks import SparkCheck
from console.agent.soak.watch_checks import watch_checks
from console.model.breach import WatchEnded
from console.model.event import Checked, Logged, RolledBack
from tests import soak
from tests.agent.watched_defects import DEFECTS, FURTHER, Defect
from tests.agent.watched_pipeline import CALLED, STATUS, WatchedPipeline, WatchedRegion

# pipelines of a region at once, all watched by the one thread of their agent
CLEAN_AT_ONCE, DEFECTS_AT_ONCE = 6, 5
BUILT_AT_ONCE = 2  # of the clean ones: the others are watched meanwhile
OF_A_SEED = 10  # clean rollouts
WRITES_EVERY = 6.0  # seconds between two commits of a pipeline's producer, on average: both its versions follow each
WATCH_SECONDS, WATCHED_SECONDS = 60, 3600  # of clean rollouts, and of those with a defect
CLEAN, DEFECTIVE = "clean watches", "defects after a promotion"
MOST_SECONDS = 60.0  # from the first check that could see a defect to the return
RETURN_SECONDS = 1200.0  # after which a release is not taken back any more; of a busy host
STATUSES = (STATUS, f"concat({STATUS}, '')")
WATCH = watch_checks()[0].place  # of checks after a promotion, as opposed to those at a gate


class Writer(threading.Thread):
    """Appends drawn rows to the landing table of each pipeline until it is over. still: held while nothing may arrive"""

    def __init__(self, lines: Sequence[WatchedPipeline], drawn: random.Random) -> None:
        super().__init__(name="writer", daemon=True)
        self._lines, self._drawn = lines, drawn
        self.still, self.over = threading.Lock(), threading.Event()
        for line in (line for line in lines for _ in range(3)):
            self._write(line, 80)

    def run(self) -> None:
        while not self.over.wait(self._drawn.random() * 2 * WRITES_EVERY / len(self._lines)):
            with self.still:
                self._write(self._drawn.choice(self._lines), self._drawn.randint(1, 6), quiet=CALLED)

    @staticmethod
    def _write(line: WatchedPipeline, number: int, quiet: str = "") -> None:
        """quiet: a day of which nothing arrives, since each commit is a file more to read for its recorded call"""
        rows = line.region.events(number)
        for row in rows:
            if row["ts"] is not None and f"{row['ts']:%Y-%m-%d}" == quiet:
                row["ts"] += timedelta(days=1)
        line.append(rows)


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


@contextmanager
def writing(writer: Writer) -> Iterator[Writer]:
    writer.start()
    try:
        yield writer
    finally:
        writer.over.set()
        writer.join(60)


def pipelines(region: WatchedRegion, numbers: Sequence[int]) -> list[WatchedPipeline]:
    return [WatchedPipeline(region=region, name=f"web{number}", suffix=str(number)) for number in numbers]


async def promoted(lines: Sequence[WatchedPipeline], watch: int, **shape: Any) -> dict[str, str]:
    """The next release of each pipeline, carried to its gate beside the others and promoted.

    watch    seconds; 0 for none
    shape    as of `written`
    returns  pipeline → why its release was discarded instead
    """
    for line in lines:
        if watch:
            line.watched("rollback", seconds=watch)
        await line.begins(line.region.root / "drawn" / line.name, **shape)
    wrong = dict[str, str]()
    for line in lines:
        try:
            await line.at_gate()
            line.promote()
        except AssertionError as error:
            wrong[line.name] = str(error)
            line.controller.control("discard", "ada")
    return wrong


async def first_releases(lines: Sequence[WatchedPipeline]) -> None:
    lines[0].region.policy("")
    wrong = await promoted(lines, 0, first=True)
    assert not wrong, wrong


@dataclass(slots=True)
class Looks:
    """The checks of watches.

    began      pipeline, kind and seconds since 1970; the kind of the rounds is "", which begin with those of logs
    completed  pipeline → kind → runs of those that ask Spark
    rows       pipeline → live rows that were computed again
    """

    began: list[tuple[str, str, float]] = field(default_factory=list)
    completed: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    rows: Counter[str] = field(default_factory=Counter)

    def noted(self, pipeline: str, kind: str, check: Checked) -> None:
        self.completed[pipeline][kind] += check.check == kind and check.ok is True
        self.rows[pipeline] += check.rows

    def proven(self, pipeline: str) -> bool:
        """Whether every kind of check that asks Spark was completed, one of them over rows that had arrived."""
        return self.rows[pipeline] > 0 and all(self.completed[pipeline][kind.name] for kind in watch_checks())

    def forget(self, pipeline: str) -> None:
        self.completed.pop(pipeline, None)
        self.rows.pop(pipeline, None)

    def first(self, line: WatchedPipeline, defect: Defect, there: float, back: float) -> float:
        """The first check that could see it. It may have begun while the defect was being planted."""
        kinds = {finder.kind for finder in defect.finders}
        looks = [at for name, kind, at in self.began if name == line.name and kind in kinds and at <= back]
        return min((at for at in looks if at >= there), default=max(looks))


@contextmanager
def noted(looks: Looks) -> Iterator[None]:
    results, begins = SparkCheck.results, WatchRounds.round

    def noted_results(check: SparkCheck, context: Any, pins: Any) -> Any:
        pipeline, due = context.plan.pipeline, time.monotonic() >= check.due
        if due and check.place == WATCH:
            looks.began.append((pipeline, check.name, time.time()))
        with closing(results(check, context, pins)) as found:
            for each in found:
                if check.place == WATCH:
                    looks.noted(pipeline, check.name, each)
                yield each

    def noted_round(rounds: WatchRounds, controller: Any, known: Any) -> float:
        looks.began.append((controller.pipeline, "", time.time()))
        return begins(rounds, controller, known)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkCheck, "results", noted_results)
        patch.setattr(WatchRounds, "round", noted_round)
        yield


@dataclass(slots=True)
class SeedRollouts:
    """The clean rollouts of one seed that have ended. figures: sums; wrong: what was held against them"""

    ended: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class CleanRollouts:
    """Releases of the same pipelines, over and over, each with another expression for one column.

    turns  a seed for each rollout that is still to begin
    """

    run: soak.Soak
    turns: Iterator[int]
    looks: Looks
    building: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BUILT_AT_ONCE))
    seeds: defaultdict[int, SeedRollouts] = field(default_factory=lambda: defaultdict(SeedRollouts))

    async def of(self, line: WatchedPipeline) -> None:
        for seed, status in zip(self.turns, cycle(STATUSES), strict=False):
            known = self.seeds[seed]
            try:
                async with self.building:
                    line.watched("rollback", seconds=WATCH_SECONDS)
                    await line.begins(line.region.root / "drawn" / line.name, status=status)
                    await line.at_gate()
                    self.looks.forget(line.name)
                    line.promote()
            except AssertionError as error:
                known.wrong.append(str(error))
                line.controller.control("discard", "ada")
            else:
                known.wrong.append(await self._ends(line, known.figures))
            known.ended += 1
            print(f"{line.name}: {dict(known.figures)}", flush=True)
            if known.ended == OF_A_SEED:
                self.run.drew(CLEAN, seed, known.figures, *known.wrong)

    async def _ends(self, line: WatchedPipeline, figures: Counter[str]) -> str:
        """The watch of one rollout; what was held against it. One without enough checks is not among those drawn."""
        recorder, end = line.controller.recorder, time.monotonic() + RETURN_SECONDS
        while line.status.state == "live" and not line.status.watched.ended and time.monotonic() < end:
            await asyncio.sleep(0.5)
        status, runs = line.status, self.looks.completed[line.name]
        ended = [event.incident for event in recorder.events(Logged) if isinstance(event.incident, WatchEnded)]
        wrong = status.watched.breaches or not ended or status.state != "live"
        counts = bool(wrong) or self.looks.proven(line.name)
        figures["drawn"] += counts
        figures["without checks"] += not counts
        figures["rounds"] += sum(news.rounds for news in ended)
        figures["runs"] += runs.total()
        figures["rows"] += self.looks.rows[line.name]
        figures["unclear"] += bool(status.watched.unclear)
        if wrong:
            return f"{line.name} {status.rollout}: {status.watched} {status.checks}"
        line.controller.cleanup("soak", dry_run=False, previous=True)
        return ""


async def clean(asked: argparse.Namespace, region: WatchedRegion) -> int:
    run, looks = soak.of_worlds(asked, CLEAN), Looks()
    seeds = run.seeds()
    first = next(seeds)
    turns = (seed for each in chain((first,), seeds) for seed in repeat(each, OF_A_SEED))
    lines = pipelines(region, range(CLEAN_AT_ONCE))
    with ticking(region), noted(looks), writing(Writer(lines, random.Random(first))):
        await first_releases(lines)
        rollouts = CleanRollouts(run=run, turns=turns, looks=looks)
        await asyncio.gather(*(rollouts.of(line) for line in lines))
    return run.code()


@dataclass(slots=True, kw_only=True)
class Planted:
    """One defect. at, there: before and after it was planted, seconds since 1970; why: it could not be"""

    number: int
    line: WatchedPipeline
    defect: Defect
    at: float
    there: float = 0.0
    why: str = ""

    async def returns(self) -> None:
        """Until its release is taken back, or will not be."""
        end = time.monotonic() + RETURN_SECONDS
        while not self.why and self.line.status.state != "rolled-back" and time.monotonic() < end:
            await asyncio.sleep(0.2)

    def judged(self, looks: Looks) -> tuple[dict[str, object], str]:
        """Figures of its return, and what is held against it."""
        line = self.line
        found = [breach.name for breach in line.status.watched.breaches]
        figures: dict[str, object] = {"drawn": 1, "defect": self.defect.name, "found": found}
        if self.why:
            return figures, self.why
        if line.status.state != "rolled-back":
            return figures, f"not taken back: {line.status.watch} {line.status.watched} {line.status.checks}"
        events = line.controller.rollouts.events(line.status.rollout)
        (back,) = (each.at for each in events if isinstance(each.event, RolledBack))
        try:
            line.follow()
            (live,) = (each for each in line.judged() if each["state"] == "live")
        except (AssertionError, TimeoutError) as error:
            return figures, f"not as it should be: {error}"
        took = back - looks.first(line, self.defect, self.there, back)
        figures |= {"planted_s": round(back - self.at, 1), "first_check_s": round(took, 1)}
        figures |= {"rows": live["rows"], "lost": live["lost"], "extra": live["extra"]}
        known = {line.named(finder.check) for finder in self.defect.finders}
        wrong = live["lost"] or live["extra"] or took > MOST_SECONDS or not known & {*found}
        return figures, str(figures) if wrong else ""


async def plant(line: WatchedPipeline, writer: Writer, number: int) -> Planted:
    """Plant a defect once a round was clean. What is planted in a commit meets no other row of its table."""
    every = (*DEFECTS, *FURTHER)
    defect, end = every[number % len(every)], time.monotonic() + RETURN_SECONDS
    while (line.status.watch is None or line.status.watch.rounds < 1) and time.monotonic() < end:
        await asyncio.sleep(0.2)
    with writer.still:
        planted = Planted(number=number, line=line, defect=defect, at=time.time())
        try:
            await asyncio.to_thread(line.follow)
            planted.at = time.time()
            await asyncio.to_thread(defect.plant, line)
        except Exception as error:
            planted.why = f"not planted: {error}"
        planted.there = time.time()
        return planted


async def defects(asked: argparse.Namespace, region: WatchedRegion) -> int:
    """Each in a pipeline of its own: what it leaves in a landing table stops the next rollout before its gate."""
    run, looks = soak.of_worlds(asked, DEFECTIVE), Looks()
    together = 1 if asked.seed is not None else DEFECTS_AT_ONCE
    with ticking(region), noted(looks):
        for first in run.seeds(together):
            numbers = range(first, first + together)
            lines = pipelines(region, numbers)
            with writing(Writer(lines, random.Random(first))) as writer:
                await first_releases(lines)
                wrong = await promoted(lines, WATCHED_SECONDS)
                pairs = [(n, line) for n, line in zip(numbers, lines, strict=True) if line.name not in wrong]
                planted = [await plant(line, writer, number) for number, line in pairs]
                for each in planted:
                    await each.returns()
            for each in planted:
                run.drew(DEFECTIVE, each.number, *each.judged(looks))
            for why in wrong.values():
                run.differs(why)
    return run.code()


async def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("--defects", action="store_true", help="plant a defect in each, and measure")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="console-watched-") as place:
        region = WatchedRegion(Path(place), for_long=True)
        try:
            return await (defects if asked.defects else clean)(asked, region)
        finally:
            region.service.agent.stop()
            await region.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
