"""A table cut into slices: every possible time is in exactly one, whatever the log says of its days. Judged by integers."""

import itertools
import random
from itertools import pairwise

import pytest

from console.agent.feeds import backfill
from console.model.live import Day
from console.model.slices import EARLY, LATE, Slice, cut, day_after, day_name, half, moment, pack
from tests.days import draw

pytestmark = pytest.mark.slow

PLAIN = range(draw.FIRST, draw.LAST + 1)


def days(rng: random.Random) -> list[Day]:
    """Some days of a table, in any order, among them the first, the last, NULL and both ends."""
    numbers = rng.sample([draw.FIRST, draw.LAST, -354_286, 0, *range(20_750, 20_760)], rng.randrange(6))
    names = [day_name(number) for number in numbers] + rng.sample(["", EARLY, LATE], rng.randrange(4))
    rng.shuffle(names)
    return [Day(name, rng.randrange(1, 3000), rng.randrange(1, 10**6)) for name in names]


def holds(piece: Slice, time: int | None) -> bool:
    if time is None or piece.null:
        return time is None and piece.null
    return (not piece.first or moment(piece.first) <= time) and (not piece.end or time < moment(piece.end))


@pytest.mark.parametrize("seed", range(draw.SEED, draw.SEED + 60))
def test_every_time_is_in_exactly_one_slice_and_each_half_takes_its_own(seed: int) -> None:
    rng = random.Random(seed)
    known = days(rng)
    slices = cut(known, rng.choice([None, 1000]), hours=rng.random() < 0.5)
    assert [piece.index for piece in slices] == list(range(1, len(slices) + 1))
    day = day_name(rng.choice([draw.FIRST + 1, 20_755, draw.LAST]))
    newer, older = half(slices, since=day), half(slices, until=day)
    assert [piece.index for piece in newer] == list(range(1, len(newer) + 1))
    for time in draw.times(rng, 60):
        assert [holds(piece, time) for piece in slices].count(True) == 1
        in_halves = [[holds(piece, time) for piece in side].count(True) for side in (newer, older)]
        assert in_halves == ([1, 0] if time is not None and time >= moment(f"{day}T00:00:00") else [0, 1])


@pytest.mark.parametrize("seed", range(draw.SEED, draw.SEED + 60))
def test_slices_hold_the_rows_of_their_days_newest_first(seed: int) -> None:
    rng = random.Random(seed)
    known = days(rng)
    slices = cut(known)
    by_name = {day.day: (day.rows, day.bytes) for day in known}
    assert {piece.label: (piece.rows, piece.bytes) for piece in slices} == {
        "no day": by_name.pop("", (0, 0)),
        **(by_name or {"all": (0, 0)}),
        **({} if set(by_name) - {EARLY, LATE} else {"all": (0, 0)}),
    }
    dated = [piece.label for piece in slices if piece.label not in ("no day", "all")]
    assert dated == sorted(dated, reverse=True)
    assert [piece.null for piece in slices] == [False] * (len(slices) - 1) + [True]
    assert all(newer.first == older.end for newer, older in pairwise(slices[:-1]))


@pytest.mark.parametrize(("day", "first", "end"), [(EARLY, "", "0001-01-01"), (LATE, "9999-12-31T24", "")])
def test_days_without_a_name_have_a_slice_of_their_own_at_their_end(day: str, first: str, end: str) -> None:
    usual = Day("2026-11-07", 5, 50)
    (piece,) = (piece for piece in cut([usual, Day(day, 3, 30)], rows_limit=1) if piece.label == day)
    assert (piece.first[: len(first)], piece.end[: len(end)]) == (first, end)
    assert (bool(piece.first), bool(piece.end), piece.rows, piece.bytes) == (bool(first), bool(end), 3, 30)


def test_a_heavy_day_is_cut_into_hours_of_equal_shares_rounded_up() -> None:
    even = cut([Day("2026-11-07", 72, 48)], rows_limit=48)[:-1]
    assert {(piece.rows, piece.bytes) for piece in even} == {(3, 2)}
    hours = cut([Day("2026-11-07", 49, 25)], rows_limit=48)[:-1]
    assert [(piece.label, piece.rows, piece.bytes) for piece in hours] == [
        (f"2026-11-07T{hour:02}", 3, 2) for hour in reversed(range(24))
    ]
    assert [piece.first for piece in hours] == [*(f"2026-11-07T{hour:02}:00:00" for hour in range(23, 0, -1)), ""]
    for rows in (1, 47, 48):
        assert len(cut([Day("2026-11-07", rows, 25)], rows_limit=48)) == 2
    assert len(cut([Day("2026-11-07", 49, 25)], rows_limit=48, hours=False)) == 2
    assert len(cut([Day("2026-11-07", 49, 25)])) == 2


