"""When a repaint is due, by a clock of the test's own."""

from console.tui.repaint import (
    BACKOFF,
    KEY_SECONDS,
    KEYS_SECONDS,
    LAG_REPAINTS,
    LONGEST_PAUSE,
    UNSEEN_SECONDS,
    RepaintSchedule,
)


def painted(seconds: float = 1.0, at: float = 100.0) -> RepaintSchedule:
    """A schedule whose last repaint began and ended at that time."""
    schedule = RepaintSchedule(seconds)
    schedule.outdate()
    assert schedule.begin(at)
    schedule.end(at)
    return schedule


def test_nothing_is_due_while_nothing_has_changed() -> None:
    schedule = painted()
    assert schedule.settled
    assert not schedule.begin(1000)


def test_a_change_is_due_at_once_and_lag_alone_only_after_some_repaints() -> None:
    schedule = painted(seconds=1, at=100)
    schedule.outdate_lag()
    assert not schedule.settled
    assert not schedule.begin(100 + LAG_REPAINTS - 0.1)
    schedule.outdate()
    assert schedule.begin(101)
    schedule.end(101)
    assert schedule.settled
    schedule.outdate_lag()
    assert schedule.begin(101 + LAG_REPAINTS)


def test_a_slow_repaint_puts_off_the_next_one_in_proportion() -> None:
    schedule = painted()
    schedule.outdate()
    assert schedule.begin(200)
    schedule.outdate()
    schedule.end(201)
    assert not schedule.begin(201 + BACKOFF - 0.1)
    assert schedule.begin(201 + BACKOFF)


def test_the_pause_after_a_very_slow_repaint_has_an_end() -> None:
    schedule = painted()
    schedule.outdate()
    assert schedule.begin(200)
    schedule.outdate()
    schedule.end(260)
    assert not schedule.begin(260 + LONGEST_PAUSE - 0.1)
    assert schedule.begin(260 + LONGEST_PAUSE)


def test_a_repaint_that_is_never_shown_holds_up_the_next_one_for_a_while_only() -> None:
    schedule = painted()
    schedule.outdate()
    assert schedule.begin(200)
    schedule.outdate()
    assert not schedule.begin(200 + UNSEEN_SECONDS - 0.1)
    assert schedule.begin(200 + UNSEEN_SECONDS)


def test_what_changes_during_a_repaint_is_drawn_by_the_next_one() -> None:
    schedule = painted()
    schedule.outdate()
    assert schedule.begin(200)
    schedule.outdate_lag()
    schedule.end(200)
    assert not schedule.settled
    assert schedule.begin(200 + LAG_REPAINTS)


def test_a_key_is_drawn_before_what_the_regions_report() -> None:
    schedule = painted()
    schedule.outdate()
    schedule.key(200)
    assert not schedule.begin(200.1)
    schedule.key_painted()
    assert schedule.begin(200.2)


def test_a_key_whose_effect_is_never_shown_delays_a_repaint_for_a_while_only() -> None:
    schedule = painted()
    schedule.outdate()
    schedule.key(200)
    assert not schedule.begin(200 + KEY_SECONDS - 0.1)
    assert schedule.begin(200 + KEY_SECONDS)


def test_a_key_held_down_delays_a_repaint_for_a_while_only() -> None:
    schedule = painted()
    schedule.outdate()
    times = [200 + n * 0.05 for n in range(60)]
    drawn = []
    for now in times:
        schedule.key(now)
        if schedule.begin(now):
            schedule.end(now)
            schedule.outdate()
            drawn.append(now)
    assert len(drawn) >= len(times) * 0.05 // (KEYS_SECONDS + 0.1)
