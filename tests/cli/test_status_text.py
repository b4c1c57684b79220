"""The lines about a rollout, event by event, and the table of `status`."""

from dataclasses import replace
from itertools import pairwise

from console.cli.commands.rollout.status import exit_of, feed_error
from console.cli.progress_text import progress_lines
from console.cli.status_text import region_data, status_text, way_back_data
from console.model.event import Ailing, Lagging, Recorded
from console.model.following import Following
from console.model.region import FOLLOW, Follow, Region, Ssh
from console.model.status import Status, fold, replay
from console.model.watcher import Watcher
from console.model.way_back import WayBackFinding, proof
from console.runner.view import RegionView
from tests.cli import sample

EU = Region(name="eu", warehouse="/w/eu")


def views() -> list[RegionView]:
    """The region after each event of the story."""
    statuses = [Status()]
    for recorded in sample.story():
        statuses.append(fold(statuses[-1], recorded))
    return [RegionView(region=EU, link="connected", status=status, live="r7") for status in statuses]


def test_a_whole_story_is_told_in_order_and_once() -> None:
    lines = [f"{line.kind}: {line.text}" for a, b in pairwise(views()) for line in progress_lines(a, b)]
    assert lines == [
        "apply_start: web-8: r7 → r8, planned by ada@laptop",
        "apply_progress: planned",
        "apply_progress: preparing",
        "apply_progress: create/requests done",
        "apply_progress: backfilling",
        "apply_progress: 60 % · 60 of 100 rows · 20 rows/s · about 2 s left · backfill/requests",
        "apply_paused: paused: paused by ada@laptop",
        "apply_progress: continues: backfilling",
        "apply_errored: failed: disk full; make room, then console retry",
        "apply_progress: continues: backfilling",
        "apply_progress: 99 % · 100 of 100 rows · 20 rows/s · about 0 s left · backfill/requests",
        "apply_progress: backfill/requests done: 100 rows in 5 s",
        "apply_progress: validating",
        "check: check requests rows per day: ok (2 days, 100 rows)",
        "check: check requests live rows: inconclusive (no row arrived)",
        "apply_progress: awaiting-confirmation",
        "apply_complete: live, by ada@laptop",
    ]


def test_a_reader_who_missed_the_middle_still_hears_how_it_stands() -> None:
    first, *_, last = views()[:-1]
    kinds = [line.kind for line in progress_lines(first, last)]
    assert kinds[0] == "apply_start"
    assert kinds.count("check") == 2
    assert progress_lines(first, last)[-1].text == "awaiting-confirmation"
    assert progress_lines(last, last) == []


def test_a_lost_link_is_no_failure_and_its_return_is_reported() -> None:
    here = views()[8]
    gone = replace(here, link="unreachable", link_why="connection reset")
    assert [line.text for line in progress_lines(here, gone)] == [
        "unreachable, a batch may be running: connection reset"
    ]
    assert [line.text for line in progress_lines(gone, here)] == ["reached again"]


def test_the_table_shows_state_eta_and_why_in_their_own_columns() -> None:
    running, failed, gate = views()[10], views()[13], views()[21]
    text = status_text(
        [running, failed, gate, RegionView(region=Region(name="ap", warehouse="/w/ap"))], {"ap": "no agent"}
    )
    assert text.splitlines() == [
        "region  state                   done        rows  rows/s  left  lag  release  now",
        "eu      backfilling             60 %   60 of 100      20  2 s        r7 → r8  backfill/requests",
        "eu      failed                  60 %   60 of 100      20             r7 → r8  disk full",
        "eu      awaiting-confirmation  100 %  100 of 100      20             r7 → r8",
        "ap      unreachable                                                           no agent",
        "",
        "eu: hint: make room, then console retry",
        "eu: what it built is kept until 1970-01-04 00:16Z",
        "eu: check requests rows per day: ok (2 days, 100 rows)",
        "eu: check requests live rows: inconclusive (no row arrived)",
    ]


def test_percent_is_a_hundred_only_when_nothing_is_left() -> None:
    nearly = replay(sample.story()[:16])
    assert nearly.rows_done == nearly.rows_total
    assert nearly.percent == 99
    assert views()[21].status.percent == 100


