"""A gate while live rows wait, and every order of going back: over real logs and release tables, without Java (F28, F30)."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import app_ids
from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.rollout import rebind
from console.agent.settings import Settings
from console.errors import CheckFailed, Conflict
from console.model.event import Accepted, Entered
from console.model.live import Feed, Release
from console.model.step import Promote
from tests.agent.copying import by_arrow
from tests.faults.rivals.test_steering import at_the_gate, opened
from tests.faults.rules.tables import SCHEMA, column_values, commit_rows, foreign, number, rows, state
from tests.plans import bare_plan

pytestmark = pytest.mark.faults
FEED = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")
TABLES = (state("landing", kind="landing"), state("copy"))


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PipelineController]:
    """r1 is live and follows landing; r2 stands at its gate. Three commits of landing have not been carried."""
    by_arrow(monkeypatch)
    foreign(tmp_path / "landing", rows(0), rows(1), rows(2), rows(3))
    copy = str(tmp_path / "copy")
    DeltaTable.create(copy, schema=SCHEMA, partition_by=["day"])
    commit_rows(copy, app_ids.live_id(copy, FEED), number(1, 0), rows(0))
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
    follower = FeedFollower(spark, 0.01, lambda *_: None)
    made = PipelineController(tmp_path, "web", spark, follower, Settings(region="eu"))
    for name, live in (("r1", ""), ("r2", "r1")):
        made.releases.propose(
            Release(id=name, pipeline="web", digest="d", tables=TABLES, feeds=(FEED,)),
            f"web-{name[1:]}",
            "ada",
            "laptop",
        )
        if not live:
            made.releases.swap(live, name, "ada", "laptop")
    plan = bare_plan(
        live="r1",
        steps=(Promote(),),
        release=Release(id="r2", pipeline="web", digest="d", tables=TABLES, feeds=(FEED,)),
    )
    made.recorder.accept(
        "web-2", plan, Accepted(release="r2", was="r1", plan="", by="ada", host="laptop", steps=(("promote", 0),))
    )
    made.recorder.store(Entered("awaiting-confirmation"))
    made.resume()
    yield made
    follower.stop()
    if follower.is_alive():
        follower.join(60)


def test_while_rows_wait_the_gate_stays_shut_says_how_many_and_gives_up_unchanged(
    line: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = line.releases.version()
    with monkeypatch.context() as patch:
        patch.setattr(rebind, "ALIGN_SECONDS", 0.2)  # nobody carries them
        with pytest.raises(CheckFailed, match=r"is 3 commits \(3 rows\) behind and did not catch up") as shut:
            line.promote("web-2", "r1", "ada", "laptop")
        with pytest.raises(CheckFailed):
            line.promote("web-2", "r1", "ada", "laptop")
    assert shut.value.code == "E_LAG"
    assert (line.live().id, line.releases.version()) == ("r1", before)
    assert line.recorder.status.shown == "awaiting-confirmation"
    line.feeds.follower.start()
    assert line.promote("web-2", "r1", "ada", "laptop").release == "r2"
    assert column_values(str(line.warehouse / "copy")) == [0, 1, 2, 3], "they arrived before it was promoted"
    write_deltalake(str(line.warehouse / "landing"), rows(4), mode="append", partition_by=["day"])
    assert line.rollback("r2", "ada", "laptop").release == "r1"
    # with the rows of the last tick, which may have been before that commit: both releases were level
    line.feeds.follower.align("web").result(60)
    assert column_values(str(line.warehouse / "copy")) == [0, 1, 2, 3, 4], "and so do those since, on the way back"


def test_back_and_back_again_and_on_after_that_until_what_was_before_is_cleaned_up(tmp_path: Path) -> None:
    region = opened(tmp_path)
    for turn, live in ((1, ""), (2, "r1")):
        at_the_gate(region, turn, live)
        region.promote(f"web-{turn}", live, "ada", "laptop")
    assert region.rollback("r2", "ada", "laptop").release == "r1"
    assert region.rollback("r1", "ada", "laptop").release == "r2", "the way back has a way back"
    assert region.rollback("r2", "ada", "laptop").release == "r1"
    at_the_gate(region, 3, "r1")
    assert region.promote("web-3", "r1", "ada", "laptop").release == "r3", "promoted after a rollback"
    assert states(region) == {"r1": "previous", "r2": "retired", "r3": "live"}
    region.cleanup("ada", dry_run=False, previous=True)
    assert states(region) == {"r3": "live"}
    with pytest.raises(Conflict, match="nothing to go back to") as refused:
        region.rollback("r3", "ada", "laptop")
    assert (refused.value.code, refused.value.exit_code) == ("E_NO_PREVIOUS", 4)
    assert states(region) == {"r3": "live"}


def states(region: PipelineController) -> dict[str, str]:
    return {each.row.id: each.row.state for each in region.releases.all()}
