"""A stopped feed, and the releases that repair it: validated, promoted and rolled back over real logs. No Java."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.execution import validation
from console.agent.execution.validation import _complete
from console.agent.feeds import app_ids
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance import maintainer
from console.agent.pipeline import PipelineController
from console.agent.rollout.declared import declare
from console.agent.rollout.recorder import Recorder
from console.agent.settings import Settings
from console.agent.store import log
from console.agent.store.ledger import Rollouts
from console.errors import AtGate, DataError, FeedStopped
from console.model.consent import CheckAccepted
from console.model.event import Accepted, BatchDone, Checked, Fenced, Waiting
from console.model.live import Feed, Release
from console.model.schema import OnRewrite
from console.model.step import Backfill, CatchUp, Comparison, Pair, Promote, Step, Validate
from tests.agent.copying import by_arrow
from tests.faults.rules.tables import SCHEMA, column_values, commit_rows, copying_feed, foreign, number, rows, state
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

FEED = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")
COMPARED = Validate((Comparison(table="copy", pairs=(Pair("n", "n"),), time="day"),))


def release(id: str, copy: str, on_rewrite: OnRewrite = "stop") -> Release:
    landing, made = state("landing", kind="landing", on_rewrite=on_rewrite), state("copy")
    return Release(
        id=id,
        pipeline="web",
        digest="d",
        tables=(landing, replace(made, version=replace(made.version, path=copy))),
        feeds=(FEED,),
    )


class Region:
    """r1 is live, and its one feed stands in front of version 3 of landing, by which somebody deleted a row."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.landing = foreign(place / "landing", rows(0), rows(1), rows(2))
        DeltaTable(self.landing).delete("n = 1")
        write_deltalake(self.landing, rows(9), mode="append", partition_by=["day"])
        self.table("copy/a-1", 0)
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
        self.follower = FeedFollower(spark, 0.01, lambda *_: None)
        self.line = PipelineController(place, "web", spark, self.follower, Settings(region="eu"))
        self.live = ""
        self.promoted(release("r1", "copy/a-1"))

    def promoted(self, wanted: Release) -> None:
        """A release that was live before anything here begins."""
        self.line.releases.propose(wanted, "web-1", "ada", "laptop")
        self.line.releases.swap(self.live, wanted.id, "ada", "laptop")
        self.live = wanted.id
        self.line.resume()

    def table(self, path: str, position: int, *data: int, feed: Feed = FEED) -> str:
        """A version whose feed stands at a position of landing."""
        place = str(self.place / path)
        DeltaTable.create(place, schema=SCHEMA, partition_by=["day"])
        commit_rows(place, app_ids.live_id(place, feed), number(1, position), rows(*data))
        return place

    def build(self, wanted: Release, *steps: Step, start: bool = True) -> None:
        """Accept a plan for a release, and carry it up to the gate or to what it fails by."""
        plan = bare_plan(live=self.live, steps=(*steps, Promote()), release=wanted)
        self.line.releases.propose(wanted, "web-2", "ada", "laptop")
        messages = tuple((step.id, 0) for step in plan.steps)
        self.line.recorder.accept(
            "web-2",
            plan,
            Accepted(release=wanted.id, was=self.live, plan="digest", by="ada", host="laptop", steps=messages),
        )
        if start:
            self.follower.start()
            self.until(lambda: self.stands() == "E_REWRITE")
        self.line.resume()
        if start:
            self.until(lambda: self.line.recorder.status.shown in ("awaiting-confirmation", "failed"))

    def stands(self) -> str:
        (feed, *_) = self.follower.feeds("web")
        return feed.health.stopped.code if feed.health.stopped else ""

    def until(self, true: Any) -> None:
        end = time.monotonic() + 60
        while not true() and time.monotonic() < end:
            time.sleep(0.01)
        assert true(), self.line.recorder.status

    def has(self, path: str) -> list[int]:
        return column_values(str(self.place / path))


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Region]:
    by_arrow(monkeypatch)
    made = Region(tmp_path)
    yield made
    made.follower.stop()
    made.line.halt()
    if made.follower.is_alive():
        made.follower.join(30)


def test_a_release_that_lets_the_delete_pass_is_promoted_and_its_feed_goes_on(region: Region) -> None:
    region.build(release("r2", "copy/a-1", "ignore"), Validate(()))
    assert (region.line.recorder.status.shown, region.has("copy/a-1")) == ("awaiting-confirmation", [1, 2])
    region.line.promote("web-2", "r1", "ada", "laptop")
    assert region.has("copy/a-1") == [1, 2, 9]
    assert region.stands() == ""
    assert region.line.rollback("r2", "ada", "laptop").release == "r1"


