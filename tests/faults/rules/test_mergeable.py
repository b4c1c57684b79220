"""When the states of an aggregate are merged, and when they are left alone because something may depend on their rows. No Java."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake import Field as DeltaField
from deltalake.schema import PrimitiveType

from console.agent.errors import MergeDiffers
from console.agent.feeds import app_ids
from console.agent.maintenance import maintainer
from console.agent.maintenance.compaction import Compacted, Crowd
from console.agent.maintenance.merge import Merge, Merged
from console.agent.maintenance.mergeable import Mergeable, NotMergeable
from console.agent.pipeline import PipelineController
from console.errors import Conflict
from console.model.event import Accepted, Entered
from console.model.live import Feed, Release, TableState, Version
from console.model.merging import Merging
from console.model.schema import Column
from console.model.step import Promote
from tests.faults.rules.tables import commit_rows, foreign, number, rows, state
from tests.faults.rules.test_maintainer import opened
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

COLUMNS = (Column(name="day", type="date"), Column(name="hits", type="bigint"))
SCHEMA = pa.schema([("day", pa.date32()), ("hits", pa.int64())])
MERGING = Merging(
    sql="SELECT day, CAST(sum(hits) AS BIGINT) AS hits FROM stored GROUP BY day", columns=("day", "hits"), keys=("day",)
)
INTO = Feed(
    materialization="days", source="landing", target="agg", sql="SELECT day, count(*) AS hits FROM landing GROUP BY day"
)
COMMITS = 4


def aggregate(merging: Merging | None = MERGING, path: str = "agg/a-1") -> TableState:
    made = state("agg", COLUMNS, kind="aggregate")
    return replace(made, version=replace(made.version, path=path), merging=merging)


def released(place: PipelineController, id: str, *tables: TableState, feeds: tuple[Feed, ...] = (INTO,)) -> None:
    landing = state("landing", kind="landing")
    release = Release(id=id, pipeline="web", digest="d", tables=(landing, *tables), feeds=feeds)
    place.releases.propose(release, f"web-{id[1:]}", "ada", "laptop")


@pytest.fixture
def controller(tmp_path: Path) -> PipelineController:
    """A live release with an aggregate of four commits in one day."""
    foreign(tmp_path / "landing", *(rows(n) for n in range(COMMITS)))
    path = str(tmp_path / "agg/a-1")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    made = opened(tmp_path)
    released(made, "r1", aggregate())
    made.releases.swap("", "r1", "ada", "laptop")
    for n in range(COMMITS):
        day = rows(n).select(["day"]).append_column("hits", pa.array([1], pa.int64()))
        commit_rows(path, app_ids.live_id(path, INTO), number(3, n), day)
    return made


def maintained(*controllers: PipelineController, failed: tuple[str, ...] = ()) -> maintainer.Maintainer:
    handle = SimpleNamespace(session=lambda: None, build_session=lambda: None, build_tasks=1)
    return maintainer.Maintainer(cast(Any, handle), lambda: controllers, lambda *_: None, lambda: failed)


def found(controller: PipelineController, *others: PipelineController, failed: tuple[str, ...] = ()) -> Any:
    return maintained(controller, *others, failed=failed)._mergeable(controller, str(controller.path("agg/a-1")))


def test_an_aggregate_without_readers_of_its_rows_is_merged_as_a_whole(controller: PipelineController) -> None:
    assert found(controller) == Mergeable(merging=MERGING, passed=COMMITS)
    assert maintained(controller)._mergeable(controller, str(controller.path("landing"))) is None


def test_nothing_is_merged_beside_a_rollout_or_at_its_gate(controller: PipelineController) -> None:
    live = controller.releases.in_state("live")
    assert live is not None
    plan = bare_plan(live="r1", steps=(Promote(),), release=live.release)
    accepted = Accepted(release="r2", was="r1", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
    controller.recorder.accept("web-2", plan, accepted)
    for at in ("backfilling", "awaiting-confirmation", "promoting"):
        controller.recorder.store(Entered(cast(Any, at)))
        assert found(controller) == NotMergeable("a rollout is under way")


def test_nothing_is_merged_while_a_pipeline_whose_readers_are_unknown_fails_to_load(
    controller: PipelineController,
) -> None:
    assert found(controller, failed=("shop",)) == NotMergeable("shop failed to load, and may read it")


def test_nothing_is_merged_that_another_pipeline_takes_for_rows(controller: PipelineController) -> None:
    """A history of its tables would be made of other rows than its feeds have read."""
    other = opened(controller.warehouse)
    other.pipeline = "shop"
    foreign_rows = state("agg", COLUMNS, kind="landing")
    taking = replace(foreign_rows, version=replace(foreign_rows.version, path=str(controller.warehouse / "agg/a-1")))
    release = Release(id="r1", pipeline="shop", digest="d", tables=(taking,), feeds=())
    other.releases = cast(
        Any,
        SimpleNamespace(
            all=lambda: (SimpleNamespace(release=release, row=SimpleNamespace(id="r1", state="live")),),
            in_state=lambda _: None,
        ),
    )
    assert found(controller, other) == NotMergeable("shop reads its stored rows")


@pytest.mark.parametrize(
    "other", [None, replace(MERGING, sql="SELECT day, max(hits) AS hits FROM stored GROUP BY day")]
)
def test_nothing_is_merged_unless_all_kept_releases_agree_how(
    controller: PipelineController, other: Merging | None
) -> None:
    released(controller, "r2", aggregate(other))
    assert found(controller) == NotMergeable("not every kept release records how all of its states unite")


def test_nothing_is_merged_of_a_table_with_a_column_that_its_release_does_not_name(
    controller: PipelineController,
) -> None:
    DeltaTable(str(controller.path("agg/a-1"))).alter.add_columns(DeltaField("more", PrimitiveType("long")))
    assert found(controller) == NotMergeable("it stores other columns than its release names")


def test_only_what_every_feed_below_has_passed_is_merged(controller: PipelineController) -> None:
    """No plan makes such a feed today (C008); a release that has one is read as any other."""
    path = str(controller.path("below/b-1"))
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    below = state("below", COLUMNS)
    feed = Feed(materialization="on", source="agg", target="below", sql="SELECT day, hits FROM agg")
    moved = replace(below, version=Version(content="c", path="below/b-1", columns=COLUMNS, partition_by=("day",)))
    released(controller, "r2", aggregate(), moved, feeds=(INTO, feed))
    assert found(controller) == Mergeable(merging=MERGING, passed=-1)
    commit_rows(path, app_ids.live_id(path, feed), number(1, 2), SCHEMA.empty_table())
    assert found(controller) == Mergeable(merging=MERGING, passed=2)


CROWD = Crowd((("day", "2026-11-01"),), COMMITS, COMMITS, 1)


def passes(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch, merging: Callable[[Any, Merge], Merged | None]
) -> tuple[maintainer.Maintainer, list[str]]:
    """A maintainer with these merges, and the tables that it compacted instead."""
    compacted: list[str] = []

    def compact(_: Any, table: str, crowd: Crowd, *__: Any) -> Compacted:
        compacted.append(table)
        return Compacted(crowd, 1, 9)

    monkeypatch.setattr(maintainer, "compact", compact)
    monkeypatch.setattr(maintainer, "merge", merging)
    monkeypatch.setattr(maintainer, "vacuum", lambda *_: None)
    return maintained(controller), compacted


def results(made: maintainer.Maintainer, controller: PipelineController, **more: Any) -> list[tuple[str, str]]:
    done = made.run(controller, maintainer.MaintenanceRequest(many=COMMITS, **more))
    return [(each.what, each.detail) for each in done if each.table == "agg" and each.what != "vacuumed"]


def test_a_pass_merges_aggregates_and_says_what_it_did_and_would_do(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Merge] = []

    def merge(_: Any, wanted: Merge) -> Merged:
        asked.append(wanted)
        return Merged(files=4, rows=4, new_files=1, new_rows=1, version=5)

    made, compacted = passes(controller, monkeypatch, merge)
    assert results(made, controller, dry_run=True) == [("merged", "day=2026-11-01: 4 files")]
    assert results(made, controller) == [("merged", "day=2026-11-01: 4 files to 1, 4 states to 1, in version 5")]
    (wanted,) = asked
    assert (wanted.passed, wanted.merging, wanted.refused(), compacted) == (COMMITS, MERGING, "", [])
    # its commit asks again: what has begun meanwhile refuses it
    released(controller, "r2", aggregate(None))
    assert wanted.refused() == "not every kept release records how all of its states unite"


def test_what_must_not_be_merged_is_compacted_and_keeps_its_rows(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, compacted = passes(controller, monkeypatch, lambda *_: None)
    assert results(made, controller)[0][0] == "compacted"  # no key has two rows
    released(controller, "r2", aggregate(None))
    ((what, detail),) = results(made, controller)
    assert what == "compacted"
    assert detail.endswith("its states are not merged: not every kept release records how all of its states unite")
    assert compacted == [controller.path("agg/a-1")] * 2


def test_states_that_did_not_unite_to_their_values_are_never_tried_again(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def merge(_: Any, wanted: Merge) -> Merged:
        tried.append(wanted.table)
        raise MergeDiffers("1 keys have another hits")

    made, compacted = passes(controller, monkeypatch, merge)
    with pytest.raises(MergeDiffers):
        results(made, controller)
    ((what, detail),) = results(made, controller)
    assert (what, "another hits" in detail) == ("compacted", True)
    assert (len(tried), len(compacted)) == (1, 1)


def test_a_merge_that_was_refused_at_its_commit_is_left_for_the_next_pass(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    def merge(_: Any, wanted: Merge) -> Merged:
        raise Conflict("a rollout is under way", code="E_BUSY")

    made, compacted = passes(controller, monkeypatch, merge)
    ((what, detail),) = results(made, controller)
    assert (what, "a rollout is under way" in detail, compacted) == ("left", True, [])
