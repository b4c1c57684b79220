"""Eight planted situations as pictures, for a reader who has not seen them: `python -m tests.screens.trial FOLDER SEED`.

Which picture shows which situation, its region, cause and figures, and what happened in the night before are drawn by the
seed. The pictures are named A to H; their truth is in `truth.json` beside them, to be opened once the answers are written.
"""

import asyncio
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from console.model.event import (
    Accepted,
    Ailing,
    BatchDone,
    BatchStarted,
    Checked,
    ComparedDay,
    DriverLost,
    Entered,
    Event,
    Fenced,
    Lagging,
    Logged,
    Paused,
    Progress,
    Promoted,
    Recorded,
    Resumed,
    StepDone,
    StepStarted,
)
from console.model.incident import SparkBack, TryFailed, WaitBegan
from console.model.measured import SparkJob
from console.model.region import Region
from console.model.status import replay
from console.runner.view import RegionView
from tests.screens import recorded as r
from tests.screens import scripted as s
from tests.screens.harness import running_app, settle

HOUR = 3600.0
NAMES = ("eu", "ap", "jp", "sa", "br", "ca", "in", "za")
PEOPLE = ("ana@ops1", "bob@tower", "eve@desk", "kim@night")
KINDS = ("throttled", "memory", "differs", "stopped", "away", "paused", "endpoint", "well")
SCREENS = {"home": ("j",), "events": ("j", "right_square_bracket"), "rollout": ("j", "2"), "gate": ("j", "4"),
           "history": ("j", "5")}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """truth: the question's name → its answer"""

    views: tuple[RegionView, ...]
    truth: dict[str, str]


def region(name: str, wave: int, *, canary: bool = False) -> Region:
    return Region(name=name, warehouse=f"/w/{name}", environment="prod", wave=wave, canary=canary)


def viewed(where: Region, events: Sequence[tuple[float, Event]], fleeting: Sequence[Event] = ()) -> RegionView:
    """A region as its events tell it. events: at seconds before now"""
    stored = tuple(Recorded("web-8", seq, s.NOON - ago, event) for seq, (ago, event) in enumerate(events, 1))
    status = replay([*stored, *(Recorded("web-8", 0, s.NOON - 1, event) for event in fleeting)])
    return RegionView(
        region=where, link="connected", status=status, plan=s.plan(where), accepted=s.plan(where), live="r7", attended=True,
        heard=s.NOON, events=stored, samples=r.samples(status.state == "backfilling"),
    )  # fmt: skip


def promoted(where: Region, events: Sequence[tuple[float, Event]], by: str, ago: float) -> RegionView:
    """Live since so many seconds."""
    done: list[tuple[float, Event]] = [
        *events, *((ago + 60, StepDone(step)) for step in r.STEPS[:-1]), (ago + 50, Entered("validating")), *((ago + 40, check) for check in passed()),
        (ago + 30, Entered("awaiting-confirmation")), (ago, Promoted(release="r8", was="r7", by=by, host="", version=4)),
    ]  # fmt: skip
    view = viewed(where, done, [Lagging(commits=1, rows=12, seconds=0.6)])
    unchanged = tuple(replace(node, action="keep", columns=(), why="unchanged") for node in s.plan(where).nodes)
    nothing = replace(s.plan(where), nodes=unchanged, steps=(), live="r8")
    return replace(view, live="r8", previous="r7", plan=nothing)


def passed() -> tuple[Checked, ...]:
    days = tuple(ComparedDay(day=f"2026-11-{9 + n:02}", old=120_000, new=120_000) for n in range(14))
    return (
        Checked(table="requests", check="feed parse_requests", ok=True, detail="alive: 311 rows passed it live", rows=311),
        Checked(table="requests", check="rows per day", ok=True, detail="1,680,000 rows in 14 days are equal", days=days),
        Checked(table="requests", check="unchanged columns", ok=True, detail="19 equal by checksum"),
        Checked(table="requests_by_hour", check="values", ok=True, detail="5 equal"),
    )  # fmt: skip


