"""The fence, slices and measurements of a backfill before and between its batches: real logs and events, with scripted answers of Spark. No Java."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.execution import backfill_step, batch
from console.agent.feeds import app_ids, backfill, commit
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.errors import FeedStopped, RegionError
from console.model.event import Accepted, BatchDone, DriverLost, Fenced, Progress, StepStarted
from console.model.live import Day, Feed, Release, TableState, TableStats
from console.model.schema import Column
from console.model.slices import EARLY, LATE, Slice
from console.model.step import Backfill
from tests.faults.rules.tables import SCHEMA, commit_rows, number, rows, state
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

STEP = Backfill(
    materialization="every",
    source="landing",
    target="copy",
    route="replay",
    sql="SELECT n, day FROM landing",
    time="day",
    rows=10,
    bytes=1,
    days=1,
    batches=1,
)
FEED = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")


def context(
    place: Path,
    *feeds: Feed,
    rows_limit: int | None = None,
    bytes_limit: int | None = None,
    day_rows: int | None = None,
    landing: TableState | None = None,
) -> RolloutContext:
    """A rollout under way over a release of `landing` and `copy`, which is live as well."""
    release = Release(
        id="r1",
        pipeline="web",
        digest="d",
        tables=(landing or state("landing", kind="landing"), state("copy")),
        feeds=feeds,
    )
    recorder = Recorder(Rollouts(place, "web"))
    limits = {"rows_limit": rows_limit, "bytes_limit": bytes_limit, "day_rows": day_rows}
    plan = bare_plan(content="", steps=(STEP,), release=release, target_seconds=60.0, **limits)
    recorder.accept(
        "web-1", plan, Accepted(release="r1", was="", plan="p", by="ada", host="laptop", steps=((STEP.id, 10),))
    )
    releases = Releases(place, "web")
    releases.propose(release, "web-1", "ada", "laptop")
    releases.swap("", "r1", "ada", "laptop")
    return RolloutContext(
        warehouse=place,
        spark=cast(Any, None),
        releases=releases,
        recorder=recorder,
        follower=cast(Any, None),
        keep_hours=1,
    )


# -- the position that the live version had reached at a fence


def opened(place: Path, *feeds: Feed) -> str:
    """`copy`, whose feeds have reached 5 at version 1 and 9 at version 2, in their third epoch."""
    path = str(place / "copy")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    for position in (5, 9):
        for feed in feeds:
            commit_rows(path, app_ids.live_id(path, feed), number(3, position), rows())
    return path


def test_a_feed_goes_on_from_where_the_live_version_was_at_the_fence(tmp_path: Path) -> None:
    opened(tmp_path, FEED)
    rollout = context(tmp_path, FEED)
    assert [rollout.position_at("copy", "every", fence) for fence in (1, 2)] == [5, 9]
    assert rollout.position_at("copy", "by another name", 2) == 9, "of the only feed that it has"
    with pytest.raises(RegionError, match="no position of every at version 0"):
        rollout.position_at("copy", "every", 0)


def test_of_two_feeds_each_goes_on_from_its_own_position(tmp_path: Path) -> None:
    more = replace(FEED, materialization="more")
    path = opened(tmp_path, FEED, more)
    commit_rows(path, app_ids.live_id(path, more), number(4, 11), rows())
    rollout = context(tmp_path, FEED, more)
    assert [rollout.position_at("copy", name, 5) for name in ("every", "more")] == [9, 11]
    with pytest.raises(RegionError, match="no position of by another name"):
        rollout.position_at("copy", "by another name", 5)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    opened(tmp_path)
    rollout = context(tmp_path)
    assert rollout.state("copy").table.name == rollout.live_state("copy").table.name == "copy"
    assert rollout.stats("copy", str(tmp_path / "copy")).name == "copy"
    with pytest.raises(RegionError, match="release r1 has no table other"):
        rollout.state("other")
    with pytest.raises(RegionError, match="elsewhere is not a Delta table"):
        rollout.stats("copy", str(tmp_path / "elsewhere"))


# -- days and slices


def days_of(monkeypatch: pytest.MonkeyPatch, days: Sequence[Day], counted: Sequence[tuple[str, int]]) -> Any:
    monkeypatch.setattr(backfill, "count_days", lambda *_: list(counted))
    return backfill_step._days(None, STEP, state("landing", kind="landing"), "landing", tuple(days), fence=3)


EXACT, VAGUE = Day("2026-11-01", 80, 800), Day("2026-11-02", 20, 200, exact=False)


def test_days_are_taken_from_the_log_where_at_most_a_fifth_of_the_rows_lie_in_files_that_span_days(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert days_of(monkeypatch, (EXACT, VAGUE), [("counted", 1)]) == (EXACT, VAGUE)
    assert days_of(monkeypatch, (), [("counted", 1)]) == ()
    assert days_of(monkeypatch, (replace(EXACT, day=EARLY), VAGUE), [("counted", 1)])[0].day == EARLY


@pytest.mark.parametrize(
    "vague", [replace(VAGUE, rows=21), replace(VAGUE, rows=1, day=EARLY), replace(VAGUE, rows=1, day=LATE)]
)
def test_else_they_are_counted_and_share_the_bytes_by_their_rows(monkeypatch: pytest.MonkeyPatch, vague: Day) -> None:
    per_row = (800 + 200) / (80 + vague.rows)
    counted = [("2026-11-01", 60), ("", 41)]
    expected = tuple(Day(name, many, int(many * per_row)) for name, many in counted)
    assert days_of(monkeypatch, (EXACT, vague), counted) == expected


def test_a_day_of_many_rows_is_cut_into_hours_unless_it_has_none(tmp_path: Path) -> None:
    rollout = context(tmp_path, rows_limit=10)
    times = state("landing", kind="landing")
    times = replace(times, table=replace(times.table, columns=(replace(times.table.columns[1], type="timestamp"),)))
    days = (Day("2026-11-01", 20, 1),)
    by_date, by_time = (backfill_step._slices(rollout, STEP, each, days) for each in (state("landing"), times))
    assert [piece.label for piece in by_date] == ["2026-11-01", "no day"]
    assert len(by_time) == 25


@pytest.mark.parametrize(("size", "slices"), [(9, 2), (10, 2), (11, 25)])
def test_a_day_of_many_bytes_is_cut_into_hours(tmp_path: Path, size: int, slices: int) -> None:
    rollout = context(tmp_path, bytes_limit=10)
    times = state("landing", kind="landing")
    times = replace(times, table=replace(times.table, columns=(replace(times.table.columns[1], type="timestamp"),)))
    cut = backfill_step._slices(rollout, STEP, times, (Day("2026-11-01", 20, size),))
    assert len(cut) == slices
    assert sum(piece.bytes for piece in cut) >= size


@pytest.mark.parametrize(
    ("rows_limit", "day_rows", "rows", "slices"),
    [(None, 10, 10, 2), (None, 10, 11, 25), (5, 10, 6, 25), (20, 10, 11, 25), (20, None, 11, 2)],
)
def test_a_day_that_would_take_several_times_the_target_is_cut_into_hours(
    tmp_path: Path, rows_limit: int | None, day_rows: int | None, rows: int, slices: int
) -> None:
    rollout = context(tmp_path, rows_limit=rows_limit, day_rows=day_rows)
    times = state("landing", kind="landing")
    times = replace(times, table=replace(times.table, columns=(replace(times.table.columns[1], type="timestamp"),)))
    assert len(backfill_step._slices(rollout, STEP, times, (Day("2026-11-01", rows, 1),))) == slices


@pytest.mark.parametrize("managed", [False, True])
def test_times_that_spark_would_cut_are_looked_for_in_what_others_write_before_anything_is_fenced(
    tmp_path: Path, managed: bool
) -> None:
    times = pa.table({"n": [1], "at": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC"))})
    landing, columns = tmp_path / "landing", (Column(name="n", type="bigint"), Column(name="at", type="timestamp"))
    write_deltalake(str(landing), times)
    (file,) = landing.glob("*.parquet")
    pq.write_table(times, file)  # deltalake itself writes microseconds
    foreign = state("landing", columns, kind="landing", managed=managed, partition_by=())
    step = replace(STEP, time="")
    rollout = context(tmp_path, FEED, landing=foreign)
    opened(tmp_path)
    if managed:  # lines with such times were refused when they came
        assert backfill_step.open_history(rollout, step, None).fence == 0
    else:
        with pytest.raises(FeedStopped) as refused:
            backfill_step.open_history(rollout, step, None)
        assert refused.value.code == "E_NANOSECONDS"
    assert [fenced.version for fenced in rollout.recorder.events(Fenced)] == ([0] if managed else [])


@pytest.mark.parametrize(
    ("fenced", "limits"),
    [
        (2, {"bytes_limit": 1}),
        (25, {"bytes_limit": 1}),
        (7, {"bytes_limit": 1}),
        (2, {"day_rows": 0}),
        (25, {"day_rows": 0}),
        (25, {"day_rows": 0, "bytes_limit": 1}),
    ],
)
def test_a_history_that_was_fenced_before_days_were_cut_by_bytes_or_by_the_rate_keeps_its_slices(
    tmp_path: Path, fenced: int, limits: dict[str, int]
) -> None:
    times = pa.table({"n": [1], "at": pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC"))})
    columns = (Column(name="n", type="bigint"), Column(name="at", type="timestamp"))
    write_deltalake(str(tmp_path / "landing"), times)
    foreign = state("landing", columns, kind="landing", partition_by=())
    rollout, step = context(tmp_path, FEED, landing=foreign, **limits), replace(STEP, time="at")
    rollout.spark = cast(Any, SimpleNamespace(job=lambda *_: nullcontext()))
    opened(tmp_path)
    rollout.recorder.store(Fenced(step=step.id, source="landing", version=0, slices=fenced, rows=1))
    if fenced == 7:
        with pytest.raises(RegionError, match="is cut into 2 slices, not into 7"):
            backfill_step.open_history(rollout, step, None)
    else:
        assert len(backfill_step.open_history(rollout, step, None).slices) == fenced


# -- batches that nobody told


def test_what_was_committed_of_this_history_and_not_told_is_told_by_the_next_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside it others carried theirs into the same table: feeds whose names sort before and after its own."""
    rollout, path, own = context(tmp_path), str(tmp_path / "copy"), "history/t/every@3"
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    slices = tuple(Slice(index=n, label=f"2026-11-0{9 - n}", first="", end="", rows=n, bytes=n) for n in range(1, 7))
    for feed, first, last in (
        (own, 1, 2), ("history/t/a@1", 3, 3), (own, 3, 3), ("history/t/z@9", 4, 5), ("live/t/every", 0, 0), (own, 4, 6)
    ):  # fmt: skip
        note = {"slices": [first, last]} if last else {}
        commit_rows(path, feed, number(1, last + 1), rows(*range(first, last + 1)), kind="x", feed=feed, **note)
    rollout.recorder.store(
        BatchDone(
            step=STEP.id,
            label="2026-11-08 … 2026-11-07",
            position=2,
            of=6,
            rows_in=2,
            rows_out=2,
            bytes=1,
            seconds=1.0,
            version=1,
        )
    )
    rollout.recorder.store(
        BatchDone(
            step="backfill/other", label="x", position=3, of=6, rows_in=2, rows_out=2, bytes=1, seconds=1.0, version=1
        )
    )
    rollout.spark = cast(Any, SimpleNamespace(job=lambda *_: nullcontext(None)))
    monkeypatch.setattr(backfill, "count_rows", lambda _, __, run: 100 * len(run))
    stored = backfill.History(
        step=STEP,
        source=state("landing"),
        source_path="landing",
        target=state("copy"),
        target_path=path,
        fence=3,
        slices=slices,
        writer=commit.FeedWriter(app_id=own, target=path, epoch=1, position=6),
    )
    for _ in range(2):  # told once
        backfill_step._reconcile(rollout, stored, None)
        done = [event for event in rollout.recorder.events(BatchDone) if event.step == STEP.id]
        assert [(each.position, each.label, each.of, each.rows_in, each.rows_out, each.version) for each in done] == [
            (2, "2026-11-08 … 2026-11-07", 6, 2, 2, 1),
            (3, "2026-11-06", 6, 100, 1, 3),
            (6, "2026-11-05 … 2026-11-03", 6, 300, 3, 6),
        ]


