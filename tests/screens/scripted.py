"""A cockpit whose views are set by the test, and views of a region at each moment of a rollout."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from console.drivers.protocol import QueryResult
from console.drivers.replay import Given, Ran
from console.errors import ConsoleError, Problem, RegionError
from console.model.compared import DayExamples
from console.model.consent import Declaration
from console.model.event import Checked, ComparedDay, Promoted, Recorded, RolledBack
from console.model.live import Release
from console.model.pipeline import Override
from console.model.plan import ColumnChange, Drift, NodeChange, Plan, Price
from console.model.receipt import AuditProgress, Finding, Past
from console.model.region import Region
from console.model.status import Status, Verb
from console.model.step import Backfill, CatchUp, CreateTable, Promote, Validate
from console.model.step_status import StepStatus
from console.model.tuning import Tuned, Tuning
from console.model.way_back import WayBackFinding, proof
from console.runner.flips import Flips, RegionFlip
from console.runner.view import Outcome, RegionView
from console.witness import Witness, WitnessProgress, WitnessResult

NOON = 1_793_620_800.0  # 2026-11-02 12:00 UTC
US = Region(name="us", warehouse="/data/us", environment="staging", wave=1, canary=True, zone="America/New_York")
EU = Region(name="eu", warehouse="/data/eu", environment="prod", wave=2, owner="data-platform", zone="Europe/Madrid")
AP = Region(name="ap", warehouse="/data/ap", environment="prod", wave=3, zone="Asia/Singapore")


class ScriptedCockpit:
    """Records its calls in `calls`; an entry of `errors` is raised by the call of that name."""

    def __init__(self, *views: RegionView) -> None:
        self._views = {view.region.name: view for view in views}
        self._changed = asyncio.Queue[RegionView]()
        self.calls: list[tuple[str, object]] = []
        self.errors: dict[str, ConsoleError] = {}
        self.outcomes: list[tuple[Outcome, ...]] = []
        self.flips: list[Flips] = []  # of the next barriers
        self.stored: dict[str, tuple[Recorded, ...]] = {}
        self.rollouts: dict[str, tuple[Status, ...]] = {}
        self.pasts: dict[tuple[str, str], Past] = {}  # region and rollout → in full
        self.examples_of: dict[tuple[str, str], DayExamples] = {}  # table and day → rows that differ
        self.reports: list[AuditProgress] = []  # of a verification, before it waits for `verified`
        self.verified = asyncio.Event()
        self.findings: tuple[Finding, ...] = ()

    @property
    def views(self) -> Mapping[str, RegionView]:
        return self._views

    @property
    def player(self) -> None:
        return None

    def now(self) -> float:
        return NOON

    def show(self, *views: RegionView) -> None:
        for view in views:
            self._views[view.region.name] = view
            self._changed.put_nowait(view)

    async def changes(self) -> AsyncIterator[RegionView]:
        while True:
            yield await self._changed.get()

    def _asked(self, call: str, about: object) -> None:
        self.calls.append((call, about))
        if error := self.errors.get(call):
            raise error

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        self._asked("refresh", tuple(regions))

    async def witness(self, region: str) -> None:
        self._asked("witness", region)

    async def recorded(self, region: str) -> tuple[Recorded, ...]:
        self._asked("recorded", region)
        return self.stored.get(region, ())

    async def history(self, region: str, rollout: str = "") -> Past:
        self._asked("history", (region, rollout))
        return self.pasts.get((region, rollout)) or Past(self.rollouts.get(region, ()))

    async def examples(self, region: str, table: str, day: str) -> DayExamples:
        self._asked("examples", (region, table, day))
        if (known := self.examples_of.get((table, day))) is None:
            raise RegionError(f"only one version of {table} is still here", code="E_ONE_VERSION")
        return known

    async def verify(self, region: str, rollout: str, tell: Callable[[AuditProgress], None]) -> tuple[Finding, ...]:
        self._asked("verify", (region, rollout))
        for report in self.reports:
            tell(report)
        await self.verified.wait()
        return self.findings

    async def note(self, region: str, text: str) -> Status:
        self._asked("note", (region, text))
        return self._views[region].status

    async def declare(self, region: str, declared: Declaration) -> Status:
        self._asked("declare", (region, declared))
        view = self._views[region]
        consent = view.status.consent.after(replace(declared, by="ada", host="laptop"), NOON)
        self._views[region] = replace(view, status=replace(view.status, consent=consent))
        return self._views[region].status

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        self._asked("run", tuple(regions))
        return self.outcomes.pop(0) if self.outcomes else ()

    async def start(self, region: str) -> None:
        self._asked("start", region)

    async def control(self, region: str, verb: Verb) -> Status:
        self._asked(verb, region)
        return self._views[region].status

    async def tune(self, region: str, change: Tuning, *, reset: bool = False) -> Status:
        self._asked("tune", (region, change, reset))
        status = self._views[region].status
        return replace(status, tuned=Tuned(by="ada", host="laptop", tuning=change))

    async def promote(self, region: str) -> Promoted:
        self._asked("promote", region)
        return Promoted(release="r2", was="r1", by="ada", host="laptop", version=7)

    async def promote_together(
        self, confirmed: Mapping[str, str], declared: Mapping[str, Sequence[Declaration]]
    ) -> Flips:
        self._asked("promote_together", (dict(confirmed), {name: tuple(of) for name, of in declared.items() if of}))
        return self.flips.pop(0) if self.flips else Flips(tuple(map(promoted, confirmed)))

    async def rollback(self, region: str, to: str = "") -> RolledBack:
        self._asked("rollback", region)
        return RolledBack(release="r1", was="r2", by="ada", host="laptop", version=8)

    async def cleanup(
        self, region: str, *, dry_run: bool = False, previous: bool = False, destructive: bool = False
    ) -> tuple[str, ...]:
        self._asked("cleanup", region)
        return ()

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> QueryResult:
        self._asked("query", region)
        return QueryResult((), (), "r1")

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]:
        self._asked("trigger", region)
        return {}

    async def close(self) -> None:
        self.calls.append(("close", None))


def promoted(region: str) -> RegionFlip:
    """A region that a barrier promoted within 0.2 s."""
    return RegionFlip(region=region, end="promoted", release="r2", was="r1", version=7, sent=NOON, known=NOON + 0.2)


def plan(region: Region, rows: int = 466_830, **changes: Any) -> Plan:
    """The demo's change: a new column in `requests`, and the tables that depend on it."""
    price = Price(days=14, rows=rows, bytes=rows * 250, batches=6, seconds=rows / 38_000)
    nodes = (
        NodeChange(kind="table", name="landing", action="keep", why="nothing about it changes"),
        NodeChange(
            kind="table", name="requests", action="replay",
            why="user_agent is new and is computed from payload, which only landing keeps: its history is read again",
            columns=(ColumnChange("user_agent", "added"), ColumnChange("browser", "added")), price=price, source="landing",
        ),
        NodeChange(
            kind="table", name="requests_by_hour", action="replay", why="its source requests is rebuilt, and its rows depend on it",
            columns=(), price=Price(days=14, rows=rows // 90, bytes=rows // 3, batches=0, seconds=0.0), source="requests",
        ),
        NodeChange(kind="endpoint", name="requests_by_agent", action="create", why="a new endpoint: no row is moved"),
        NodeChange(kind="endpoint", name="top_errors", action="keep", why="nothing about it changes"),
    )  # fmt: skip
    steps = (
        CreateTable("requests"), CreateTable("requests_by_hour"),
        Backfill(materialization="parse_requests", source="landing", target="requests", route="replay", sql="SELECT 1", time="ts", rows=rows, bytes=rows * 250, days=14, batches=6),
        CatchUp("parse_requests", "landing", "requests", "fence"),
        CatchUp("hourly", "requests", "requests_by_hour", "log"), Validate(()), Promote(),
    )  # fmt: skip
    made = Plan(
        format_version=1, tool="0.1.0", pipeline="web", region=region.name, desired="d" * 64, live="r1", content="c" * 64, nodes=nodes, steps=steps, release=Release(id="", pipeline="web", digest="d" * 64, tables=(), feeds=()),
        price=price, everything=Price(days=14, rows=rows * 3, bytes=rows * 600, batches=0, seconds=0.0),
    )  # fmt: skip
    return replace(made, **changes)


def waiting(region: Region, rows: int = 466_830) -> RegionView:
    """A change is pending."""
    view = RegionView(region=region, link="connected", plan=plan(region, rows), live="r1", heard=NOON)
    if region is not AP or view.plan is None:
        return view
    own = Override(path="tables.landing.retention", base="30d", value="3d", where="regions/ap.yaml:9:17")
    warning = Problem(
        code="C101",
        message="landing keeps 3 days, requests keeps all",
        where="",
        hint="older days stay as they are",
        severity="warn",
        node="requests",
    )
    return replace(view, plan=replace(view.plan, overrides=(own,), problems=(warning,)))


def running(region: Region, done: int = 180_000, rows: int = 466_830) -> RegionView:
    """In the middle of the backfill."""
    steps = (
        StepStatus(id="create/requests", state="done"), StepStatus(id="create/requests_by_hour", state="done"),
        StepStatus(
            id="backfill/requests/parse_requests", state="running", rows_done=done, rows_total=rows, slices_done=6, slices=14, batch="2026-10-27 … 2026-10-25", batch_rows=24_310, seconds=4.7,
            bytes=done * 250,
        ),
        StepStatus(id="catch-up/requests/parse_requests"), StepStatus(id="catch-up/requests_by_hour/hourly"),
        StepStatus(id="validate"), StepStatus(id="promote"),
    )  # fmt: skip
    log = ("took the lock of web", "Spark is ready: 2 slots, one of them for live", "fence of landing at version 118",
           "warning: 2026-10-29 is heavy: cut by the hour", "batch 2026-10-28 committed as version 7: 61,003 rows")  # fmt: skip
    status = Status(
        rollout="web-2", release="r2", was="r1", plan="9f2c41d07b" + "0" * 54, by="ada", state="backfilling", seq=9, started=NOON - 12, changed=NOON,
        steps=steps, lag_commits=1, lag_rows=10, lag_seconds=0.4, log=log,
    )  # fmt: skip
    return replace(waiting(region, rows), status=status)


def at_gate(region: Region, *, wrong: bool = False, rows: int = 466_830) -> RegionView:
    """Built and validated; a person decides. `wrong`: one check differs, one is inconclusive."""
    differs = wrong * 1
    days = tuple(
        ComparedDay(day=f"2026-10-{20 + n}", old=33_345, new=33_345 + (differs if n == 9 else 0)) for n in range(12)
    )
    checks = (
        Checked(table="requests", check="feed parse_requests", ok=None if wrong else True, detail="no live row since the fence" if wrong else "alive: 311 rows passed it live", rows=0 if wrong else 311),
        Checked(table="requests", check="rows per day", ok=not wrong, detail="2026-10-29: 33,345 → 33,346" if wrong else f"{rows:,} rows in 12 days are equal", days=days),
        Checked(table="requests", check="unchanged columns", ok=True, detail="19 equal by checksum: host, ts, path, status, bytes, agent and 13 more; left out: user_agent, browser (new)"),
        Checked(table="requests_by_hour", check="values", ok=True, detail="5 equal"),
    )  # fmt: skip
    view = running(region, rows=rows)
    steps = tuple(
        replace(step, state="waiting" if step.id == "promote" else "done", batch="", batch_rows=0,
                rows_done=step.rows_total, slices_done=step.slices)
        for step in view.status.steps
    )  # fmt: skip
    status = replace(view.status, state="awaiting-confirmation", checks=checks, steps=steps, checked_at=NOON - 40)
    return replace(view, status=status, accepted=view.plan)


def failed(region: Region) -> RegionView:
    """A row did not convert; the rollout has failed, live is untouched."""
    view = running(region)
    return replace(
        view,
        status=replace(
            view.status, held="failed",
            why="parse_requests: 3 rows of 2026-10-27 do not convert: payload.bytes = '-' is no bigint",
            hint="use try_cast in materializations/parse_requests.sql, then retry",
        ),
    )  # fmt: skip


PROVEN = proof("r1", NOON - 40, (), until=NOON + 71 * 3600, feeds=3, files=124, endpoints=5)
GONE = WayBackFinding(part="file", name="day=2026-11-02/part-1.parquet", state="failed", why="it is gone, and the table names it", table="requests")  # fmt: skip


def live(region: Region) -> RegionView:
    """Promoted; the previous release is kept up to date."""
    view = at_gate(region)
    unchanged = plan(
        region, nodes=tuple(replace(node, action="keep", columns=()) for node in plan(region).nodes), price=Price()
    )
    return replace(
        view,
        status=replace(view.status, state="live", decided_by="ada", way_back=PROVEN),
        live="r2",
        previous="r1",
        plan=unchanged,
    )


ALTERED = Drift(
    table="requests", what="column", name="note", said="", found="string", adopt="declare note in tables/requests.yaml and compute it in its query",
    repair="there: ALTER TABLE requests DROP COLUMN note, or leave it: nothing of ours reads it",
)  # fmt: skip


def fleet() -> tuple[RegionView, ...]:
    """Eight regions: five with equal plans, two with a shorter retention, and one with a table altered by hand."""
    names = ("us", "eu", "ap", "sa", "ca", "me", "af", "in")
    views = [
        waiting(replace(EU, name=name, wave=1 + number // 3), 61_200 * (1 + number))
        for number, name in enumerate(names)
    ]
    for number in (2, 5):
        own = Override(
            path="tables.landing.retention", base="30d", value="3d", where=f"regions/{names[number]}.yaml:9:17"
        )
        views[number] = replace(views[number], plan=plan(views[number].region, 61_200, overrides=(own,)))
    views[6] = replace(views[6], plan=plan(views[6].region, 61_200, drift=(ALTERED,)))
    return tuple(views)


def witness_result(*, rows: int = 1) -> WitnessResult:
    """A request whose agent the old query did not read."""
    given = Given(
        (("host", "string"), ("ts", "timestamp"), ("payload", "string")),
        (("a", "2024-02-29T00:00:00", '{"user_agent": "Mozilla/5.0 (X11; Linux x86_64)"}'),) * rows,
    )
    old = Ran(("host", "ts", "agent"), (("a", "2024-02-29T00:00:00", None),) * rows)
    new = Ran(
        ("host", "ts", "agent", "bot"), (("a", "2024-02-29T00:00:00", "Mozilla/5.0 (X11; Linux x86_64)", False),) * rows
    )
    return WitnessResult(Witness({"landing": given}, old, new), 14)


def witness_progress(*answers: WitnessResult, total: int = 0) -> WitnessProgress:
    """A search for so many edited queries, done once all have a result."""
    asked = (("requests", "parse_requests"), ("requests_by_hour", "hourly"), ("sessions", "cut_sessions"))
    total = total or len(answers)
    return WitnessProgress(asked[:total], answers, done=len(answers) == total)
