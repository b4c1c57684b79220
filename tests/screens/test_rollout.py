"""The rollout's screen: what is happening, and why is it slow?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model.event import Accepted, Checked, ComparedDay, Fenced, Logged, Recorded
from console.model.incident import SlicedDay
from console.model.status import replay
from console.model.tuning import Tuned, Tuning
from console.runner.view import RegionView
from console.tui.rollout.days import CalendarCache, DayCursor, days_lines, first_cursor
from console.tui.rollout.log import LogEntries, log_lines, log_title
from console.tui.rollout.rates import draw_lag, draw_rates, rates_line
from console.tui.rollout.slow import accounted, job_line, slow_line, slow_lines
from console.tui.rollout.steps_line import draw_steps_line
from tests.screens import recorded as r
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle

pytestmark = pytest.mark.slow

SLOW = r.slow()


def days(view: RegionView, cursor: DayCursor | None = None, width: int = 102) -> list[str]:
    tables = CalendarCache().tables(view)
    return [line.plain for line in days_lines(tables, cursor or first_cursor(tables), width)]


def slow(view: RegionView, *others: RegionView, width: int = 94) -> str:
    return "\n".join(line.plain for line in slow_lines(view, others, width, s.NOON))


def test_the_parts_of_the_time_sum_to_all_of_it() -> None:
    result = accounted(SLOW, s.NOON)
    assert result
    assert abs(sum(part.seconds for part in result.parts) - (s.NOON - r.BEGAN)) < 1
    slowness = slow(SLOW)
    for cause in ("batches", "waited: lag", "tried again", "Spark restarted", "other steps"):
        assert cause in slowness


def test_the_rate_stands_beside_that_of_other_regions_with_this_plan() -> None:
    assert "1.05k rows/s; us: 2.33k" in slow(SLOW, r.promoted(s.US))


def test_the_sparks_job_and_its_longest_task_are_shown() -> None:
    slowness = slow(SLOW)
    assert "job 41 · stage 3 of 5 · tasks 41 of 64" in slowness
    assert "longest task 38 s, median 2.0 s: skewed · spilled 1.1 GB" in slowness
    assert job_line(SLOW.status.steps[2], 100).plain.startswith("job 41 stage 3/5, tasks 41/64, longest 38 s")


def test_a_limit_that_was_changed_is_shown_with_who_changed_it() -> None:
    tuned = Tuned(by="ana", host="ops2", tuning=Tuning(target_seconds=20.0, lag=90.0))
    slowness = slow(replace(SLOW, status=replace(SLOW.status, tuned=tuned)))
    assert "aims at 20 s a batch · waits while lag > 1 m 30 s · target_seconds, lag changed by ana" in slowness


def test_where_the_first_events_are_not_known_no_part_is_claimed() -> None:
    late = replace(SLOW, events=SLOW.events[5:])
    assert accounted(late, s.NOON) is None
    assert slow(late) == "unknown: its first events have not been read."
    assert slow_line(late, 60, s.NOON).plain.startswith("why slow: its first events")


def test_each_day_has_a_sign_and_the_one_that_runs_the_cursor() -> None:
    drawn = days(SLOW)
    assert drawn[0].startswith("requests from landing as of v1430 · 7 of 15 days")
    assert drawn[2].split() == ["state", *"▪▪▪▪▪▪▲◪□□□□□□□"]
    assert drawn[3].split()[1:4] == ["118k", "122k", "120k"]
    assert drawn[4].split()[1:8] == ["~69s", "~72s", "~71s", "~70s", "~55s", "~54s", "6m"]
    assert drawn[5] == "› ◪ requests 2026-11-15 · about 125,000 rows · running · 1 failed try: memory"


def test_a_day_tells_rows_time_and_tries() -> None:
    detail = " ".join(days(SLOW, DayCursor(0, 6))[5:])
    assert detail == (
        "› ▲ requests 2026-11-16 · 131,204 rows in = out · 6 m 02 s · 18 MB · v212 · 11:36:20Z · 1 failed try: memory"
    )
    assert "with 2026-11-22 … 2026-11-19: 479,000 rows in = out" in " ".join(days(SLOW, DayCursor(0, 1))[5:])


def test_a_day_that_is_cut_shows_its_hours() -> None:
    assert days(SLOW, DayCursor(0, 8))[-1] == f"  hours 23 {'□' * 24} 00"


def test_a_day_that_differs_at_the_gate_is_marked_with_both_numbers() -> None:
    wrong = ComparedDay(day="2026-11-21", old=122_000, new=121_999)
    check = Checked(table="requests", check="rows per day", ok=False, detail="", days=(wrong,))
    view = replace(SLOW, status=replace(SLOW.status, checks=(check,)))
    assert days(view)[2].split()[1:3] == ["▪", "✗"]
    assert "live 122,000 rows, new 121,999" in " ".join(days(view, DayCursor(0, 1)))


def test_a_table_without_a_backfill_is_listed_once_days_of_it_differ() -> None:
    same, wrong = (ComparedDay(day=f"2026-11-2{n}", old=24, new=24 - n, columns=("hits",) * n) for n in (0, 1))
    check = Checked(table="requests_by_hour", check="groups", ok=True, detail="", days=(same,))
    view = replace(SLOW, status=replace(SLOW.status, checks=(check,)))
    assert "requests_by_hour" not in " ".join(days(view))
    view = replace(SLOW, status=replace(SLOW.status, checks=(replace(check, days=(same, wrong)),)))
    drawn = days(view, DayCursor(1, 0))
    assert "requests_by_hour as compared at the gate · 2 days" in drawn
    assert drawn[-4].split() == ["state", "✗", "▪"]
    assert drawn[-1].split(" · ") == [
        "› ✗ requests_by_hour 2026-11-21", "live 24 rows, new 23, other values in hits",
    ]  # fmt: skip


def test_many_days_are_drawn_month_by_month() -> None:
    sliced = tuple(SlicedDay(label=f"2026-{9 - n // 28:02}-{28 - n % 28:02}", rows=1000) for n in range(84))
    accepted = Accepted(release="r8", was="r7", plan="", by="ana", host="h", steps=((r.BACKFILL, 84_000),))
    fence = Fenced(step=r.BACKFILL, source="landing", version=3, slices=84, rows=84_000, days=sliced)
    events = r.record([(0, accepted), (1, fence)])
    view = replace(SLOW, events=events, status=replay(events))
    drawn = days(view, width=78)
    assert [line.split()[0] for line in drawn[1:4]] == ["2026-09", "2026-08", "2026-07"]
    assert all(line.count("□") == 28 for line in drawn[1:4])


def test_the_cursor_stays_within_the_days() -> None:
    tables = CalendarCache().tables(SLOW)
    assert DayCursor(0, 0).moved(tables, day=-1) == DayCursor(0, 0)
    assert DayCursor(0, 14).moved(tables, day=1, table=3) == DayCursor(0, 14)
    assert DayCursor(4, 4).moved([]) == DayCursor()


def test_the_charts_show_the_gap_in_which_nobody_measured_and_the_throttle() -> None:
    assert "┄" in draw_lag(SLOW, 60, 8, s.NOON).plain
    assert draw_rates(SLOW, 60, 8, s.NOON).plain.splitlines()[0].startswith("20.0k│")
    assert "of 1 m 00 s" in rates_line(SLOW, 78, s.NOON).plain
    assert draw_lag(replace(SLOW, samples=()), 60, 8, s.NOON).plain.startswith("nothing measured yet")


def test_the_steps_are_one_line() -> None:
    assert draw_steps_line(SLOW, 120).plain == (
        "✓ create 2 ── ▶ backfill requests 7/38 ── · catch-up 0/2 ── · compare ── · gate: ask"
    )
    assert "◆ gate: ask" in draw_steps_line(s.at_gate(s.EU), 120).plain
    assert "‖ backfill" in draw_steps_line(replace(SLOW, status=replace(SLOW.status, held="paused")), 120).plain


def test_stored_lines_are_told_from_fleeting_ones_and_dropped_lines_are_counted() -> None:
    entries = LogEntries().of(SLOW)
    drawn = [line.plain for line in log_lines(entries)]
    assert drawn[0] == "▪ 11:07:56Z r7 → r8, planned by ana"
    assert drawn[-1] == "· 11:59:59Z job 41: stage 3 begins"
    assert [line.plain[:1] for line in log_lines(entries, "memory !batch")] == ["▪"]
    assert log_title(entries, "memory", 3).startswith(f"log · 2 of {len(entries)} lines")
    assert log_title(entries, "", 3).endswith("3 dropped")
    assert "none of" in log_lines(entries, "nowhere")[0].plain


def test_a_log_that_is_full_counts_what_it_drops() -> None:
    status = replay([Recorded("web-8", 0, s.NOON, Logged(f"line {n}")) for n in range(203)])
    assert (len(status.log), status.log_dropped) == (200, 3)


async def test_at_80x24_days_causes_job_rates_and_log_are_seen_at_once() -> None:
    async with running_app(s.ScriptedCockpit(SLOW)) as (app, pilot):
        await pilot.press("enter")
        await settle(pilot)
        shown = screen_text(app)
        for part in ("✓ create 2 ▶ backfill requests 7/38", "▪  ▪  ▪  ▪  ▪  ▪  ▲  ◪  □", "requests 2026-11-15", "lag 23%",
                     "longest 38 s, median 2.0 s: skewed", "history rows/s", "log · 15 lines"):  # fmt: skip
            assert part in shown, part


async def test_days_that_are_not_known_are_not_called_none() -> None:
    async with running_app(s.ScriptedCockpit(s.at_gate(s.EU))) as (app, pilot):
        await pilot.press("2")
        await settle(pilot)
        assert "the events that list its days have not been read" in screen_text(app)
        assert "no days" not in screen_text(app)


async def test_arrows_move_the_day_and_the_filter_the_log() -> None:
    async with running_app(s.ScriptedCockpit(SLOW), size=(120, 36)) as (app, pilot):
        await pilot.press("enter", "left")
        await settle(pilot)
        assert "131,204 rows in = out" in screen_text(app)
        await pilot.press("right", "right")
        await settle(pilot)
        assert "hours 23 □" in screen_text(app)
        await pilot.press("slash", *"memory", "enter")
        await settle(pilot)
        assert "log · 2 of 15 lines" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "log · 15 lines" in screen_text(app)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
async def test_a_click_on_a_day_moves_the_cursor_to_it(size: tuple[int, int]) -> None:
    async with running_app(s.ScriptedCockpit(SLOW), size=size) as (app, pilot):
        await pilot.press("enter")
        await settle(pilot)
        assert "› ◪ requests 2026-11-15" in screen_text(app)
        for sign, day in (("▲", "2026-11-16 · 131,204 rows"), ("□", "2026-11-14")):
            row = next(y for y, line in enumerate(screen_text(app).splitlines()) if "state" in line and sign in line)
            await pilot.click(offset=(screen_text(app).splitlines()[row].index(sign), row))
            await settle(pilot)
            assert day in " ".join(screen_text(app).split())


async def test_the_end_of_the_log_stays_in_sight_until_it_is_scrolled_and_whatever_the_size() -> None:
    async with running_app(s.ScriptedCockpit(SLOW), size=(200, 60)) as (app, pilot):
        await pilot.press("enter")
        await settle(pilot)
        last = log_lines(LogEntries().of(SLOW))[-1].plain
        assert last in screen_text(app)
        for size in ((80, 24), (120, 36), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert last in screen_text(app), size
        await pilot.press("l", "k", "k")
        await settle(pilot)
        assert last not in screen_text(app)


async def test_at_200x60_nearly_every_row_has_text() -> None:
    async with running_app(s.ScriptedCockpit(SLOW), size=(200, 60)) as (app, pilot):
        await pilot.press("enter")
        await settle(pilot)
        rows = [line for line in screen_text(app).splitlines() if any(char.isalnum() or char in "▪⣿█" for char in line)]
        assert len(rows) >= 48, screen_text(app)


async def test_the_first_events_of_a_long_rollout_are_asked_for_once_and_joined() -> None:
    late = replace(SLOW, events=SLOW.events[-4:])
    cockpit = s.ScriptedCockpit(late)
    cockpit.stored = {"eu": SLOW.events[:-2]}
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("2")
        await settle(pilot)
        assert "lag 23%" in screen_text(app)
        assert "7/38" in screen_text(app)
        cockpit.show(replace(late, status=replace(late.status, seq=late.status.seq + 1)))
        await settle(pilot)
    assert [call for call in cockpit.calls if call[0] == "recorded"] == [("recorded", "eu")]


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_what_an_ended_rollout_left_stands_under_its_name_and_never_beside_a_pending_plan(
    size: tuple[int, int],
) -> None:
    async with running_app(s.ScriptedCockpit(r.promoted()), size=size) as (app, pilot):
        await pilot.press("2")
        await settle(pilot)
        assert "last rollout r8, 11:57Z, live" in screen_text(app)
        await pilot.press("3")
        await settle(pilot)
        assert "user_agent" in screen_text(app)
        assert not any(part in screen_text(app) for part in ("catch-up", "passed", "backfill/"))
        await pilot.press("4")
        await settle(pilot)
        assert "nothing waits to be confirmed" in screen_text(app)
        assert "last rollout r8, 11:57Z, live" in screen_text(app)


@given(st.integers(20, 220), st.sampled_from([SLOW, r.promoted(), s.at_gate(s.EU), s.waiting(s.EU), s.failed(s.EU)]))
def test_every_drawing_fits_its_width(width: int, view: RegionView) -> None:
    lines = [
        slow_line(view, width, s.NOON),
        rates_line(view, width, s.NOON),
        draw_steps_line(view, width),
        *slow_lines(view, (), width, s.NOON),
    ]
    tables = CalendarCache().tables(view)
    lines += days_lines(tables, first_cursor(tables), width)
    assert max(line.cell_length for line in lines) <= max(width, 20)