# -- for how long it can be read


def test_a_history_can_be_read_for_as_long_as_its_source_and_its_target_keep_what_is_removed(tmp_path: Path) -> None:
    target = opened(tmp_path)
    rollout, now = context(tmp_path), time.time()

    def until(**source: str) -> float:
        settings = tuple((f"delta.{name}", f"interval {text}") for name, text in source.items())
        stats = TableStats(
            name="copy", path="landing", version=1, rows=1, bytes=1, files=1, columns=(), properties=settings
        )
        return (backfill_step._readable_until(rollout, stats, target) - now) / 3600

    assert until() == pytest.approx(168, abs=0.1)
    assert until(deletedFileRetentionDuration="36 hours") == pytest.approx(36, abs=0.1)
    assert until(deletedFileRetentionDuration="4 weeks") == pytest.approx(168, abs=0.1), "the target keeps a week"
    rollout.recorder.store(Fenced(step="other", source="landing", version=1, slices=1, rows=1, until=now + 7200))
    assert until() == pytest.approx(2, abs=0.1), "what hangs below an earlier one ends with it"


# -- batches


@pytest.mark.parametrize(
    ("rows_in", "seconds", "before", "limit", "then"),
    [
        (1000, 30.0, 1000.0, None, 2000.0),  # towards a minute
        (1000, 120.0, 1000.0, None, 500.0),
        (1000, 1.0, 1000.0, None, 4000.0),  # in steps of at most four
        (1000, 1.0, 3000.0, None, 12_000.0),
        (5000, 1.0, 3000.0, None, 20_000.0),
        (1000, 1.0, 1000.0, 1500, 1500),
        (0, 30.0, 1000.0, 500, 1000.0),
        (1000, 0.0, 1000.0, 500, 1000.0),
    ],
)
def test_batches_grow_and_shrink_towards_the_time_that_they_are_to_take(
    tmp_path: Path, rows_in: int, seconds: float, before: float, limit: int | None, then: float
) -> None:
    receipt = backfill.BatchResult(rows_in, commit.CommitResult(1, rows_in, 1), seconds)
    assert backfill_step._budget(context(tmp_path, rows_limit=limit), before, receipt) == pytest.approx(then)


