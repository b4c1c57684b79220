"""A saved plan and a fleet's overview, from surveys of real small Delta tables."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console import planning
from console.agent.store.table_stats import table_stats
from console.agent.survey import survey
from console.cli.plan.text import plan_data, plan_text
from console.errors import Problem
from console.model.live import Live, Release, TableState
from console.model.pipeline import Override, Pipeline
from console.model.plan import Answer, Drift, Plan, numbered
from console.model.region import Region
from console.planning import baseline, baseline_changes, plan
from console.project.saved import load_saved, save_plans
from console.runner.view import grouped, plan_label
from tests.cli import sample
from tests.cli.test_plan_text import golden
from tests.planning.world import pipeline, with_column

pytestmark = pytest.mark.slow

WIDER = with_column(pipeline(), "agent", "string", "get_json_object(payload, '$.agent')")
ARROW = {
    "string": pa.string(), "timestamp": pa.timestamp("us", "UTC"), "date": pa.date32(), "int": pa.int32(),
    "double": pa.float64(), "bigint": pa.int64(), "binary": pa.binary(),
}  # fmt: skip
START = datetime(2026, 11, 1, tzinfo=UTC)


class Warehouse:
    """A region on disk: the landing table as producers write it, the release's tables as the agent made them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.release: Release | None = None
        landing = pipeline().tables[0]
        self.write("landing", [(column.name, column.type) for column in landing.columns], ())
        done = plan(pipeline(), self.survey(pipeline()), Region(name="eu", warehouse=str(root)), "console test")
        self.release = numbered(done, 1).release
        for state in self.release.tables:
            if state.table.kind != "landing":
                self.write(state.version.path, self._stored(state), state.version.partition_by)

    def _stored(self, state: TableState) -> list[tuple[str, str]]:
        return [(column.name, column.type) for column in state.version.columns]

    def write(self, path: str, columns: Sequence[tuple[str, str]], partition_by: Sequence[str], at: int = 0) -> None:
        """One commit of one row."""
        stamp = START + timedelta(minutes=at)
        values = {
            "timestamp": stamp,
            "date": stamp.date(),
            "int": 200,
            "double": 1.5,
            "bigint": at,
            "binary": b"",
            "string": "x",
        }
        row = pa.table({name: pa.array([values[kind]], ARROW[kind]) for name, kind in columns})
        write_deltalake(str(self.root / path), row, mode="append", partition_by=list(partition_by) or None)

    def survey(self, desired: Pipeline) -> Live:
        """What the agent's own survey says, with the release that its ledger would name."""
        result = survey(self.root, "eu", "web", [t.name for t in desired.tables if t.kind == "landing"])
        if self.release is None:
            return result
        own = [s for s in self.release.tables if s.table.kind != "landing"]
        more = [table_stats(s.table.name, str(self.root / s.version.path), s.table.time) for s in own]
        return replace(result, release=self.release, stats=(*result.stats, *(stats for stats in more if stats)))

    def planned(self) -> Plan:
        return plan(WIDER, self.survey(WIDER), Region(name="eu", warehouse=str(self.root)), "console test")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(tmp_path_factory.mktemp("warehouse"))