def test_json_keeps_outside_text_exact() -> None:
    evil = "\x1b]0;x\x07"
    view = replace(views()[13], status=replace(views()[13].status, why=evil, hint=evil))
    assert region_data(view)["status"]["why"] == evil
    assert evil not in status_text([view], {})


def test_a_pause_shows_for_how_long_its_history_is_kept_and_a_wait_what_it_is_for() -> None:
    now = 1_794_000_000.0
    backfilling = views()[11]
    paused = replace(backfilling, status=replace(backfilling.status, until=now + 5 * 86_400 + 3 * 3600))
    assert paused.status.held == "paused"
    last = status_text([paused], {}, now).splitlines()[-1]
    assert last == "eu: can stay paused for 5 d 3 h, until 2026-11-12 00:20Z"
    assert region_data(paused)["may_pause_until"] == now + 5 * 86_400 + 3 * 3600
    assert "may already be deleted, since" in status_text([paused], {}, now + 6 * 86_400)
    moving = replace(paused, status=replace(paused.status, held="", why="outside of 22:00-06:00 UTC"))
    assert "can stay paused" not in status_text([moving], {}, now)
    assert "outside of 22:00-06:00 UTC" in status_text([moving], {}, now)
    assert region_data(moving)["waiting_for"] == "outside of 22:00-06:00 UTC"
    gate = replace(views()[21], status=replace(views()[21].status, until=now + 9))
    assert region_data(gate)["may_pause_until"] is None


STILL = Ailing(
    feed="parse",
    target="requests",
    path="requests/3fa2-1",
    tries=1,
    standing=True,
    why="landing\x07: DELETE in version 7",
    hint="rebuild",
    code="E_REWRITE",
    below=("by_hour",),
)
FAILS = Ailing(feed="hours", target="by_hour", path="by_hour/99aa-1", tries=2, standing=False, why="by_hour: disk full")


def test_a_feed_that_stands_still_is_in_the_table_and_below_it_with_what_to_do() -> None:
    view = views()[-1]
    well = status_text([view], {}, 0.0)
    assert "feed" not in well
    ill = replace(
        view,
        status=fold(
            view.status, Recorded("web-8", 0, 1.0, Lagging(commits=0, rows=0, seconds=0.0, ailing=(STILL, FAILS)))
        ),
    )
    lines = status_text([ill], {}, 0.0).splitlines()
    assert "live, 1 feed stopped" in lines[1]
    assert lines[3:6] == [
        "eu: feed parse has stopped, so requests/3fa2-1 gets no rows, nor do the tables below it (by_hour): landing\\x07: DELETE in version 7 [E_REWRITE]",
        "eu: hint: rebuild",
        "eu: feed hours is failing, attempt 2: by_hour: disk full",
    ]
    data = region_data(ill)
    assert (data["state"], data["feeds_stand_still"]) == ("live", 1)
    assert [(feed["feed"], feed["standing"], feed["tries"]) for feed in data["feeds"]] == [
        ("parse", True, 1),
        ("hours", False, 2),
    ]
    well_again = fold(ill.status, Recorded("web-8", 0, 2.0, Lagging(commits=0, rows=0, seconds=0.0)))
    assert status_text([replace(ill, status=well_again)], {}, 0.0) == well


def test_the_exit_code_of_a_look_says_that_a_feed_stands_still() -> None:
    view = views()[-1]
    assert exit_of(view) == 0
    fails = replace(view, status=replace(view.status, ailing=(FAILS,)))
    assert (exit_of(fails), feed_error(fails)) == (0, None)
    still = replace(view, status=replace(view.status, ailing=(FAILS, STILL)))
    error = feed_error(still)
    assert error is not None
    assert (exit_of(still), error.exit_code, error.code) == (1, 1, "E_REWRITE")
    assert str(error) == "eu: no live rows through parse"