def test_an_empty_table_is_cut_into_all_and_no_day() -> None:
    assert cut(()) == (
        Slice(index=1, label="all", first="", end="", rows=0, bytes=0),
        Slice(index=2, label="no day", first="", end="", rows=0, bytes=0, null=True),
    )


def test_each_day_has_a_name_that_sorts_as_it_does() -> None:
    numbers = [draw.FIRST - 1, draw.FIRST, -354_286, -354_285, -1, 0, 1, 20_758, draw.LAST, draw.LAST + 1]
    names = [day_name(number) for number in numbers]
    assert names == sorted(names)
    assert names == [
        EARLY, "0001-01-01", "0999-12-31", "1000-01-01", "1969-12-31", "1970-01-01", "1970-01-02", "2026-11-01",
        "9999-12-31", LATE,
    ]  # fmt: skip
    assert [day_after(str(name.encode(), "ascii")) for name in names] == [
        "0001-01-01", "0001-01-02", "1000-01-01", "1000-01-02", "1970-01-01", "1970-01-02", "1970-01-03", "2026-11-02",
        "", "",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [draw.FIRST, -354_286, -1, 0, 20_758, draw.LAST])
def test_a_moment_is_so_many_microseconds_since_1970(number: int) -> None:
    assert moment(f"{day_name(number)}T00:00:00") == number * draw.A_DAY
    for hour, minute, second in itertools.product((0, 1, 7, 23), (0, 1, 2, 31, 59), (0, 1, 3, 7, 30, 59)):
        text = f"{day_name(number)}T{hour:02}:{minute:02}:{second:02}"
        assert moment(text) == number * draw.A_DAY + ((hour * 60 + minute) * 60 + second) * 10**6
    assert moment("9999-12-31T24:00:00") == (draw.LAST + 1) * draw.A_DAY


def piece(index: int, rows: int, size: int = 0) -> Slice:
    return Slice(index=index, label=str(index), first="", end="", rows=rows, bytes=size)


@pytest.mark.parametrize(
    ("after", "rows", "size", "taken"),
    [
        (0, None, None, [1, 2, 3, 4]),
        (2, None, None, [3, 4]),
        (4, None, None, []),
        (0, 30.0, None, [1, 2]),
        (0, 65, None, [1, 2, 3]),
        (0, 29, None, [1]),
        (0, 5, None, [1]),
        (1, 50, None, [2, 3]),
        (0, None, 2.0, [1, 2]),
        (0, None, 3.5, [1, 2, 3]),
        (0, None, 1, [1]),
        (0, 30, 1, [1]),
        (0, 10, 2, [1]),
    ],
)
def test_a_batch_is_a_run_of_whole_slices_within_both_limits_and_at_least_one(
    after: int, rows: float | None, size: float | None, taken: list[int]
) -> None:
    slices = [piece(1, 10, 1), piece(2, 20, 1), piece(3, 30, 1), piece(4, 40, 1)]
    assert [one.index for one in pack(slices, after, rows, size)] == taken


@pytest.mark.parametrize(
    ("since", "until", "labels"),
    [
        ("2026-11-03", "", [LATE, "2026-11-04", "2026-11-03"]),
        ("", "2026-11-03", ["2026-11-02", EARLY, "no day"]),
        ("2026-11-02", "", [LATE, "2026-11-04", "2026-11-03", "2026-11-02"]),
        ("2026-11-05", "", [LATE, "2026-11-04"]),
        ("", "2026-11-05", ["2026-11-04", "2026-11-03", "2026-11-02", EARLY, "no day"]),
        ("2026-11-01", "", [LATE, "2026-11-04", "2026-11-03", "2026-11-02"]),
        ("", "2026-11-01", ["2026-11-02", EARLY, "no day"]),
    ],
)
def test_a_half_has_the_slices_that_reach_into_it_and_no_other(since: str, until: str, labels: list[str]) -> None:
    known = [Day(name, 1, 1) for name in (EARLY, "2026-11-02", "2026-11-03", "2026-11-04", LATE, "")]
    slices = half(cut(known), since, until)
    assert [piece.label for piece in slices] == labels
    assert all(not piece.end or piece.first < piece.end for piece in slices if not piece.null)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a"], "a"), (["b", "a"], "b … a"), (["c", "b", "a"], "c … a"), (["b", "a", ""], "b … a"), (["a", ""], "a")],
)
def test_a_batch_is_named_by_its_newest_and_its_oldest_slice(labels: list[str], message: str) -> None:
    pieces = [
        Slice(index=index, label=label or "no day", first="", end="", rows=1, bytes=1, null=not label)
        for index, label in enumerate(labels, 1)
    ]
    assert backfill.label(pieces) == message
    assert backfill.label([Slice(index=1, label="no day", first="", end="", rows=1, bytes=1, null=True)]) == "no day"