def begun(by: str, ago: float = 3124.0) -> list[tuple[float, Event]]:
    """Accepted, created and fenced."""
    steps = tuple((step, sum(r.DAYS) if step == r.BACKFILL else 0) for step in r.STEPS)
    return [
        (ago, Accepted(release="r8", was="r7", plan="2f34" + "0" * 60, by=by, host="", steps=steps)),
        (ago - 1, Entered("preparing")), *((ago - 2, StepDone(step)) for step in r.STEPS[:2]),
        (ago - 7, Entered("backfilling")), (ago - 8, StepStarted(r.BACKFILL)),
        (ago - 10, Fenced(step=r.BACKFILL, source="landing", version=1430, slices=38, rows=sum(r.DAYS), days=r.sliced(), until=s.NOON + 43 * HOUR)),
    ]  # fmt: skip


def batches(ago: float, last: int) -> list[tuple[float, Event]]:
    """Committed batches of two days, the newest first, until so many days are in."""
    made: list[tuple[float, Event]] = []
    for number in range(1, last, 2):
        done = r.batch(number, number + 1, sum(r.DAYS[number - 1 : number + 1]), 40.0)
        made += [(ago - 40 * number, r.begun(done, number)), (ago - 40 * number - 38, done)]
    return made


def at_gate(where: Region, by: str, checks: Sequence[Checked], ago: float) -> RegionView:
    whole = BatchDone(step=r.BACKFILL, label="2026-11-22 … 2026-11-09", position=38, of=38, rows_in=sum(r.DAYS), rows_out=sum(r.DAYS), bytes=1 << 28, seconds=900.0, version=212)  # fmt: skip
    events: list[tuple[float, Event]] = [
        *begun(by, ago + 1200), (ago + 1150, BatchStarted(step=r.BACKFILL, label=whole.label, first=1, last=38, of=38, rows=sum(r.DAYS))),
        (ago + 200, whole), *((ago + 100, StepDone(step)) for step in r.STEPS[2:-1]), (ago + 90, Entered("validating")),
        *((ago + 30, check) for check in checks), (ago, Entered("awaiting-confirmation")),
    ]  # fmt: skip
    return viewed(where, events, [Lagging(commits=1, rows=12, seconds=0.6)])


def night(rng: random.Random) -> tuple[RegionView, str]:
    """The canary: promoted in the night, after something that a person who slept does not know."""
    began, ended = rng.uniform(10, 11) * HOUR, rng.uniform(5, 6) * HOUR
    by, other, at = *rng.sample(PEOPLE, 2), rng.uniform(7, 9) * HOUR
    events = [*begun(by, began), *batches(began - 20, 6)]
    match rng.choice(("pause", "memory", "spark")):
        case "pause":
            events += [(at, Paused(by=other)), (at - 1500, Resumed(by=by))]
            what = f"us was paused by {other} for 25 m"
        case "memory":
            failed = TryFailed(step=r.BACKFILL, label="2026-11-16 … 2026-11-15", first=7, last=8, cause="memory", why="Java heap space", number=1, of=3, rows=256_000, rows_next=62_500, seconds=209.0)  # fmt: skip
            events += [(at, Logged("batch 2026-11-16 … 2026-11-15 failed: memory (try 1 of 3); again, at most 62,500 rows", "warning", failed))]  # fmt: skip
            what = "a batch of us failed for want of memory, once"
        case _:
            back = Logged("Spark responds again", incident=SparkBack(step=r.BACKFILL, seconds=130.0))
            events += [(at, DriverLost(r.BACKFILL, "out of memory")), (at - 130, back)]
            what = "Spark of us was lost, out of memory, for 2 m 10 s"
    clock = [f"{int(s.NOON - ago) % 86_400 // 3600:02}:{int(s.NOON - ago) % 3600 // 60:02}Z" for ago in (at, ended)]
    truth = f"{what}, at {clock[0]}; {by} promoted r8 in us at {clock[1]}"
    return promoted(region("us", 1, canary=True), events, by, ended), truth


