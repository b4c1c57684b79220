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

from console import __version__, planning, project
from console.agent.store.ledger import Releases, Rollouts
from console.agent.survey import survey
from console.drivers.ssh.driver import survey_request
from console.drivers.survey import surveyed
from console.drivers.transport import Surveyed, SurveyRequest
from console.model import codec
from console.model.event import Accepted, BatchDone, Checked, Entered, Event, Fenced, Logged, Promoted, StepStarted
from console.model.fleet import FleetWaves
from console.model.incident import SlicedDay, SparkBack, TryFailed, Tuned, WaitBegan, WaitEnded
from console.model.live import Release
from console.model.note import Noted
from console.model.plan import Plan, numbered
from console.model.tuning import Tuning
from tests.versions.build import CLICKS, COUNTRIES, LANDING, REGION, ROOT, checked_out
from tests.versions.stored import HERE, PIPELINE, VERSIONS, noted

pytestmark = pytest.mark.slow

# the two ends of a survey over SSH as 0.1.0 wrote them: its console's request and what it makes of the answer; its host
ASKED = """
import sys
from dataclasses import asdict
from console.drivers.ssh import far
from console.drivers.survey import Ask, surveyed
from console.errors import ConsoleError
from console.model import codec
ask = Ask("eu", sys.argv[1], "web", ("landing", "clicks", "countries"), True, "*")
if len(sys.argv) == 2:
    print(codec.dumps(far.Request("survey", **asdict(ask))))
else:
    answer = surveyed(ask, sys.argv[2].encode())
    if isinstance(answer, ConsoleError):
        raise answer
    print(answer.live.release.id, answer.state.status.state, len(answer.live.stats), len(answer.past.rollouts))
"""
RECORDS = """
import dataclasses, importlib, json, pkgutil
import console.model
modules = [importlib.import_module(f"console.model.{info.name}") for info in pkgutil.iter_modules(console.model.__path__)]
print(json.dumps({
    name: {field.name: sorted(field.metadata) for field in dataclasses.fields(cls)}
    for module in modules
    for name, cls in vars(module).items()
    if isinstance(cls, type) and dataclasses.is_dataclass(cls)
}))
"""
OPENED = """
import json, sys
from console import open_release
print(json.dumps(sorted(open_release(warehouse=sys.argv[1], pipeline="web").tables)))
"""


STEP = "backfill/requests/parse"
INCIDENTS = (
    WaitBegan(step=STEP, cause="lag", why="live rows are 70 s behind", since=3.0),
    WaitEnded(step=STEP, cause="lag", seconds=9.0),
    TryFailed(step=STEP, label="2026-11-07", first=1, last=1, cause="memory", why="heap", number=1, of=3, rows=9, rows_next=3, seconds=2.0),
    SparkBack(step=STEP, seconds=12.0),
    Tuned(by="ada", host="ops2", tuning=Tuning(target_seconds=20.0)),
    Noted(by="ada", host="ops2", text="waits for Ana"),
)  # fmt: skip


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


