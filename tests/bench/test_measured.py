"""The tools of the benches: what a rollout's parts cost by its events, processor time of a process tree, and readers that see what is torn."""

import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.store.ledger import Releases
from console.model.event import BatchStarted, Entered, Event, Logged, Recorded, StepDone, StepStarted
from console.model.live import TableState
from console.model.step import Backfill, CatchUp, Validate
from tests.bench import measured_region
from tests.bench.alternation_readers import LiveReader
from tests.bench.alternations_process import files
from tests.bench.demo_rows import below, land
from tests.bench.demo_rows import files as demo_files
from tests.bench.measured_region import MeasuredRegion, Phase, RolloutCosts
from tests.bench.processor_time import of_tree

pytestmark = pytest.mark.slow
FEW = 8  # tables


@pytest.fixture
def region(tmp_path: Path) -> MeasuredRegion:
    """Two tables below one that is fed from an empty landing table; its agent has not started."""
    region = MeasuredRegion(tmp_path / "region")
    region.deploy(files(2, wider=False, tables=FEW))
    return region


def test_an_edition_rebuilds_its_tables_and_compares_every_other_column(tmp_path: Path) -> None:
    region = MeasuredRegion(tmp_path)
    land(region.landing, 300, 30)
    region.deploy(demo_files() | below())
    steps = region.plan(demo_files(1) | below(1)).steps
    assert [(step.target, step.route, step.days) for step in steps if isinstance(step, Backfill)] == [
        ("requests", "replay", 30)
    ]
    assert [step.target for step in steps if isinstance(step, CatchUp) and step.start == "log"] == ["visits", "sizes"]
    (validate,) = [step for step in steps if isinstance(step, Validate)]
    assert {each.table: len(each.pairs) for each in validate.comparisons} == {"requests": 23, "visits": 9, "sizes": 4}
    assert DeltaTable(str(region.landing)).count() == 300


def test_a_region_for_alternations_shares_the_tables_that_are_rebound(region: MeasuredRegion) -> None:
    release = region.plan(files(2, wider=True, tables=FEW)).release
    assert len(release.tables) == FEW
    assert [feed.target for feed in release.feeds if feed.moved] == ["shared_0", "shared_1"]


