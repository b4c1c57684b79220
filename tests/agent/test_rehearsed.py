"""The executor runs the first batch of each table before the second of any, and finishes what is whole after it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.agent.execution import backfill_step
from console.agent.execution.executor import PlanExecutor
from console.agent.receipts import step_receipts
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.model.event import Accepted, BatchDone, Fenced, StepDone, StepStarted
from console.model.live import Release
from console.model.step import Backfill
from tests.plans import bare_plan

LARGE, SMALL = (
    Backfill(materialization="feed", source="t", target=name, route="replay", sql="", time="ts", rows=1, bytes=1, days=1, batches=1)
    for name in ("large", "small")
)  # fmt: skip
SLICES = {LARGE.id: 3, SMALL.id: 1}


class TwoTables:
    """A rollout of two tables whose batches are one slice each. runs: (step, its slice) of every batch; dies_in: ends there"""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        recorder = Recorder(Rollouts(place, "web"))
        plan = bare_plan(
            steps=(LARGE, SMALL), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=())
        )
        steps = tuple((step.id, 1) for step in (LARGE, SMALL))
        recorder.accept("web-1", plan, Accepted(release="r1", was="", plan="p", by="ada", host="laptop", steps=steps))
        spark = SimpleNamespace(lost=False, ended="", session=lambda: None)
        self.context = RolloutContext(
            warehouse=place, spark=cast(Any, spark), releases=Releases(place, "web"), recorder=recorder,
            follower=cast(Any, None), keep_hours=1,
        )  # fmt: skip
        self.runs: list[tuple[str, int]] = []
        self.dies_in: tuple[str, int] | None = None
        monkeypatch.setattr(backfill_step, "build", self.build)
        monkeypatch.setattr(step_receipts, "store", lambda *_: None)

    def build(self, context: RolloutContext, step: Backfill, _: object, *, batches: int | None = None) -> None:
        of, store = SLICES[step.id], context.recorder.store
        if not any(fenced.step == step.id for fenced in context.recorder.events(Fenced)):
            store(Fenced(step=step.id, source="t", version=1, slices=of, rows=of))
        done = next(each.slices_done for each in context.recorder.status.steps if each.id == step.id)
        for position in range(done + 1, min(of, done + (batches or of)) + 1):
            if self.dies_in == (step.id, position):
                raise RolloutStopped
            self.runs.append((step.id, position))
            store(BatchDone(step=step.id, label="d", position=position, of=of, rows_in=1, rows_out=1, bytes=1, seconds=1.0, version=position))  # fmt: skip

    def run(self) -> None:
        PlanExecutor(self.context, lambda: None).run()

    def stored(self) -> list[tuple[str, str]]:
        events = self.context.recorder.progress()
        return [(type(each).__name__, each.step) for each in events if isinstance(each, StepStarted | StepDone)]


@pytest.fixture
def rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoTables:
    return TwoTables(tmp_path, monkeypatch)


ORDER = [(LARGE.id, 1), (SMALL.id, 1), (LARGE.id, 2), (LARGE.id, 3)]


def test_the_newest_days_of_both_tables_come_first_and_a_table_that_is_whole_then_is_done(rollout: TwoTables) -> None:
    rollout.run()
    assert rollout.runs == ORDER
    assert rollout.stored() == [
        ("StepStarted", LARGE.id), ("StepStarted", SMALL.id), ("StepDone", SMALL.id),
        ("StepStarted", LARGE.id), ("StepDone", LARGE.id),
    ]  # fmt: skip
    assert rollout.context.recorder.status.percent == 100


@pytest.mark.slow
@pytest.mark.parametrize("place", ORDER)
def test_stopped_before_any_batch_it_goes_on_from_there_and_repeats_none(
    rollout: TwoTables, place: tuple[str, int]
) -> None:
    rollout.dies_in = place
    rollout.run()
    assert rollout.runs == ORDER[: ORDER.index(place)]
    rollout.dies_in = None
    rollout.run()
    assert rollout.runs == ORDER
    assert all(step.state == "done" for step in rollout.context.recorder.status.steps)


@pytest.mark.slow
def test_a_sandbox_has_only_the_newest_days_and_rehearses_nothing(rollout: TwoTables) -> None:
    rollout.context = replace(rollout.context, newest_days=1)
    rollout.run()
    assert rollout.runs == [(LARGE.id, 1), (LARGE.id, 2), (LARGE.id, 3), (SMALL.id, 1)]