def every_event(plan: Plan) -> tuple[Event, ...]:
    """A rollout whose every event says all that this version has to say."""
    waves = FleetWaves("f1", (("eu",), ("us",)), (("eu", plan.desired),))
    return (
        Accepted(
            release=plan.release.id,
            was="",
            plan=plan.digest(),
            by="ada",
            host="laptop",
            steps=(("promote", 0),),
            fleet=waves,
        ),
        Entered("backfilling"),
        StepStarted(STEP, away_since=5.0),
        Fenced(
            step=STEP, source="landing", version=3, slices=1, rows=10, days=(SlicedDay(label="2026-11-07", rows=10),)
        ),
        *(Logged(f"a line about {type(incident).__name__}", "warning", incident) for incident in INCIDENTS),
        BatchDone(
            step=STEP,
            label="2026-11-07",
            position=1,
            of=1,
            rows_in=10,
            rows_out=10,
            bytes=900,
            seconds=1.5,
            version=4,
        ),
        Entered("validating"),
        Checked(table="requests", check="live rows", ok=True, detail="3 commits computed again", commits=3, rows=17),
        Entered("promoting"),
        Promoted(release=plan.release.id, was="", by="ada", host="laptop", version=1),
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
    stored(root / "warehouse", plan, every_event(plan))
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
    assert "warning: a line about WaitBegan" in status["regions"][0]["status"]["log"]
    assert "live rows" in python(*console, "show", f"{PIPELINE}-1", "--project", str(root))
    hours = root / "plans" / PIPELINE / "materializations" / "hours.sql"
    hours.write_text(hours.read_text().replace("> 599", "> 598"))
    python(*console, "plan", "--out", str(tmp_path / "plan.json"), "--project", str(root))
    stale = subprocess.run(
        [sys.executable, "-m", "console.main", "apply", str(tmp_path / "plan.json"), "--yes", "--project", str(root)],
        cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert stale.returncode == 4, stale.stderr
    assert f"it was made by console {version}, and this is console {__version__}" in stale.stderr
    assert json.loads(python("-c", OPENED, str(root / "warehouse"))) == sorted(s.table.name for s in release.tables)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_survey_over_ssh_is_understood_in_both_directions(version: str, tmp_path: Path) -> None:
    checkout = checked_out(noted(version, "gate").commit, tmp_path / "checkout")
    warehouse = str(tmp_path / "project" / "warehouse")
    carried(tmp_path / "project")

    def python(tree: Path, *words: str, stdin: str = "") -> str:
        environment = {**os.environ, "PYTHONPATH": str(tree), "CONSOLE_HOME": str(tmp_path / "home")}
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tree,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words[:2]}: {done.stdout}{done.stderr}"
        return done.stdout

    # an older console, the host of this version
    asked = python(checkout, "-c", ASKED, warehouse)
    answer = python(ROOT, "-m", "console.drivers.ssh.remote", stdin=asked)
    assert python(checkout, "-c", ASKED, warehouse, answer) == "r1 live 3 1\n"

    # a console of this version, an older host and one of this version: the second leaves out nothing
    ask = SurveyRequest(
        region="eu",
        warehouse=warehouse,
        pipeline=PIPELINE,
        landing=("landing", "clicks", "countries"),
        state=True,
        past="*",
    )
    request = codec.dumps(survey_request(ask)) + "\n"
    for tree, module, terms in (
        (checkout, "console.drivers.ssh.far", False),
        (ROOT, "console.drivers.ssh.remote", True),
    ):
        every_event = surveyed(ask, python(tree, "-m", module, stdin=request).encode())
        assert isinstance(every_event, Surveyed), every_event
        assert every_event.live.release
        assert len(every_event.live.stats) == 3
        assert any(feed.terms for feed in every_event.live.release.feeds) is terms


@pytest.mark.parametrize("version", VERSIONS)
def test_no_record_has_lost_a_field_and_each_new_one_is_marked(version: str, tmp_path: Path) -> None:
    def records(tree: Path) -> dict[str, dict[str, list[str]]]:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        every_event = subprocess.run(
            [sys.executable, "-c", RECORDS], env=environment, capture_output=True, text=True, check=True
        )
        data: dict[str, dict[str, list[str]]] = json.loads(every_event.stdout)
        return data

    older = records(checked_out(noted(version, "gate").commit, tmp_path / "checkout"))
    today = records(ROOT)
    assert {"Release", "Accepted", "Live", "Plan"} <= set(older)
    lost = [f"{name}.{field}" for name, had in older.items() for field in had if field not in today.get(name, {})]
    unmarked = [
        f"{name}.{field}"
        for name, had in older.items()
        for field, marks in today.get(name, {}).items()
        if field not in had and "quiet" not in marks
    ]
    assert (lost, unmarked) == ([], [])
