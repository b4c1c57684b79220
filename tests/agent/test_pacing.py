"""The follower's rests between two ticks: by a share of a core, cut by a lag. Time is a number here."""

import json
from collections import deque
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.pacing import ASLEEP_TICKS, MIN_REST_SECONDS, REMEMBERED_TICKS, Pacing
from console.agent.settings import keep_settings, load_settings
from console.drivers.local import agent_config
from console.errors import RegionError
from console.model.region import FOLLOW, Follow, Region

TICK = 0.5
SHARES = st.floats(0.01, 1.0)


def pacing(follow: Follow = FOLLOW, load: Callable[[], float] = lambda: 1.0) -> Pacing:
    return Pacing(tick_seconds=TICK, follow=follow, load=load)


@pytest.mark.parametrize(("took", "load", "rest"), [
    (0.01, 1.0, 0.5), (1.0, 1.0, 3.0), (1.0, 2.0, 6.0), (4.0, 1.0, 12.0), (30.0, 1.0, 12.0), (30.0, 4.0, 12.0),
])  # fmt: skip
def test_by_default_a_tick_is_followed_by_three_times_its_duration_up_to_twelve_seconds(
    took: float, load: float, rest: float
) -> None:
    assert pacing(load=lambda: load).rest(took) == rest


@pytest.mark.parametrize(("share", "took", "rest"), [
    (0.5, 1.0, 1.0), (1.0, 3.0, TICK), (0.1, 1.0, 9.0), (0.1, 30.0, 36.0), (0.5, 30.0, 4.0),
])  # fmt: skip
def test_the_rest_leaves_the_share_and_the_longest_one_changes_with_it(share: float, took: float, rest: float) -> None:
    assert pacing(Follow(share)).rest(took) == pytest.approx(rest)


@given(SHARES, st.lists(st.floats(0.0, 3.9), min_size=1, max_size=20))
def test_ticks_that_are_not_beyond_the_longest_rest_take_at_most_the_share(share: float, ticks: list[float]) -> None:
    rests = pacing(Follow(share))
    resting = sum(rests.rest(took) for took in ticks)
    assert sum(ticks) <= share * (sum(ticks) + resting) + 1e-6


def test_a_region_at_rest_is_looked_at_less_often_unless_somebody_waits() -> None:
    assert pacing().rest(0.01, asleep=True) == ASLEEP_TICKS * TICK
    assert pacing().rest(0.01, awaited=True, asleep=True) == TICK


def test_whoever_waits_for_the_feeds_does_not_wait_for_a_rest() -> None:
    assert pacing().rest(4.0, awaited=True) == TICK
    assert pacing(Follow(0.25, 5.0)).rest(4.0, awaited=True) <= TICK


@given(SHARES, st.floats(1.0, 60.0), st.lists(st.floats(0.0, 1.0), min_size=2, max_size=40))
def test_a_row_is_readable_within_the_lag_where_the_ticks_leave_time_for_that(
    share: float, lag: float, parts: list[float]
) -> None:
    """The worst moment for a row is just after a tick has looked. A tick slower than all before it cannot be foreseen."""
    rests, known, looked, now = pacing(Follow(share, lag), lambda: 4.0), deque[float](maxlen=REMEMBERED_TICKS), 0.0, 0.0
    for took in ((lag - MIN_REST_SECONDS) / 2 * part for part in parts):
        if known and took <= max(known):
            assert now + took - looked <= lag + 1e-6
        known.append(took)
        looked, now = now, now + took + rests.rest(took)


def test_what_the_machine_cannot_keep_is_followed_with_hardly_a_rest() -> None:
    assert pacing(Follow(0.25, 1.0)).rest(30.0) == MIN_REST_SECONDS


def test_a_single_slow_tick_is_forgotten_after_a_while() -> None:
    rests = pacing(Follow(0.25, 5.0))
    assert rests.rest(4.0) == MIN_REST_SECONDS
    assert [rests.rest(1.0) for _ in range(REMEMBERED_TICKS)] == [*repeat(MIN_REST_SECONDS, REMEMBERED_TICKS - 1), 3.0]


def test_the_follower_rests_by_the_durations_of_its_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rests = [1000.0], list[float]()
    follower = FeedFollower(cast(Any, None), TICK, lambda *_: None, Follow(0.5, 6.0))

    def tick(name: str) -> None:
        clock[0] += 2.0

    def wait(seconds: float) -> None:
        rests.append(seconds)
        clock[0] += seconds
        if len(rests) == 3:
            follower.stop()

    monkeypatch.setattr("console.agent.feeds.follower.time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr("console.agent.feeds.pacing.os.getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr(follower, "_tick_pipeline", tick)
    monkeypatch.setattr(follower, "_wake", SimpleNamespace(wait=wait, clear=lambda: None, set=lambda: None))
    follower.follow("web", ())
    follower.run()
    assert rests == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "follow", [FOLLOW, Follow(0.4, 5.0, 600.0), Follow(lag_seconds=2.0), Follow(idle_seconds=None)]
)
def test_a_regions_settings_reach_its_agent_and_are_kept_there(tmp_path: Path, follow: Follow) -> None:
    """What is not set is not sent: an older agent would refuse the keys."""
    (tmp_path / "_console").mkdir()
    sent = agent_config(Region(name="eu", warehouse=str(tmp_path), follow=follow), TICK)
    settings = load_settings(json.dumps(sent))
    keep_settings(tmp_path, settings)
    kept = (tmp_path / "_console" / "agent.json").read_text()
    assert settings.follow == load_settings(kept).follow == follow
    assert sent == json.loads(kept)
    assert any(key.startswith("follow") for key in sent) == (follow != FOLLOW)


def test_a_share_of_nothing_is_refused_before_the_agent_begins() -> None:
    with pytest.raises(RegionError, match="follow_share") as refused:
        load_settings('{"region": "eu", "follow_share": 0}')
    assert "console follow" in refused.value.hint