def situation(kind: str, rng: random.Random) -> Situation:
    canary, last_night = night(rng)
    name, second = rng.sample(NAMES, 2)
    who, other = rng.sample(PEOPLE, 2)
    where = region(name, 2)
    rest = replace(s.waiting(region(second, 3)), live="r7", attended=True)
    rest = replace(rest, plan=replace(s.plan(rest.region), live="r7"))
    view, truth = planted(kind, where, rng, who, other)
    return Situation(views=(canary, view, rest), truth={"kind": kind, "region": name, **truth, "night": last_night})


def planted(kind: str, where: Region, rng: random.Random, who: str, other: str) -> tuple[RegionView, dict[str, str]]:
    name, lag = where.name, rng.randint(65, 240)
    job = SparkJob(job=41, stage=3, stages=5, done=41, tasks=64, longest=38.0, median=2.0)
    going: list[tuple[float, Event]] = [*begun(who), *batches(3100, 6)]
    running = [*going, (400, r.begun(r.batch(7, 8, 256_000, 1.0), 7))]
    progress = Progress(step=r.BACKFILL, rows=64_000, batch="2026-11-16 … 2026-11-15", job=job)
    not_yet = "nothing to confirm yet"
    match kind:
        case "throttled":
            minutes = rng.randint(12, 38)
            wait = WaitBegan(step=r.BACKFILL, cause="lag", why=f"lag of live rows is {lag} s, the throttle allows 60 s", since=s.NOON - 60 * minutes)  # fmt: skip
            view = viewed(where, [*going, (60 * minutes, Logged(f"waits: lag {lag} s", incident=wait))], [Lagging(commits=9, rows=70 * lag, seconds=float(lag))])  # fmt: skip
            late = (replace(sample, lag=float(lag), behind=70 * lag, backfill=0.0) if sample.at > s.NOON - 60 * minutes else sample for sample in view.samples)  # fmt: skip
            return replace(view, samples=tuple(late)), {"what": f"the backfill of {name} waits for the lag", "why": f"lag {lag} s over 60 s, since {minutes} m", "safe": not_yet}  # fmt: skip
        case "memory":
            tries = rng.choice((1, 2))
            failures: list[tuple[float, Event]] = []
            for number in range(1, tries + 1):
                failed = TryFailed(step=r.BACKFILL, label="2026-11-16 … 2026-11-15", first=7, last=8, cause="memory", why="Java heap space", number=number, of=3, rows=256_000, rows_next=62_500, seconds=409.0)  # fmt: skip
                failures += [(1300 - 450 * number, r.begun(r.batch(7, 8, 256_000, 1.0), 7)), (1300 - 450 * number - 409, Logged(f"batch {failed.label} failed: memory (try {number} of 3); again, at most 62,500 rows", "warning", failed))]  # fmt: skip
            view = viewed(where, [*going, *failures, (1300 - 450 * tries - 410, r.begun(r.batch(7, 8, 62_500, 1.0), 7))], [progress])  # fmt: skip
            return view, {"what": f"{name} backfills, its batch 11-16 is tried again", "why": f"{tries} tries failed for want of memory", "safe": not_yet}  # fmt: skip
        case "differs":
            day, off = rng.randint(10, 21), rng.randint(1, 9)
            days = tuple(ComparedDay(day=f"2026-11-{9 + n:02}", old=120_000, new=120_000 - (off if 9 + n == day else 0)) for n in range(14))  # fmt: skip
            wrong = Checked(table="requests", check="rows per day", ok=False, detail=f"2026-11-{day}: 120,000 → {120_000 - off:,}", days=days)  # fmt: skip
            checks = (passed()[0], wrong, *passed()[2:])
            return at_gate(where, who, checks, 600), {"what": f"{name} is at its gate, 11-{day} differs by {off} rows", "why": "not slow: it waits for a person", "safe": "no"}  # fmt: skip
        case "stopped":
            hours = rng.randint(2, 30)
            feed = Ailing(feed="parse_requests", target="requests", path="p", tries=9, standing=True, why="landing was replaced", code="E_REPLACED")  # fmt: skip
            view = promoted(where, begun(who, 20 * HOUR), who, 14 * HOUR)
            status = replace(view.status, ailing=(feed,), lag_rows=40_000 * hours, lag_seconds=hours * HOUR)
            stands = (replace(sample, rows=0.0, lag=hours * HOUR + sample.at - s.NOON, behind=40_000 * hours) for sample in view.samples)  # fmt: skip
            return replace(view, status=status, attended=True, samples=tuple(stands)), {"what": f"feed parse_requests of {name} has stopped", "why": f"landing was replaced; {hours} h behind", "safe": "nothing to confirm, and not well"}  # fmt: skip
        case "away":
            hours = rng.randint(3, 12)
            old = [(ago + hours * HOUR, event) for ago, event in running]
            view = replace(viewed(where, old, [progress]), link="unreachable", link_why="ssh: timed out", heard=s.NOON - hours * HOUR)  # fmt: skip
            known = (replace(sample, at=sample.at - hours * HOUR) for sample in view.samples)
            return replace(view, samples=tuple(known)), {"what": f"{name} does not answer since {hours} h, a batch may be running", "why": "ssh timed out; unknown", "safe": "unknown: nothing to confirm while it is away"}  # fmt: skip
        case "paused":
            minutes = rng.randint(20, 50)
            view = viewed(where, [*going, (60 * minutes, Paused(by=other))])
            return view, {"what": f"{name} is paused by {other} since {minutes} m; due in 1 d 19 h", "why": "it is paused", "safe": not_yet}  # fmt: skip
        case "endpoint":
            times = rng.choice((1.6, 1.9, 2.4, 3.1))
            slow = Checked(table="top_errors", check="latency", ok=None, detail=f"{times} times as slow as in r7")
            return at_gate(where, who, (*passed(), slow), 7800), {"what": f"{name} is at its gate since 2 h 10 m, endpoint top_errors is slow", "why": f"top_errors takes {times} times as long as in r7", "safe": "in doubt: one check is inconclusive"}  # fmt: skip
        case _:
            if rng.random() < 0.5:
                return at_gate(where, who, passed(), 300), {"what": f"{name} is at its gate, all checks passed", "why": "not slow: it waits for a person", "safe": "yes"}  # fmt: skip
            return promoted(where, begun(who, 5 * HOUR), who, 2 * HOUR), {"what": f"all is well, {name} is live", "why": "nothing is slow", "safe": "nothing to confirm; all is well"}  # fmt: skip


async def draw(folder: Path, seed: str) -> None:
    """40 pictures at 80 × 24, 40 at 200 × 60, and the truth."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    truths = {}
    for letter, kind in zip("ABCDEFGH", rng.sample(KINDS, len(KINDS)), strict=True):
        planted = situation(kind, rng)
        truths[letter] = planted.truth
        for size in ((80, 24), (200, 60)):
            for name, keys in SCREENS.items():
                async with running_app(s.ScriptedCockpit(*planted.views), size=size) as (app, pilot):
                    for key in keys:
                        await pilot.press(key)
                        await settle(pilot)
                    picture = app.export_screenshot(title="console")
                    (folder / f"{letter}-{size[0]}x{size[1]}-{name}.svg").write_text(picture, encoding="utf-8")
    (folder / "truth.json").write_text(json.dumps(truths, indent=1), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1]), sys.argv[2]))