def test_a_rebuilt_table_is_promoted_although_the_old_one_stands_still_which_a_person_is_reported(
    region: Region,
) -> None:
    region.table("copy/b-2", 3, 0, 2)  # its history was read behind the delete
    region.build(release("r2", "copy/b-2"), CatchUp("every", "landing", "copy", "fence"), COMPARED)
    assert region.line.recorder.status.shown == "awaiting-confirmation", region.line.recorder.status
    checks = [check for check in region.line.recorder.events(Checked) if check.table == "copy"]
    assert [(check.ok, "only appends flow" in check.detail) for check in checks] == [(None, True)]
    with pytest.raises(AtGate, match="copy: rows is inconclusive"):
        region.line.promote("web-2", "r1", "ada", "laptop")
    (check,) = checks
    accepted = CheckAccepted(table=check.table, check=check.check, detail=check.detail, reason="it repairs that feed")
    declare(region.line, "web-2", replace(accepted, by="ada", host="laptop"))
    region.line.promote("web-2", "r1", "ada", "laptop")
    assert (region.has("copy/a-1"), region.has("copy/b-2")) == ([1, 2], [0, 2, 9])
    # and the way back would show readers less than they have now
    with pytest.raises(FeedStopped, match="only appends flow") as refused:
        region.line.rollback("r2", "ada", "laptop")
    assert (refused.value.code, "on_rewrite: ignore" in refused.value.hint) == ("E_REWRITE", True)
    assert region.line.live().id == "r2"


def test_a_table_that_moves_below_one_that_stands_still_is_not_compared(region: Region) -> None:
    """`other` was fed by a calm table, and will be by `copy`, whose feed the new release lets go on."""
    calm, other = state("calm", kind="landing"), state("other")
    foreign(region.place / "calm", rows(4))
    below, beside = (
        replace(FEED, materialization="more", source=source, target="other") for source in ("copy", "calm")
    )
    region.table("other/a-1", 0, 4, feed=beside)
    region.table("other/b-2", 1, feed=below)
    old, new = (replace(other, version=replace(other.version, path=f"other/{version}")) for version in ("a-1", "b-2"))
    first, second = release("r2", "copy/a-1"), release("r3", "copy/a-1", "ignore")
    region.promoted(replace(first, tables=(*first.tables, calm, old), feeds=(FEED, beside)))
    caught_up = CatchUp("more", "copy", "other", "fence")
    compared = Validate((Comparison(table="other", pairs=(Pair("n", "n"),), time="day"),))
    region.build(replace(second, tables=(*second.tables, calm, new), feeds=(FEED, below)), caught_up, compared)
    assert region.line.recorder.status.shown == "awaiting-confirmation", region.line.recorder.status
    checks = [(check.table, check.ok) for check in region.line.recorder.events(Checked)]
    assert checks == [("other", None)]


def test_a_release_that_does_not_mend_it_fails_by_its_own_reason_and_hint(region: Region) -> None:
    region.build(release("r2", "copy/a-1"), Validate(()))
    status = region.line.recorder.status
    assert status.shown == "failed"
    assert ("only appends flow" in status.why, "on_rewrite: ignore" in status.hint) == (True, True)


def test_a_feed_that_stops_at_the_gate_shuts_it_at_once_by_its_own_reason(region: Region) -> None:
    region.build(release("r2", "copy/a-1"))
    with pytest.raises(FeedStopped, match="only appends flow") as refused:
        region.line.promote("web-2", "r1", "ada", "laptop")
    assert refused.value.code == "E_REWRITE"
    assert region.line.recorder.status.state == "awaiting-confirmation"
    assert region.line.live().id == "r1"


def test_a_promotion_that_fails_gives_live_its_own_word_back(region: Region) -> None:
    """The release lets the delete pass, and has another table that somebody empties while it stands at the gate."""
    other, more = state("other"), replace(FEED, materialization="more", target="other")
    place = region.table("other/a-1", 4, 5, feed=more)
    wanted = release("r2", "copy/a-1", "ignore")
    elsewhere = replace(other, version=replace(other.version, path="other/a-1"))
    region.build(replace(wanted, tables=(*wanted.tables, elsewhere), feeds=(FEED, more)), Validate(()))
    assert region.line.recorder.status.shown == "awaiting-confirmation"
    DeltaTable(place).delete()
    write_deltalake(region.landing, rows(10), mode="append", partition_by=["day"])
    with pytest.raises(FeedStopped) as refused:
        region.line.promote("web-2", "r1", "ada", "laptop")
    assert refused.value.code == "E_FOREIGN"
    policies = {feed.spec.target: feed.source.table.on_rewrite for feed in region.follower.feeds("web")}
    assert policies == {"copy": "stop", "other": "ignore"}


def test_an_agent_that_ends_while_a_rollout_waits_for_its_feeds_fails_nothing(region: Region) -> None:
    region.build(release("r2", "copy/a-1"), Validate(()), start=False)
    region.until(lambda: region.follower._requests)
    carrier = region.line.execution.executor
    assert carrier is not None
    region.follower.stop()
    carrier.join(30)
    assert not carrier.is_alive()
    assert (region.line.recorder.status.state, region.line.recorder.status.held) == ("validating", "")


