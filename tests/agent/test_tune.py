"""Limits of a running rollout: changed by an operator, stored, kept by the next agent, refused if they are invalid."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.agent.execution import backfill_step
from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.receipts.cross_check import cross_check
from console.agent.receipts.step_receipts import ops_of
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.notes import leave_note
from console.agent.settings import Settings
from console.agent.store.ledger import Rollouts
from console.errors import Conflict, DataError
from console.model.event import Accepted, BatchDone, Ended, Failed, Logged, Paused
from console.model.incident import Tuned
from console.model.live import Release
from console.model.tuning import AS_PLANNED, Tuning
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

PLAN = bare_plan(live="r1", steps=(), rows_limit=5000, release=Release(id="r2", pipeline="web", digest="d", tables=(), feeds=()))  # fmt: skip
TUNING = Tuning(target_seconds=20.0, rows=900)


def controller(place: Path) -> PipelineController:
    spark = cast(
        Any,
        SimpleNamespace(
            session=lambda **_: None,
            live_session=lambda **_: None,
            give_up=lambda _: None,
            lost=False,
            started=False,
        ),
    )
    return PipelineController(place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))


def paused(place: Path) -> PipelineController:
    """r1 is live, and the rollout of r2 is paused."""
    made = controller(place)
    made.releases.propose(Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()), "web-1", "ada", "laptop")
    made.releases.swap("", "r1", "ada", "laptop")
    accepted = Accepted(release="r2", was="r1", plan=PLAN.digest(), by="ada", host="laptop", steps=())
    made.recorder.accept("web-2", PLAN, accepted)
    made.recorder.store(Paused("ada"))
    return made


def test_a_change_is_stored_with_who_made_it_and_the_next_agent_keeps_it(tmp_path: Path) -> None:
    made = paused(tmp_path)
    status = made.tune(TUNING, "ada", "ops2")
    assert status.tuning == TUNING
    (line,) = made.recorder.events(Logged)
    assert line.text == "ada from ops2: target_seconds 60 → 20, rows 5,000 → 900"
    assert line.incident == Tuned(by="ada", host="ops2", tuning=TUNING)
    following = controller(tmp_path)
    assert following.recorder.status.tuning == TUNING
    assert following.recorder.status.plan == PLAN.digest()
    plan = following.recorder.plan
    assert plan is not None
    assert plan.digest() == PLAN.digest()
    assert following.tune(Tuning(lag=30.0), "bob", "tower").tuning == Tuning(target_seconds=20.0, rows=900, lag=30.0)
    assert following.tune(Tuning(), "bob", "tower", reset=True).tuning == AS_PLANNED
    before = following.recorder.status.seq
    assert following.tune(Tuning(), "bob", "tower", reset=True).seq == before, "nothing changes, nothing is stored"


def checked(made: PipelineController) -> tuple[bool | None, str]:
    """What `verify` finds about the changed limits."""
    plan = made.recorder.plan
    assert plan
    findings, _ = cross_check(made.rollouts.events("web-2"), plan, ops_of(made.warehouse, "web").rows("web-2"))
    results = {finding.what: finding for finding in findings}
    assert results["decisions"].ok is True, "rows of ops are those that 0.1.0 expects"
    return (results["limits"].ok, results["limits"].detail) if "limits" in results else (None, "")


def test_verify_names_who_changed_which_limit_and_notices_a_line_that_says_something_else(tmp_path: Path) -> None:
    made = paused(tmp_path)
    assert checked(made) == (None, "")
    made.tune(TUNING, "ada", "ops2")
    made.tune(Tuning(), "bob", "tower", reset=True)
    ok, detail = checked(made)
    assert ok is True
    assert "target_seconds 60 → 20, rows 5,000 → 900 by ada from ops2; target_seconds 20 → 60" in detail
    assert "by bob from tower" in detail
    made.recorder.store(Logged("bob from tower: lag none → 5", "info", Tuned(by="ada", host="ops2", tuning=TUNING)))
    assert checked(made) == (False, "lines and values of changed limits differ (events 5)")


def test_neither_a_note_nor_changed_limits_renew_the_age_of_a_failure(tmp_path: Path) -> None:
    made = paused(tmp_path)
    before = made.recorder.store(Failed("backfill/requests/parse", "disk full")).at
    made.tune(TUNING, "ada", "ops2")
    for _ in range(2):
        status = leave_note(made, "asked for more disk", "ada", "ops2")
    assert (status.changed, status.held, len(status.notes)) == (before, "failed", 1)
    assert controller(tmp_path).recorder.status.notes == status.notes


@pytest.mark.parametrize(
    "change",
    [Tuning(target_seconds=0.1), Tuning(rows=0), Tuning(hours="8-9"), Tuning(query="SELECT 1", tables=("nowhere",))],
)
def test_the_agent_itself_refuses_what_is_out_of_range(change: Tuning, tmp_path: Path) -> None:
    made = paused(tmp_path)
    with pytest.raises(DataError) as refused:
        made.tune(change, "ada", "ops2")
    assert refused.value.code == "E_RANGE"
    assert made.recorder.status.tuned is None


def test_without_a_rollout_under_way_there_is_nothing_to_tune(tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="nothing is under way"):
        controller(tmp_path).tune(TUNING, "ada", "ops2")
    made = paused(tmp_path)
    made.recorder.store(Ended("cancelled", "ada"))
    with pytest.raises(Conflict):
        made.tune(TUNING, "ada", "ops2")


def test_the_next_batch_is_sized_by_what_was_changed(tmp_path: Path) -> None:
    made = paused(tmp_path)
    context = RolloutContext(
        warehouse=tmp_path, spark=cast(Any, None), releases=made.releases, recorder=made.recorder, follower=cast(Any, None), keep_hours=1
    )  # fmt: skip
    done = BatchDone(
        step="s", label="x", position=1, of=9, rows_in=1000, rows_out=1000, bytes=1, seconds=10.0, version=1
    )  # fmt: skip
    result = cast(Any, SimpleNamespace(rows_in=done.rows_in, seconds=done.seconds))
    assert backfill_step._budget(context, 4000.0, result) == 5000, "the plan's limit; its rate would allow 6,000"
    made.tune(Tuning(target_seconds=20.0), "ada", "ops2")
    assert backfill_step._budget(context, 4000.0, result) == 2000
    made.tune(Tuning(rows=900), "ada", "ops2")
    assert backfill_step._budget(context, 4000.0, result) == 900
    made.tune(Tuning(rows=-1, target_seconds=120.0), "ada", "ops2")
    assert backfill_step._budget(context, 4000.0, result) == 12_000


KILLED = """
import sys
from pathlib import Path
from tests.agent.test_tune import TUNING, controller
controller(Path(sys.argv[1])).tune(TUNING, "ada", "ops2")
"""


@pytest.mark.parametrize("at", ["before-Tuned", "after-Tuned"])
def test_killed_as_it_is_stored_it_holds_or_it_does_not(at: str, tmp_path: Path) -> None:
    paused(tmp_path)
    armed = tmp_path / "armed"
    armed.mkdir()
    (armed / at).touch()
    environment = {**os.environ, "CONSOLE_CRASH_DIR": str(armed), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stdout + killed.stderr
    assert Rollouts(tmp_path, "web").status().tuning == (TUNING if at.startswith("after") else AS_PLANNED)
    assert controller(tmp_path).tune(TUNING, "ada", "ops2").tuning == TUNING
