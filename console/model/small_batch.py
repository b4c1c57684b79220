"""Batches of many days with few rows each, whose rows the agent itself writes, as it does those of small live steps.

Spark's writer takes some 50 to 100 ms of processor time for each file, deltalake's 3 (docs/decisions/0035), and each day is one file.
"""

from collections.abc import Sequence

from console.model.slices import Counted, Piece, pack

SLICES = 16  # at least; with fewer Spark's writer costs little more
# of a batch at most: its rows are collected, compressed bytes of its source ten times as large in memory
ROWS, BYTES = 400_000, 8 << 20


def is_small(run: Sequence[Counted]) -> bool:
    """Whether a batch has many slices, and so few rows that they may be collected."""
    rows, size = sum(piece.rows for piece in run), sum(piece.bytes for piece in run)
    return len(run) >= SLICES and rows <= ROWS and size <= BYTES


def next_run(slices: Sequence[Piece], after: int, rows: float | None, size: float | None) -> tuple[Piece, ...]:
    """As `slices.pack`; of slices of few rows no more than make a small batch."""
    run = pack(slices, after, ROWS if rows is None else min(rows, ROWS), BYTES if size is None else min(size, BYTES))
    return run if is_small(run) else pack(slices, after, rows, size)