@pytest.mark.parametrize("table", ["landing", "copy"])
def test_a_person_may_let_the_feeds_go_on_that_fill_or_read_a_table(region: Region, table: str) -> None:
    region.follower.start()
    region.until(lambda: region.stands() == "E_REWRITE")
    region.follower.stop()
    region.follower.join(30)
    version = maintainer.accept(region.line, region.follower, "".join(table), "ada")
    assert region.stands() == ""
    copy = str(region.place / "copy/a-1")
    if table == "copy":
        assert log.commit(copy, version).note == {"kind": log.ACCEPTED, "by": "ada"}
    assert version == (log.latest_version(copy) if table == "copy" else -1)
    with pytest.raises(DataError, match="keeps no table 'nothing'"):
        maintainer.accept(region.line, region.follower, "nothing", "ada")


def test_who_waits_for_one_landing_position_says_so_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, report, whys = [5000.0], list[float](), list[str]()
    wish: Future[dict[str, int]] = Future()

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] > 5005.0:
            wish.set_result({"landing": 7})

    monkeypatch.setattr(validation, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    follower = SimpleNamespace(align=lambda _: wish, feeds=lambda _: ())

    def publish(event: Waiting) -> None:
        report.append(clock[0])
        whys.append(event.why)

    recorder = SimpleNamespace(publish=publish)
    context = SimpleNamespace(
        follower=follower,
        recorder=recorder,
        plan=release("r1", "c"),
        check_halt=lambda: None,
        live_feeds_in_order=tuple,
    )
    assert validation.aligned(cast(Any, context)) == {"landing": 7}
    assert [round(at - 5000.0) for at in report] == [0, 1, 2, 3, 4, 5]
    assert [bool(why) for why in whys] == [True] * 5 + [False], "at the end it waits no longer"


def test_a_managed_landing_table_without_traffic_gets_a_heartbeat_and_no_other_does(tmp_path: Path) -> None:
    feeds = []
    for name, kind, managed, moved in (
        ("quiet", "landing", True, 0), ("busy", "landing", True, 3), ("theirs", "landing", False, 0), ("copied", "append", False, 0)
    ):  # fmt: skip
        result = copying_feed(foreign(tmp_path / name, rows(1)), str(tmp_path / "copy"))
        result.source, result.rows_moved = state(name, kind=kind, managed=managed), moved
        feeds.append(result)
    quiet = str(tmp_path / "quiet")
    assert validation._heartbeats(cast(Any, None), [*feeds, feeds[0]], None) == {quiet: 1}
    assert log.commit(quiet, 1).note == {"kind": "heartbeat"}
    assert [log.latest_version(str(tmp_path / name)) for name in ("busy", "theirs", "copied")] == [0, 0, 0]


# -- history


@pytest.mark.parametrize(
    ("read", "complete"),
    [
        ({1: 40, 2: 60}, True),
        ({1: 40, 2: 59}, False),
        ({1: 40, 2: 61}, False),
        ({1: 40}, False),
        ({}, False),
        ({1: 100}, True),
    ],
)
def test_a_history_is_complete_when_its_batches_read_every_row_of_its_fence_once(
    tmp_path: Path, read: dict[int, int], complete: bool
) -> None:
    """A batch that was told twice counts once, another step's not at all."""
    recorder = Recorder(Rollouts(tmp_path, "web"))
    copy = release("r1", "copy/a-1")
    history = Backfill(
        materialization="every",
        source="landing",
        target="copy",
        route="replay",
        sql="SELECT 1",
        time="",
        rows=100,
        bytes=1,
        days=2,
        batches=2,
    )
    plan = bare_plan(steps=(history, Promote()), release=copy)
    recorder.accept("web-1", plan, Accepted(release="r1", was="", plan="", by="ada", host="laptop", steps=()))
    recorder.store(Fenced(step="backfill/copy/every", source="landing", version=7, slices=2, rows=100))
    for position, rows_in in read.items():
        for _ in range(2):
            recorder.store(
                BatchDone(
                    step="backfill/copy/every",
                    label="d",
                    position=position,
                    of=2,
                    rows_in=rows_in,
                    rows_out=rows_in,
                    bytes=1,
                    seconds=0.0,
                    version=position,
                )
            )
    recorder.store(
        BatchDone(
            step="backfill/other/every",
            label="d",
            position=1,
            of=1,
            rows_in=60,
            rows_out=60,
            bytes=1,
            seconds=0.0,
            version=1,
        )
    )
    (check,) = _complete(cast(Any, SimpleNamespace(recorder=recorder, plan=plan)))
    assert (check.table, check.check, check.ok) == ("copy", "history is complete", complete)
    assert f"{sum(read.values())} of 100 rows of landing at version 7" in check.detail