def test_a_plan_made_before_500_live_commits_still_holds(warehouse: Warehouse, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    before = warehouse.planned()
    save_plans(file, [before], [baseline(WIDER, warehouse.survey(WIDER))])
    assert warehouse.release is not None
    for state in warehouse.release.tables:
        for at in range(200 if state.table.kind == "landing" else 150):
            path = "landing" if state.table.kind == "landing" else state.version.path
            warehouse.write(path, warehouse._stored(state), state.version.partition_by, at)
    after = warehouse.planned()
    versions = [
        DeltaTable(str(warehouse.root / (s.version.path or "landing"))).version() for s in warehouse.release.tables
    ]
    assert sum(versions) >= 500
    saved = load_saved(file)
    assert after.price.rows > before.price.rows
    assert (after.content, after.live, after.desired) == (before.content, before.live, before.desired)
    rests = saved.grounds["eu"]
    assert rests is not None
    assert (
        baseline_changes(
            planning.Baseline(rests.release, rests.tables, rests.shapes), baseline(WIDER, warehouse.survey(WIDER))
        )
        == ()
    )
    assert after.drift == ()


def test_what_is_altered_by_hand_in_a_real_table_is_seen_and_makes_the_plan_stale(tmp_path: Path) -> None:
    region = Warehouse(tmp_path)
    before, was = region.planned(), baseline(WIDER, region.survey(WIDER))
    assert before.drift == ()
    assert region.release is not None
    state = region.release.table("requests")
    assert state is not None
    table = DeltaTable(str(tmp_path / state.version.path))
    table.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 days"})
    row = pa.table(
        {
            **{n: pa.array([None], ARROW[k]) for n, k in region._stored(state) if n != "day"},
            "extra": ["by hand"],
            "day": pa.array([START.date()], pa.date32()),
        }
    )
    write_deltalake(str(tmp_path / state.version.path), row, mode="append", schema_mode="merge", partition_by=["day"])
    after = region.planned()
    assert {(d.table, d.what, d.name) for d in after.drift} == {
        ("requests", "column", "extra"), ("requests", "property", "delta.setTransactionRetentionDuration"),
    }  # fmt: skip
    assert after.content != before.content
    assert set(baseline_changes(was, baseline(WIDER, region.survey(WIDER)))) == {
        "table requests: column extra nothing → string",
        "table requests: property delta.setTransactionRetentionDuration nothing → interval 1 days",
    }


def fleet() -> list[Plan]:
    """20 regions: 14 the same, 4 with another retention, 2 altered by hand."""
    base = sample.plans()[0]
    drift = Drift(
        table="requests",
        what="column",
        name="extra",
        said="",
        found="string",
        adopt="declare extra in tables/requests.yaml",
        repair="there: ALTER TABLE requests DROP COLUMN extra",
    )
    made = []
    for i in range(20):
        plan = replace(
            base, region=f"r{i:02}", price=replace(base.price, rows=1000 * i, written=10**9 + i), free_bytes=1 << 40
        )
        if i in (3, 7, 8, 19):
            where = f"regions/r{i:02}.yaml:5:9"
            plan = replace(
                plan, overrides=(Override(path="tables.landing.retention", base="30d", value="3d", where=where),)
            )
        elif i in (5, 11):
            plan = replace(plan, drift=(drift,))
        made.append(plan)
    return made


def test_people_review_three_plans_and_not_twenty() -> None:
    groups = grouped(fleet())
    assert [(len(g.plans), g.differs) for g in groups] == [
        (14, ()),
        (4, ("another tables.landing.retention: 3d",)),
        (2, ("drifted: requests.extra",)),
    ]
    assert [g.label for g in groups] == [plan_label(g.plans[0]) for g in groups]
    assert len({g.label for g in groups}) == 3
    golden("fleet.txt", plan_text(fleet()))
    data = json.loads(json.dumps(plan_data(fleet())))
    assert [group["regions"] for group in data["groups"]][1:] == [["r03", "r07", "r08", "r19"], ["r05", "r11"]]
    assert len(data["plans"]) == 20


def test_figures_make_no_group_and_every_other_difference_does() -> None:
    one, *_ = fleet()
    warned = replace(
        one, problems=(Problem(code="C101", message="short", where="", hint="", severity="warn", node="requests"),)
    )
    fewer = replace(one, nodes=one.nodes[:-1])
    changed = replace(one, answers=(Answer(kind="endpoint", name="top_errors", owner="web", why="its query changed"),))
    assert len(grouped([one, replace(one, region="b", live="r99", price=replace(one.price, rows=7))])) == 1
    for other in (warned, fewer, changed):
        assert len(grouped([one, replace(other, region="b")])) == 2
