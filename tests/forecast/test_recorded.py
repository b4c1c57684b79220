"""The forecast, judged by rollouts that were recorded on real Spark (`python -m tests.forecast.record`)."""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from statistics import median

import pytest

from console.model.event import BatchDone, BatchStarted, Logged, Recorded
from console.model.incident import WaitBegan
from console.model.status import Status, fold
from console.model.step_id import BACKFILL, CATCH_UP, StepId
from tests.forecast.judge import LEAST_HELD, MOST_WIDTH, judged
from tests.forecast.recorded import RecordedRollout, recorded_rollouts
from tests.forecast.stories import Story

ROLLOUTS: Mapping[Story, RecordedRollout] = {rollout.story: rollout for rollout in recorded_rollouts()}


@pytest.mark.parametrize("story", list(ROLLOUTS), ids=lambda story: story.value)
def test_a_hundred_per_cent_is_shown_only_when_every_slice_and_the_catch_up_are_closed(story: Story) -> None:
    states = list(accumulate(ROLLOUTS[story].events, fold, initial=Status()))
    for status in states:
        closing = [step for step in status.steps if StepId.parse(step.id).kind in (BACKFILL, CATCH_UP)]
        closed = bool(closing) and all(step.state == "done" for step in closing)
        assert (status.percent == 100) is closed
    assert states[-1].percent == 100


@pytest.mark.slow
@pytest.mark.parametrize("story", list(ROLLOUTS), ids=lambda story: story.value)
def test_once_the_newest_days_are_carried_the_forecast_never_goes_away_without_a_wait(story: Story) -> None:
    rollout = ROLLOUTS[story]
    measured = next(recorded.at for recorded in rollout.events if isinstance(recorded.event, BatchDone))
    for recorded in rollout.events[:-1]:
        if recorded.seq and recorded.at > measured and rollout.forecast(recorded.at) is None:
            waiting = rollout.status(recorded.at).waiting
            assert waiting is not None
            assert waiting.cause != "hours"


def test_the_recording_of_a_lag_holds_waits_for_it() -> None:
    incidents = [r.event.incident for r in ROLLOUTS[Story.LAG].events if isinstance(r.event, Logged)]
    assert "lag" in {incident.cause for incident in incidents if isinstance(incident, WaitBegan)}


def test_of_two_tables_the_newest_days_of_both_are_carried_before_the_second_batch_of_either() -> None:
    batches = [
        recorded.event for recorded in ROLLOUTS[Story.TWO_TABLES].events if isinstance(recorded.event, BatchStarted)
    ]
    assert len({batch.step for batch in batches[:2]}) == 2
    assert [batch.first for batch in batches[:2]] == [1, 1]
    assert batches[2].first > 1


@pytest.mark.slow
def test_at_half_time_the_forecast_holds_the_end_of_eight_in_ten_and_is_no_wider_than_0_6_of_what_is_left() -> None:
    assert ROLLOUTS.keys() == set(Story)
    halves = [judged(rollout, 0.5) for rollout in ROLLOUTS.values()]
    assert sum(each.held for each in halves) >= LEAST_HELD
    assert median(each.width for each in halves) <= MOST_WIDTH


def test_events_of_a_recording_are_those_of_one_rollout() -> None:
    def stored(events: Iterable[Recorded]) -> list[int]:
        return [recorded.seq for recorded in events if recorded.seq]

    for rollout in ROLLOUTS.values():
        assert stored(rollout.events) == list(range(1, len(stored(rollout.events)) + 1)), rollout.story
