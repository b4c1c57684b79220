"""The samples that a view keeps: of each feed and moment one, by time, of the last hour; however they arrive."""

from hypothesis import given
from hypothesis import strategies as st

from console.model.measured import FeedSample
from console.runner.view_events import SAMPLES_SECONDS, joined


def sample(tick: int, feed: str, rows: float = 1.0) -> FeedSample:
    return FeedSample(at=1_794_000_000.0 + 10 * tick, feed=feed, rows=rows, lag=0.5, behind=0)


moments = st.tuples(st.integers(0, 800), st.sampled_from(["", "parse", "count"]))
parts = st.lists(st.lists(moments, max_size=12, unique=True), max_size=12)


@given(parts)
def test_whatever_order_they_come_in_each_is_kept_once_and_by_time(drawn: list[list[tuple[int, str]]]) -> None:
    kept: tuple[FeedSample, ...] = ()
    first: dict[tuple[int, str], FeedSample] = {}  # of two for the same moment the first one stays
    newest = 0
    for number, part in enumerate(drawn):
        new = [sample(tick, feed, rows=number) for tick, feed in part]
        kept = joined(kept, new)
        newest = max([newest, *(tick for tick, _ in part)])
        first = {moment: sample(*moment, rows=number) for moment in part} | first
        first = {moment: known for moment, known in first.items() if 10 * (newest - moment[0]) < SAMPLES_SECONDS}
        assert sorted(kept, key=lambda known: known.at) == list(kept)
        assert {(known.at, known.feed): known for known in kept} == {(k.at, k.feed): k for k in first.values()}
        assert len(kept) == len(first)


def test_what_an_agent_reports_every_ten_seconds_is_an_hour_in_the_end() -> None:
    kept: tuple[FeedSample, ...] = ()
    for tick in range(1_000):
        kept = joined(kept, [sample(tick, "parse"), sample(tick, "")])
    assert len(kept) == 2 * SAMPLES_SECONDS / 10
    assert kept[-1].at - kept[0].at == SAMPLES_SECONDS - 10


def test_no_samples_are_none() -> None:
    assert joined((), ()) == ()
