"""Runs as input of reports, from the events of a region: one at its gate, one with a planted day, an interrupted one."""

from dataclasses import replace

from console.cli.reports.html import page
from console.cli.reports.junit import junit
from console.cli.reports.markdown import markdown
from console.cli.reports.run_report import RunReport, RunState, region_report, reported
from console.errors import CheckFailed, ConsoleError, RegionError, Unreachable
from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    Checked,
    ComparedDay,
    Entered,
    Event,
    Failed,
    Fenced,
    Logged,
    Recorded,
    StepDone,
    StepStarted,
)
from console.model.incident import SlicedDay, TryFailed, WaitBegan, WaitEnded
from console.model.receipt import Past, Receipt
from console.model.region import Region
from console.model.status import replay
from console.runner.actions import gate
from console.runner.view import Outcome, RegionView
from tests.cli import sample

BEGAN = 1_795_000_000.0
STEP = "backfill/requests/parse_requests"
DAYS = tuple(f"2026-11-{day:02}" for day in range(1, 15))
PLANTED = "2026-11-06"


def compared(planted: str = "") -> tuple[ComparedDay, ...]:
    """Fourteen days of requests, one of them with a row less and other values of one column."""
    return tuple(
        ComparedDay(
            day=day, old=1000 + 90 * at, new=1000 + 90 * at - (day == planted), columns=("status",) * (day == planted)
        )
        for at, day in enumerate(DAYS)
    )


def events(planted: str = "", *, until: int = 0) -> tuple[Recorded, ...]:
    """The stored events of a rollout up to its gate, twenty seconds apart. until: only so many of them"""
    slices = tuple(SlicedDay(label=day, rows=1000) for day in reversed(DAYS))
    detail = f"{planted}: 1,450 → 1,449" if planted else "22,190 rows in 14 days are equal"
    batch = {"step": STEP, "label": "2026-11-14 … 2026-11-08", "of": 14}
    tried = TryFailed(
        step=STEP, label="2026-11-07 … 2026-11-01", first=8, last=14, cause="memory", why="Java heap space", number=1, of=3,
        rows=7000, rows_next=1750, seconds=12.0,
    )  # fmt: skip
    last = {"step": STEP, "label": "2026-11-07 … 2026-11-01", "of": 14}
    stored: list[Event] = [
        Accepted(release="r8", was="r7", plan="d" * 64, by="ana@laptop", host="laptop", steps=((STEP, 14_000),)),
        Entered("preparing"),
        Entered("backfilling"),
        StepStarted(STEP),
        Fenced(step=STEP, source="landing", version=41, slices=14, rows=14_000, days=slices),
        BatchStarted(first=1, last=7, rows=7000, **batch),
        BatchDone(position=7, rows_in=7000, rows_out=6990, bytes=900_000, seconds=18.0, version=3, **batch),
        Logged("waits", "info", WaitBegan(step=STEP, cause="lag", why="live rows are 90 s behind", since=BEGAN + 121)),
        Logged("goes on", "info", WaitEnded(step=STEP, cause="lag", seconds=30.0)),
        BatchStarted(first=8, last=14, rows=7000, **last),
        Logged("try failed", "warning", tried),
        BatchStarted(first=8, last=14, rows=7000, **last),
        BatchDone(position=14, rows_in=7000, rows_out=7000, bytes=900_000, seconds=19.0, version=4, **last),
        StepDone(STEP),
        Entered("catching-up"),
        Entered("validating"),
        Checked(table="requests", check="rows per day", ok=not planted, detail=detail, days=compared(planted)),
        Checked(table="requests", check="unchanged columns", ok=True, detail="2 equal by checksum: id, ts"),
        Entered("awaiting-confirmation"),
    ]
    wanted = stored[:until] if until else stored
    return tuple(Recorded("web-8", seq, BEGAN + 20 * seq, event) for seq, event in enumerate(wanted, 1))


def receipts() -> tuple[Receipt, ...]:
    return tuple(
        Receipt(
            rollout="web-8", step=STEP, target="requests", source="landing", day=day, fence=41, position=14, version=4,
            rows_in=1000, checksum_in="a1" * 8, rows_out=999, checksum_out="b2" * 8, days=14, at=BEGAN,
        )
        for day in DAYS
    )  # fmt: skip


def view(name: str, recorded: tuple[Recorded, ...]) -> RegionView:
    """A region's view after these events; without any, no plan was accepted there."""
    plan = replace(sample.plans()[0], region=name) if recorded else None
    region = Region(name=name, warehouse=f"/w/{name}", environment="prod")
    status = replay(recorded)
    return RegionView(region=region, link="connected", status=status, accepted=plan, live="r7", events=recorded)


def run(state: RunState = RunState.ENDED, error: ConsoleError | None = None, code: int | None = 1) -> RunReport:
    """Four regions: at the gate, with a planted day, failed in its backfill, and unreachable."""
    views = {
        "us": (view("us", events()), True),
        "eu": (view("eu", events(PLANTED)), True),
        "ap": (view("ap", (*events(until=7), Recorded("web-8", 8, BEGAN + 200, Failed(STEP, "the disk is full", "console retry")))), True),
        "tr": (view("tr", ()), False),
    }  # fmt: skip
    outcomes = {
        "us": Outcome("us", "awaiting-confirmation", gate(views["us"][0], yes=False)),
        "eu": Outcome("eu", "awaiting-confirmation", gate(views["eu"][0], yes=False)),
        "ap": Outcome("ap", "failed", RegionError("ap: the disk is full", region="ap", hint="console retry", code="E_FAILED")),
        "tr": Outcome("tr", "none", Unreachable("tr: no answer for 600 s", region="tr", hint="the same command continues")),
    }  # fmt: skip
    assert isinstance(outcomes["eu"].error, CheckFailed)
    plan = sample.plans()[0]
    regions = tuple(
        region_report(
            each, replace(plan, region=name), outcomes[name],
            Past((each.status,), each.events, receipts()) if stored and name != "ap" else None, BEGAN + 400, ended=True,
        )
        for name, (each, stored) in views.items()
    )  # fmt: skip
    return RunReport(
        pipeline="web", command="console --headless", by="ana@laptop", tool="console 0.2.0", began=BEGAN, at=BEGAN + 400, state=state,
        exit_code=code, error=reported(error) if error else None, regions=regions,
    )  # fmt: skip


def documents(checks: tuple[Checked, ...]) -> tuple[str, str, str]:
    """All that a CI gets of a run whose first region has these checks: JUnit's XML, the page, the summary."""
    given = run()
    first, *others = given.regions
    shown = replace(given, regions=(replace(first, checks=checks), *others))
    return junit(shown), page(shown), markdown(shown)
