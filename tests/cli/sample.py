"""Three regions' plans for one change, as the planner would make them, and a region's rollout as events."""

from dataclasses import replace

from console.errors import Problem
from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    Checked,
    Entered,
    Event,
    Failed,
    Fenced,
    Paused,
    Progress,
    Promoted,
    Recorded,
    Resumed,
    StepDone,
    StepStarted,
)
from console.model.live import Feed, Release, TableState, Version
from console.model.pipeline import Endpoint, Override, Parameter
from console.model.plan import ColumnChange, NodeChange, Plan, Price
from console.model.schema import Column, Kind, Table
from console.model.step import Backfill, CatchUp, Comparison, CreateTable, Pair, Promote, Step, Validate


def state(name: str, *columns: Column, path: str = "", kind: Kind = "append") -> TableState:
    table = Table(name=name, kind=kind, columns=columns, time="ts", managed=kind == "landing")
    return TableState(
        table=table,
        version=Version(content="c" + name, path=path, columns=columns),
        read=f"SELECT * FROM {name}",
        rows="rows",
        values={},
    )


ID, TS, PAYLOAD = (
    Column(name="id", type="string"),
    Column(name="ts", type="timestamp"),
    Column(name="payload", type="string"),
)
AGENT = Column(name="user_agent", type="string")
RELEASE = Release(
    id="",
    pipeline="web",
    digest="d" * 64,
    tables=(
        state("landing", ID, TS, PAYLOAD, path="landing", kind="landing"),
        state("requests", ID, TS, AGENT),
        state("requests_by_hour", ID, TS),
    ),
    feeds=(
        Feed(materialization="parse_requests", source="landing", target="requests", sql="SELECT id, ts FROM landing"),
        Feed(
            materialization="requests_by_hour",
            source="requests",
            target="requests_by_hour",
            sql="SELECT id, ts FROM requests",
        ),
    ),
    endpoints=(
        Endpoint(
            name="top_errors",
            sql="SELECT id FROM requests WHERE ts >= :day LIMIT :most",
            parameters=(Parameter("day", "date"), Parameter("most", "int", "10")),
        ),
    ),
)
NODES = (
    NodeChange(kind="table", name="landing", action="keep", why="unchanged"),
    NodeChange(
        kind="table",
        name="requests",
        action="replay",
        why="user_agent is new and computed from landing.payload, which requests does not keep",
        columns=(ColumnChange("user_agent", "added"),),
        price=Price(days=14, rows=1_500_000, bytes=440_401_920, batches=37, seconds=130.0),
        source="landing",
    ),
    NodeChange(
        kind="table",
        name="requests_by_hour",
        action="replay",
        why="its source requests is rebuilt",
        columns=(),
        price=Price(),
        source="requests",
    ),
    NodeChange(kind="table", name="old_totals", action="drop", why="no longer declared"),
    NodeChange(kind="endpoint", name="requests_by_agent", action="create", why="new"),
    NodeChange(kind="endpoint", name="top_errors", action="metadata", why="its SQL changed"),
)
STEPS: tuple[Step, ...] = (
    CreateTable("requests"),
    Backfill(
        materialization="parse_requests",
        source="landing",
        target="requests",
        route="replay",
        sql="SELECT 1",
        time="ts",
        rows=1_500_000,
        bytes=440_401_920,
        days=14,
        batches=37,
    ),
    CatchUp("parse_requests", "landing", "requests", "fence"),
    CatchUp("requests_by_hour", "requests", "requests_by_hour", "log"),
    Validate((Comparison(table="requests", pairs=(Pair("id", "id"),)),)),
    Promote(),
)
SHORT = Problem(
    code="C101",
    message="landing keeps 9 days, requests 14: older rows are not re-read",
    where="plans/web/tables/landing.yaml:3:1",
    hint="lengthen its retention, or accept with --allow-destructive",
    severity="warn",
    node="landing",
)


def plan(region: str, price: Price, everything: Price, live: str = "r7") -> Plan:
    return Plan(
        format_version=1,
        tool="console 0.1.0",
        pipeline="web",
        region=region,
        desired="d" * 64,
        live=live,
        content="content",
        nodes=NODES,
        steps=STEPS,
        release=RELEASE,
        problems=(),
        price=price,
        everything=everything,
    )


def plans() -> tuple[Plan, ...]:
    """us and eu say the same; ap keeps fewer days and is warned about."""
    us = plan(
        "us",
        Price(days=14, rows=400_000, bytes=115_343_360, batches=14, seconds=40.0),
        Price(days=14, rows=400_900, bytes=131_072_000, batches=30, seconds=55.0),
        "r3",
    )
    eu = plan(
        "eu",
        Price(days=14, rows=1_500_000, bytes=440_401_920, batches=37, seconds=130.0),
        Price(days=14, rows=1_503_400, bytes=492_830_720, batches=60, seconds=171.0),
    )
    ap = plan(
        "ap",
        Price(days=9, rows=60_000, bytes=15_728_640, batches=9),
        Price(days=9, rows=60_300, bytes=17_825_792, batches=20),
    )
    override = Override(path="tables.landing.retention", base="14d", value="9d", where="regions/ap.yaml:6:24")
    variable = Override("variables.tenant", "acme", "acme-ap")
    return us, eu, replace(ap, problems=(SHORT,), overrides=(override, variable))


STORY: tuple[Event, ...] = (
    Accepted(
        release="r8",
        was="r7",
        plan="p",
        by="ada@laptop",
        host="laptop",
        steps=(("create/requests", 0), ("backfill/requests", 100)),
    ),
    Entered("preparing"),
    StepStarted("create/requests"),
    StepDone("create/requests"),
    Entered("backfilling"),
    StepStarted("backfill/requests"),
    Fenced(step="backfill/requests", source="landing", version=41, slices=2, rows=100),
    BatchStarted(step="backfill/requests", label="2026-11-07", first=1, last=1, of=2, rows=60),
    Progress(step="backfill/requests", rows=30, batch="2026-11-07"),
    BatchDone(
        step="backfill/requests",
        label="2026-11-07",
        position=1,
        of=2,
        rows_in=60,
        rows_out=60,
        bytes=600,
        seconds=3.0,
        version=4,
    ),
    Paused("ada@laptop"),
    Resumed("ada@laptop"),
    Failed("backfill/requests", "disk full", "make room, then console retry"),
    Resumed("ada@laptop"),
    BatchStarted(step="backfill/requests", label="2026-11-06", first=2, last=2, of=2, rows=40),
    BatchDone(
        step="backfill/requests",
        label="2026-11-06",
        position=2,
        of=2,
        rows_in=40,
        rows_out=40,
        bytes=400,
        seconds=2.0,
        version=5,
    ),
    StepDone("backfill/requests"),
    Entered("validating"),
    Checked(table="requests", check="rows per day", ok=True, detail="2 days, 100 rows"),
    Checked(table="requests", check="live rows", ok=None, detail="no row arrived"),
    Entered("awaiting-confirmation"),
    Promoted(release="r8", was="r7", by="ada@laptop", host="laptop", version=12),
)


def story() -> list[Recorded]:
    return [Recorded("web-8", i, 1000.0 + i, event) for i, event in enumerate(STORY, 1)]
