"""`console status` of a region whose agent is not running: the backlog of its feeds is read from the logs. No Java."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import app_ids
from console.agent.feeds.unattended import resting
from console.agent.store import log
from console.agent.store.ledger import Releases
from console.model.live import Feed, Release
from console.model.schema import OnRewrite
from tests.faults.rules.tables import SCHEMA, commit_rows, foreign, number, rows, state

pytestmark = pytest.mark.slow

PROJECT = {
    "regions/eu.yaml": "name: eu\nwarehouse: w\n",
    "plans/web/pipeline.yaml": "description: one feed\n",
    "plans/web/tables/landing.yaml": "kind: landing\ncolumns: {n: bigint, day: date}\n",
    "plans/web/tables/copy.yaml": "partition_by: [day]\ncolumns: {n: bigint, day: date}\n",
    "plans/web/tables/below.yaml": "partition_by: [day]\ncolumns: {n: bigint, day: date}\n",
    "plans/web/materializations/every.sql": "/* into: copy */\nSELECT n, day FROM landing\n",
    "plans/web/materializations/again.sql": "/* into: below */\nSELECT n, day FROM copy\n",
}


class UnattendedSetup:
    """A region with a live release of two feeds, one below the other, that have passed all; its agent has ended."""

    def __init__(self, root: Path) -> None:
        self.root, self.warehouse = root, root / "w"
        for name, text in PROJECT.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.landing = foreign(self.warehouse / "landing", rows(0), rows(1))
        self.release()
        for source, target, feed in (("landing", "copy", "every"), ("copy", "below", "again")):
            place = str(self.warehouse / target)
            DeltaTable.create(place, schema=SCHEMA, partition_by=["day"])
            seen = log.latest_version(str(self.warehouse / source))
            commit_rows(
                place,
                app_ids.live_id(place, Feed(materialization=feed, source=source, target=target, sql="")),
                number(1, seen),
                rows(),
                kind="live",
            )

    def release(self, on_rewrite: OnRewrite = "stop") -> None:
        tables = (state("landing", kind="landing", on_rewrite=on_rewrite), state("copy"), state("below"))
        feeds = (
            Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing"),
            Feed(materialization="again", source="copy", target="below", sql="SELECT n, day FROM copy"),
        )
        releases = Releases(self.warehouse, "web")
        name = f"r{len(releases.all()) + 1}"
        live = releases.in_state("live")
        releases.propose(
            Release(id=name, pipeline="web", digest="d", tables=tables, feeds=feeds), "web-1", "ada", "laptop"
        )
        releases.swap(live.row.id if live else "", name, "ada", "laptop")

    def lands(self, *numbers: int) -> None:
        write_deltalake(self.landing, rows(*numbers), mode="append", partition_by=["day"])

    def says(self, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "console.main", "status", "--project", str(self.root), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def codes(self) -> list[str]:
        return [feed.code for feed in resting(self.warehouse, Releases(self.warehouse, "web").all()).ailing]


@pytest.fixture
def setup(tmp_path: Path) -> UnattendedSetup:
    return UnattendedSetup(tmp_path)


def test_where_nothing_waits_it_is_well_and_said_that_nobody_would_move_a_row(setup: UnattendedSetup) -> None:
    code, text = setup.says()
    assert code == 0
    assert "eu: no agent runs, and live rows will wait; console follow --region eu" in text.splitlines()


def test_rows_that_nobody_carries_are_no_good_news(setup: UnattendedSetup) -> None:
    setup.lands(2)
    setup.lands(3, 4)
    code, text = setup.says()
    assert code == 1
    lines = text.splitlines()
    assert "1 feed stopped" in lines[1]
    assert (
        "eu: feed every has stopped, so copy gets no rows, nor do the tables below it (below): no agent runs, and 2 commits (3 rows) of "
        "landing wait [E_NO_AGENT]"
    ) in lines
    assert f"eu: hint: on the region's host: console follow --warehouse {setup.warehouse}" in lines


def test_programs_are_told_as_well(setup: UnattendedSetup) -> None:
    setup.lands(2)
    code, text = setup.says("--output", "json")
    (region,) = json.loads(text)["regions"]
    assert (code, region["agent_runs"], region["feeds_stand_still"]) == (1, False, 1)
    assert [(feed["feed"], feed["standing"], feed["code"]) for feed in region["feeds"]] == [
        ("every", True, "E_NO_AGENT")
    ]
    assert (region["status"]["lag_commits"], region["status"]["lag_rows"]) == (1, 1)


def test_what_an_agent_would_stop_at_is_said_instead(setup: UnattendedSetup) -> None:
    DeltaTable(setup.landing).delete("n = 1")
    assert setup.codes() == ["E_REWRITE"]


def test_commits_that_the_source_lets_pass_make_nobody_wait(setup: UnattendedSetup) -> None:
    setup.release(on_rewrite="ignore")
    DeltaTable(setup.landing).delete("n = 1")
    assert setup.codes() == []
    setup.lands(2)
    assert setup.codes() == ["E_NO_AGENT"]


def test_a_log_that_was_cleaned_up_behind_a_feed_is_reported(setup: UnattendedSetup) -> None:
    setup.lands(2)
    setup.lands(3)
    DeltaTable(setup.landing).create_checkpoint()
    (Path(setup.landing) / "_delta_log" / f"{2:020}.json").unlink()
    assert setup.codes() == ["E_LOG_GONE"]