def test_a_region_behind_ssh_without_an_agent_is_told_the_command_of_its_own_host() -> None:
    far = Region(name="us", warehouse="/w/us east", transport=Ssh(host="10.0.0.7"))
    messages = [
        status_text([RegionView(region=region, link="connected", live="r1", attended=False)], {}).splitlines()[-1]
        for region in (EU, far)
    ]
    assert messages == [
        "eu: no agent runs, and live rows will wait; console follow --region eu",
        "us: no agent runs, and live rows will wait; on 10.0.0.7: console follow --warehouse '/w/us east'",
    ]


def test_other_consoles_that_watch_are_named_and_oneself_is_not() -> None:
    ada = Watcher(name="ada@laptop", host="laptop", since=1_793_620_000.0, console="c1")
    bob = Watcher(name="bob \x1b[31m", host="tower", since=1_793_620_060.0, console="c2")
    view = replace(views()[10], status=replace(views()[10].status, watchers=(ada, bob)))
    both = "eu: watched by ada@laptop since 11:46Z, bob \\x1b[31m on tower since 11:47Z"
    assert both in status_text([view], {}).splitlines()
    assert "eu: watched by bob \\x1b[31m on tower since 11:47Z" in status_text([replace(view, console="c1")], {})
    assert "watched" not in status_text([replace(view, link="unreachable")], {})


def test_the_way_back_is_shown_with_its_age_and_its_countdown_and_a_failure_with_what_is_gone() -> None:
    now = 10_000.0
    gone = WayBackFinding(
        part="file", name="day=1/a.parquet", state="failed", why="it is gone", table="requests\x1b[2J"
    )
    whole = proof("r6", now - 40, (), until=now + 71.5 * 3600, feeds=1, files=12, endpoints=2)
    view = RegionView(
        region=EU, link="connected", live="r7", previous="r6", status=Status(state="live", way_back=whole)
    )
    text = status_text([view], {}, now)
    assert "eu: way back to r6 proven 40 s ago: 1 feed, 12 files, 2 endpoints" in text
    assert "eu: r6 may be cleaned up in 71 h" in text
    broken = replace(view, status=replace(view.status, way_back=replace(whole, findings=(gone,))))
    text = status_text([broken], {}, now)
    assert "way back to r6 failed its proof 40 s ago: requests" in text
    assert "\x1b" not in text
    data = way_back_data(broken, now)
    assert data is not None
    assert (data["state"], data["age_seconds"], data["findings"][0]["name"]) == ("failed", 40, "day=1/a.parquet")
    assert data["cleanup_in_seconds"] == 71.5 * 3600
    assert "not proven: no agent runs" in status_text(
        [replace(view, attended=False, status=replace(view.status, way_back=None))], {}, now
    )
    assert way_back_data(replace(view, previous=""), now) is None


def test_how_an_agent_follows_is_told_where_it_is_not_by_the_defaults_or_not_by_the_file() -> None:
    slow, fast, kept = Follow(0.1), Follow(0.4, 5.0), Follow(idle_seconds=None)
    usual = "follows with 25 % of a core at most"
    expected = {
        (FOLLOW, FOLLOW): "",
        (fast, fast): "eu: follows with 40 % of a core at most, rows readable within 5 s",
        (kept, kept): f"eu: {usual}, never ends Spark",
        (slow, FOLLOW): f"eu: follows with 10 % of a core at most; from its agent's next start: {usual}",
    }
    for (reported, declared), line in expected.items():
        lagging = Lagging(commits=0, rows=0, seconds=0.0, following=Following(reported))
        status = fold(Status(), Recorded("", 0, 1.0, lagging))
        shown = status_text([RegionView(region=replace(EU, follow=declared), link="connected", status=status)], {}, 2.0)
        assert [line for line in shown.splitlines() if "follows" in line] == [line] * bool(line)


def test_a_spark_that_sleeps_is_told_with_its_time() -> None:
    told = "eu: Spark sleeps since 1970-01-01 00:01Z; new rows, a rollout or a query wake it"
    for since, lines in ((0.0, []), (60.0, [told])):
        lagging = Lagging(commits=0, rows=0, seconds=0.0, following=Following(FOLLOW, since))
        view = RegionView(region=EU, link="connected", status=fold(Status(), Recorded("", 0, 1.0, lagging)))
        assert [line for line in status_text([view], {}, 99.0).splitlines() if "sleeps" in line] == lines