def done(rows: int, seconds: float, step: str = STEP.id) -> BatchDone:
    return BatchDone(
        step=step, label="x", position=1, of=9, rows_in=rows, rows_out=rows, bytes=1, seconds=seconds, version=1
    )


def test_the_first_batch_of_a_spark_does_not_make_the_second_one_smaller(tmp_path: Path) -> None:
    """Most of its time went into loading and interpreting classes: with 400,000 rows in 80 s the next one had 300,000."""
    rollout = context(tmp_path)
    store, first, budget = rollout.recorder.store, backfill_step._first_budget, backfill_step._budget
    assert first(rollout, STEP) == backfill_step.FIRST_ROWS
    cold = done(400_000, 80.0)
    store(cold)
    result = cast(Any, SimpleNamespace(rows_in=cold.rows_in, seconds=cold.seconds))
    assert (
        budget(rollout, 400_000, result)
        == first(rollout, STEP)
        == first(rollout, replace(STEP, target="other"))
        == 600_000
    )
    warm = done(600_000, 30.0)
    store(warm)
    result = cast(Any, SimpleNamespace(rows_in=warm.rows_in, seconds=warm.seconds))
    assert budget(rollout, 600_000, result) == 1_200_000, "from then on as measured"
    assert first(rollout, STEP) == pytest.approx(1_000_000 / 70 * 60)


