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
    table = Table(name, kind, columns, time="ts", managed=kind == "landing")
    return TableState(table, Version("c" + name, path, columns), f"SELECT * FROM {name}", "rows", {})


ID, TS, PAYLOAD = Column("id", "string"), Column("ts", "timestamp"), Column("payload", "string")
AGENT = Column("user_agent", "string")
RELEASE = Release(
    "",
    "web",
    "d" * 64,
    (
        state("landing", ID, TS, PAYLOAD, path="landing", kind="landing"),
        state("requests", ID, TS, AGENT),
        state("requests_by_hour", ID, TS),
    ),
    (
        Feed("parse_requests", "landing", "requests", "SELECT id, ts FROM landing"),
        Feed("requests_by_hour", "requests", "requests_by_hour", "SELECT id, ts FROM requests"),
    ),
    endpoints=(
        Endpoint(
            "top_errors",
            "SELECT id FROM requests WHERE ts >= :day LIMIT :most",
            (Parameter("day", "date"), Parameter("most", "int", "10")),
        ),
    ),
)
NODES = (
    NodeChange("table", "landing", "keep", "unchanged"),
    NodeChange(
        "table",
        "requests",
        "replay",
        "user_agent is new and computed from landing.payload, which requests does not keep",
        (ColumnChange("user_agent", "added"),),
        Price(14, 1_500_000, 440_401_920, 37, 130.0),
        "landing",
    ),
    NodeChange("table", "requests_by_hour", "replay", "its source requests is rebuilt", (), Price(), "requests"),
    NodeChange("table", "old_totals", "drop", "no longer declared"),
    NodeChange("endpoint", "requests_by_agent", "create", "new"),
    NodeChange("endpoint", "top_errors", "metadata", "its SQL changed"),
)
STEPS: tuple[Step, ...] = (
    CreateTable("requests"),
    Backfill("parse_requests", "landing", "requests", "replay", "SELECT 1", "ts", 1_500_000, 440_401_920, 14, 37),
    CatchUp("parse_requests", "landing", "requests", "fence"),
    CatchUp("requests_by_hour", "requests", "requests_by_hour", "log"),
    Validate((Comparison("requests", (Pair("id", "id"),)),)),
    Promote(),
)
SHORT = Problem(
    "C101",
    "landing keeps 9 days, requests 14: older rows are not re-read",
    "plans/web/tables/landing.yaml:3:1",
    "lengthen its retention, or accept with --allow-destructive",
    "warn",
    "landing",
)


def plan(region: str, price: Price, everything: Price, live: str = "r7") -> Plan:
    return Plan(
        1, "console 0.1.0", "web", region, "d" * 64, live, "content", NODES, STEPS, RELEASE, (), price, everything
    )


def plans() -> tuple[Plan, ...]:
    """us and eu say the same; ap keeps fewer days and is warned about."""
    us = plan("us", Price(14, 400_000, 115_343_360, 14, 40.0), Price(14, 400_900, 131_072_000, 30, 55.0), "r3")
    eu = plan("eu", Price(14, 1_500_000, 440_401_920, 37, 130.0), Price(14, 1_503_400, 492_830_720, 60, 171.0))
    ap = plan("ap", Price(9, 60_000, 15_728_640, 9), Price(9, 60_300, 17_825_792, 20))
    override = Override("tables.landing.retention", "14d", "9d", "regions/ap.yaml:6:24")
    variable = Override("variables.tenant", "acme", "acme-ap")
    return us, eu, replace(ap, problems=(SHORT,), overrides=(override, variable))


STORY: tuple[Event, ...] = (
    Accepted("r8", "r7", "p", "ada@laptop", "laptop", (("create/requests", 0), ("backfill/requests", 100))),
    Entered("preparing"),
    StepStarted("create/requests"),
    StepDone("create/requests"),
    Entered("backfilling"),
    StepStarted("backfill/requests"),
    Fenced("backfill/requests", "landing", 41, 2, 100),
    BatchStarted("backfill/requests", "2026-11-07", 1, 1, 2, 60),
    Progress("backfill/requests", 30, batch="2026-11-07"),
    BatchDone("backfill/requests", "2026-11-07", 1, 2, 60, 60, 600, 3.0, 4),
    Paused("ada@laptop"),
    Resumed("ada@laptop"),
    Failed("backfill/requests", "disk full", "make room, then console retry"),
    Resumed("ada@laptop"),
    BatchStarted("backfill/requests", "2026-11-06", 2, 2, 2, 40),
    BatchDone("backfill/requests", "2026-11-06", 2, 2, 40, 40, 400, 2.0, 5),
    StepDone("backfill/requests"),
    Entered("validating"),
    Checked("requests", "rows per day", True, "2 days, 100 rows"),
    Checked("requests", "live rows", None, "no row arrived"),
    Entered("awaiting-confirmation"),
    Promoted("r8", "r7", "ada@laptop", "laptop", 12),
)


def story() -> list[Recorded]:
    return [Recorded("web-8", i, 1000.0 + i, event) for i, event in enumerate(STORY, 1)]
