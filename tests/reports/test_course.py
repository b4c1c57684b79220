"""Phases of a rollout, and shares that are never rounded up."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli.format import percent
from console.cli.reports.timeline import course
from console.model.event import Entered, Failed, Paused, Promoted, Recorded, Resumed
from tests.reports.runs import BEGAN, STEP, events


def test_phases_follow_each_other_and_add_up_to_the_time_accounted_for() -> None:
    result = course(events(), BEGAN + 1000)
    assert [span.phase for span in result.spans] == [
        "planned", "preparing", "backfilling", "catching-up", "validating", "awaiting-confirmation",
    ]  # fmt: skip
    assert result.seconds == result.account.seconds == 980
    assert result.busy_seconds == 360
    assert result.spans[-1].open


def test_a_resumed_rollout_returns_to_the_phase_in_which_it_was_stopped() -> None:
    stops = [Entered("backfilling"), Paused("ana"), Resumed("ana"), Failed(STEP, "full"), Resumed("ana")]
    stored = events(until=2) + tuple(
        Recorded("web-8", at, BEGAN + 100 * at, event) for at, event in enumerate(stops, 3)
    )
    assert [span.phase for span in course(stored, BEGAN + 900).spans][2:] == [
        "backfilling", "paused", "backfilling", "failed", "backfilling",
    ]  # fmt: skip


def test_what_came_before_a_promotion_ends_with_it() -> None:
    promoted = Recorded("web-8", 99, BEGAN + 500, Promoted(release="r8", was="r7", by="ana", host="h", version=3))
    result = course((*events(), promoted), BEGAN + 10_000)
    assert result.seconds == 480
    assert not any(span.open for span in result.spans)


@pytest.mark.slow
@given(st.lists(st.floats(-1e6, 1e6), min_size=19, max_size=19), st.floats(-1e6, 1e6))
def test_clocks_that_jump_make_no_negative_time(times: list[float], now: float) -> None:
    stored = tuple(replace(recorded, at=BEGAN + at) for recorded, at in zip(events(), times, strict=True))
    result = course(stored, BEGAN + now)
    assert all(span.seconds >= 0 for span in result.spans)
    assert all(
        one.until == two.since or one.seconds >= 0 for one, two in zip(result.spans, result.spans[1:], strict=False)
    )


@pytest.mark.slow
@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_share_is_rounded_down_and_a_hundred_only_of_everything(part: int, whole: int) -> None:
    shown = int(percent(part, whole).removesuffix(" %"))
    if part >= whole:
        assert shown == 100
    else:
        exact = Fraction(100 * part, whole)
        assert shown <= 99
        assert exact - 1 - Fraction(1, 10**6) <= shown <= exact + Fraction(1, 10**6)
