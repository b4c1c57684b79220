"""0.1.0 itself, from its commit, in front of what this version stores: it reads it as its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console import planning, project
from console.agent.store.ledger import Releases, Rollouts
from console.agent.store.survey import survey
from console.model.event import Accepted, BatchDone, Checked, Entered, Event, Promoted
from console.model.fleet import FleetWaves
from console.model.live import Release
from console.model.plan import Plan, numbered
from tests.versions.build import CLICKS, COUNTRIES, LANDING, REGION, checked_out
from tests.versions.stored import HERE, PIPELINE, VERSIONS, noted

pytestmark = pytest.mark.slow

OPENED = """
import json, sys
from console import open_release
print(json.dumps(sorted(open_release(warehouse=sys.argv[1], pipeline="web").tables)))
"""


def planned(root: Path) -> Plan:
    """A first plan of the kept pipeline, over landing tables without a row."""
    warehouse = root / "warehouse"
    (root / "regions").mkdir(parents=True)
    (root / "regions" / "eu.yaml").write_text(REGION % 60)
    shutil.copytree(HERE / "pipeline" / "after", root / "plans" / PIPELINE)
    for name, schema in (("landing", LANDING), ("clicks", CLICKS), ("countries", COUNTRIES)):
        write_deltalake(str(warehouse / name), pa.Table.from_pylist([], schema))
    loaded = project.load(root)
    desired = loaded.pipeline(PIPELINE, loaded.regions[0])
    live = survey(warehouse, "eu", PIPELINE, ["landing", "clicks", "countries"])
    return numbered(planning.plan(desired, live, loaded.regions[0], "test"), 1)


def told(plan: Plan) -> tuple[Event, ...]:
    """A rollout whose every event says all that this version has to say."""
    waves = FleetWaves("f1", (("eu",), ("us",)), (("eu", plan.desired),))
    return (
        Accepted(plan.release.id, "", plan.digest(), "ada", "laptop", (("promote", 0),), fleet=waves),
        Entered("backfilling"),
        BatchDone("backfill/requests/parse", "2026-11-07", 1, 1, 10, 10, 900, 1.5, 4),
        Entered("validating"),
        Checked("requests", "live rows", True, "3 commits computed again", commits=3, rows=17),
        Entered("promoting"),
        Promoted(plan.release.id, "", "ada", "laptop", 1),
        Entered("live"),
    )


def stored(warehouse: Path, plan: Plan, events: Sequence[Event]) -> None:
    """A region in which this rollout went through."""
    releases, rollouts = Releases(warehouse, PIPELINE), Rollouts(warehouse, PIPELINE)
    releases.propose(plan.release, f"{PIPELINE}-1", "ada", "laptop")
    for seq, event in enumerate(events, 1):
        rollouts.append(f"{PIPELINE}-1", seq, event, plan if isinstance(event, Accepted) else None)
    releases.swap("", plan.release.id, "ada", "laptop")
    (warehouse / "_console" / "marker.json").write_text('{"format_version": 1, "region": "eu"}')


def carried(root: Path) -> Release:
    """A region in which this version has promoted a release with aggregates."""
    plan = planned(root)
    stored(root / "warehouse", plan, told(plan))
    return plan.release


@pytest.mark.parametrize("version", VERSIONS)
def test_a_region_that_this_version_carried_is_read_by_an_older_one(version: str, tmp_path: Path) -> None:
    checkout = checked_out(noted(version, "gate").commit, tmp_path / "checkout")
    root = tmp_path / "project"
    release = carried(root)
    assert any(feed.terms for feed in release.feeds)
    environment = {**os.environ, "PYTHONPATH": str(checkout), "CONSOLE_HOME": str(tmp_path / "home")}

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words[:4]}: {done.stdout}{done.stderr}"
        return done.stdout

    console = ("-m", "console.main")
    status = json.loads(python(*console, "status", "--output", "json", "--project", str(root)))
    assert (status["regions"][0]["state"], status["regions"][0]["live"]) == ("live", "r1")
    assert f"{PIPELINE}-1" in python(*console, "history", "--project", str(root))
    assert "live rows" in python(*console, "show", f"{PIPELINE}-1", "--project", str(root))
    python(*console, "plan", "--project", str(root))
    assert json.loads(python("-c", OPENED, str(root / "warehouse"))) == sorted(s.table.name for s in release.tables)
