"""Which slices make a batch that the agent writes itself."""

from console.model import small_batch
from console.model.slices import Slice, pack
from console.model.small_batch import BYTES, ROWS, SLICES


def slices(number: int, rows: int = 1_000, size: int = 10_000) -> tuple[Slice, ...]:
    return tuple(Slice(index=at, label=str(at), first="", end="", rows=rows, bytes=size) for at in range(1, number + 1))


def test_many_days_of_few_rows_are_cut_into_batches_that_may_be_collected() -> None:
    years = slices(5 * 365)
    after, seen = 0, list[int]()
    while run := small_batch.next_run(years, after, 1_600_000, None):
        assert small_batch.is_small(run)
        seen += [piece.index for piece in run]
        after = run[-1].index
    assert seen == [piece.index for piece in years]


def test_other_slices_are_packed_by_the_limits_alone() -> None:
    few, heavy, wide = slices(SLICES - 1), slices(30, rows=ROWS // 15), slices(30, size=BYTES // 15)
    for each in (few, heavy, wide):
        for rows, size in ((None, None), (1_600_000, None), (None, 20 * BYTES), (5_000, None)):
            assert small_batch.next_run(each, 0, rows, size) == pack(each, 0, rows, size)
            assert not small_batch.is_small(pack(each, 0, rows, size))


def test_limits_below_those_of_small_batches_are_kept() -> None:
    assert len(small_batch.next_run(slices(100), 0, 20_000, None)) == 20
    assert len(small_batch.next_run(slices(100), 0, None, 200_000)) == 20
    assert len(small_batch.next_run(slices(100), 90, None, None)) == 10


def test_one_row_or_byte_too_many_is_left_to_spark() -> None:
    assert small_batch.is_small(slices(SLICES, rows=ROWS // SLICES, size=BYTES // SLICES))
    assert not small_batch.is_small(slices(SLICES - 1, rows=1, size=1))
    assert not small_batch.is_small(slices(SLICES, rows=ROWS // SLICES + 1))
    assert not small_batch.is_small(slices(SLICES, size=BYTES // SLICES + 1))