def test_a_spark_that_was_lost_is_cold_again_and_batches_without_a_time_say_nothing(tmp_path: Path) -> None:
    rollout = context(tmp_path)
    lost, other_agent = DriverLost(STEP.id), StepStarted(STEP.id, away_since=1.0)
    first = (StepStarted(STEP.id), done(100, 10.0), done(100, 10.0), done(100, 0.0))
    for event in (*first, lost, done(0, 1.0), done(100, 10.0), other_agent, done(100, 8.0)):
        rollout.recorder.store(event)
    assert [seconds for _, seconds in backfill_step._timed(rollout)] == [5.0, 10.0, 5.0, 4.0]


def test_a_batch_tells_how_far_it_has_come_until_it_is_done_and_its_jvm_may_go_away() -> None:
    fractions, report = iter((0.0, 0.25, 0.5, 1.5)), list[Any]()
    waits = iter((False,) * 5)
    finished = SimpleNamespace(wait=lambda _: next(waits, True))

    def fraction() -> float:
        if (first := next(fractions, None)) is None:
            raise ConnectionError("the JVM is gone")
        return first

    watched = SimpleNamespace(recorder=SimpleNamespace(publish=report.append))
    batch._poll(
        cast(Any, watched), cast(Any, SimpleNamespace(fraction=fraction)), STEP.id, "x", 1000, cast(Any, finished)
    )
    assert report == [Progress(step=STEP.id, rows=rows, batch="x") for rows in (0, 250, 500, 1000)]
    assert next(waits, None) is None, "it asked until the JVM was gone"
