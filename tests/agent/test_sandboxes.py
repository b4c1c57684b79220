"""Sandboxes in their agent, without Java: their stored state, the protection of their files, and when these are deleted."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.execution.executor import PlanExecutor
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance.erased_rows import ErasedRowsSearch
from console.agent.maintenance.maintainer import needs
from console.agent.pipeline import PipelineController
from console.agent.resilience.quarantine import Quarantine
from console.agent.sandboxes.store import SandboxStore
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Rollouts
from console.errors import Conflict, DataError, RegionError
from console.model.event import Accepted, Fenced, Logged, StepDone
from console.model.live import Relay, Release
from console.model.plan import Plan
from console.model.receipt import LEDGER
from console.model.sandbox import Sandbox, SandboxOrder
from console.model.sandbox_plan import own_paths
from console.model.step import AddColumns, CreateTable
from tests.model.test_sandbox_plan import COLUMNS, plan

pytestmark = pytest.mark.slow
HOUR = 3600.0


def opened(place: Path) -> PipelineController:
    """The pipeline as a fresh agent finds it."""
    spark = SparkHandle(Settings(region="eu"), -1)
    return PipelineController(place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))


def order(name: str, *, days: int = 1, hours: float = 1.0) -> SandboxOrder:
    now = time.time()
    return SandboxOrder(name=name, days=days, at=now, expires=now + hours * HOUR, by="ada", host="laptop")


def first_plan() -> Plan:
    """Before anything is live: without `kept`, which is live's."""
    tables = tuple(state for state in plan().release.tables if state.table.name != "kept")
    return replace(plan(), live="", release=replace(plan().release, tables=tables, feeds=plan().release.feeds[:2]))


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A landing table, and nothing is live; builds do nothing, for which Java is needed."""
    (tmp_path / "_console").mkdir()
    (tmp_path / "_console" / "marker.json").write_text("{}")
    make(tmp_path, "events")
    monkeypatch.setattr(PlanExecutor, "run", lambda _: None)
    return tmp_path


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """r1 is live, with a version of `kept`; builds do nothing, for which Java is needed."""
    (tmp_path / "_console").mkdir()
    (tmp_path / "_console" / "marker.json").write_text("{}")
    controller = opened(tmp_path)
    release = replace(plan().release, id="r1", tables=plan().release.tables[:2], feeds=plan().release.feeds[2:])
    controller.releases.propose(release, "web-1", "ada", "laptop")
    controller.releases.swap("", "r1", "ada", "laptop")
    make(tmp_path, "kept/k-1")
    monkeypatch.setattr(PlanExecutor, "run", lambda _: None)
    return tmp_path


def make(place: Path, path: str) -> None:
    if not (place / path).exists():
        write_deltalake(str(place / path), pa.table({"id": ["e1"]}))


def made(place: Path, controller: PipelineController, name: str, *, days: int = 1, what: Plan | None = None) -> Sandbox:
    sandbox = controller.preview(what or plan(), order(name, days=days))
    for path in own(controller, name):
        make(place, path)
    return sandbox


def own(controller: PipelineController, name: str) -> frozenset[str]:
    stored = controller.sandboxes.store.plan(name)
    assert stored is not None
    return own_paths(stored)


def on_disk(place: Path) -> set[str]:
    return {f"{each.parent.name}/{each.name}" for each in place.glob("*/*") if each.parent.name != "_console"}


def test_sandboxes_stand_side_by_side_and_the_next_agent_finds_them(region: Path) -> None:
    controller = opened(region)
    assert made(region, controller, "one").state == "building"
    made(region, controller, "two")
    again = opened(region)
    again.resume()
    assert [each.name for each in again.sandboxes.listed()] == ["one", "two"]
    assert again.readable("one").id == "one"
    assert again.readable().id == "r1"
    assert not own(again, "one") & own(again, "two")
    assert SandboxStore(region, "web").listed(again.releases) == again.sandboxes.listed()  # where no agent runs
    with pytest.raises(DataError, match=r"no preview 'three' \(there is: one, two\)"):
        again.readable("three")


def test_an_older_console_reads_neither_its_release_nor_its_events(region: Path) -> None:
    made(region, opened(region), "one")
    assert Rollouts(region, "web").latest() == ""
    assert [stored.row.state for stored in opened(region).releases.all()] == ["live"]
    assert not list((region / "_console").glob("*/rollouts"))  # the pipelines that it would load
    file = json.loads((region / "_console" / "web" / "previews" / "one" / "preview.json").read_text())
    assert file["format_version"] == 1


def test_what_is_dropped_leaves_nothing_and_live_s_own_version_stays(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    made(region, controller, "two")
    gone = own(controller, "one")
    assert set(controller.drop_preview("one")) == gone
    assert on_disk(region) == {"kept/k-1", *own(controller, "two")}
    assert not (region / "_console" / "web" / "previews" / "one").exists()
    controller.drop_preview("two")
    assert on_disk(region) == {"kept/k-1"}


def test_a_drop_that_was_broken_off_is_finished_by_the_next_agent(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    store = controller.sandboxes.store
    store.write(replace(store.orders()[0], dropping=True))
    (store.path / "unborn" / "rollouts").mkdir(parents=True)  # an agent died before it had stored the order
    again = opened(region)
    assert SandboxStore(region, "web").listed(again.releases) == ()
    again.resume()
    assert on_disk(region) == {"kept/k-1"}
    assert list(store.path.iterdir()) == []


def test_one_that_expires_is_dropped_and_asking_again_keeps_it(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    made(region, controller, "two")
    path = own(controller, "one")
    controller.preview(plan(rows=77), order("one", hours=5))
    assert own(controller, "one") == path
    assert not controller.sandboxes.due(time.time() - 1) or controller.sandboxes.tick(time.time()) == ()
    assert controller.sandboxes.tick(time.time() + 2 * HOUR) == ("two",)
    assert [each.name for each in controller.sandboxes.listed()] == ["one"]


def test_another_change_or_more_days_under_its_name_replaces_it(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one", days=2)
    first = own(controller, "one")
    controller.preview(plan(), order("one"))
    assert own(controller, "one") == first  # it has that day
    made(region, controller, "one", days=3)
    second = own(controller, "one")
    assert on_disk(region) == {"kept/k-1", *second}
    controller.preview(replace(plan(), desired="other"), order("one"))
    assert not own(controller, "one") & (first | second)
    assert on_disk(region) == {"kept/k-1"}


def test_what_cannot_be_previewed_is_refused_with_a_reason(region: Path) -> None:
    controller = opened(region)
    with pytest.raises(Conflict, match="live is r1") as stale:
        controller.preview(replace(plan(), live="r9"), order("one"))
    assert stale.value.code == "E_STALE"
    with pytest.raises(Conflict, match="starts from no release, but live is r1"):
        controller.preview(replace(plan(), live=""), order("one"))
    relay = Relay(table="events", older="events", forward="", backward="", columns=())
    needed = plan(steps=(AddColumns("events", COLUMNS),))
    with pytest.raises(DataError, match="version of the landing table events needs columns") as refused:
        controller.preview(replace(needed, release=replace(needed.release, relays=(relay,))), order("one"))
    assert refused.value.code == "E_PREVIEW"
    assert controller.sandboxes.listed() == ()


def test_a_first_release_is_previewed_and_its_rollout_goes_on_from_there(empty: Path) -> None:
    controller, first = opened(empty), first_plan()
    missing = replace(first, steps=(CreateTable("events"), *first.steps))
    with pytest.raises(DataError, match="the landing table events does not exist yet"):
        controller.preview(missing, order("one"))
    assert made(empty, controller, "one", what=first).live == ""
    assert controller.releases.in_state("live") is None
    assert controller.readable("one").id == "one"
    paths = own(controller, "one")
    controller.accept(first, "ada", "laptop")
    assert controller.recorder.plan is not None
    assert own_paths(controller.recorder.plan) == paths
    assert [each.state for each in controller.sandboxes.listed()] == ["adopted"]
    assert controller.drop_preview("one") == ()
    assert all((empty / path).is_dir() for path in (*paths, "events"))


def test_a_first_release_that_was_only_previewed_leaves_its_landing_table(empty: Path) -> None:
    controller = opened(empty)
    made(empty, controller, "one", what=first_plan())
    paths = own(controller, "one")
    assert set(controller.drop_preview("one")) == paths
    assert [(empty / path).is_dir() for path in (*paths, "events")] == [False, False, True]


def test_a_rollout_goes_on_from_it_and_its_fence_is_stored_with_the_acceptance(
    region: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = opened(region)
    made(region, controller, "one")
    sandbox = controller.sandboxes.opened()[0]
    fence = Fenced(step="backfill/requests/to_requests", source="events", version=4, slices=9, rows=90)
    sandbox.recorder.store(fence)
    paths = own(controller, "one")

    rollout = controller.accept(plan(), "ada", "laptop")
    stored = controller.recorder.plan
    assert stored is not None
    assert own_paths(stored) == paths
    first, second, third = controller.rollouts.events(rollout)
    assert isinstance(first.event, Accepted)
    assert second.event == fence
    assert third.event == Logged("continues from preview one: requests, seen")
    assert [each.seq for each in (first, second, third)] == [1, 2, 3]
    commits = list((controller.rollouts.path / "_delta_log").glob("*.json"))
    assert len(commits) == 1  # an agent that dies after it finds all of them, or none
    assert controller.sandboxes.listed()[0].state == "adopted"

    controller.drop_preview("one")
    assert paths <= on_disk(region)  # they are the rollout's


def test_a_cancelled_rollout_leaves_the_sandbox_that_it_went_on_from(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    controller.accept(plan(), "ada", "laptop")
    controller.control("cancel", "ada")
    assert own(controller, "one") <= on_disk(region)
    assert controller.sandboxes.listed()[0].state == "building"


def test_versions_that_only_a_sandbox_names_go_with_it_and_not_with_a_cleanup(region: Path) -> None:
    """Its unchanged tables are those of the release that was live when it was made."""
    controller = opened(region)
    made(region, controller, "one")
    for number in (2, 3):
        release = Release(id=f"r{number}", pipeline="web", digest="e", tables=(), feeds=())
        controller.releases.propose(release, f"web-{number}", "ada", "laptop")
        controller.releases.swap(f"r{number - 1}", release.id, "ada", "laptop")
    assert controller.cleanup("ada", dry_run=False, previous=False) == ()
    assert "kept/k-1" in on_disk(region)
    assert set(controller.drop_preview("one")) > {"kept/k-1"}
    assert on_disk(region) == set()


def test_the_files_of_its_fence_are_needed_until_it_is_gone(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    fence = Fenced(step="backfill/requests/to_requests", source="events", version=4, slices=9, rows=90)
    controller.sandboxes.opened()[0].recorder.store(fence)
    path = controller.path("events")
    assert any("preview one" in need.why and need.version == 4 for need in needs([controller])[path])
    controller.drop_preview("one")
    assert not any("preview" in need.why for need in needs([controller])[path])


def test_a_build_beside_a_release_that_is_live_no_longer_ends(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    release = Release(id="r2", pipeline="web", digest="e", tables=(), feeds=())
    controller.releases.propose(release, "web-2", "ada", "laptop")
    controller.releases.swap("r1", "r2", "ada", "laptop")
    executor = controller.sandboxes.opened()[0].executor
    assert executor is not None
    with pytest.raises(RegionError, match="beside r1, and r2 is live by now"):
        executor.context.live()


def test_rows_that_its_build_left_out_are_listed_until_it_is_dropped(region: Path) -> None:
    """The next one of its name would otherwise find them recorded; those of a rollout stay."""
    controller = opened(region)
    made(region, controller, "one")
    made(region, controller, "two")
    folder = region / "_console" / "web"
    names = ["web-one-0", "web-one-0", "web-two-0", "web-1"]
    columns = {name: [None] * len(names) for name in LEDGER["quarantine"]} | {"rollout": names}
    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in LEDGER["quarantine"].items()])
    write_deltalake(str(folder / "quarantine"), pa.table(columns, schema))
    assert {each.recorder.rollout for each in controller.sandboxes.opened()} == {"web-one-0", "web-two-0"}
    controller.drop_preview("one")
    left = DeltaTable(str(folder / "quarantine")).to_pyarrow_table().column("rollout").to_pylist()
    assert sorted(left) == ["web-1", "web-two-0"]
    controller.drop_preview("two")
    assert [len(Quarantine(folder).rows(name)) for name in ("web-two-0", "web-1")] == [0, 1]


def test_a_sandbox_of_a_change_that_moves_no_row_is_ready_at_once(region: Path) -> None:
    controller = opened(region)
    still = replace(plan(), steps=(), release=replace(plan().release, tables=plan().release.tables[:2]))
    assert controller.preview(still, order("text")).state == "ready"
    controller.drop_preview("text")
    assert on_disk(region) == {"kept/k-1"}


def test_it_is_ready_when_its_steps_are_done(region: Path) -> None:
    controller = opened(region)
    made(region, controller, "one")
    sandbox = controller.sandboxes.opened()[0]
    for step in sandbox.plan.steps:
        sandbox.recorder.store(StepDone(step.id))
    assert controller.sandboxes.listed()[0].state == "ready"


def test_a_preview_with_rows_that_were_erased_from_live_is_listed_until_it_is_dropped(region: Path) -> None:
    controller = opened(region)
    tables = tuple(
        replace(each, version=replace(each.version, path="requests/q-2")) if each.table.name == "requests" else each
        for each in plan().release.tables[:3]
    )
    release = replace(plan().release, id="r2", tables=tables, feeds=())
    controller.releases.propose(release, "web-2", "ada", "laptop")
    controller.releases.swap("r1", "r2", "ada", "laptop")
    make(region, "requests/q-2")
    made(region, controller, "one", what=replace(plan(), live="r2"))
    search = ErasedRowsSearch(controllers=lambda: (controller,), keep_hours=1.0, report=print)
    assert search.look(controller) == ()
    time.sleep(0.01)
    DeltaTable(str(region / "requests/q-2")).delete()
    (listed,) = (each for each in search.look(controller) if each.keeper == "preview")
    assert (listed.table, listed.name, listed.files) == ("requests", "one", 1)
    assert listed.until == pytest.approx(time.time() + HOUR, abs=60)
    controller.drop_preview("one")
    assert {each.keeper for each in search.look(controller)} == {"removed"}