def test_each_part_of_a_rollout_costs_what_was_spent_since_the_event_before(
    region: MeasuredRegion, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = region.plan(files(2, wider=True, tables=FEW))
    build = next(step.id for step in plan.steps if isinstance(step, Backfill))
    catch_up = next(step.id for step in plan.steps if isinstance(step, CatchUp))
    validate = next(step.id for step in plan.steps if isinstance(step, Validate))
    batch = BatchStarted(step=build, label="all", first=1, last=1, of=1, rows=1)
    costs: list[tuple[float, Event]] = [
        (1, StepStarted(build)),
        (2, batch),
        (4, Logged("meanwhile")),
        (8, StepDone(build)),
        (16, StepStarted(catch_up)),
        (32, Logged("meanwhile")),
        (64, StepDone(catch_up)),
        (128, Entered("validating")),
        (256, StepStarted(validate)),
        (512, StepDone(validate)),
    ]
    clock = iter([0.0, *accumulate(seconds for seconds, _ in costs)])
    monkeypatch.setattr(measured_region, "of_tree", lambda: next(clock))
    heard = RolloutCosts(plan)
    for _, event in costs:
        heard.hear(Recorded("web-1", 1, 0.0, event))
    # from the end of one step to the next event counts for the step that has ended
    assert {phase: heard.phase(phase) for phase in Phase} == {
        Phase.BATCHES: 2 + 4 + 16,
        Phase.CATCHING_UP: 32 + 128,
        Phase.RECEIPTS: 8 + 64,
        Phase.CHECKS: 512,
        Phase.OTHER: 1 + 256,
    }
    assert (heard.table("copy"), heard.total) == (254, 1023)


def test_the_tree_s_processor_time_has_that_of_a_child_while_it_runs_and_once_it_has_ended() -> None:
    code = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"
    before = of_tree()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        while_running = of_tree() - before
        child.communicate(b"\n")
    ended = of_tree() - before
    assert 0.45 < while_running < 1.5
    assert 0.45 < ended < 1.5


def rows(number: int) -> pa.Table:
    return pa.table({"id": [f"e{n}" for n in range(number)]})


def append(path: str, number: int) -> None:
    schema = pa.schema(DeltaTable(path).schema().to_arrow())
    missing = {field.name: pa.nulls(number, field.type) for field in schema if field.name != "id"}
    write_deltalake(path, pa.table({"id": rows(number)["id"], **missing}, schema), mode="append", partition_by=["day"])


def elsewhere(state: TableState) -> TableState:
    return replace(state, version=replace(state.version, path=f"other/{state.table.name}"))


def seen(reader: LiveReader) -> str:
    """What one read finds wrong."""
    try:
        return "; ".join(reader._read())
    except Exception as error:
        return f"failed: {type(error).__name__}"


class TestReaders:
    """A reader of one release, whose tables are spoilt between two reads."""

    @pytest.fixture
    def reader(self, region: MeasuredRegion) -> LiveReader:
        for name in ("copy", "shared_0", "shared_1"):
            append(self.path(region, name), 10)
        reader = LiveReader(region.warehouse, seed=1)
        assert [seen(reader), seen(reader)] == ["", ""]
        return reader

    @staticmethod
    def path(region: MeasuredRegion, name: str) -> str:
        from console import open_release

        return open_release(warehouse=region.warehouse, pipeline="web").path(name)

    def test_more_rows_are_well(self, region: MeasuredRegion, reader: LiveReader) -> None:
        append(self.path(region, "copy"), 5)
        assert seen(reader) == ""

    def test_fewer_rows_than_before_are_torn(self, region: MeasuredRegion, reader: LiveReader) -> None:
        DeltaTable(self.path(region, "shared_0")).delete("id = 'e3'")
        assert seen(reader) == "shared_0: 9 rows, 10 before"

    def test_a_table_that_is_ahead_of_the_one_above_is_torn(self, region: MeasuredRegion, reader: LiveReader) -> None:
        append(self.path(region, "shared_1"), 1)
        assert seen(reader) == "shared_1: 11 rows of 10 above"

    def test_other_columns_than_the_release_s_are_torn(self, region: MeasuredRegion, reader: LiveReader) -> None:
        path = self.path(region, "copy")
        write_deltalake(
            path, rows(1).append_column("odd", pa.array([1])), mode="append", schema_mode="merge", partition_by=["day"]
        )
        assert "copy: columns ['odd']" in seen(reader)

    def test_fewer_rows_than_in_the_release_before_are_behind(self, region: MeasuredRegion, reader: LiveReader) -> None:
        releases = Releases(region.warehouse, "web")
        (live,) = [stored.release for stored in releases.all()]
        other = replace(live, id="r2", tables=tuple(map(elsewhere, live.tables)))
        for state in other.tables:
            shutil.copytree(self.path(region, state.table.name), region.warehouse / state.version.path)
        for name in ("shared_0", "copy"):
            append(self.path(region, name), 2)
        assert (seen(reader), reader.counts["behind"]) == ("", 0)
        releases.propose(other, "web-2", "ada", "ops")
        releases.swap(live.id, "r2", "ada", "ops")
        assert (seen(reader), reader.counts["behind"]) == ("", 1)
        assert reader.notes == ["behind: r2: shared_0: 2 rows; copy: 2 rows"]

    def test_a_table_that_is_gone_is_a_failed_read(self, region: MeasuredRegion, reader: LiveReader) -> None:
        shutil.rmtree(self.path(region, "copy"))
        assert seen(reader).startswith("failed: ")
